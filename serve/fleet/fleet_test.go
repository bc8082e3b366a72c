package fleet

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/engine/recall"
	"baton/engine/weights/gguf"
	"baton/serve/gateway"
	"baton/serve/worker"
)

// The test binary is also the worker: with childEnv it runs one and ends with it.
// faultEnv has it find something wrong at its end.
const childEnv, secretName, faultEnv = "FLEET_TEST_CHILD", "FLEET_TEST_SECRET", "FLEET_TEST_FAULT"

func TestMain(m *testing.M) {
	role, name, child := strings.Cut(os.Getenv(childEnv), "/")
	switch {
	case role == "mute":
		// It says that it is ready, and nobody answers where it says it is.
		fmt.Println(`{"ready":true,"role":"decode","http":"127.0.0.1:1"}`)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case role == "silent":
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case role == "broken":
		fmt.Fprintln(os.Stderr, "this model is no model")
		os.Exit(3)
	case role == "refusing":
		fmt.Fprintln(os.Stderr, "time=now level=INFO msg=\"worker begins\"")
		fmt.Fprintln(os.Stderr, "baton: the pool needs more than there is")
		os.Exit(ExitRefused)
	case role == "crashing":
		fmt.Fprint(os.Stderr, "time=now level=INFO msg=\"worker begins\"\nruntime: out of memory\nfatal error: out of memory\n\ngoroutine 1 [running]:\nexit status 2\n")
		os.Exit(2)
	case child:
		os.Exit(runChild(role, name))
	}
	goleak.VerifyTestMain(m)
}

func runChild(role, name string) int {
	secret, err := hex.DecodeString(os.Getenv(secretName))
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = worker.Run(ctx, worker.Config{Role: role, Name: name, Secret: secret, Ready: os.Stdout, Parent: os.Stdin, Canary: true,
		Sizes: worker.Sizes{Threads: 1, KVTokens: 8192}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(faultEnv) != "" {
		fmt.Fprintln(os.Stderr, "a block is held")
		return 4
	}
	return 0
}

// logRules is a log that holds its writers to the keys of serve/observe.
type logRules struct{ t *testing.T }

func (h logRules) Enabled(context.Context, slog.Level) bool { return true }
func (h logRules) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logRules) WithGroup(string) slog.Handler            { return h }

func (h logRules) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "room", "lease", "rid", "worker", "peer", "phase", "event", "after", "detail":
		case "outcome":
			if o := a.Value.String(); o != "success" && o != "failed" && o != "aborted" {
				h.t.Errorf("%q: outcome %q", r.Message, o)
			}
		case "cause":
			if !slices.ContainsFunc(room.Causes(), func(c room.Cause) bool { return c.String() == a.Value.String() }) {
				h.t.Errorf("%q: cause %q is not a cause's name", r.Message, a.Value)
			}
		default:
			h.t.Errorf("%q: key %q", r.Message, a.Key)
		}
		return true
	})
	return nil
}

// rig is a running fleet of real processes.
type rig struct {
	*testing.T
	url   string
	stop  context.CancelFunc
	now   chan struct{}
	ended chan struct{}
	err   error // of Run; read after ended
}

// firstLine is a writer that hands its first line over.
type firstLine struct{ c chan string }

func (f firstLine) Write(b []byte) (int, error) {
	f.c <- string(b)
	return len(b), nil
}

func config(t *testing.T) Config {
	file, err := gguf.Parse(recall.GGUF())
	if err != nil {
		t.Fatal(err)
	}
	text, err := gateway.NewText(file)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Listen: "127.0.0.1:0", Prefill: 1, Decode: 1, Secret: secretName, Log: slog.New(logRules{t}),
		Gateway: gateway.Config{Model: "recall", Text: text},
		Command: func(role, name string) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+role+"/"+name)
			return cmd
		},
	}
}

func launch(t *testing.T, change func(*Config)) *rig {
	c := config(t)
	line := firstLine{make(chan string, 1)}
	c.Out = line
	r := &rig{T: t, now: make(chan struct{}), ended: make(chan struct{})}
	c.Now = r.now
	if change != nil {
		change(&c)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.err = Run(ctx, c)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case l := <-line.c:
		r.url = strings.TrimSpace(strings.TrimPrefix(l, "ready "))
	case <-r.ended:
		t.Fatalf("the fleet ended before it was ready: %v", r.err)
	}
	return r
}

// ask asks recall and returns the answer, or the status.
func (r *rig) ask(p recall.Prompt, turn recall.Turn) (string, int) {
	r.Helper()
	body, _ := json.Marshal(map[string]any{"model": "recall", "messages": p.Messages(turn.Question), "temperature": 0})
	resp, err := http.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		r.Fatal(err)
	}
	if resp.StatusCode != 200 {
		return "", resp.StatusCode
	}
	return got.Choices[0].Message.Content, 200
}

// workers asks who is there.
func (r *rig) workers() []gateway.WorkerView {
	r.Helper()
	resp, err := http.Get(r.url + "/debug/requests")
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	var in gateway.Inspection
	if err := json.NewDecoder(resp.Body).Decode(&in); err != nil {
		r.Fatal(err)
	}
	return in.Workers
}

func (r *rig) worker(name string) (gateway.WorkerView, bool) {
	for _, w := range r.workers() {
		if w.Name == name {
			return w, true
		}
	}
	return gateway.WorkerView{}, false
}

// eventually asks again until yes, or fails after a minute.
func (r *rig) eventually(what string, yes func() bool) {
	r.Helper()
	late := time.Now().Add(time.Minute)
	for !yes() {
		if time.Now().After(late) {
			r.Fatalf("not within a minute: %s", what)
		}
	}
}

// becomes waits until a field of every worker is what it should be.
func (r *rig) becomes(field, want string, of func(gateway.WorkerView) any) {
	r.Helper()
	late := time.Now().Add(time.Minute)
	for {
		wrong := ""
		for _, w := range r.workers() {
			if got := fmt.Sprint(of(w)); got != want {
				wrong += fmt.Sprintf(" %s has %s %s, want %s;", w.Name, field, got, want)
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(late) {
			r.Fatalf("after a minute:%s", wrong)
		}
	}
}

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
	r := launch(t, func(c *Config) { c.Times.Pause = time.Millisecond })
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
		// Two bad answers in a row would be its death.
		c.Times = Times{Probe: time.Millisecond, Answer: time.Minute, Frozen: time.Nanosecond, Pause: time.Millisecond}
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
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream at the worker that leaves: %v, …%s", err, rest[max(0, len(rest)-300):])
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

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
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
	if err != nil || strings.Count(string(rest), `"error"`) != 1 || strings.Contains(string(rest), "[DONE]") {
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
