//go:build !linux

package kernel

import "runtime"

// yield lets another goroutine have this processor.
func yield(int) { runtime.Gosched() }
