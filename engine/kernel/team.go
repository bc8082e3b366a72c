package kernel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Team is a fixed set of threads that run one function together (single program, many workers). Waking a thread costs
// a hundred times as much as a barrier between running ones, so an engine wakes its team once per step and
// synchronises inside with Barrier and Split. A step of tens of milliseconds is better made of several runs, one right
// after the other: only a run begins with workers that were sent home before.
//
// Between runs the threads spin for about a millisecond, in case the next step follows at once, and then sleep.
// When something else uses the processors, every barrier waits for a thread that does not run, and several threads can
// be slower than fewer. As workers spin while they wait, each has a processor all the time if there is one for it: what
// their processor times are short of the wall's clock is what they lost. When that is so much that fewer would be faster, a
// worker is sent home, at a barrier; after a pause all are tried again.
//
// A spinning thread occupies one of the processors that the Go scheduler hands out: keep GOMAXPROCS above the size
// of the team, or other goroutines wait for it.
type Team struct {
	n       int
	active  int // workers that the next run begins with
	workers []Worker
	f       func(*Worker)
	retry   time.Time     // when all workers are tried again
	pause   time.Duration // how long that will be, the next time
	began   time.Time
	ran     time.Duration // time of runs with this number of workers, up to windowMax
	lost    time.Duration // how much of it workers were without a processor, added up

	_     line128
	epoch atomic.Uint64 // number of the current run << 16 | workers that begin it
	_     line128
	bar   barrier
	_     line128
	stop  atomic.Bool
	slow  atomic.Int64  // nanoseconds that workers of this run waited beyond the spin limit
	ended chan struct{} // a worker says that it has begun, or ended
}

// line128 keeps neighbours apart: processors fetch pairs of cache lines.
type line128 [128]byte

// Worker is one thread's view of a run.
type Worker struct {
	Index  int // this worker; 0 is the caller of Run
	N      int // how many work together now; a barrier may lower it, for all alike
	team   *Team
	splits uint32       // splits of this run so far
	home   atomic.Bool  // takes part in no run
	thread atomic.Int32 // of the system, see threadTimeOf
	had    atomic.Int64 // nanoseconds of processor time when the run began
	parked atomic.Bool
	wake   chan struct{}
	_      line128
	share  atomic.Uint64 // number of the split << 32 | next index of this worker's share; see take
	_      line128
}

const (
	// probesMax is how often a worker looks before it gives up its processor: about a quarter of a millisecond.
	probesMax = 1 << 13
	// idleAfter is how long a worker spins for the next run before it sleeps.
	idleAfter = time.Millisecond
	// windowMin is the time after which the loss is judged. Less would take a start for a shortage: a system may wake two
	// threads on one processor and part them only when it next balances its load, 4 to 8 ms later.
	windowMin = 32 * time.Millisecond
	// windowMax bounds the time over which the loss is judged; beyond it what is old counts half.
	windowMax = 2 * windowMin
	// pauseFirst and pauseMax bound the time without the workers that were sent home; it doubles each time that all
	// together are held up again. A processor that became free stays idle for no longer.
	pauseFirst, pauseMax = 20 * time.Millisecond, 640 * time.Millisecond
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
			<-t.ended // it has a thread now
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
	if t.n > 1 {
		runtime.LockOSThread() // whose processor time counts
		defer runtime.UnlockOSThread()
		t.workers[0].thread.Store(threadID())
	}
	t.began = time.Now()
	if t.active < t.n && !t.began.Before(t.retry) {
		t.active, t.ran, t.lost = t.n, 0, 0
	}
	n := t.ready()
	t.f = f
	t.slow.Store(0)
	t.bar.size.Store(int32(n))
	for i := range n {
		w := &t.workers[i]
		w.N, w.splits = n, 0
		w.share.Store(0)
		w.home.Store(false)
		w.had.Store(int64(threadTimeOf(w.thread.Load())))
	}
	t.next(n)
	for i := 1; i < n; i++ {
		t.workers[i].rouse()
	}
	w := &t.workers[0]
	f(w)
	w.Barrier()
	t.f = nil
	if t.n > 1 {
		ran, lost := t.account(w.N)
		t.adapt(n, w.N, time.Now(), ran, lost)
	}
}

// account returns how long this run has taken and how much of it its workers were without a processor, added up.
func (t *Team) account(n int) (ran, lost time.Duration) {
	ran = time.Since(t.began)
	if !threadTimes {
		return ran, time.Duration(t.slow.Load())
	}
	for i := range n {
		w := &t.workers[i]
		had := threadTimeOf(w.thread.Load()) - time.Duration(w.had.Load())
		lost += max(0, ran-had)
	}
	return ran, lost
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

// adapt decides how many workers the next run begins with, after one that began and ended with the given numbers,
// ended now, took ran and lost that much of it.
func (t *Team) adapt(began, ended int, now time.Time, ran, lost time.Duration) {
	if ended < began {
		t.active, t.ran, t.lost = ended, 0, 0
		t.retry = now.Add(t.pause)
		t.pause = min(2*t.pause, pauseMax)
		return
	}
	t.ran, t.lost = t.ran+ran, t.lost+lost
	if t.ran > windowMax && began == t.n && t.lost < t.ran/8 {
		t.pause = pauseFirst
	}
	for t.ran > windowMax {
		t.ran, t.lost = t.ran/2, t.lost/2
	}
}

// heldUp reports whether n workers lose so much that n-1 would be faster. One that has a processor three quarters of the
// time is such a case: at each barrier the others wait for it, and the last thread of several that share one memory
// gives little when all goes well.
func (t *Team) heldUp(n int) bool {
	ran, lost := t.account(n)
	ran, lost = ran+t.ran, lost+t.lost
	return ran > windowMin && lost > ran/4
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
	w.thread.Store(threadID())
	t := w.team
	t.ended <- struct{}{}
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
	w.team.bar.wait(w)
	w.N = int(w.team.bar.size.Load())
	if w.Index >= w.N {
		panic(sentHome{})
	}
}

// Split divides the indices [0,total) into pieces, multiples of grain, among the workers that call it and calls f for
// each piece of this worker. Every worker must call it the same number of times in the same order with the same total
// and grain. It does not wait for the others: call Barrier before using their results.
//
// Each worker has a share of neighbouring indices, for memory is read fastest in one stream: with two threads that take
// turns at equal pieces an eighth of the memory's speed is lost. A piece is half of what is left of the share. Who is
// through with its own takes from those of the others what they have not begun.
func (w *Worker) Split(total, grain int, f func(lo, hi int)) {
	w.splits++
	if w.N == 1 {
		if total > 0 {
			f(0, total)
		}
		return
	}
	for i := range w.N {
		of := w.Index + i
		if of >= w.N {
			of -= w.N
		}
		// Shares are whole pieces, so that pieces end where cache lines do, if grain is so chosen.
		pieces := (total + grain - 1) / grain
		first, end := pieces*of/w.N*grain, min(pieces*(of+1)/w.N*grain, total)
		for {
			lo, hi, ok := w.team.workers[of].take(w.splits, first, end, grain)
			if !ok {
				break
			}
			f(lo, hi)
		}
	}
}

// take claims the next piece [lo,hi) of a worker's share [first,end) of the given split. The word holds the number of
// the latest split in which anyone has taken from it: a worker begins split s+1 only when no share of s has a piece
// left, so a word beyond s means that s is used up.
func (w *Worker) take(split uint32, first, end, grain int) (lo, hi int, ok bool) {
	for {
		old := w.share.Load()
		lo = first
		switch tag := uint32(old >> 32); {
		case tag > split:
			return 0, 0, false
		case tag == split:
			lo = int(uint32(old))
		}
		if lo >= end {
			return 0, 0, false
		}
		hi = min(lo+max(grain, (end-lo)/(2*grain)*grain), end)
		if w.share.CompareAndSwap(old, uint64(split)<<32|uint64(hi)) {
			return lo, hi, true
		}
	}
}

// barrier counts arrivals; the last one opens the next generation and may lower the number of workers in it.
type barrier struct {
	_     line128
	count atomic.Int32
	_     line128
	gen   atomic.Uint32
	size  atomic.Int32  // workers of the generation; read by all of them before the last can arrive again
	slow  atomic.Uint32 // the latest generation in which someone waited beyond the spin limit, plus 1
	_     line128
}

// wait is called by all workers of a run. After its arrival is counted a worker that is not the last reads nothing that
// the next run may change: the run can be over, for the others, at once.
func (b *barrier) wait(w *Worker) {
	t, n := w.team, w.N
	gen := b.gen.Load()
	if b.count.Add(1) == int32(n) {
		b.count.Store(0)
		if b.slow.Load() == gen+1 && t.heldUp(n) {
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
	b.slow.Store(gen + 1)
	began := time.Now()
	for i := 1; b.gen.Load() == gen; i++ {
		yield(i)
	}
	t.slow.Add(int64(time.Since(began)))
}
