//go:build !linux

package model

// cpuSeconds returns 0: no thread clock that is the same on all other systems.
func cpuSeconds() float64 { return 0 }
