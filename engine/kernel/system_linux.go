package kernel

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappings remembers the whole mapping behind each slice of Alloc, which is a part of it: the mapping is larger by a
// huge page so that the slice can begin on one.
var mappings sync.Map // *byte -> []byte

func allocSystem(n int) []byte {
	m, err := unix.Mmap(-1, 0, n+hugeFrom, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	at := int(-uintptr(unsafe.Pointer(&m[0])) & (hugeFrom - 1))
	// An error only means that the system has no huge pages; small ones are slower and right.
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	b := m[at : at+n : at+n]
	mappings.Store(&b[0], m)
	return b
}

// freeSystem says false for memory that did not come from allocSystem.
func freeSystem(b *byte) bool {
	m, ok := mappings.LoadAndDelete(b)
	if ok {
		_ = unix.Munmap(m.([]byte)) // fails only for an address that was never mapped
	}
	return ok
}

// yield lets another thread have this processor. Most times the system's own yield is enough, and cheap; now and then
// the Go scheduler gets its turn, so that goroutines which share this processor are not starved.
func yield(i int) {
	if i%64 == 0 {
		runtime.Gosched()
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// threadID names the calling thread for threadTimeOf.
func threadID() int32 { return int32(unix.Gettid()) }

// threadTimes says that threadTimeOf knows.
const threadTimes = true

// threadTimeOf is the processor time of a thread of this process.
func threadTimeOf(thread int32) time.Duration {
	const perThread, scheduled = 4, 2 // of the system's numbering of such clocks
	var ts unix.Timespec
	if unix.ClockGettime(^thread<<3|perThread|scheduled, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
