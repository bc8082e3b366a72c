//go:build !linux

package kernel

import "runtime"

func allocSystem(int) []byte { return nil }

func freeSystem([]byte) {}

// yield lets another goroutine have this processor.
func yield(int) { runtime.Gosched() }
