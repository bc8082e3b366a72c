//go:build unix

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestACancelledPipIsEnded cancels when the script says, through a named pipe, that it runs.
func TestACancelledPipIsEnded(t *testing.T) {
	m, path := fakePip(t, "pip", "echo > $here/runs; exec sleep 600", tinyModel(t, 1))
	runs := filepath.Join(filepath.Dir(path), "runs")
	if err := unix.Mkfifo(runs, 0o600); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		if _, err := os.ReadFile(runs); err != nil {
			t.Error(err)
		}
		cancel(why)
	}()
	if err := m.fetch(ctx, path, nil); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	wantNoFile(t, path)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".wheel-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
