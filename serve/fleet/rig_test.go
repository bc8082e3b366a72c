package fleet

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/engine/recall"
	"baton/serve/gateway"
	"baton/serve/observe/logrules"
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
		Grace: 10 * time.Minute, // a busy machine is no reason to cut what the tests wait for
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
	file := recall.Open()
	text, err := gateway.NewText(file)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Listen: "127.0.0.1:0", Prefill: 1, Decode: 1, Secret: secretName, Log: logrules.New(t),
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
