//go:build !linux

package tcp

import (
	"syscall"
)

// vectorState is empty where spans go one by one.
type vectorState struct{}

func (v *vector) init() {}

// readv reads at least one byte into the first span that is not empty.
func (v *vector) readv(spans [][]byte) (int, error) {
	for _, s := range spans {
		if len(s) > 0 {
			return v.conn.Read(s)
		}
	}
	return 0, nil
}

// writev writes at least one byte from the first span that is not empty.
func (v *vector) writev(spans [][]byte) (int, error) {
	for _, s := range spans {
		if len(s) > 0 {
			return v.conn.Write(s)
		}
	}
	return 0, nil
}

// tune leaves the socket as the system made it.
func tune(int) func(string, string, syscall.RawConn) error { return nil }
