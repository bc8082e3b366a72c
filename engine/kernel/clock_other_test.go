//go:build !linux

package kernel

import "time"

var start = time.Now()

func threadTime() time.Duration { return time.Since(start) }
