package kernel

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// withRead runs f at a level that reads memory by read instead.
func withRead(read func(p unsafe.Pointer, lines int), f func()) {
	before := active
	changed := *before
	changed.read = read
	active = &changed
	defer func() { active = before }()
	f()
}

// TestProbeReadsEveryByte, once in each round, and says no more than that took.
func TestProbeReadsEveryByte(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		for threads := 1; threads <= 3; threads++ {
			const bytes, rounds = 8 * probePiece, 3
			var lines atomic.Int64
			read, began := active.read, time.Now()
			withRead(func(p unsafe.Pointer, n int) { lines.Add(int64(n)); read(p, n) }, func() {
				v := Probe(threads, bytes, rounds)
				// Two of three rounds took as long as the median or longer.
				if least := 2 * bytes / time.Since(began).Seconds(); !(v >= least) {
					t.Errorf("%d threads: %g bytes per second, but %g were read", threads, v, least)
				}
			})
			if got := lines.Load() * lineBytes; got != (rounds+1)*bytes {
				t.Errorf("%d threads read %d bytes, want %d", threads, got, (rounds+1)*bytes)
			}
		}
	})
}

// TestProbeIsNoFasterThanItsReads: where reading a piece takes a millisecond, the figure is at most
// what the threads read in that time.
func TestProbeIsNoFasterThanItsReads(t *testing.T) {
	const bytes, each = 4 * probePiece, time.Millisecond
	for threads := 1; threads <= 2; threads++ {
		clock := func() time.Duration { return time.Duration(time.Now().UnixNano()) }
		if threads == 1 && threadTimes {
			clock = func() time.Duration { return threadTimeOf(threadID()) }
		}
		withRead(func(unsafe.Pointer, int) {
			for began := clock(); clock()-began < each; {
			}
		}, func() {
			if v, most := Probe(threads, bytes, 3), float64(threads*probePiece)/each.Seconds(); v > most || v <= 0 {
				t.Errorf("%d threads: %g bytes per second, at most %g are possible", threads, v, most)
			}
		})
	}
}
