package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"baton/core/relay"
	"baton/core/room"
	"baton/engine/checkpoint"
	"baton/engine/kernel"
	"baton/engine/weights/store"
	"baton/serve/door"
	"baton/serve/fleet"
	"baton/serve/gateway"
	"baton/serve/leg"
	"baton/serve/openai"
	"baton/serve/recorder"
	"baton/serve/worker"
)

// serveFlags are what an operator chooses for a fleet on one machine.
type serveFlags struct {
	listen, model, name, level, kv string
	prefill, decode, threads       int
	unified                        int
	kvTokens, chunkTokens, batch   int
	aheadTokens                    int
	running, queued                int
	timeout, drain, keepalive      time.Duration
	bodyBytes                      int64
	canary, noPrefixCache          bool
	deterministic                  bool
	record                         string
}

func newServe() *cobra.Command { return newServeOf(&serveFlags{}) }

// newServeOf keeps what was chosen in f.
func newServeOf(f *serveFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a model: gateway and workers on this machine",
		Long: `Serve starts worker processes and a gateway in front of them, and prints

  ready http://HOST:PORT

on standard output when requests can be served. A worker that crashes or freezes is
started again. Logs go to standard error, the workers' with their name in front.

The gateway answers
  POST /v1/chat/completions, /v1/completions      OpenAI's API, streaming or not
  GET  /v1/models    POST /tokenize, /detokenize  what is served, and its tokens
  GET  /health, /metrics                          for probes and Prometheus
                                                  (each worker has a /metrics of its own, at
                                                  its http address in "baton ps --json")
  GET  /debug/requests, /debug/rooms              where everything is ("baton ps")

With --record DIR every process writes down what its core was told and decided, and
"baton replay DIR" tells fresh cores the same and wants the same decisions; its --rid
draws the life of one request. Files hold times, sizes and names of rooms and requests,
no text and no token, but digests of the beginnings of prompts, under a secret salt of
each process: whoever reads a file sees which of its prompts begin alike (there are none
with --no-prefix-cache). Only you may read them. A file is full at 256 MiB and then stays
as it is: recording begins anew with the process. How long that takes is the load's: a
line of a decode worker has all rooms of a step in it, and 24 streams at once fill a file
in about 3 minutes. A directory takes 1024 files and 4 GiB; when it is full, the log says
so, and all serve on.

Ctrl-C or SIGTERM once: new requests are refused, live ones may end (--drain-timeout).
Twice: everything stops at once. Exit codes: 0 every request ended, 1 some did not in
--drain-timeout or something was wrong, 130 stopped at once with requests still live.`,
		Example: `  baton serve                                  # the embedded model, 1 prefill + 1 decode
  baton serve --model smollm2 --decode 2       # two decode workers
  baton serve --unified --threads 4            # one worker for both, for comparison
  baton serve --listen 0.0.0.0:8080 --max-running 64 --request-timeout 2m`,
		Args: noArgumentsButUnified,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkNamed(c); err != nil {
				return err
			}
			if f.unified < 1 && c.Flags().Changed("unified") {
				return fmt.Errorf("--unified=%d: want at least 1; without it prefill and decode workers serve", f.unified)
			}
			if f.unified > 0 { // the defaults of the others give way; what somebody chose does not
				for name, workers := range map[string]*int{"prefill": &f.prefill, "decode": &f.decode} {
					if c.Flags().Changed(name) && *workers != 0 {
						return fmt.Errorf("--unified and --%s exclude each other: unified workers do both", name)
					}
					*workers = 0
				}
			}
			return f.run()
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8000", "address of the gateway, `HOST:PORT`; host 0.0.0.0 is every interface, port 0 a free one")
	fl.StringVar(&f.model, "model", store.Recall, modelHelp)
	fl.StringVar(&f.name, "served-model-name", "", "the `NAME` that clients use (default: the model's own)")
	fl.IntVar(&f.prefill, "prefill", 1, "prefill workers")
	fl.IntVar(&f.decode, "decode", 1, "decode workers")
	fl.IntVar(&f.unified, "unified", 0, "unified workers instead, each doing both; --unified is one, --unified=N more")
	fl.Lookup("unified").NoOptDefVal = "1"
	fl.IntVar(&f.threads, "threads", 0, "engine threads per worker (default: cores / workers, at least 1)")
	fl.IntVar(&f.kvTokens, "kv-tokens", 0, "tokens in each worker's KV pool (default: all workers' pools share half of the memory that is free)")
	fl.StringVar(&f.kv, "kv-dtype", "bf16", kvHelp)
	fl.IntVar(&f.chunkTokens, "chunk-tokens", 512, "prompt tokens per engine step")
	fl.IntVar(&f.aheadTokens, "ahead-tokens", worker.AheadDefault, aheadHelp)
	fl.IntVar(&f.batch, "max-batch", 32, "requests that one worker computes at the same time; where they generate each counts as often as it has choices")
	fl.IntVar(&f.running, "max-running", 256, "requests that hold workers at the same time, each counted as often as it has choices; more wait")
	fl.IntVar(&f.queued, "max-queued-requests", 1024, "requests that may wait; more get 429")
	fl.DurationVar(&f.timeout, "request-timeout", relay.TotalDefault, "longest time of a request; clients can lower it with X-Request-Timeout (seconds)")
	fl.DurationVar(&f.drain, "drain-timeout", 30*time.Second, "how long live requests may go on after SIGTERM")
	fl.DurationVar(&f.keepalive, "sse-keepalive", 15*time.Second, "silence of a stream after which a comment is sent, at least 100ms; negative, as -1s: never")
	fl.Int64Var(&f.bodyBytes, "body-bytes", openai.BodyBytesMax, "largest request body")
	fl.BoolVar(&f.noPrefixCache, "no-prefix-cache", false, "workers compute every prompt anew, as if nobody had asked it before")
	fl.BoolVar(&f.deterministic, "deterministic", false, deterministicHelp)
	fl.BoolVar(&f.canary, "canary", false, "workers fill free blocks with a pattern and check it (slow)")
	fl.StringVar(&f.record, "record", "", "`DIR` for traces of all decisions, a file per process, for \"baton replay\"")
	fl.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	return c
}

// bodyBytesLeast holds a short question with all its fields.
const bodyBytesLeast = 1 << 10

// keepaliveLeast keeps comments fewer than tokens: below it, a thousand idle streams would cost
// the gateway more than their answers.
const keepaliveLeast = 100 * time.Millisecond

// check refuses values that no fleet could serve with, before a worker says so three times.
func (f *serveFlags) check() error {
	for _, flag := range []struct {
		name    string
		v       int
		lo, max int
	}{{"threads", f.threads, 0, worker.ThreadsMax}, {"kv-tokens", f.kvTokens, 0, worker.KVTokensMax},
		{"chunk-tokens", f.chunkTokens, room.BlockTokens, worker.ChunkMax}, {"max-batch", f.batch, 1, worker.RunningMax}, {"ahead-tokens", f.aheadTokens, 1, worker.AheadMax},
		{"prefill", f.prefill, 0, worker.WorkersMax}, {"decode", f.decode, 0, worker.WorkersMax}, {"unified", f.unified, 0, worker.WorkersMax},
		{"max-running", f.running, 1, worker.QueuedMax}, {"max-queued-requests", f.queued, 0, worker.QueuedMax}} {
		if flag.v < flag.lo || flag.v > flag.max {
			return fmt.Errorf("--%s %d: want %d to %d", flag.name, flag.v, flag.lo, flag.max)
		}
	}
	if err := checkListen("listen", f.listen); err != nil {
		return err
	}
	if err := checkKV(f.kv); err != nil {
		return err
	}
	switch {
	case f.unified > 0 && f.prefill+f.decode > 0:
		return fmt.Errorf("--unified=%d beside --prefill %d and --decode %d: choose one way to serve", f.unified, f.prefill, f.decode)
	case f.unified == 0 && (f.prefill == 0 || f.decode == 0):
		return fmt.Errorf("--prefill %d and --decode %d: want at least one worker of each, or --unified", f.prefill, f.decode)
	case f.kvTokens > 0 && f.kvTokens < room.BlockTokens:
		return fmt.Errorf("--kv-tokens %d: want at least %d, or 0 for what the memory allows", f.kvTokens, room.BlockTokens)
	case f.chunkTokens%room.BlockTokens != 0:
		return fmt.Errorf("--chunk-tokens %d: want a multiple of %d", f.chunkTokens, room.BlockTokens)
	case f.timeout <= 0 || f.timeout > leg.LeftMax:
		return fmt.Errorf("--request-timeout %v: want more than 0s, at most %v", f.timeout, leg.LeftMax)
	case f.drain <= 0:
		return fmt.Errorf("--drain-timeout %v: want more than 0s; 1ms ends live requests at once", f.drain)
	case f.keepalive >= 0 && f.keepalive < keepaliveLeast:
		return fmt.Errorf("--sse-keepalive %v: want at least %v, or a negative time for no comments at all", f.keepalive, keepaliveLeast)
	case f.bodyBytes < bodyBytesLeast || f.bodyBytes > door.BytesMax:
		return fmt.Errorf("--body-bytes %d: want %d to %d, which is what all bodies under way may have together", f.bodyBytes, bodyBytesLeast, int64(door.BytesMax))
	}
	return kernel.Check() // of the environment that workers inherit
}

// checkKV refuses a number format of the KV cache that no worker has.
func checkKV(name string) error {
	if _, err := kernel.ParseKVType(name); err != nil {
		return fmt.Errorf("--kv-dtype: %w", err)
	}
	return nil
}

// checkNamed refuses --record "": a variable that was not set records nothing, unnoticed.
func checkNamed(c *cobra.Command) error {
	if flag := c.Flags().Lookup("record"); flag.Changed && flag.Value.String() == "" {
		return errors.New("--record \"\" names no directory: leave it out to record nothing, or name one")
	}
	return nil
}

// checkRecord says whether traces can be written to the directory of --record.
func checkRecord(dir string) error {
	if dir == "" {
		return nil
	}
	if err := recorder.Check(dir); err != nil {
		return fmt.Errorf("--record %q: %w", dir, err)
	}
	return nil
}

// noArgumentsButUnified refuses arguments, and says what became of the one behind --unified.
func noArgumentsButUnified(c *cobra.Command, args []string) error {
	if len(args) > 0 && c.Flags().Changed("unified") {
		return fmt.Errorf("serve takes no arguments, got %q; a number of unified workers is written --unified=%s", args[0], args[0])
	}
	return noArguments(c, args)
}

func (f *serveFlags) run() error {
	if err := f.check(); err != nil {
		return err
	}
	if err := checkRecord(f.record); err != nil {
		return err
	}
	out := &lockedWriter{w: os.Stderr}
	log, err := newLog(out, f.level)
	if err != nil {
		return err
	}
	opened, err := checkpoint.Open(f.model)
	if err != nil {
		return err
	}
	text := gateway.TextOf(opened)
	err = errors.Join(worker.Together(f.workers(), worker.Sizes{KVTokens: f.kvTokens, KV: f.kv}, &opened.Config), opened.Close())
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, now, release := signals()
	defer release()
	queued := f.queued
	if queued == 0 {
		queued = -1 // relay takes 0 for its default
	}
	err = fleet.Run(ctx, fleet.Config{
		Listen: f.listen, Prefill: f.prefill, Decode: f.decode, Unified: f.unified,
		Secret: secretEnv, Out: os.Stdout, Workers: out, Log: log, Now: now,
		Command: func(role, name string) *exec.Cmd { return exec.Command(self, f.workerArgs(role, name)...) },
		Times:   fleet.Times{Drain: f.drain},
		Loading: (&loadingShown{w: os.Stderr, expected: f.workers()}).say,
		Gateway: gateway.Config{Model: f.modelName(opened.Name), Text: text, BodyBytes: f.bodyBytes, Keepalive: f.keepalive, Record: f.record,
			Limits:  relay.Limits{MaxRunning: f.running, MaxQueued: queued},
			Budgets: relay.Budgets{Total: f.timeout}},
	})
	return ended(err)
}

// ended is how serve ends for whoever started it. A drain that cut requests is an error as any.
func ended(err error) error {
	if errors.Is(err, fleet.ErrStopped) {
		return exitError{exitStop, errors.New("stopped at once, with everything that was live")}
	}
	return err
}

// modelName is what clients call the model: a file is called by its name alone.
func (f *serveFlags) modelName(resolved string) string {
	if f.name != "" {
		return f.name
	}
	return strings.TrimSuffix(filepath.Base(resolved), ".gguf")
}

// workers is how many there are on this machine.
func (f *serveFlags) workers() int { return f.prefill + f.decode + f.unified }

// workerArgs is the command line of one worker process.
func (f *serveFlags) workerArgs(role, name string) []string {
	threads := f.threads
	if threads == 0 {
		threads = fleet.Threads(f.workers())
	}
	args := []string{"worker", "--role", role, "--name", name, "--model", f.model, "--log-level", f.level,
		"--threads", strconv.Itoa(threads), "--kv-tokens", strconv.Itoa(f.kvTokens), "--workers", strconv.Itoa(f.workers()), "--kv-dtype", f.kv,
		"--chunk-tokens", strconv.Itoa(f.chunkTokens), "--ahead-tokens", strconv.Itoa(f.aheadTokens), "--max-batch", strconv.Itoa(f.batch),
		// A worker holds at most what the gateway lets run; then only the gateway refuses.
		"--max-queued-requests", strconv.Itoa(f.running), "--child"}
	if f.noPrefixCache {
		args = append(args, "--no-prefix-cache")
	}
	if f.deterministic {
		args = append(args, "--deterministic")
	}
	if f.canary {
		args = append(args, "--canary")
	}
	if f.record != "" {
		args = append(args, "--record", f.record)
	}
	return args
}

// signals returns a context that ends with the first SIGINT or SIGTERM and a channel that is
// closed by the second.
func signals() (ctx context.Context, now <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan os.Signal, 2)
	second := make(chan struct{})
	over := make(chan struct{})
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; n < 2; n++ {
			select {
			case <-came:
			case <-over:
				return
			}
			if n == 0 {
				cancel()
			} else {
				close(second)
			}
		}
	}()
	return ctx, second, func() {
		signal.Stop(came)
		close(over)
		cancel()
	}
}
