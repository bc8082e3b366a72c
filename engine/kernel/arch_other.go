//go:build !amd64

package kernel

func archTables() []*table { return nil }

func fastPairs() bool { return false }

// pause is what a spin loop does between two looks.
func pause() {}
