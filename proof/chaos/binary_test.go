package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// binary is the program under test, built once from this tree.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "baton-chaos")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "baton")
		build := exec.Command("go", "build", "-o", binary, "baton/cmd/baton")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic("chaos: build: " + err.Error() + "\n" + string(out))
		}
		return m.Run()
	}())
}

// start runs a cluster for the length of a test and shows its log when the test fails. What its
// processes recorded is replayed in the end (X7).
func start(t *testing.T, args ...string) *Cluster {
	t.Helper()
	if !slices.Contains(args, "--record") {
		args = append(args, recording(t)...)
	}
	c, err := Start(t.Context(), binary, args...)
	if err != nil {
		t.Fatal(err)
	}
	kept := t.ArtifactDir() // go test -artifacts keeps what is in it
	t.Cleanup(func() {
		c.Kill()
		log := c.Log()
		if err := os.WriteFile(filepath.Join(kept, fmt.Sprintf("cluster-%d.log", c.PID())), []byte(log), 0o644); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the last of the cluster's log:\n%s", log[max(0, len(log)-8<<10):])
		}
	})
	return c
}

// client returns a client with connections of its own, and what closes those that are idle.
func client() (hc *http.Client, hangUp func()) {
	tr := &http.Transport{MaxIdleConnsPerHost: stormAtOnce}
	return &http.Client{Transport: tr}, tr.CloseIdleConnections
}

// awaitQuiet polls until the cluster is at rest, and fails with what is not (X4).
func awaitQuiet(t *testing.T, c *Cluster, within time.Duration) {
	t.Helper()
	await(t, "at rest", within, func(ctx context.Context) string {
		s, err := c.State(ctx)
		if err != nil {
			return err.Error()
		}
		return s.Quiet()
	})
}

// awaitServing polls until a pair serves: a killed worker has come back.
func awaitServing(t *testing.T, c *Cluster, within time.Duration) {
	t.Helper()
	await(t, "serving", within, func(ctx context.Context) string {
		body, err := get(ctx, c.URL+"/health")
		if err != nil {
			return err.Error()
		}
		var h struct{ OK bool }
		if err := json.Unmarshal(body, &h); err != nil || !h.OK {
			return string(body)
		}
		return ""
	})
}

// await polls why until it is "", and fails with its last words.
func await(t *testing.T, what string, within time.Duration, why func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last := "never asked"; ; {
		if now := why(ctx); now == "" {
			return
		} else if ctx.Err() == nil {
			last = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not %s after %v: %s", what, within, last)
		}
	}
}
