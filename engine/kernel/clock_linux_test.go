package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread: on a shared machine benchmarks of one thread count in it.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
