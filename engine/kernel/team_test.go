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
			for i := range w.N {
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

// TestHeldUpRunsGetSmallerForAWhile drives the rule itself: measured time does not enter.
func TestHeldUpRunsGetSmallerForAWhile(t *testing.T) {
	team := NewTeam(3)
	defer team.Close()
	team.slow.Store(int64(5 * time.Millisecond))
	team.adapt(10 * time.Millisecond)
	if team.active != 2 {
		t.Fatalf("%d workers after a run held up for half its time, want 2", team.active)
	}
	team.adapt(10 * time.Millisecond)
	if team.active != 2 {
		t.Fatalf("%d workers after one more run, want 2", team.active)
	}
	for range smallerRuns {
		team.adapt(10 * time.Millisecond)
	}
	if team.active != 3 {
		t.Fatalf("%d workers after %d quiet runs, want 3", team.active, smallerRuns)
	}
	got := int32(0)
	team.active = 2
	team.Run(func(w *Worker) { atomic.AddInt32(&got, 1) })
	if got != 2 {
		t.Errorf("%d workers took part in a run for 2", got)
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
		team.Run(func(w *Worker) {
			if w.Index == 1 {
				ran = true
			}
		})
		if !ran && team.active == 2 {
			t.Fatal("the sleeping worker took no part")
		}
	}
}

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
