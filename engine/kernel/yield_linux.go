package kernel

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// yield lets another thread have this processor. Most times the system's own yield is enough, and cheap; now and then
// the Go scheduler gets its turn, so that goroutines which share this processor are not starved.
func yield(i int) {
	if i%64 == 0 {
		runtime.Gosched()
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
