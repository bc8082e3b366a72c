package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"baton/core/room"
	"baton/serve/fleet"
	"baton/serve/worker"
	"baton/transfer"
)

// secretEnv carries the fleet's secret to its workers: an environment, unlike an argument, is
// not shown to other users of the machine.
const secretEnv = "BATON_SECRET"

func newWorker() *cobra.Command {
	var c worker.Config
	var level string
	var child bool
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run one worker (what `baton serve` starts)",
		Long: `Worker runs one prefill, decode or unified worker. "baton serve" starts these itself;
by hand it is for debugging: no command joins workers of several machines to one gateway
yet.

Prefill and decode workers know each other by a shared secret, which is read from the
environment variable ` + secretEnv + ` (hexadecimal digits, at least 32). It guards the links
between workers alone: whoever reaches --http can use the worker (POST /leg/…) and end it
(POST /drain) without one. Keep it on loopback, or on a network that only you reach.

When the worker takes requests it prints one JSON line on standard output:
  {"ready":true,"role":"decode","http":"127.0.0.1:41234","link":"","boot":"…","pid":7}

Ctrl-C or SIGTERM once: no new rooms, live ones may end (--grace), then exit.
Twice: everything stops at once.`,
		Example: `  baton worker --role unified --http 127.0.0.1:9000

  export ` + secretEnv + `=$(` + secretMaker + `)
  baton worker --role prefill --http 127.0.0.1:9001 --link 127.0.0.1:9002
  baton worker --role decode --http 127.0.0.1:9003`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkNamed(cmd); err != nil {
				return err
			}
			log, err := newLog(os.Stderr, level)
			if err != nil {
				return err
			}
			if c.Role == "" {
				return fmt.Errorf("a worker needs its \"role\": --role %s, %s or %s", worker.Prefill, worker.Decode, worker.Unified)
			}
			if err := noZero(&c.Sizes); err != nil {
				return err
			}
			if err := cmp.Or(checkListen("http", c.HTTP), checkListen("link", c.Link), checkKV(c.Sizes.KV)); err != nil {
				return err
			}
			if c.Secret, err = secret(c.Role); err != nil {
				return err
			}
			if err := checkRecord(c.Record); err != nil && !child { // a child serves without
				return err
			}
			c.Grace = graceOf(c.Grace)
			c.Log, c.Ready = log, os.Stdout
			if child {
				c.Parent, c.Loading = os.Stdin, loadingLines(os.Stdout)
			} else {
				alone := loadingShown{w: os.Stderr}
				c.Loading = func(done, total int64) { alone.say(c.Name, done, total) }
			}
			ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
			defer release()
			defer context.AfterFunc(ctx, release)() // the next signal ends the process
			err = worker.Run(ctx, c)
			if _, refuses := errors.AsType[*worker.Refusal](err); refuses && child {
				return exitError{code: fleet.ExitRefused, err: err}
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&c.Role, "role", "", "prefill, decode or unified (required)")
	fl.StringVar(&c.Name, "name", "", "`NAME` in logs and rows (default: role@address)")
	fl.StringVar(&c.Model, "model", "", modelHelp)
	fl.StringVar(&c.HTTP, "http", "127.0.0.1:0", "address for legs, `HOST:PORT`")
	fl.StringVar(&c.Link, "link", "127.0.0.1:0", "address for links of decode workers, `HOST:PORT`; prefill only")
	fl.IntVar(&c.Sizes.Threads, "threads", 0, "engine threads (default: one per core)")
	fl.IntVar(&c.Sizes.KVTokens, "kv-tokens", 0, "tokens in the KV pool (default: from the memory that is free)")
	fl.IntVar(&c.Sizes.Workers, "workers", worker.WorkersDefault, "workers on this machine, with this one, that share the memory that is free")
	fl.IntVar(&c.Sizes.MaxRunning, "max-batch", worker.RunningDefault, "rooms that compute at the same time; where they generate each counts as often as it has choices")
	fl.IntVar(&c.Sizes.MaxQueued, "max-queued-requests", worker.QueuedDefault, "rooms that may wait; more get 429")
	fl.IntVar(&c.Sizes.ChunkTokens, "chunk-tokens", worker.ChunkDefault, "prompt tokens per engine step")
	fl.IntVar(&c.Sizes.AheadTokens, "ahead-tokens", worker.AheadDefault, aheadHelp)
	fl.StringVar(&c.Sizes.KV, "kv-dtype", "bf16", kvHelp)
	fl.BoolVar(&c.Deterministic, "deterministic", false, deterministicHelp)
	fl.BoolVar(&c.NoPrefixCache, "no-prefix-cache", false, "compute every prompt anew, as if nobody had asked it before")
	fl.BoolVar(&c.Canary, "canary", false, "fill free blocks with a pattern and check it (slow)")
	fl.DurationVar(&c.Grace, "grace", worker.GraceDefault, "how long live rooms may go on at the end; 0 ends them at once")
	fl.StringVar(&c.Record, "record", "", "`DIR` for a trace of all decisions, for \"baton replay\"; no text and no token, but digests of prompts' beginnings; it ends at 256 MiB")
	fl.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	fl.BoolVar(&child, "child", false, "end when standard input ends")
	fl.MarkHidden("child")
	return cmd
}

// kvHelp and deterministicHelp say what one gets, and for what.
const (
	kvHelp = "number `FORMAT` of the KV cache: bf16, f32 (twice the memory) or q8_0 (half of it, and half to move; a little\n" +
		"less exact). All workers must have the same"
	deterministicHelp = "one family of kernels for prompts and answers, so that an answer that was cut goes on with the same\n" +
		"tokens on any worker; slower prompts on CPUs with AMX, no difference elsewhere"
)

// aheadHelp teaches what the number trades.
var aheadHelp = fmt.Sprintf("output tokens a request has KV memory for ahead: fewer let more run at once; when memory is short "+
	"the youngest waits and is computed again; %d: all it may say, none ever is", worker.AheadMax)

// secretMaker makes a good secret with what every Unix has.
const secretMaker = `od -An -tx1 -N32 /dev/urandom | tr -d ' \n'`

// secret reads the fleet's secret for a worker that needs one.
func secret(role string) ([]byte, error) {
	s, err := hex.DecodeString(os.Getenv(secretEnv))
	if err != nil {
		return nil, fmt.Errorf("%s: want hexadecimal digits: %w", secretEnv, err)
	}
	if needs := role == worker.Prefill || role == worker.Decode; needs && len(s) < transfer.SecretMin {
		return nil, fmt.Errorf("%s has %s; a %s worker needs at least %d, the same on every worker of the fleet; make one with: export %s=$(%s)",
			secretEnv, count(len(s), "byte"), role, transfer.SecretMin, secretEnv, secretMaker)
	}
	return s, nil
}

// graceOf honours a grace of 0, which a Config would take for its default: on a command line
// somebody wrote it.
func graceOf(flag time.Duration) time.Duration {
	if flag == 0 {
		return worker.NoGrace
	}
	return flag
}

// noZero refuses zeros that a Config would take for its defaults: on a command line somebody
// wrote them.
func noZero(z *worker.Sizes) error {
	for _, flag := range []struct {
		name       string
		v, lo, max int
	}{{"max-batch", z.MaxRunning, 1, worker.RunningMax}, {"max-queued-requests", z.MaxQueued, 1, worker.QueuedMax},
		{"chunk-tokens", z.ChunkTokens, room.BlockTokens, worker.ChunkMax}, {"ahead-tokens", z.AheadTokens, 1, worker.AheadMax}, {"workers", z.Workers, 1, worker.WorkersMax}} {
		if flag.v == 0 {
			return fmt.Errorf("--%s 0: want %d to %d", flag.name, flag.lo, flag.max)
		}
	}
	return nil
}
