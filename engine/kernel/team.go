package kernel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Team is a fixed set of threads that run one function together (single program, many workers). Waking a thread costs
// a hundred times as much as a barrier between running ones, so an engine wakes its team once per step and
// synchronises inside with Barrier and Split.
//
// Between runs the threads spin for about a millisecond, in case the next step follows at once, and then sleep.
// A run in which the threads had to wait for one another far longer than barriers take, because something else uses
// the processors, makes the next runs smaller: see adapt.
//
// A spinning thread occupies one of the processors that the Go scheduler hands out: keep GOMAXPROCS above the size
// of the team, or other goroutines wait for it.
type Team struct {
	n       int
	active  int // workers in the current run
	workers []Worker
	f       func(*Worker)
	again   int // runs left until the full size is tried again

	_     line128
	epoch atomic.Uint64 // number of the current run << 16 | workers in it
	_     line128
	bar   barrier
	split atomic.Uint64 // number of the split << 32 | next index; see Split
	_     line128
	stop  atomic.Bool
	slow  atomic.Int64 // nanoseconds that workers of this run waited beyond the spin limit
	ended chan struct{}
}

// line128 keeps neighbours apart: processors fetch pairs of cache lines.
type line128 [128]byte

// Worker is one thread's view of a run.
type Worker struct {
	Index, N int // this worker, and how many take part in this run
	team     *Team
	splits   uint32 // splits of this run so far
	parked   atomic.Bool
	wake     chan struct{}
	_        line128
}

const (
	// probesMax is how often a worker looks before it gives up its processor: about a quarter of a millisecond.
	probesMax = 1 << 13
	// idleAfter is how long a worker spins for the next run before it sleeps.
	idleAfter = time.Millisecond
	// smallerRuns is how many runs are made with fewer workers after a run that was held up.
	smallerRuns = 64
)

// TeamMax bounds a team; more threads than this gain nothing on any machine with one memory bus.
const TeamMax = 256

// NewTeam starts a team of n workers, the caller of Run being one of them: n-1 threads, each locked to an OS thread.
// n below 1 is taken as 1. Close ends them.
func NewTeam(n int) *Team {
	n = max(1, min(n, TeamMax))
	t := &Team{n: n, active: n, workers: make([]Worker, n), ended: make(chan struct{}, n)}
	for i := range t.workers {
		w := &t.workers[i]
		w.Index, w.N, w.team, w.wake = i, n, t, make(chan struct{}, 1)
		if i > 0 {
			go w.loop()
		}
	}
	return t
}

// Size returns the number of workers.
func (t *Team) Size() int { return t.n }

// Run calls f once on each worker and returns when all have returned. Only one Run may be under way. A run may have
// fewer workers than the team (Worker.N says how many); by K1 that changes no result. A step that must not allocate
// makes f once and keeps it.
func (t *Team) Run(f func(w *Worker)) {
	t.f = f
	t.split.Store(0)
	for i := range t.active {
		t.workers[i].N, t.workers[i].splits = t.active, 0
	}
	started := time.Now()
	t.next(t.active)
	for i := 1; i < t.active; i++ {
		t.workers[i].rouse()
	}
	w := &t.workers[0]
	f(w)
	w.Barrier()
	t.f = nil
	t.adapt(time.Since(started))
}

// next begins a run of that many workers. Number and size change in one word, so that a worker that looks late, having
// no part in a run, cannot mix up two runs.
func (t *Team) next(active int) { t.epoch.Store((t.epoch.Load()>>16+1)<<16 | uint64(active)) }

// adapt lets the following runs use one worker less when this one was held up for more than a third of its time by a
// worker that did not run, and tries the full size again later. With another process on the same processors a
// barrier of n threads costs a time slice of the other one, and fewer threads are faster.
func (t *Team) adapt(took time.Duration) {
	slow := time.Duration(t.slow.Swap(0))
	switch {
	case t.active > 1 && slow > took/3 && slow > idleAfter:
		t.active--
		t.again = smallerRuns
	case t.active < t.n:
		if t.again--; t.again <= 0 {
			t.active = t.n
		}
	}
}

// Close ends the threads and waits for them. The team must be idle.
func (t *Team) Close() {
	t.stop.Store(true)
	t.next(t.n)
	for i := 1; i < t.n; i++ {
		t.workers[i].rouse()
	}
	for i := 1; i < t.n; i++ {
		<-t.ended
	}
}

// loop is the life of every worker but the first.
func (w *Worker) loop() {
	runtime.LockOSThread()
	t := w.team
	seen, took := uint64(0), true
	for {
		w.await(seen, took)
		seen = t.epoch.Load()
		if t.stop.Load() {
			t.ended <- struct{}{}
			return
		}
		if took = w.Index < int(seen&0xffff); took {
			t.f(w)
			w.Barrier()
		}
	}
}

// await returns when the epoch differs from the one given. A worker without a part in the latest run does not spin:
// it was left out because there is no processor for it.
func (w *Worker) await(seen uint64, spin bool) {
	t := w.team
	var since time.Time
	for i := 0; t.epoch.Load() == seen; i++ {
		if spin && i&probesMask != probesMask {
			pause()
			continue
		}
		if spin && since.IsZero() {
			since = time.Now()
		}
		if spin && time.Since(since) < idleAfter {
			continue
		}
		w.parked.Store(true)
		if t.epoch.Load() != seen && w.parked.CompareAndSwap(true, false) {
			return
		}
		<-w.wake
	}
}

// probesMask spaces out looks at the clock while idle.
const probesMask = 1<<10 - 1

// rouse wakes the worker if it sleeps.
func (w *Worker) rouse() {
	if w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}

// Barrier returns when every worker of the run has called it. Writes before it are seen after it.
func (w *Worker) Barrier() { w.team.bar.wait(int32(w.N), &w.team.slow) }

// Split divides the indices [0,total) into pieces of grain among the workers that call it, as each gets ready for
// more, and calls f for each piece of this worker. Every worker must call it the same number of times in the same
// order with the same total and grain. It does not wait for the others: call Barrier before using their results.
func (w *Worker) Split(total, grain int, f func(lo, hi int)) {
	w.splits++
	if w.N == 1 {
		if total > 0 {
			f(0, total)
		}
		return
	}
	for {
		lo, ok := w.team.take(w.splits, total, grain)
		if !ok {
			return
		}
		f(lo, min(lo+grain, total))
	}
}

// take claims the next piece of the given split. The word holds the number of the latest split that anyone has begun:
// a worker begins split s+1 only when s has no piece left, so a word beyond s means that s is used up.
func (t *Team) take(split uint32, total, grain int) (int, bool) {
	for {
		old := t.split.Load()
		next := 0
		switch tag := uint32(old >> 32); {
		case tag > split:
			return 0, false
		case tag == split:
			next = int(uint32(old))
		}
		if next >= total {
			return 0, false
		}
		if t.split.CompareAndSwap(old, uint64(split)<<32|uint64(next+grain)) {
			return next, true
		}
	}
}

// barrier counts arrivals; the last one opens the next generation.
type barrier struct {
	_     line128
	count atomic.Int32
	_     line128
	gen   atomic.Uint32
	_     line128
}

// wait is called by n workers. After its arrival is counted a worker reads nothing that the next run may change: the
// run can be over, for the others, at once.
func (b *barrier) wait(n int32, slow *atomic.Int64) {
	gen := b.gen.Load()
	if b.count.Add(1) == n {
		b.count.Store(0)
		b.gen.Add(1)
		return
	}
	for range probesMax {
		if b.gen.Load() != gen {
			return
		}
		pause()
	}
	began := time.Now()
	for i := 1; b.gen.Load() == gen; i++ {
		yield(i)
	}
	slow.Add(int64(time.Since(began)))
}
