package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// lockPollEvery is how often a held lock is tried again: no system lets us wait for a file lock
// and for a context at once.
const lockPollEvery = 50 * time.Millisecond

// lock takes the lock file at path, waiting for whoever holds it (S2). The file itself stays:
// removing it would let a third process lock a file that no longer has the name.
func lock(ctx context.Context, path string, w io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for waited := false; ; waited = true {
		ok, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if ok {
			return func() { f.Close() }, nil
		}
		if !waited && w != nil {
			fmt.Fprintln(w, "another process is pulling this model; waiting for it")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(lockPollEvery):
		}
	}
}
