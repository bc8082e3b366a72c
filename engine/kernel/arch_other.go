//go:build !amd64

package kernel

func archTables() []*table { return nil }

// pause is what a spin loop does between two looks.
func pause() {}
