package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"baton/serve/recorder"
)

// piped makes a pipe with a name; what is in the file comes out of it once.
func piped(t *testing.T, pipe, file string) {
	t.Helper()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if file == "" {
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err == nil {
			_, err = w.Write(b)
			w.Close()
		}
		done <- err
	}()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestAPipeInADirectoryIsNotWaitedFor: nobody may ever write to it.
func TestAPipeInADirectoryIsNotWaitedFor(t *testing.T) {
	dir, _, _ := gatewayAndWorker(t)
	piped(t, filepath.Join(dir, "a"+recorder.Suffix), "")
	if out, code, complaint := replayed(t, dir); code != 1 || !strings.Contains(complaint, "is a pipe and no file: not read") || !strings.Contains(out, "2 files, 4 events") {
		t.Errorf("exit %d, %s\n%s", code, complaint, out)
	}
}

// TestAPipeIsCheckedAndNotFilmed: a film reads twice.
func TestAPipeIsCheckedAndNotFilmed(t *testing.T) {
	_, gateway, worker := gatewayAndWorker(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	piped(t, pipe, gateway)
	if _, code, complaint := replayed(t, pipe, worker, "--rid", "ours"); code != exitUsage || !strings.Contains(complaint, "is a pipe: a film needs a file that can be read twice") {
		t.Errorf("exit %d, %s", code, complaint)
	}
	if out, code, complaint := replayed(t, pipe, worker); code != 0 || !strings.Contains(out, "2 files, 4 events") {
		t.Errorf("exit %d, %s\n%s", code, complaint, out)
	}
	b, err := os.ReadFile(gateway)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gateway, []byte(strings.Replace(string(b), `"kind":"open"`, `"kind":"close"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe += "2"
	piped(t, pipe, gateway)
	if out, code, complaint := replayed(t, pipe); code != exitBroken || complaint != "" || !strings.Contains(out, "are not drawn: a film needs a file that can be read twice") {
		t.Errorf("a difference: exit %d, %s\n%s", code, complaint, out)
	}
}
