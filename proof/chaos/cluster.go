package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyMax bounds how long a cluster may take to serve its first pair: the embedded model loads
// in well under a second, the rest is room for a machine whose cores are all busy.
const readyMax = 60 * time.Second

// Cluster is one `baton serve` with its workers, started by this test.
type Cluster struct {
	URL string // http://127.0.0.1:PORT

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been waited for
	err  error         // its exit, readable after done

	mu  sync.Mutex
	log bytes.Buffer // standard error, whole
}

// Start runs `BINARY serve ARGS…` and waits for its "ready" line.
func Start(ctx context.Context, binary string, args ...string) (*Cluster, error) {
	c := &Cluster{done: make(chan struct{})}
	c.cmd = exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	tie(c.cmd)
	c.cmd.Stderr = (*logWriter)(c)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- url
			}
		}
		c.err = c.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	select {
	case c.URL = <-ready:
		return c, nil
	case <-c.done:
		return nil, fmt.Errorf("chaos: serve ended before it was ready: %v\n%s", c.err, c.Log())
	case <-ctx.Done():
		c.Kill()
		return nil, fmt.Errorf("chaos: serve was not ready: %w\n%s", ctx.Err(), c.Log())
	}
}

// Interrupt asks for a drain, as Ctrl-C does, and waits for the exit.
func (c *Cluster) Interrupt(ctx context.Context) error {
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("chaos: serve did not drain: %w", ctx.Err())
	}
}

// Kill ends the process and waits for it. It may be called twice.
func (c *Cluster) Kill() {
	c.cmd.Process.Kill()
	<-c.done
}

// PID is the process id of the gateway, which is also the parent of the workers.
func (c *Cluster) PID() int { return c.cmd.Process.Pid }

// Log returns all that the processes wrote to standard error so far.
func (c *Cluster) Log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

type logWriter Cluster

func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

// Worker is what an operator sees of one worker. Without an answer of its own there are no
// queues and no blocks.
type Worker struct {
	Error  string `json:"error"` // why it did not answer
	Role   string `json:"role"`
	Boot   string `json:"boot"`
	PID    int    `json:"pid"`
	HTTP   string `json:"http"`
	Queues map[string]struct {
		Len int `json:"len"`
	} `json:"queues"`
	Blocks *struct {
		Total       int `json:"total"`
		Free        int `json:"free"`
		Cached      int `json:"cached"`
		Held        int `json:"held"`
		Quarantined int `json:"quarantined"`
	} `json:"blocks"`
}

// State is what `baton ps --json` prints.
type State struct {
	Requests []map[string]any `json:"requests"`
	Rooms    []map[string]any `json:"rooms"`
	Workers  []Worker         `json:"workers"`
}

// State reads the whole cluster's tables through the gateway.
func (c *Cluster) State(ctx context.Context) (State, error) {
	var s State
	body, err := get(ctx, c.URL+"/debug/requests")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// Worker returns a live worker of the role.
func (c *Cluster) Worker(ctx context.Context, role string) (Worker, error) {
	s, err := c.State(ctx)
	if err != nil {
		return Worker{}, err
	}
	for _, w := range s.Workers {
		if w.Role == role && w.PID > 0 {
			return w, nil
		}
	}
	return Worker{}, fmt.Errorf("chaos: no %s worker among %+v", role, s.Workers)
}

// Signal sends a signal to a worker process, if it is still the child of this cluster: a process
// id in a table may be old, and by now somebody else's.
func (c *Cluster) Signal(w Worker, signal syscall.Signal) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID))
	if err != nil {
		return fmt.Errorf("chaos: worker %s: %w", w.Boot, err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // behind the command's name: state, parent
	var state string
	var parent int
	if _, err := fmt.Sscan(rest, &state, &parent); err != nil || parent != c.PID() || state == "Z" {
		return fmt.Errorf("chaos: process %d is no longer worker %s", w.PID, w.Boot)
	}
	return syscall.Kill(w.PID, signal)
}

// Quiet says why the cluster is not at rest, or "" when it is (X4).
func (s State) Quiet() string {
	switch {
	case len(s.Requests) > 0:
		return fmt.Sprintf("%d requests, first %v", len(s.Requests), s.Requests[0])
	case len(s.Rooms) > 0:
		return fmt.Sprintf("%d rooms, first %v", len(s.Rooms), s.Rooms[0])
	case len(s.Workers) == 0:
		return "no worker"
	}
	for _, w := range s.Workers {
		b := w.Blocks
		if b == nil {
			return fmt.Sprintf("%s worker %s does not answer: %s", w.Role, w.Boot, w.Error)
		}
		if b.Total == 0 || b.Free+b.Cached != b.Total {
			return fmt.Sprintf("%s worker %s: blocks %+v", w.Role, w.Boot, *b)
		}
		for name, q := range w.Queues {
			if q.Len != 0 {
				return fmt.Sprintf("%s worker %s: queue %s has %d", w.Role, w.Boot, name, q.Len)
			}
		}
	}
	return ""
}

// Metric reads one plain sample of a part's /metrics; url is the cluster's or a worker's. ok is
// false when it is not there.
func Metric(ctx context.Context, url, name string) (value float64, ok bool) {
	body, err := get(ctx, url+"/metrics")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(body)) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			_, err := fmt.Sscan(rest, &value)
			return value, err == nil
		}
	}
	return 0, false
}

// Descriptors counts the open files of a process that this test started.
func Descriptors(pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return -1
	}
	return len(entries)
}

// Resident returns how many bytes of memory a process that this test started holds. ok is false
// when it is gone.
func Resident(pid int) (bytes int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, false
	}
	return resident * int64(os.Getpagesize()), true
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, 64<<20))
}
