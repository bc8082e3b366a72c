package model

import "golang.org/x/sys/unix"

// cpuSeconds is the time that the calling thread has spent on a processor.
func cpuSeconds() float64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return float64(t.Nano()) / 1e9
}
