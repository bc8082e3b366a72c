package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Recorder writes the steps of one core. Before and After are for the loop that steps it, in
// turns; a nil Recorder records nothing, at the price of a comparison.
type Recorder[E, X any] struct {
	lines Lines[E, X]
	file  *os.File
	log   *slog.Logger
	max   int // bytes of the file; tests make it small

	// Owned by the loop.
	stepping bool // between Before and After
	step     step[E]

	ended atomic.Bool // nothing more is taken
	wake  chan struct{}
	hurry chan struct{} // many wait
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	queue   []step[E] // guarded by mu, as are effects and overrun
	effects []X       // of queue, in its order
	overrun bool      // something came that is not in queue

	// Owned by the writer.
	buf    []byte
	wrote  int   // bytes of the file, buf included
	events int   // likewise
	kept   int64 // bytes that are in the file, whole lines
	safe   int   // events in them
}

// step is an event on its way to the file.
type step[E any] struct {
	now     time.Duration
	rid     string
	effects int
	event   E
}

// Recorders of the three cores.
type (
	Prefill = Recorder[prefill.Event, prefill.Effect]
	Decode  = Recorder[decode.Event, decode.Effect]
	Relay   = Recorder[relay.Event, relay.Effect]
)

// Life says whose steps are recorded.
type Life struct {
	Role  string
	Name  string
	Boot  room.Boot
	Began time.Time // when the core's clock was 0
	Log   *slog.Logger
}

// NewPrefill records a prefill core that was made of c and has not been stepped yet, into a new
// file of dir. An error says why there is none; whoever serves goes on without.
func NewPrefill(dir string, l Life, c prefill.Config) (*Prefill, error) {
	return open[prefill.Event, prefill.Effect](dir, l, CorePrefill, configOf(c))
}

// NewDecode is NewPrefill for a decode core.
func NewDecode(dir string, l Life, c decode.Config) (*Decode, error) {
	return open[decode.Event, decode.Effect](dir, l, CoreDecode, configOf(c))
}

// NewRelay is NewPrefill for the core of a gateway.
func NewRelay(dir string, l Life, c relay.Limits) (*Relay, error) {
	return open[relay.Event, relay.Effect](dir, l, CoreRelay, configOf(c))
}

func configOf[C any](c C) json.RawMessage { return NewForm[C]().Append(nil, &c) }

func open[E, X any](dir string, l Life, core string, config json.RawMessage) (*Recorder[E, X], error) {
	file, err := create(dir, l)
	if err != nil {
		return nil, err
	}
	r := &Recorder[E, X]{lines: NewLines[E, X](), file: file, log: l.Log, max: FileMax,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	head, err := json.Marshal(Header{Version: Version, Core: core, Role: l.Role, Name: l.Name, Boot: l.Boot.String(), Build: build(),
		Started: l.Began.Round(0).UTC(), Config: config})
	if err == nil {
		r.buf = append(head, '\n')
		r.wrote = len(r.buf)
		err = r.flush()
	}
	if err != nil { // a file without a head is no trace, and counts in its directory all the same
		return nil, fmt.Errorf("recorder: %w", errors.Join(err, file.Close(), os.Remove(file.Name())))
	}
	go r.write()
	return r, nil
}

// Before keeps an event that is about to be stepped. rid names the request that it brings, if it
// brings one.
func (r *Recorder[E, X]) Before(now time.Duration, ev *E, rid string) {
	if r == nil || r.ended.Load() {
		return
	}
	r.stepping = true
	r.step = step[E]{now: now, rid: rid, event: *ev}
}

// After takes the effects of the step.
func (r *Recorder[E, X]) After(effects []X) {
	if r == nil || !r.stepping {
		return
	}
	r.stepping = false
	r.step.effects = len(effects)
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := len(r.queue) + len(r.effects)
	if r.overrun || waiting+1+len(effects) > QueueMax {
		r.overrun = true
		r.ended.Store(true)
		return
	}
	r.queue, r.effects = append(r.queue, r.step), append(r.effects, effects...)
	if waiting == 0 {
		signal(r.wake)
	}
	if waiting+1+len(effects) > gatherMax {
		signal(r.hurry)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

// Close writes what is left and the end. The loop defers it, for its last act: called between
// Before and After, because the core panicked, it writes the event that did it (V5).
func (r *Recorder[E, X]) Close() {
	if r == nil {
		return
	}
	close(r.stop)
	late := time.NewTimer(closeMax)
	defer late.Stop()
	select {
	case <-r.done:
	case <-late.C:
	}
}

// write is the goroutine that makes lines. Its error ends the file.
func (r *Recorder[E, X]) write() {
	defer close(r.done)
	err := r.writeAll()
	r.ended.Store(true)
	if err != nil {
		r.unwritten()
	}
	if err = errors.Join(err, r.file.Close()); err != nil {
		r.log.Warn("a trace could not be written, and ends here", "detail", err)
	}
}

func (r *Recorder[E, X]) writeAll() error {
	var queue []step[E]
	var effects []X
	gather := time.NewTimer(gatherAfter)
	defer gather.Stop()
	for closing := false; !closing; {
		select {
		case <-r.wake:
			gather.Reset(gatherAfter)
			select {
			case <-gather.C:
			case <-r.hurry:
			case <-r.stop:
			}
		case <-r.stop:
			closing = true
		}
		r.mu.Lock()
		queue, r.queue = r.queue, queue[:0]
		effects, r.effects = r.effects, effects[:0]
		overrun := r.overrun
		r.mu.Unlock()
		if end, err := r.batch(queue, effects, overrun); end != EndUnknown || err != nil {
			return r.finish(end, err)
		}
		clear(queue) // for what their slices hold
		clear(effects)
	}
	if r.stepping { // and for ever: Close was called meanwhile
		line := r.lines.appendEvent(nil, r.step.now, r.step.rid, &r.step.event)
		line = append(line, fmt.Sprintf(",\"end\":%q,\"events\":%d}\n", EndPanic, r.events)...)
		r.buf = append(r.buf, line...)
		return r.flush()
	}
	return r.finish(EndClosed, nil)
}

// endBytes are kept free for the last line.
const endBytes = 100

// batch writes steps, and says if that was the end.
func (r *Recorder[E, X]) batch(queue []step[E], effects []X, overrun bool) (End, error) {
	for i := range queue {
		s := &queue[i]
		before := len(r.buf)
		r.buf = r.lines.appendStep(r.buf, s.now, s.rid, &s.event, effects[:s.effects])
		effects = effects[s.effects:]
		line := len(r.buf) - before
		if line > LineMax || r.wrote+line+endBytes > r.max {
			r.buf = r.buf[:before]
			return EndFull, nil
		}
		r.wrote += line
		r.events++
		if len(r.buf) >= writeBytes {
			if err := r.flush(); err != nil {
				return EndUnknown, err
			}
		}
	}
	if overrun {
		return EndOverrun, nil
	}
	return EndUnknown, r.flush()
}

// writeBytes is how much is written at once.
const writeBytes = 64 << 10

func (r *Recorder[E, X]) finish(e End, err error) error {
	if err != nil {
		return err
	}
	r.buf = appendEnd(r.buf, e, r.events)
	if e != EndClosed {
		r.log.Warn("a trace ends before its process", "detail", fmt.Sprintf("%s after %d events: %s", e, r.events, r.file.Name()))
	}
	return r.flush()
}

func (r *Recorder[E, X]) flush() error {
	n, err := r.file.Write(r.buf)
	r.buf = r.buf[:0]
	if err == nil {
		r.kept, r.safe = r.kept+int64(n), r.events
	}
	return err
}

// unwritten ends a file that could not be written to behind its last whole line, if that much can
// be done: a full disk has room for it, once half a line is taken away.
func (r *Recorder[E, X]) unwritten() {
	if r.file.Truncate(r.kept) == nil {
		r.file.WriteAt(appendEnd(nil, EndUnwritten, r.safe), r.kept)
	}
}
