//go:build !linux

package kernel

import (
	"runtime"
	"time"
)

func allocSystem(int) []byte { return nil }

func freeSystem(*byte) bool { return false }

// yield lets another goroutine have this processor.
func yield(int) { runtime.Gosched() }

// threadTimes: without clocks of other threads all long waiting counts as waiting for a processor.
const threadTimes = false

func threadID() int32 { return 0 }

func threadTimeOf(int32) time.Duration { return 0 }
