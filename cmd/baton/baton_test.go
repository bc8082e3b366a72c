package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"baton/serve/fleet"
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
		{[]string{"serve", "--kv-dtype", "fp4"}, `--kv-dtype: `},
		{[]string{"serve", "--drain-timeout", "0s"}, "--drain-timeout 0s"},
		{[]string{"serve", "--sse-keepalive", "0"}, "--sse-keepalive 0s: want at least 100ms, or a negative time"},
		{[]string{"serve", "--sse-keepalive", "99ms"}, "--sse-keepalive 99ms: want at least 100ms"},
		{[]string{"serve", "--body-bytes", "1"}, "--body-bytes 1: want 1024 to 67108864"},
		{[]string{"serve", "--body-bytes", "67108865"}, "--body-bytes 67108865: want 1024 to 67108864, which is what all bodies"},
		{[]string{"serve", "--kv-tokens", "268435456", "--prefill", "9"}, "--kv-tokens 268435456 for each of 10 workers needs "},
		{[]string{"worker", "--role", "unified", "--workers", "0"}, "--workers 0: want 1 to 1024"},
		{[]string{"serve", "--max-queued-requests", "-1"}, "--max-queued-requests -1"},
		{[]string{"serve", "--request-timeout", "0s"}, "--request-timeout 0s"},
		{[]string{"serve", "--request-timeout", "9999h"}, "--request-timeout 9999h0m0s: want more than 0s, at most 168h0m0s"},
		{[]string{"serve", "--unified", "2"}, "--unified=2"},
		{[]string{"serve", "--unified", "--decode", "3"}, "--unified and --decode exclude each other"},
		{[]string{"serve", "--unified=0"}, "--unified=0: want at least 1"},
		{[]string{"serve", "--listen", ""}, `--listen "" names no host: write 127.0.0.1:8000 for this machine alone, 0.0.0.0:8000 or [::]:8000`},
		{[]string{"serve", "--listen", ":"}, `--listen ":" names no host`},
		{[]string{"serve", "--listen", ":9000"}, "127.0.0.1:9000 for this machine alone, 0.0.0.0:9000"},
		{[]string{"serve", "--listen", "127.0.0.1:"}, `--listen "127.0.0.1:" names no port`},
		{[]string{"serve", "--log-level", "loud"}, "--log-level"},
		{[]string{"serve", "--model", "/no/such.gguf"}, "/no/such.gguf"},
		{[]string{"serve", "--prefill", "0"}, "--prefill 0 and --decode 1: want at least one worker of each, or --unified"},
		{[]string{"serve", "--record", ""}, `--record "" names no directory`},
		{[]string{"worker", "--role", "unified", "--record="}, `--record "" names no directory`},
		{[]string{"replay", "--rid", "", "x"}, `--rid "" names none`},
		{[]string{"replay", "--room=", "x"}, `--room "" names none`},
		{[]string{"serve", "extra"}, "extra"},
		{[]string{"worker"}, "role"},
		{[]string{"worker", "--role", "cook"}, "cook"},
		{[]string{"worker", "--role", "unified", "--max-queued-requests", "0"}, "--max-queued-requests 0: want 1 to 65536"},
		{[]string{"worker", "--role", "unified", "--grace", "-1s"}, "grace: -1s; want 0 to 1h0m0s"},
		{[]string{"worker", "--role", "unified", "--max-batch", "0"}, "--max-batch 0: want 1 to 4096"},
		{[]string{"worker", "--role", "unified", "--chunk-tokens", "0"}, "--chunk-tokens 0: want 16 to 16384"},
		{[]string{"worker", "--role", "unified", "--http", ":9000"}, `--http ":9000" names no host`},
		{[]string{"worker", "--role", "prefill", "--link", ""}, `--link "" names no host`},
		{[]string{"worker", "--role", "decode"}, "BATON_SECRET has 0 bytes; a decode worker needs at least 16, the same on every worker"},
		{[]string{"worker", "now"}, `worker takes no arguments, got "now"; see baton worker --help`},
		{[]string{"ps", "now"}, `ps takes no arguments, got "now"`},
		{[]string{"ps", "--url", "foo"}, `--url "foo": http:// is missing; write http://foo`},
		{[]string{"chat", "--url", "127.0.0.1:8000"}, "http:// is missing; write http://127.0.0.1:8000"},
		{[]string{"chat", "--url", "ftp://x"}, `--url "ftp://x": want http://HOST:PORT`},
		{[]string{"ps", "--url", "http://"}, `--url "http://": want http://HOST:PORT`},
		{[]string{"ps", "--url", "http://127.0.0.1:1/"}, "no answer from http://127.0.0.1:1: dial tcp"},
		{[]string{"pull"}, "pull which MODEL? smollm2, hf:OWNER/REPO/FILE.gguf or hf:OWNER/REPO"},
		{[]string{"pull", "a", "b"}, "pull takes one MODEL, got 2"},
		{[]string{"bench", "nosuch"}, `bench cannot measure "nosuch"; want engine`},
		{[]string{"bench", "engine", "--repeat", "0"}, "repeat 0"},
		{[]string{"bench", "engine", "--tests", "xx5"}, "xx5"},
		{[]string{"bench", "engine", "--tests", "tg8,pp900000"}, "bench \"pp900000\", want ppN, tgN or tgNxB with N from 1 to "},
		{[]string{"bench", "engine", "--batch", "1,x"}, "--batch 1,x: want whole numbers, as 1,2"},
		{[]string{"bench", "engine", "--threads", "1,99999999999999999999"}, "--threads 1,99999999999999999999: want whole numbers, as 1,2"},
		{[]string{"serve", "--unified=x"}, "--unified=x: want a whole number"},
		{[]string{"serve", "--kv-tokens", "99999999999999999999"}, "--kv-tokens 99999999999999999999: want a smaller number"},
		{[]string{"serve", "--decode", ""}, "--decode \"\": want a whole number"},
		{[]string{"serve", "--request-timeout", "5"}, "--request-timeout 5: want a time with its unit, as 5s"},
		{[]string{"serve", "--request-timeout", "soon"}, "--request-timeout soon: want a time with its unit, as 5s"},
		{[]string{"serve", "--request-timeout", "9999999h"}, "--request-timeout 9999999h: want a time with its unit, as 5s"},
		{[]string{"serve", "--canary=maybe"}, "--canary=maybe: want true or false"},
		{[]string{"chat", "--temperature", "hot"}, "--temperature hot: want a number"},
		{[]string{"serve", "--unified", "--prefill", "2"}, "--unified and --prefill exclude each other"},
		{[]string{"nonsense"}, "nonsense"},
		{[]string{"serve", "--modle", "x"}, "unknown flag: --modle; see baton serve --help"},
		{[]string{"bench", "engine", "--model"}, "flag needs an argument: --model; see baton bench engine --help"},
		{[]string{"verify", "--sneeds", "1"}, "unknown flag: --sneeds; see baton verify --help"},
		{[]string{"verify", "--seeds", "x"}, "--seeds x: want a whole number"},
		{[]string{"verify", "--seed", "-1"}, "--seed -1: want a whole number, 0 or more"},
		{[]string{"replay", "--rid"}, "flag needs an argument: --rid; see baton replay --help"},
	} {
		if err := run(row.args...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want something about %q", row.args, err, row.want)
		}
	}
}

func TestWorkersGetWhatTheFleetWasGiven(t *testing.T) {
	f := serveFlags{prefill: 1, decode: 1, threads: 3, model: "m.gguf", kv: "f32", level: "debug", batch: 5, running: 7, chunkTokens: 64, aheadTokens: 32, kvTokens: 99}
	got := strings.Join(f.workerArgs("decode", "decode-0"), " ")
	want := "worker --role decode --name decode-0 --model m.gguf --log-level debug --threads 3 --kv-tokens 99 --workers 2 --kv-dtype f32 --chunk-tokens 64 --ahead-tokens 32 --max-batch 5 --max-queued-requests 7 --child"
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

// Nobody takes a fleet that cut requests for one that drained.
func TestServeSaysWhatItsEndCut(t *testing.T) {
	if err := ended(nil); err != nil {
		t.Errorf("a drain ends with %v", err)
	}
	cut := ended(errors.Join(fleet.Cut{Requests: 3, After: time.Second}, nil))
	if _, special := errors.AsType[exitError](cut); special || !strings.HasPrefix(plain(cut), "3 requests") {
		t.Errorf("a drain that cut requests ends with %v", cut)
	}
	exit, ok := errors.AsType[exitError](ended(errors.Join(fleet.ErrStopped, nil)))
	if !ok || exit.code != exitStop || exit.err == nil {
		t.Errorf("a fleet stopped at once ends with %v", exit)
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
