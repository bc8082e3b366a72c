package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// Two secrets of fleets.
const (
	secret      = "00112233445566778899aabbccddeeff"
	otherSecret = "ffeeddccbbaa99887766554433221100"
)

// endedMax bounds how long a program may take that has only to refuse something, and a worker
// that has only to leave: seconds on a machine whose cores are all busy.
const endedMax = 30 * time.Second

// runs runs the binary to its end and returns what it said and its exit code.
func runs(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), endedMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v:\n%s", args, endedMax, errs.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), 0
}

// byHand is one `baton worker` started as an operator does it, without a supervisor.
type byHand struct {
	Role string `json:"role"`
	HTTP string `json:"http"`
	Link string `json:"link"`
}

// startWorker runs `baton worker ARGS…` with a fleet's secret until the end of the test, and
// waits for its ready line. It must leave in order when it is told to, and does so by itself
// when this process is no more, because its standard input ends then.
func startWorker(t *testing.T, secret string, args ...string) *byHand {
	t.Helper()
	args = append(args, recording(t)...)
	cmd := exec.Command(binary, append([]string{"worker", "--kv-tokens", "16384", "--threads", "1", "--child"}, args...)...)
	cmd.Env = append(os.Environ(), "BATON_SECRET="+secret)
	var log bytes.Buffer // read behind Wait
	cmd.Stderr = &log
	if _, err := cmd.StdinPipe(); err != nil { // held open until Wait
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, done := make(chan string, 1), make(chan struct{})
	var exit error
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), `{"loading":`) {
				continue // a parent would draw it
			}
			select {
			case first <- lines.Text():
			default:
			}
		}
		exit = cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // an error says that it is over
		late := time.AfterFunc(endedMax, func() { cmd.Process.Kill() })
		<-done
		late.Stop()
		if exit != nil {
			t.Errorf("worker %v: %v", args, exit)
		}
		if t.Failed() {
			t.Logf("log of worker %v:\n%s", args, log.String()[max(0, log.Len()-4<<10):])
		}
	})
	w := &byHand{}
	select {
	case line := <-first:
		if err := json.Unmarshal([]byte(line), w); err != nil || w.HTTP == "" {
			t.Fatalf("worker %v said %q: %v", args, line, err)
		}
	case <-done:
		t.Fatalf("worker %v ended before it was ready: %v\n%s", args, exit, log.String())
	case <-time.After(readyMax):
		t.Fatalf("worker %v was not ready after %v", args, readyMax)
	}
	return w
}

// state reads the worker's own tables.
func (w *byHand) state(ctx context.Context) (worker Worker, rooms []map[string]any, err error) {
	var s struct {
		Worker Worker           `json:"worker"`
		Rooms  []map[string]any `json:"rooms"`
	}
	body, err := get(ctx, "http://"+w.HTTP+"/debug/rooms")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s.Worker, s.Rooms, err
}

// metric reads a sample that is told apart by the role and, unless it is "", by what.
func (w *byHand) metric(t *testing.T, name, what string) float64 {
	t.Helper()
	sample := fmt.Sprintf("%s{role=%q}", name, w.Role)
	if what != "" {
		sample = fmt.Sprintf("%s{role=%q,what=%q}", name, w.Role, what)
	}
	v, ok := Metric(t.Context(), "http://"+w.HTTP, sample)
	if !ok {
		t.Fatalf("the %s worker does not show %s", w.Role, sample)
	}
	return v
}

// awaitEmpty polls until the worker holds no room and no block (X4).
func (w *byHand) awaitEmpty(t *testing.T) {
	t.Helper()
	await(t, w.Role+" empty", endedMax, func(ctx context.Context) string {
		worker, rooms, err := w.state(ctx)
		if err != nil {
			return err.Error()
		}
		return State{Rooms: rooms, Workers: []Worker{worker}}.Quiet()
	})
}

// side is one leg of a room under way.
type side struct {
	leave context.CancelFunc
	over  chan struct{} // closed when it is over; the rest is then readable
	ids   []int32
	text  string
	end   *leg.End // nil when the connection was cut
	err   error
}

// openLeg sends a leg as a gateway does.
func (w *byHand) openLeg(t *testing.T, r leg.Request) *side {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	s := &side{leave: cancel, over: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.HTTP+"/leg/"+w.Role, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(s.over)
		defer cancel()
		s.read(req)
	})
	t.Cleanup(func() { cancel(); reader.Wait() })
	return s
}

func (s *side) read(req *http.Request) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.err = err
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var b bytes.Buffer
		if _, s.err = b.ReadFrom(http.MaxBytesReader(nil, res.Body, leg.LineBytesMax)); s.err == nil {
			s.end, s.err = leg.ParseEnd(b.Bytes())
		}
		return
	}
	for lines := leg.NewReader(res.Body); s.end == nil && s.err == nil; {
		var l leg.Line
		if l, s.err = lines.Next(); s.err == nil {
			s.ids, s.text, s.end = append(s.ids, l.IDs...), s.text+l.Text, l.End
		}
	}
}

// ended waits for the end of the leg, whatever it is.
func (s *side) ended(t *testing.T) *leg.End {
	t.Helper()
	<-s.over // bounded by the request's own time
	if s.end == nil {
		t.Fatalf("the leg ended without an end: %v", s.err)
	}
	return s.end
}

// failedWith waits for the end and wants this cause and all of these words in its message.
func (s *side) failedWith(t *testing.T, cause room.Cause, words ...string) {
	t.Helper()
	end := s.ended(t)
	if end.Cause != cause {
		t.Errorf("the leg ended with %v (%s), want the cause %v", end.Result(), end.Message, cause)
	}
	for _, w := range words {
		if !strings.Contains(end.Message, w) {
			t.Errorf("the leg's message %q does not say %q", end.Message, w)
		}
	}
}
