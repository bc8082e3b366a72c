//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock if nobody holds it. It ends with the open file, also when the process
// dies.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK || err == unix.EINTR {
		return false, nil
	}
	return err == nil, err
}
