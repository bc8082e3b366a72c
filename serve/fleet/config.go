package fleet

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"time"

	"baton/serve/gateway"
)

// Config says what to run. Zero values take their defaults.
type Config struct {
	Listen  string         // of the gateway, host:port
	Gateway gateway.Config // Model and Text are needed
	Prefill int            // workers of each role; see Check
	Decode  int
	Unified int
	Command func(role, name string) *exec.Cmd // makes a worker's process; the secret and the pipes are added here
	Secret  string                            // name of the environment variable for the secret
	Out     io.Writer                         // gets the ready line
	Log     *slog.Logger
	Workers io.Writer                              // gets the workers' standard error, each line with its name
	Now     <-chan struct{}                        // closed: stop at once
	Loading func(worker string, done, total int64) // is told how much of its weights a worker has loaded, in bytes, or 0 of 0 when one has ended before it was ready, by several goroutines; nil for nobody
	Times   Times
}

// Times are the fleet's bounds. Zero values take the defaults below.
type Times struct {
	Start  time.Duration // from a worker's start until its ready line
	Probe  time.Duration // between two questions for a worker's health
	Answer time.Duration // for one answer
	Frozen time.Duration // how long a worker's health may be bad before it is killed
	Pause  time.Duration // before a worker is started again, doubled for each failure in a row
	Drain  time.Duration // for live requests at the end
	Leave  time.Duration // for a worker at the end
}

const (
	startDefault  = 10 * time.Minute       // packing the weights of a large model on a slow disk
	probeDefault  = 500 * time.Millisecond // a dead worker is seen within a second or two
	answerDefault = 2 * time.Second        // a worker's loop on a machine whose cores are all busy
	frozenDefault = 10 * time.Second       // five answers missed: stopped, swapped out or stuck
	pauseDefault  = 200 * time.Millisecond
	// A request waits 10 s for a worker (relay.PlaceDefault): half of it may be the longest
	// pause, the other half is for the start of a model of ordinary size. A worker that dies
	// whenever it is started costs one start in 5 s then, which a machine bears for ever.
	pauseMax = 5 * time.Second
	// A worker that served twice the longest pause was up most of the time: what ended it is
	// not what ended the one before, and it is started again at once.
	steadyAfter  = 10 * time.Second
	drainDefault = 30 * time.Second // Kubernetes' default termination grace
	leaveDefault = 3 * time.Second  // nothing is live any more when workers are told to leave

	badInRow    = 2 // answers missed or bad before a worker is taken out: one may be lost in a stall
	firstTries  = 3 // starts of a worker that was never ready before the fleet gives up
	leavingMax  = 4 // lives that leave one place beside their successors: each holds a pool and weights
	readyMax    = 4 << 10
	logLineMax  = 64 << 10
	workersMax  = 256 // processes; far above what one machine can feed
	secretBytes = 32
)

// Threads is the default for each of n workers on this machine.
func Threads(n int) int { return max(1, runtime.NumCPU()/max(n, 1)) }

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Gateway.Log = c.Log
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Workers == nil {
		c.Workers = io.Discard
	}
	if c.Loading == nil {
		c.Loading = func(string, int64, int64) {}
	}
	t := &c.Times
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&t.Start, startDefault}, {&t.Probe, probeDefault}, {&t.Answer, answerDefault}, {&t.Frozen, frozenDefault},
		{&t.Pause, pauseDefault}, {&t.Drain, drainDefault}, {&t.Leave, leaveDefault},
	} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
}

// Check says what is wrong with the numbers of workers.
func (c *Config) Check() error {
	for _, n := range []int{c.Prefill, c.Decode, c.Unified} {
		if n < 0 || n > workersMax {
			return fmt.Errorf("fleet: %d workers of a role; want 0 to %d", n, workersMax)
		}
	}
	switch {
	case c.Command == nil:
		return errors.New("fleet: no command for workers")
	case c.Unified > 0 && c.Prefill+c.Decode > 0:
		return fmt.Errorf("fleet: %d unified workers beside %d prefill and %d decode workers; choose one way to serve", c.Unified, c.Prefill, c.Decode)
	case c.Unified == 0 && (c.Prefill == 0 || c.Decode == 0):
		return fmt.Errorf("fleet: %d prefill and %d decode workers; want at least one of each, or unified ones", c.Prefill, c.Decode)
	}
	return nil
}
