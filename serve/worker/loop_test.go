package worker

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/serve/observe"
	"baton/transfer"
)

// The tests here run the worker's loop in virtual time around a node that only knows when its
// timers are due: what the loop does too early, too late or not at all is seen to the
// nanosecond.

// clockwork is a node of timers. Its fields belong to the loop.
type clockwork struct {
	t       *testing.T
	w       *Worker
	due     []time.Duration // timers that are armed, in any order
	fired   []time.Duration // when each was
	live    int             // rooms
	aborted []room.Cause
	drained int
	ended   int
}

func (n *clockwork) next() (at time.Duration, t room.Timer, ok bool) {
	if len(n.due) == 0 {
		return 0, t, false
	}
	return slices.Min(n.due), t, true
}

func (n *clockwork) fire(room.Timer) {
	at := slices.Min(n.due)
	if now := n.w.now(); now != at {
		n.t.Errorf("the timer for %v fires at %v", at, now)
	}
	n.due = slices.Delete(n.due, slices.Index(n.due, at), slices.Index(n.due, at)+1)
	n.fired = append(n.fired, at)
}

func (n *clockwork) abort(_ room.ID, c room.Cause) {
	n.aborted = append(n.aborted, c)
	n.live--
}

func (n *clockwork) rooms(yield func(room.View) bool) {
	for i := range n.live {
		if !yield(room.View{Room: room.ID(i + 1)}) {
			return
		}
	}
}

func (n *clockwork) step(*input)              {}
func (n *clockwork) request(*entry) *input    { return nil }
func (n *clockwork) drain()                   { n.drained++ }
func (n *clockwork) over()                    { n.ended++ }
func (n *clockwork) idle() bool               { return n.live == 0 }
func (n *clockwork) phase(room.ID) string     { return "" }
func (n *clockwork) sitsOut(room.ID) bool     { return false }
func (n *clockwork) queues() []room.QueueStat { return nil }
func (n *clockwork) blocks() blocks.Count     { return blocks.Count{} }
func (n *clockwork) pinned() int              { return 0 }

// closed is a link, a listener and an engine of which only the end is seen.
type closed struct {
	Engine
	n int
}

func (c *closed) Close() error              { c.n++; return nil }
func (c *closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (c *closed) Addr() net.Addr            { return &net.TCPAddr{} }

// inBubble runs f with the loop of a worker whose clock begins now.
func inBubble(t *testing.T, f func(t *testing.T, w *Worker, n *clockwork)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &Worker{
			began: time.Now(), log: slog.New(slog.DiscardHandler), name: "w", rooms: map[room.ID]*entry{}, served: &Served{Engine: &closed{}},
			inbox: make(chan *input, inboxMax), jobs: make(chan *job, 1), legs: make(chan struct{}, 1),
			stop: make(chan struct{}), over: make(chan struct{}), computed: make(chan struct{}), serving: make(chan struct{}),
			listener: &closed{}, server: &http.Server{}, link: &closed{},
		}
		w.metrics = observe.NewMetrics(Decode, observe.Sources{Snapshot: w.Snapshot, Transfer: func() transfer.Stats { return transfer.Stats{} }})
		n := &clockwork{t: t, w: w}
		w.node = n
		go w.loop()
		go func() { // the engine's and the server's part of Close
			<-w.over
			close(w.computed)
		}()
		close(w.serving)
		f(t, w, n)
	})
}

// on runs f on the loop and waits until the loop has nothing to do.
func on(w *Worker, f func()) {
	done := make(chan struct{})
	w.send(&input{ask: func() { f(); close(done) }})
	<-done
	synctest.Wait()
}

// TestTheLoopFiresEachTimerInItsMoment: also one that is armed before another that was waited
// for, two in one moment, one that is taken back, and one that was due before it was armed.
func TestTheLoopFiresEachTimerInItsMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Worker, n *clockwork) {
		arm := func(at ...time.Duration) { on(w, func() { n.due = append(n.due, at...) }) }
		fired := func(want ...time.Duration) {
			t.Helper()
			on(w, func() {
				if !slices.Equal(n.fired, want) {
					t.Errorf("at %v: fired %v, want %v", w.now(), n.fired, want)
				}
			})
		}
		arm(10 * time.Second)
		time.Sleep(9 * time.Second)
		fired()
		time.Sleep(time.Second)
		fired(10 * time.Second)
		arm(time.Hour, 20*time.Second, 20*time.Second) // the nearer one comes later to the loop
		time.Sleep(5 * time.Second)
		arm(17 * time.Second)
		time.Sleep(5 * time.Second)
		fired(10*time.Second, 17*time.Second, 20*time.Second, 20*time.Second)
		on(w, func() { n.due = nil }) // taken back
		time.Sleep(2 * time.Hour)
		fired(10*time.Second, 17*time.Second, 20*time.Second, 20*time.Second)
		arm(w.now())
		fired(10*time.Second, 17*time.Second, 20*time.Second, 20*time.Second, 20*time.Second+2*time.Hour)
		time.Sleep(24 * time.Hour) // a loop that has nothing to do stays where it is
		arm(w.now() + time.Nanosecond)
		time.Sleep(time.Nanosecond)
		on(w, func() {
			if len(n.due) != 0 {
				t.Errorf("%v is left at %v", n.due, w.now())
			}
		})
		if err := w.Close(t.Context()); err != nil || n.ended != 1 {
			t.Errorf("%v, the node ended %d times", err, n.ended)
		}
	})
}

// TestCloseWaitsForRoomsAndNoLonger: a worker that leaves is over in the moment in which its
// last room ends, and nothing is aborted.
func TestCloseWaitsForRoomsAndNoLonger(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Worker, n *clockwork) {
		on(w, func() { n.live = 2 })
		for i := range 2 {
			time.AfterFunc(time.Duration(i+1)*7*time.Second, func() { w.send(&input{ask: func() { n.live-- }}) })
		}
		grace, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Close(grace); err != nil || w.now() != 14*time.Second || len(n.aborted) != 0 || n.drained != 1 {
			t.Errorf("after %v: %v, %d aborted, drained %d times; want 14s, none, once", w.now(), err, len(n.aborted), n.drained)
		}
		if l := w.link.(*closed).n; l == 0 {
			t.Error("the link is open")
		}
	})
}

// TestTheEndOfTheGraceAbortsWhatIsLeft: exactly then, each room once, as worker_lost, so that
// somebody else may serve it.
func TestTheEndOfTheGraceAbortsWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Worker, n *clockwork) {
		on(w, func() { n.live = 3 })
		grace, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := w.Close(grace); err != nil || w.now() != 25*time.Second || !slices.Equal(n.aborted, []room.Cause{room.WorkerLost, room.WorkerLost, room.WorkerLost}) {
			t.Errorf("after %v: %v, aborted %v; want 25s and three as worker_lost", w.now(), err, n.aborted)
		}
	})
}

// stubborn is a node whose rooms do not end when they are told to.
type stubborn struct{ *clockwork }

func (n stubborn) abort(_ room.ID, c room.Cause) { n.aborted = append(n.aborted, c) }

// TestRoomsThatDoNotEndAreNotWaitedForForEver: a step or a write that never comes home costs
// what endMax and stuckMax say, and is an error at the end.
func TestRoomsThatDoNotEndAreNotWaitedForForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Worker, n *clockwork) {
		on(w, func() { n.live, w.node = 1, stubborn{n} })
		grace, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := w.Close(grace); err == nil || w.now() != 25*time.Second+endMax+stuckMax {
			t.Errorf("after %v: %v; want %v and an error", w.now(), err, 25*time.Second+endMax+stuckMax)
		}
	})
}
