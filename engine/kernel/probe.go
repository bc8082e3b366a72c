package kernel

import (
	"runtime"
	"slices"
	"time"
	"unsafe"
)

// probePiece is what a worker of Probe reads at a time.
const probePiece = 256 << 10

// Probe measures how fast that many threads together read memory as the weights of a model lie in it (huge pages, if
// the system has them), in bytes per second: the median of some rounds over so many bytes. Decoding cannot be faster
// than the bytes of its weights at this speed, so bytes should be as many as the weights; what fits a cache is read
// faster. One thread is timed by its own processor time, where the system tells it, several by the clock on the wall.
func Probe(threads, bytes, rounds int) (bytesPerSecond float64) {
	pieces := max(1, bytes/probePiece)
	area := Alloc(pieces * probePiece)
	defer Free(area)
	for i := 0; i < len(area); i += 4096 {
		area[i] = 1 // untouched pages would all be one page of zeros
	}
	team := NewTeam(threads)
	defer team.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := func(began time.Time) time.Duration { return time.Since(began) }
	if threads == 1 && threadTimes {
		clock = func(time.Time) time.Duration { return threadTimeOf(threadID()) }
	}
	speeds := make([]float64, 0, rounds)
	for round := range rounds + 1 {
		began := time.Now()
		at := clock(began)
		team.Run(func(w *Worker) {
			w.Split(pieces, 1, func(lo, hi int) {
				for p := lo; p < hi; p++ {
					active.read(unsafe.Pointer(&area[p*probePiece]), probePiece/lineBytes)
				}
			})
		})
		if took := clock(began) - at; round > 0 && took > 0 {
			speeds = append(speeds, float64(len(area))/took.Seconds())
		}
	}
	slices.Sort(speeds)
	if len(speeds) == 0 {
		return 0
	}
	return speeds[len(speeds)/2]
}

// readGo reads lines of 64 bytes.
func readGo(p unsafe.Pointer, lines int) {
	sum := uint64(0)
	for _, l := range unsafe.Slice((*[8]uint64)(p), lines) {
		sum += l[0] + l[1] + l[2] + l[3] + l[4] + l[5] + l[6] + l[7]
	}
	runtime.KeepAlive(sum) // or nothing would be read
}
