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
// When something else uses the processors, every barrier waits for a thread that does not run, and several threads are
// slower than one. A run that is held up so sends workers home, at a barrier, and the next runs begin without them.
//
// A spinning thread occupies one of the processors that the Go scheduler hands out: keep GOMAXPROCS above the size
// of the team, or other goroutines wait for it.
type Team struct {
	n       int
	active  int // workers that the next run begins with
	workers []Worker
	f       func(*Worker)
	again   int // runs left until all workers are tried again
	pause   int // how many runs that will be, the next time
	began   time.Time

	_     line128
	epoch atomic.Uint64 // number of the current run << 16 | workers that begin it
	_     line128
	bar   barrier
	split atomic.Uint64 // number of the split << 32 | next index; see take
	_     line128
	stop  atomic.Bool
	slow  atomic.Int64 // nanoseconds that workers of this run waited beyond the spin limit
	ended chan struct{}
}

// line128 keeps neighbours apart: processors fetch pairs of cache lines.
type line128 [128]byte

// Worker is one thread's view of a run.
type Worker struct {
	Index  int // this worker; 0 is the caller of Run
	N      int // how many work together now; a barrier may lower it, for all alike
	team   *Team
	splits uint32      // splits of this run so far
	home   atomic.Bool // takes part in no run
	parked atomic.Bool
	wake   chan struct{}
	_      line128
}

const (
	// probesMax is how often a worker looks before it gives up its processor: about a quarter of a millisecond.
	probesMax = 1 << 13
	// idleAfter is how long a worker spins for the next run before it sleeps.
	idleAfter = time.Millisecond
	// heldUpMin is the waiting that a run forgives: an interrupt or a stop of the world, not a time slice of another
	// process, which is 3 ms and more.
	heldUpMin = 2 * time.Millisecond
	// pauseFirst and pauseMax bound the number of runs that go without the workers sent home before all are tried
	// again; it doubles each time that fails.
	pauseFirst, pauseMax = 4, 256
	// TeamMax bounds a team; more threads than this gain nothing on any machine with one memory bus.
	TeamMax = 256
)

// NewTeam starts a team of n workers, the caller of Run being one of them: n-1 threads, each locked to an OS thread.
// n below 1 is taken as 1. Close ends them.
func NewTeam(n int) *Team {
	n = max(1, min(n, TeamMax))
	t := &Team{n: n, active: n, pause: pauseFirst, workers: make([]Worker, n), ended: make(chan struct{}, n)}
	for i := range t.workers {
		w := &t.workers[i]
		w.Index, w.N, w.team, w.wake = i, n, t, make(chan struct{}, 1)
		w.home.Store(true)
		if i > 0 {
			go w.loop()
		}
	}
	return t
}

// Size returns the number of workers.
func (t *Team) Size() int { return t.n }

// Run calls f once on each worker and returns when all have returned. Only one Run may be under way. A run may have
// fewer workers than the team, and lose some (not worker 0) at a barrier: such a worker leaves f by a panic that
// the team recovers, so deferred calls of f run, perhaps after Run has returned. Worker.N says how many there are; it is the same for all between
// two barriers, so whoever divides work by it reads it again after each, or uses Split. By K1 no result depends on it.
// A step that must not allocate makes f once and keeps it.
func (t *Team) Run(f func(w *Worker)) {
	n := t.ready()
	t.f = f
	t.split.Store(0)
	t.slow.Store(0)
	t.bar.size.Store(int32(n))
	for i := range n {
		w := &t.workers[i]
		w.N, w.splits = n, 0
		w.home.Store(false)
	}
	t.began = time.Now()
	t.next(n)
	for i := 1; i < n; i++ {
		t.workers[i].rouse()
	}
	w := &t.workers[0]
	f(w)
	w.Barrier()
	t.f = nil
	t.adapt(n, w.N)
}

// ready returns how many workers can begin: up to the wanted number, as far as they have come home. One that was sent
// home may still be without a processor.
func (t *Team) ready() int {
	for i := 1; i < t.active; i++ {
		for probe := 0; !t.workers[i].home.Load(); probe++ {
			if probe == probesMax {
				return i
			}
			pause()
		}
	}
	return t.active
}

// next begins a run of that many workers. Number and size change in one word, so that a worker that looks late, having
// no part in a run, cannot mix up two runs.
func (t *Team) next(active int) { t.epoch.Store((t.epoch.Load()>>16+1)<<16 | uint64(active)) }

// adapt decides how many workers the next run begins with, after one that began and ended with the given numbers.
func (t *Team) adapt(began, ended int) {
	switch {
	case ended < began:
		t.active, t.again = ended, t.pause
		t.pause = min(2*t.pause, pauseMax)
	case began == t.n:
		t.pause = max(t.pause-1, pauseFirst)
	default:
		if t.again--; t.again <= 0 {
			t.active = t.n
		}
	}
}

// heldUp reports whether this run has waited so much for workers without a processor that it is better off with fewer:
// a third of its time.
func (t *Team) heldUp() bool {
	slow := time.Duration(t.slow.Load())
	return slow > heldUpMin && slow > time.Since(t.began)/3
}

// Close ends the threads and waits for them. The team must be idle.
func (t *Team) Close() {
	t.stop.Store(true)
	t.next(0)
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
			took = w.run(t.f)
			w.home.Store(true)
		}
	}
}

// sentHome is what a worker panics with to leave a run.
type sentHome struct{}

// run is one worker's part of a run; it reports whether the worker stayed to the end.
func (w *Worker) run(f func(*Worker)) (stayed bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(sentHome); !ok {
				panic(p)
			}
		}
	}()
	f(w)
	w.Barrier()
	return true
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

// Barrier returns when every worker of the run has called it. Writes before it are seen after it. It may not return,
// see Run, and N may be lower afterwards.
func (w *Worker) Barrier() {
	if w.N == 1 {
		return
	}
	w.team.bar.wait(w.N, w.team)
	w.N = int(w.team.bar.size.Load())
	if w.Index >= w.N {
		panic(sentHome{})
	}
}

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

// barrier counts arrivals; the last one opens the next generation and may lower the number of workers in it.
type barrier struct {
	_     line128
	count atomic.Int32
	_     line128
	gen   atomic.Uint32
	size  atomic.Int32 // workers of the generation; read by all of them before the last can arrive again
	_     line128
}

// wait is called by n workers. After its arrival is counted a worker that is not the last reads nothing that the next
// run may change: the run can be over, for the others, at once.
func (b *barrier) wait(n int, t *Team) {
	gen := b.gen.Load()
	if b.count.Add(1) == int32(n) {
		b.count.Store(0)
		if t.heldUp() {
			b.size.Store(int32(n - 1))
		}
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
	t.slow.Add(int64(time.Since(began)))
}
