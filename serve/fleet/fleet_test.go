package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"baton/engine/recall"
	"baton/serve/gateway"
)

func TestAFleetAnswersRightThroughItsHandOff(t *testing.T) {
	r := launch(t, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	var all sync.WaitGroup
	for range 8 {
		p := recall.NewPrompt(rnd, 1+rnd.IntN(60))
		turn := p.AskOne(rnd)
		all.Go(func() {
			if got, status := r.ask(p, turn); got != turn.Answer {
				t.Errorf("%d %q, want %q", status, got, turn.Answer)
			}
		})
	}
	all.Wait()
	for _, w := range r.workers() {
		if !w.Up || w.Error != "" {
			t.Errorf("%+v", w)
		}
	}
	// A prefill worker's last leg may close a moment behind the last answer.
	r.becomes("legs", "0", func(w gateway.WorkerView) any { return w.Legs })
	r.becomes("blocks held", "0", func(w gateway.WorkerView) any {
		if w.Blocks == nil {
			return nil
		}
		return w.Blocks.Held
	})
	r.stop()
	<-r.ended
	if r.err != nil {
		t.Error(r.err)
	}
}

func TestAWorkerThatIsKilledComesBackUnderANewBoot(t *testing.T) {
	var log lockedBuffer
	r := launch(t, func(c *Config) {
		c.Times.Pause, c.Log = time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	})
	rnd := rand.New(rand.NewPCG(3, 4))
	p := recall.NewPrompt(rnd, 5)
	for _, name := range []string{"decode-0", "prefill-0"} {
		before, _ := r.worker(name)
		if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.eventually(name+" is back", func() bool {
			w, ok := r.worker(name)
			return ok && w.Up && w.Boot != before.Boot && w.PID != before.PID
		})
		turn := p.AskOne(rnd)
		if got, status := r.ask(p, turn); got != turn.Answer {
			t.Errorf("behind the death of %s: %d %q, want %q", name, status, got, turn.Answer)
		}
		// What it had logged last is not why it died.
		if want := `msg="worker ended, it is started again" worker=` + name + ` detail="signal: killed" after=`; !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log.String())
		}
	}
}

// What a worker said before a signal ended it is why only if it is fatal: Go's runtime raises
// SIGABRT behind its word.
func TestTheLastWordOfAWorkerThatASignalEnded(t *testing.T) {
	for said, want := range map[string]string{
		"time=now level=INFO msg=ready":                   "signal: killed",
		"fatal error: out of memory\n\ngoroutine 1":       "signal: killed: fatal error: out of memory",
		"time=now level=INFO msg=ready\nbaton: no memory": "signal: killed: baton: no memory",
	} {
		cmd := exec.Command("sh", "-c", "echo '"+said+"' >&2; kill -9 $$")
		c, err := start(cmd, "worker-0", io.Discard, func(int64, int64) {})
		if err != nil {
			t.Fatal(err)
		}
		<-c.exited
		if got := c.how(); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
}

func TestAFrozenWorkerIsTakenOutAndReplaced(t *testing.T) {
	r := launch(t, func(c *Config) {
		c.Times = Times{Probe: 20 * time.Millisecond, Answer: 300 * time.Millisecond, Frozen: time.Second, Pause: time.Millisecond}
	})
	before, _ := r.worker("decode-0")
	if err := syscall.Kill(before.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.eventually("it is taken out", func() bool {
		w, ok := r.worker("decode-0")
		return !ok || !w.Up || w.Boot != before.Boot
	})
	r.eventually("it is replaced", func() bool {
		w, ok := r.worker("decode-0")
		return ok && w.Up && w.Boot != before.Boot
	})
	rnd := rand.New(rand.NewPCG(5, 6))
	p := recall.NewPrompt(rnd, 5)
	turn := p.AskOne(rnd)
	if got, status := r.ask(p, turn); got != turn.Answer {
		t.Errorf("%d %q, want %q", status, got, turn.Answer)
	}
}

// A worker that is told to leave, by a signal or by an operator's request, finishes what it has
// and gets nothing new; however long that takes, it is not unhealthy, and its successor serves
// beside it. Who asks meanwhile waits for that one, and is not refused (F6).
func TestAPoliteLeaveLosesNothing(t *testing.T) {
	signal := func(t *testing.T, w gateway.WorkerView) {
		if err := syscall.Kill(w.PID, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(t *testing.T, w gateway.WorkerView) {
		resp, err := http.Post("http://"+w.HTTP+"/drain", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, row := range []struct {
		how, name string
		tell      func(*testing.T, gateway.WorkerView)
	}{{"SIGTERM", "decode-0", signal}, {"POST drain", "decode-0", ask}, {"SIGTERM", "prefill-0", signal}, {"POST drain", "prefill-0", ask}} {
		t.Run(row.how+" "+row.name, func(t *testing.T) { politeLeave(t, row.name, row.tell) })
	}
}

func politeLeave(t *testing.T, name string, tell func(*testing.T, gateway.WorkerView)) {
	r := launch(t, func(c *Config) {
		// A second of bad answers would be its death; one that was stopped needs a moment of it.
		c.Times = Times{Probe: time.Millisecond, Answer: time.Minute, Frozen: time.Second, Pause: time.Millisecond}
		// Where this machine is busy, the stream's own reader is late: that is not what this is about.
		c.Gateway.ClientBytes = 64 << 20
	})
	before, _ := r.worker(name)
	body := `{"prompt":["a","b","c","d"],"max_tokens":1900,"ignore_eos":true,"stream":true}`
	resp, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	var rest []byte // a client that does not read meanwhile would be given up
	var broken error
	over := make(chan struct{})
	go func() {
		defer close(over)
		rest, broken = io.ReadAll(resp.Body)
	}()
	rnd := rand.New(rand.NewPCG(9, 10))
	p := recall.NewPrompt(rnd, 5)
	good := func(when string, turn recall.Turn) {
		if got, status := r.ask(p, turn); got != turn.Answer {
			t.Errorf("%s: %d %q, want %q", when, status, got, turn.Answer)
		}
	}
	there := func(w gateway.WorkerView) bool { return w.Boot == before.Boot }
	tell(t, before)
	var asked sync.WaitGroup
	for range 4 {
		turn := p.AskOne(rnd)
		asked.Go(func() { good("when it was told to leave", turn) })
	}
	r.eventually("nothing is placed on it", func() bool {
		w, ok := r.worker(name)
		return !ok || !w.Up || !there(w)
	})
	r.eventually("only the stream is left on it", func() bool { // what else came is over before it stands still
		return !slices.ContainsFunc(r.workers(), func(w gateway.WorkerView) bool { return there(w) && w.Legs > 4 })
	})
	// What it still has must not be over before its successor has come: it stands still.
	stopped := name == "decode-0" && syscall.Kill(before.PID, syscall.SIGSTOP) == nil
	r.eventually("another is there", func() bool {
		w, ok := r.worker(name)
		return ok && w.Up && !there(w)
	})
	for range 4 {
		good("beside the one that leaves", p.AskOne(rnd))
	}
	asked.Wait()
	if stopped {
		syscall.Kill(before.PID, syscall.SIGCONT)
	}
	<-over
	if broken != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream at the worker that leaves: %v, …%s", broken, rest[max(0, len(rest)-300):])
	}
	r.eventually("it has left", func() bool { return !slices.ContainsFunc(r.workers(), there) })
	good("behind it", p.AskOne(rnd))
	r.stop()
	<-r.ended
	if r.err != nil {
		t.Error(r.err)
	}
}

// What a worker finds wrong at its end, a written canary or a held block, is Run's error (F7).
func TestWhatAWorkerFindsAtItsEndIsSaid(t *testing.T) {
	var log lockedBuffer
	r := launch(t, func(c *Config) {
		c.Times.Leave = time.Minute
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		start := c.Command
		c.Command = func(role, name string) *exec.Cmd {
			cmd := start(role, name)
			if role == gateway.RoleDecode {
				cmd.Env = append(cmd.Env, faultEnv+"=1")
			}
			return cmd
		}
	})
	r.stop()
	<-r.ended
	if r.err == nil || !strings.Contains(r.err.Error(), "decode-0") || !strings.Contains(r.err.Error(), "exit status 4: a block is held") ||
		strings.Contains(r.err.Error(), "prefill-0") {
		t.Errorf("Run returned %v", r.err)
	}
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("no error is logged:\n%s", log.String())
	}
}

// When a worker stays frozen, its end is the end of its legs, long before any budget of a
// request: a stream gets its one error, and what has no token yet is served by the next life.
func TestLegsAtAFrozenWorkerEndWithIt(t *testing.T) {
	r := launch(t, func(c *Config) {
		c.Times = Times{Probe: 20 * time.Millisecond, Answer: 300 * time.Millisecond, Frozen: time.Second, Pause: time.Millisecond}
	})
	frozen, _ := r.worker("decode-0")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // half of the gap budget
	defer cancel()
	body := `{"prompt":["a","b","c","d"],"max_tokens":1900,"ignore_eos":true,"stream":true}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(frozen.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	p := recall.NewPrompt(rnd, 5)
	turn := p.AskOne(rnd)
	if got, status := r.ask(p, turn); got != turn.Answer {
		t.Errorf("asked of the frozen worker: %d %q, want %q", status, got, turn.Answer)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || strings.Count(string(rest), `"error"`) != 1 || !strings.Contains(string(rest), `"code":"worker_lost"`) || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the stream at the frozen worker: %v, …%s", err, rest[max(0, len(rest)-300):])
	}
}

// Why a worker could not start is the first line that says so, not the last of a stack; one that
// refuses its configuration would do so again (F8).
func TestAFleetWhoseWorkersCannotStartSaysWhy(t *testing.T) {
	for _, row := range []struct {
		child, status, word string
		starts              int32
	}{
		{"broken", "exit status 3", "this model is no model", firstTries},
		{"refusing", fmt.Sprint("exit status ", ExitRefused), "baton: the pool needs more than there is", 1},
		{"crashing", "exit status 2", "runtime: out of memory", firstTries},
	} {
		t.Run(row.child, func(t *testing.T) {
			c := config(t)
			c.Times.Pause = time.Millisecond
			var starts atomic.Int32
			c.Command = func(role, _ string) *exec.Cmd {
				if role == gateway.RoleDecode {
					starts.Add(1)
				}
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childEnv+"="+row.child)
				if role == gateway.RolePrefill { // the first error is told: let it be the other's
					cmd.Env = append(cmd.Env, childEnv+"=silent")
				}
				return cmd
			}
			err := Run(t.Context(), c)
			if err == nil || !strings.HasSuffix(err.Error(), row.status+": "+row.word) || starts.Load() != row.starts {
				t.Errorf("after %d starts, want %d: %v", starts.Load(), row.starts, err)
			}
		})
	}
}

// Ready is a worker that came onto the roster. One that says so and cannot be asked for what it
// serves is not started again for ever.
func TestAFleetWhoseWorkersCannotJoinSaysWhy(t *testing.T) {
	c := config(t)
	c.Times.Pause = time.Millisecond
	c.Command = func(string, string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"=mute")
		return cmd
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := Run(ctx, c); err == nil || !strings.Contains(err.Error(), "could not start") || !strings.Contains(err.Error(), "/server_info") {
		t.Errorf("got %v", err)
	}
}

// A crash loop costs a start in pauseMax, and a worker that served for a while is back at once.
func TestPausesGrowWithFailuresInARow(t *testing.T) {
	b := backoff{first: time.Second}
	for i, row := range []struct{ served, want time.Duration }{
		{0, time.Second}, {0, 2 * time.Second}, {steadyAfter - 1, 4 * time.Second}, {time.Second, pauseMax}, {0, pauseMax},
		{steadyAfter, time.Second}, {time.Second, 2 * time.Second}, {time.Hour, time.Second},
	} {
		if got := b.after(row.served); got != row.want {
			t.Errorf("failure %d, behind a life of %v: a pause of %v, want %v", i, row.served, got, row.want)
		}
	}
	long := backoff{first: 2 * pauseMax}
	for range 3 {
		if got := long.after(0); got != 2*pauseMax {
			t.Errorf("a chosen pause of %v became %v", 2*pauseMax, got)
		}
	}
}

func TestATakenPortIsSaidClearly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := config(t)
	c.Listen = l.Addr().String()
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is taken by another process") || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v", err)
	}
}

func TestNumbersOfWorkersAreChecked(t *testing.T) {
	for _, n := range [][3]int{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 1}, {-1, 1, 0}, {workersMax + 1, 1, 0}} {
		c := Config{Prefill: n[0], Decode: n[1], Unified: n[2], Command: func(string, string) *exec.Cmd { return nil }}
		if c.Check() == nil {
			t.Errorf("%v workers were accepted", n)
		}
	}
}

// The first wish to end lets a live stream finish; the second ends it with an error event.
func TestTheSecondWishToEndIsObeyedAtOnce(t *testing.T) {
	r := launch(t, nil)
	body := `{"prompt":"The code","max_tokens":1900,"ignore_eos":true,"stream":true}`
	resp, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.stop()
	close(r.now)
	rest, err := io.ReadAll(resp.Body)
	done := strings.HasSuffix(string(rest), "data: [DONE]\n\n") // it was faster than we were
	if !done && (err != nil || !strings.Contains(string(rest), `"error"`)) {
		t.Errorf("%v: …%s", err, rest[max(0, len(rest)-300):])
	}
	<-r.ended
	if !done && !errors.Is(r.err, ErrStopped) {
		t.Errorf("Run returned %v", r.err)
	}
}

// With nothing live, the second wish cuts nothing: Run has no error, and no worker is blamed for
// not having left.
func TestTheSecondWishToAnIdleFleetIsNoFault(t *testing.T) {
	var log lockedBuffer
	r := launch(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, w := range r.workers() { // they cannot leave by themselves
		if err := syscall.Kill(w.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	close(r.now)
	r.stop()
	<-r.ended
	if r.err != nil || strings.Contains(log.String(), "did not leave") || strings.Count(log.String(), `level=INFO msg="worker was stopped at once"`) != 2 {
		t.Errorf("%v:\n%s", r.err, log.String())
	}
}

// Requests that the time to drain cuts are counted in Run's error, and their clients hear of it.
func TestWhatADrainCutsIsSaid(t *testing.T) {
	r := launch(t, func(c *Config) { c.Times.Drain = time.Nanosecond })
	body := `{"prompt":["a","b","c"],"max_tokens":1900,"ignore_eos":true,"stream":true}`
	resp, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	w, _ := r.worker("decode-0")
	if err := syscall.Kill(w.PID, syscall.SIGSTOP); err != nil { // else it may be faster than we are
		t.Fatal(err)
	}
	r.stop()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || strings.Count(string(rest), `"error"`) == 0 || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("%v: …%s", err, rest[max(0, len(rest)-300):])
	}
	<-r.ended
	if cut, ok := errors.AsType[Cut](r.err); !ok || cut.Requests != 3 || cut.After != time.Nanosecond {
		t.Errorf("Run returned %v, want a Cut of 3 requests", r.err)
	}
}

// The ready line names an address that one can go to.
func TestTheReadyLineNamesAnAddressToGoTo(t *testing.T) {
	for _, row := range []struct{ listen, ip, want string }{
		{"0.0.0.0:7", "::", "127.0.0.1:7"}, {":7", "::", "127.0.0.1:7"}, {"0.0.0.0:7", "0.0.0.0", "127.0.0.1:7"},
		{"[::]:7", "::", "[::1]:7"}, {"localhost:7", "127.0.0.1", "127.0.0.1:7"}, {"[::1]:7", "::1", "[::1]:7"},
	} {
		if got := reachable(row.listen, &net.TCPAddr{IP: net.ParseIP(row.ip), Port: 7}); got != row.want {
			t.Errorf("--listen %s at %s: %s, want %s", row.listen, row.ip, got, row.want)
		}
	}
}
