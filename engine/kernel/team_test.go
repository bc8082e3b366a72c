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

// TestHeldUpRunsSendWorkersHome claims in the middle of a run that workers were without a processor.
func TestHeldUpRunsSendWorkersHome(t *testing.T) {
	team := NewTeam(3)
	deferred, after := [3]bool{}, [3]bool{}
	var pieces [3]atomic.Int32
	team.Run(func(w *Worker) {
		defer func() { deferred[w.Index] = true }()
		w.Barrier()
		if w.Index == 0 {
			team.ran, team.lost = windowMax, time.Hour
			team.bar.slow.Store(team.bar.gen.Load() + 1)
		}
		w.Barrier()
		if w.Index == 0 {
			team.ran, team.lost = 0, 0
		}
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
