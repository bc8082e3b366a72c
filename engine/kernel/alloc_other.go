//go:build !linux

package kernel

func allocSystem(int) []byte { return nil }

func freeSystem([]byte) {}
