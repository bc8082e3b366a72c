package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"baton/serve/worker"
)

// Every command teaches: what it does, and an example where it takes flags of its own.
func TestEveryCommandHasHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no sentence", c.CommandPath())
		}
		if c.Runnable() && c.HasAvailableLocalFlags() && (c.Long == "" || c.Example == "") {
			t.Errorf("%s has flags and no long text or example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(newRoot())
}

func run(args ...string) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	return root.Execute()
}

// The test binary is also baton itself, for what is read from the environment at its start.
const mainEnv = "BATON_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Kernels that do not exist are refused once, by serve, and not by every worker three times.
func TestServeRefusesUnknownKernels(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), mainEnv+"=1", "KERNELS=sse9")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "sse9") || !strings.Contains(string(out), "KERNELS") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// A bad flag is refused with its name before anything is started.
func TestBadFlagsAreRefusedByName(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--threads", "-1"}, "--threads -1"},
		{[]string{"serve", "--threads", "9999"}, "--threads 9999: want 0 to 256"},
		{[]string{"serve", "--max-batch", "5000"}, "--max-batch 5000: want 1 to 4096"},
		{[]string{"serve", "--max-running", "0"}, "--max-running 0: want 1 to 65536"},
		{[]string{"serve", "--max-running", "65537"}, "--max-running 65537"},
		{[]string{"serve", "--kv-tokens", "3"}, "--kv-tokens 3: want at least 16"},
		{[]string{"serve", "--chunk-tokens", "17"}, "--chunk-tokens 17: want a multiple of 16"},
		{[]string{"serve", "--kv", "fp4"}, `--kv "fp4": want bf16 or f32`},
		{[]string{"serve", "--drain-timeout", "0s"}, "--drain-timeout 0s"},
		{[]string{"serve", "--sse-keepalive", "0"}, "--sse-keepalive 0s: want a time"},
		{[]string{"serve", "--body-bytes", "1"}, "--body-bytes 1: want at least 1024"},
		{[]string{"serve", "--max-queued-requests", "-1"}, "--max-queued-requests -1"},
		{[]string{"serve", "--request-timeout", "0s"}, "--request-timeout 0s"},
		{[]string{"serve", "--request-timeout", "9999h"}, "--request-timeout 9999h0m0s: want more than 0s, at most 168h0m0s"},
		{[]string{"serve", "--unified", "2"}, "--unified=2"},
		{[]string{"serve", "--unified", "--decode", "3"}, "1 unified workers beside 0 prefill and 3 decode workers"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level"},
		{[]string{"serve", "--model", "/no/such.gguf"}, "/no/such.gguf"},
		{[]string{"serve", "--prefill", "0"}, "0 prefill"},
		{[]string{"serve", "extra"}, "extra"},
		{[]string{"worker"}, "role"},
		{[]string{"worker", "--role", "cook"}, "cook"},
		{[]string{"worker", "--role", "unified", "--max-queued-requests", "0"}, "--max-queued-requests 0: want 1 to 65536"},
		{[]string{"worker", "--role", "unified", "--grace", "-1s"}, "grace: -1s; want 0 to 1h0m0s"},
		{[]string{"worker", "--role", "unified", "--max-running", "0"}, "--max-running 0: want 1 to 4096"},
		{[]string{"worker", "--role", "unified", "--chunk-tokens", "0"}, "--chunk-tokens 0: want 16 to 16384"},
		{[]string{"pull"}, "arg"},
		{[]string{"bench", "engine", "--repeat", "0"}, "repeat 0"},
		{[]string{"bench", "engine", "--tests", "xx5"}, "xx5"},
		{[]string{"nonsense"}, "nonsense"},
	} {
		if err := run(row.args...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want something about %q", row.args, err, row.want)
		}
	}
}

func TestWorkersGetWhatTheFleetWasGiven(t *testing.T) {
	f := serveFlags{prefill: 1, decode: 1, threads: 3, model: "m.gguf", kv: "f32", level: "debug", batch: 5, running: 7, chunkTokens: 64, kvTokens: 99}
	got := strings.Join(f.workerArgs("decode", "decode-0"), " ")
	want := "worker --role decode --name decode-0 --model m.gguf --log-level debug --threads 3 --kv-tokens 99 --kv f32 --chunk-tokens 64 --max-running 5 --max-queued-requests 7 --child"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, row := range []struct{ flag, resolved, want string }{{"", "/a/b.gguf", "b"}, {"", "recall", "recall"}, {"x", "/a/b.gguf", "x"}} {
		f.name = row.flag
		if got := f.modelName(row.resolved); got != row.want {
			t.Errorf("%q %q is called %q", row.flag, row.resolved, got)
		}
	}
}

const inspection = `{"requests":[{"rid":"r1","room":"000000000000000a","phase":"streaming","age_ms":61000,"prefill":"prefill-0","decode":"decode-0","tokens":12},
{"rid":"r2","room":"","phase":"placing","age_ms":10,"prefill":"","decode":"","tokens":0,"waits_for":"a decode worker"}],
"rooms":[{"room":"000000000000000a","rid":"r1","role":"decode","queue":"running","phase":"generating","poll":"Success","age_ms":1500,"waits_for":"decode: engine","worker":"decode-0"}],
"workers":[{"worker":"prefill-0","role":"prefill","boot":"b","pid":7,"queues":{"waiting":{"len":2,"oldest_ms":61000},"inflight":{"len":0,"oldest_ms":0}},"blocks":{"total":9,"free":5,"cached":3,"held":1,"quarantined":0},"up":true,"legs":1},
{"worker":"decode-0","role":"decode","boot":"c","pid":8,"up":false,"legs":1,"error":"no route"}]}`

func TestPsShowsRequestsRoomsAndWorkers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/requests" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		io.WriteString(w, inspection)
	}))
	defer s.Close()
	var table, raw bytes.Buffer
	if err := ps(t.Context(), &table, s.URL, false, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5+3+1+0/9", "inflight 0, waiting 2 (1m1s)", "no answer", "streaming", "1m1s", "1.5s", "decode: engine", "generating", "TOKENS  WAITS FOR", "a decode worker"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if err := ps(t.Context(), &raw, s.URL, true, false); err != nil || raw.String() != inspection {
		t.Errorf("%v: %s", err, raw.String())
	}
}

// chatServer answers with events as they are given.
func chatServer(t *testing.T, status int, body string) *chatSession {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return &chatSession{url: s.URL}
}

func event(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

func TestChatPrintsAnswersAndReadableErrors(t *testing.T) {
	for _, row := range []struct {
		name, body string
		status     int
		out, err   string
		kept       int // messages behind it
	}{
		{"an answer", ": keepalive\n\n" + event("hel") + event("lo") + "data: [DONE]\n\n", 200, "hello\n", "", 2},
		{"an error in the stream", event("hel") + "data: {\"error\":{\"message\":\"a worker was lost\"}}\n\n", 200, "hel\n", "a worker was lost", 0},
		{"a cut stream", event("hel"), 200, "hel\n", "was cut", 0},
		{"a refusal", `{"error":{"message":"the server is full"}}`, 429, "", "the server is full (status 429)", 0},
		{"no JSON", "bad gateway", 502, "", "bad gateway (status 502)", 0},
	} {
		c := chatServer(t, row.status, row.body)
		var out bytes.Buffer
		err := c.repl(strings.NewReader("hi\n"), &out)
		if out.String() != row.out || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %q, %v", row.name, out.String(), err)
		}
		if len(c.messages) != row.kept {
			t.Errorf("%s: %d messages are kept, want %d", row.name, len(c.messages), row.kept)
		}
	}
}

// TestAGraceOfNothingIsNoDefault: "--grace 0" ends live rooms at once.
func TestAGraceOfNothingIsNoDefault(t *testing.T) {
	for flag, want := range map[time.Duration]time.Duration{0: worker.NoGrace, time.Second: time.Second, -time.Second: -time.Second} {
		if got := (worker.Config{Grace: graceOf(flag)}).WithDefaults().Grace; got != want {
			t.Errorf("--grace %v gives %v, want %v", flag, got, want)
		}
	}
}
