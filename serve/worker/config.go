package worker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"baton/core/room"
	"baton/engine/kernel"
	"baton/transfer"
)

// Roles.
const (
	Prefill = "prefill" // computes prompts and sends their KV
	Decode  = "decode"  // receives KV and generates
	Unified = "unified" // does both for itself, without a link
)

// Config is what an operator chooses for one worker.
type Config struct {
	Role          string
	Model         string // a name or a file, as store.Resolve takes it; "" is the embedded recall model
	Name          string // in rows and logs; "" is role@address
	HTTP          string // listen address for legs; "" is 127.0.0.1:0
	Link          string // listen address for links, prefill only; "" is 127.0.0.1:0
	Secret        []byte // shared by all workers of the fleet; prefill and decode need it
	Sizes         Sizes
	Deterministic bool                    // one family of kernels for prompts and for output, the same on both ends of a link
	NoPrefixCache bool                    // compute every prompt as if it were the first
	Canary        bool                    // fill freed blocks with a pattern and check it (W7): slow, for tests
	Grace         time.Duration           // at the end, how long live rooms may go on; 0 is GraceDefault, see NoGrace
	Log           *slog.Logger            // nil is slog.Default
	Record        string                  // a directory for a trace of all that the core is told and wants (package recorder); "": none
	Ready         io.Writer               // Run prints its ready line here; nil for none
	Loading       func(done, total int64) // is told how much of the weights is loaded, in bytes; nil for nobody
	Parent        io.Reader               // Run drains and ends when this ends; nil for none
}

// Sizes bound a worker.
type Sizes struct {
	KVTokens    int    // tokens in the KV pool; 0 derives it from the memory that is available
	Workers     int    // on this machine, with this one, among which that is shared; 0 is WorkersDefault
	MaxRunning  int    // rooms that may compute or write at once; where they generate each counts as often as it has choices; 0 is RunningDefault
	MaxQueued   int    // rooms that may wait; 0 is QueuedDefault
	ChunkTokens int    // prompt tokens in one engine step; 0 is ChunkDefault
	AheadTokens int    // tokens of output for which a room has blocks ahead; 0 is AheadDefault, AheadMax is all of it
	Threads     int    // of the engine; 0 is one per CPU of this process
	KV          string // number format of the KV cache: bf16, f32 or q8_0; "" is bf16
}

// Defaults and bounds of Config.
const (
	// RunningDefault is where one-token steps of small models stop to gain from more rooms.
	RunningDefault = 32
	// QueuedDefault is several seconds of work at RunningDefault; a longer queue only turns
	// refusals into deadlines.
	QueuedDefault = 256
	// WorkersDefault is a pair.
	WorkersDefault = 2
	// ChunkDefault keeps a step near 0.1 s on two CPU threads at 1 B parameters.
	ChunkDefault = 512
	// AheadDefault is half of ChunkDefault: from a room's coming back until the next has to yield
	// there are at least as many steps, and computing again a prompt and output of some thousand
	// tokens takes a few of them. Outputs are rarely as long as they may be, so reserving more
	// would only keep rooms waiting.
	AheadDefault = 256
	// GraceDefault is Kubernetes' default termination grace (30 s) less the time to end.
	GraceDefault = 25 * time.Second
	// NoGrace ends live rooms at once: a moment, since 0 is the default.
	NoGrace = time.Nanosecond

	// Bounds of Sizes, for whoever starts workers and wants to refuse a number before it does.
	RunningMax  = 4096           // rooms; beyond it one step's table is larger than a chunk
	QueuedMax   = 1 << 16        // rooms; each costs up to leg.BodyBytesMax while it waits
	ChunkMax    = 1 << 14        // tokens; activations of a step grow with it
	AheadMax    = room.TokensMax // tokens; no output is longer, so nothing is ever retracted
	ThreadsMax  = kernel.TeamMax // what the engine takes
	WorkersMax  = 1 << 10        // processes; far above what one machine can feed
	KVTokensMax = 1 << 28        // tokens; far above any memory, keeps products inside an int

	graceMax = time.Hour // whoever needs more forgot the worker
)

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.Sizes.MaxRunning, RunningDefault)
	set(&c.Sizes.MaxQueued, QueuedDefault)
	set(&c.Sizes.Workers, WorkersDefault)
	set(&c.Sizes.ChunkTokens, ChunkDefault)
	set(&c.Sizes.AheadTokens, AheadDefault)
	if c.Sizes.KV == "" {
		c.Sizes.KV = "bf16"
	}
	if c.HTTP == "" {
		c.HTTP = "127.0.0.1:0"
	}
	if c.Link == "" {
		c.Link = "127.0.0.1:0"
	}
	if c.Grace == 0 {
		c.Grace = GraceDefault
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Check says what is wrong with a configuration that has its defaults.
func (c Config) Check() error {
	switch c.Role {
	case Prefill, Decode:
		if len(c.Secret) < transfer.SecretMin {
			return fmt.Errorf("worker: secret: %d bytes; a %s worker needs at least %d, the same on every worker of the fleet",
				len(c.Secret), c.Role, transfer.SecretMin)
		}
	case Unified:
	default:
		return fmt.Errorf("worker: role: %q; want %s, %s or %s", c.Role, Prefill, Decode, Unified)
	}
	if c.Grace < 0 || c.Grace > graceMax {
		return fmt.Errorf("worker: grace: %v; want 0 to %v", c.Grace, graceMax)
	}
	return c.Sizes.check()
}

func (s Sizes) check() error {
	var errs []error
	within := func(name string, v, lo, hi int) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("worker: %s: %d; want %d to %d", name, v, lo, hi))
		}
	}
	within("max batch", s.MaxRunning, 1, RunningMax)
	within("max queued", s.MaxQueued, 1, QueuedMax)
	within("chunk tokens", s.ChunkTokens, room.BlockTokens, ChunkMax)
	within("ahead tokens", s.AheadTokens, 1, AheadMax)
	within("threads", s.Threads, 0, ThreadsMax)
	within("workers", s.Workers, 1, WorkersMax)
	if s.KVTokens != 0 {
		within("kv tokens", s.KVTokens, room.BlockTokens, KVTokensMax)
	}
	if s.ChunkTokens%room.BlockTokens != 0 {
		errs = append(errs, fmt.Errorf("worker: chunk tokens: %d; want a multiple of %d", s.ChunkTokens, room.BlockTokens))
	}
	if _, err := kernel.ParseKVType(s.KV); err != nil {
		errs = append(errs, fmt.Errorf("worker: kv: %w", err))
	}
	return errors.Join(errs...)
}
