package kernel

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryWorkerTakesPartOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		team := NewTeam(n)
		var calls atomic.Int64
		for range 50 {
			calls.Store(0)
			want := 0
			team.Run(func(w *Worker) {
				calls.Add(1 << (8 * w.Index))
				if w.Index == 0 {
					want = w.N
				}
			})
			sum := int64(0)
			for i := range want {
				sum += 1 << (8 * i)
			}
			if calls.Load() != sum {
				t.Fatalf("team of %d: calls %#x, want %#x", n, calls.Load(), sum)
			}
		}
		team.Close()
	}
}

// TestBarrierOrdersWrites: what one worker wrote before a barrier is what all read after it.
func TestBarrierOrdersWrites(t *testing.T) {
	team := NewTeam(3)
	defer team.Close()
	cells := make([]int, 3)
	bad := make([]int, 3)
	team.Run(func(w *Worker) {
		for round := 1; round <= 300; round++ {
			cells[w.Index] = round
			w.Barrier()
			for i := range w.N { // those that went home wrote no more
				if cells[i] != round {
					bad[w.Index]++
				}
			}
			w.Barrier()
		}
	})
	for i, n := range bad {
		if n != 0 {
			t.Errorf("worker %d read %d stale values", i, n)
		}
	}
}

// TestSplitGivesEachIndexOnce also has splits follow one another without a barrier.
func TestSplitGivesEachIndexOnce(t *testing.T) {
	team := NewTeam(3)
	defer team.Close()
	const splits, total = 60, 101
	var seen [splits][total]atomic.Int32
	for run := range 3 {
		team.Run(func(w *Worker) {
			for s := range splits {
				w.Split(total, 1+s%9, func(lo, hi int) {
					for i := lo; i < hi; i++ {
						seen[s][i].Add(1)
					}
					if s%7 == w.Index {
						runtime.Gosched()
					}
				})
				if s%5 == 0 {
					w.Barrier()
				}
			}
		})
		for s := range seen {
			for i := range seen[s] {
				if n := seen[s][i].Load(); n != int32(run+1) {
					t.Fatalf("run %d split %d index %d was given %d times in all", run, s, i, n)
				}
			}
		}
	}
}

// TestPiecesAreWholeGrains: a piece begins at a multiple of the grain and ends at one, or at the total, wherever the
// borders of the shares are.
func TestPiecesAreWholeGrains(t *testing.T) {
	for n := 2; n <= 5; n++ {
		team := NewTeam(n)
		for _, grain := range []int{1, 3, 16} {
			for total := range 70 {
				team.Run(func(w *Worker) {
					w.Split(total, grain, func(lo, hi int) {
						if lo >= hi || lo%grain != 0 || hi%grain != 0 && hi != total {
							t.Errorf("%d indices in grains of %d between %d: a piece [%d,%d)", total, grain, w.N, lo, hi)
						}
					})
				})
			}
		}
		team.Close()
	}
}

// TestAShareIsOfItsSplit: who still looks for pieces of a split when others have gone on gets none of the next one, and
// the first who takes from the next one begins at its first.
func TestAShareIsOfItsSplit(t *testing.T) {
	var w Worker
	for _, c := range []struct {
		split, first, end, grain int
		lo, hi                   int // hi 0: nothing is left
	}{
		{1, 5, 15, 1, 5, 10}, {1, 5, 15, 1, 10, 12}, {1, 5, 15, 4, 12, 15}, {1, 5, 15, 1, 0, 0},
		{3, 5, 15, 5, 5, 10}, {1, 5, 15, 1, 0, 0}, {2, 5, 15, 1, 0, 0}, {3, 5, 15, 5, 10, 15},
		{4, 7, 7, 1, 0, 0}, {4, 0, 100, 16, 0, 48}, {4, 0, 100, 16, 48, 64},
	} {
		lo, hi, ok := w.take(uint32(c.split), c.first, c.end, c.grain)
		if ok != (c.hi > 0) || ok && (lo != c.lo || hi != c.hi) {
			t.Errorf("of split %d, share [%d,%d) in grains of %d: [%d,%d) %v, want [%d,%d)", c.split, c.first, c.end, c.grain, lo, hi, ok, c.lo, c.hi)
		}
	}
}

// heldUpBarrier is a barrier at which all claim that workers were without a processor.
func heldUpBarrier(w *Worker) {
	t := w.team
	if w.Index == 0 {
		t.ran, t.lost = windowMax, time.Hour
	}
	t.bar.slow.Store(t.bar.gen.Load() + 1) // by all, for one may still say so of the barrier before
	w.Barrier()
	if w.Index == 0 {
		t.ran, t.lost = 0, 0
	}
}

// TestWhoIsSentHomeComesBackInALaterRun: runs one after the other, as of a long step, claim at barriers here and there
// that workers were without a processor. Whoever leaves, each index of each split is given once, and the run after
// the pause begins with all.
func TestWhoIsSentHomeComesBackInALaterRun(t *testing.T) {
	const workers, runs, splits, total = 4, 12, 7, 61
	team := NewTeam(workers)
	defer team.Close()
	r := newRand(12)
	for run := range runs {
		var claims [splits]bool
		gone := 0
		for s := range claims {
			claims[s] = run%3 > 0 && r.IntN(2) == 0
			if claims[s] {
				gone = min(gone+1, workers-1)
			}
		}
		for i := 1; i < workers; i++ {
			for !team.workers[i].home.Load() {
				runtime.Gosched()
			}
		}
		team.retry = time.Time{} // the pause is over
		var seen [splits][total]atomic.Int32
		var began, ended int
		team.Run(func(w *Worker) {
			if w.Index == 0 {
				began = w.N
			}
			for s := range splits {
				w.Split(total, 1+s, func(lo, hi int) {
					for i := lo; i < hi; i++ {
						seen[s][i].Add(1)
					}
				})
				if claims[s] {
					heldUpBarrier(w)
				} else {
					w.Barrier()
				}
			}
			if w.Index == 0 {
				ended = w.N
			}
		})
		if began != workers {
			t.Errorf("run %d began with %d of %d workers, all of which were at home", run, began, workers)
		}
		if ended > workers-gone {
			t.Errorf("run %d ended with %d workers, %d times one was to be sent home", run, ended, gone)
		}
		for s := range seen {
			for i := range seen[s] {
				if n := seen[s][i].Load(); n != 1 {
					t.Fatalf("run %d, claims %v: index %d of split %d was given %d times", run, claims, i, s, n)
				}
			}
		}
	}
}

// TestHeldUpRunsSendWorkersHome claims in the middle of a run that workers were without a processor.
func TestHeldUpRunsSendWorkersHome(t *testing.T) {
	team := NewTeam(3)
	deferred, after := [3]bool{}, [3]bool{}
	var pieces [3]atomic.Int32
	team.Run(func(w *Worker) {
		defer func() { deferred[w.Index] = true }()
		w.Barrier()
		heldUpBarrier(w)
		w.Barrier()
		after[w.Index] = true
		w.Split(99, 1, func(lo, hi int) { pieces[w.Index].Add(int32(hi - lo)) })
	})
	sum := int32(0)
	for i := range pieces {
		sum += pieces[i].Load()
	}
	if sum != 99 || !after[0] || after[2] {
		t.Errorf("%d of 99 pieces; workers that went on: %v, want the first but not the last", sum, after)
	}
	if team.active == 3 {
		t.Error("the run after a held-up one would begin with all workers")
	}
	team.Close() // waits for whoever was still on the way home
	for i, d := range deferred {
		if !d {
			t.Errorf("the deferred call of worker %d did not run", i)
		}
	}
}

// TestAllWorkersAreTriedAgain feeds outcomes of runs to the decision how many workers the next one begins with: what
// real runs meet depends on the machine.
func TestAllWorkersAreTriedAgain(t *testing.T) {
	team := NewTeam(3)
	defer team.Close()
	now := time.Now()
	for held := range 8 {
		team.active = 3
		team.adapt(3, 2, now, time.Millisecond, time.Hour)
		if want := min(pauseFirst<<held, pauseMax); team.active != 2 || team.retry.Sub(now) != want || team.ran+team.lost != 0 {
			t.Errorf("held up %d times: %d go on and all are tried again after %v, want 2 and %v", held+1, team.active, team.retry.Sub(now), want)
		}
	}
	team.adapt(2, 2, now, windowMax+1, 0)
	if team.pause != pauseMax {
		t.Error("good runs of two workers say nothing about three")
	}
	team.adapt(3, 3, now, windowMax+1, windowMax)
	if team.pause != pauseMax {
		t.Error("a run that lost much counts as good")
	}
	team.ran, team.lost = 0, 0
	team.adapt(3, 3, now, windowMax+1, time.Millisecond)
	if team.pause != pauseFirst {
		t.Errorf("after good runs the next pause is %v, want %v", team.pause, pauseFirst)
	}
	team.active, team.retry = 1, now // which is past
	var n atomic.Int32
	team.Run(func(w *Worker) { n.Store(int32(w.N)) })
	if n.Load() != 3 {
		t.Errorf("%d workers ran when all were to be tried again", n.Load())
	}
}

// The time that a thread works is no loss, however long the others wait for it; the time that it sleeps is.
func TestWorkIsNoLoss(t *testing.T) {
	if !threadTimes {
		t.Skip("this system does not tell the processor time of other threads")
	}
	team := NewTeam(2)
	defer team.Close()
	var worked, slept time.Duration
	team.Run(func(w *Worker) {
		if w.Index == 1 {
			for began := threadTimeOf(threadID()); threadTimeOf(threadID())-began < 30*time.Millisecond; {
			}
			team.workers[0].had.Store(int64(threadTimeOf(team.workers[0].thread.Load()) - time.Since(team.began)))
			_, worked = team.account(2)
			time.Sleep(30 * time.Millisecond)
			team.workers[0].had.Store(int64(threadTimeOf(team.workers[0].thread.Load()) - time.Since(team.began)))
			_, slept = team.account(2)
		}
		w.Barrier()
	})
	// A loaded machine adds the same to both.
	if slept-worked < 25*time.Millisecond {
		t.Errorf("lost %v while working and %v with the sleep; want 30 ms more", worked, slept)
	}
}

// TestSleepingWorkersWake runs the team after its workers went to sleep, again and again.
func TestSleepingWorkersWake(t *testing.T) {
	team := NewTeam(2)
	defer team.Close()
	for range 5 {
		for !team.workers[1].parked.Load() {
			runtime.Gosched()
		}
		ran := false
		team.active = 2 // even if this machine held up the last run
		team.Run(func(w *Worker) {
			if w.Index == 1 {
				ran = true
			}
		})
		if !ran {
			t.Fatal("the sleeping worker took no part")
		}
	}
}

// K5 for the team.
func TestRunAllocatesNothing(t *testing.T) {
	team := NewTeam(2)
	defer team.Close()
	x := make([]float32, 64)
	step := func(w *Worker) {
		w.Split(len(x), 8, func(lo, hi int) { Scale(x[lo:hi], 1) })
	}
	if n := testing.AllocsPerRun(20, func() { team.Run(step) }); n != 0 {
		t.Errorf("%v allocations per run", n)
	}
}
