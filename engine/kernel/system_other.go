//go:build !linux

package kernel

import "runtime"

func allocSystem(int) []byte { return nil }

func freeSystem(*byte) bool { return false }

// yield lets another goroutine have this processor.
func yield(int) { runtime.Gosched() }
