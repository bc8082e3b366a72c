package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"baton/bench"
	"baton/engine/weights/store"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure",
		Long:  "Bench measures parts of Baton on this machine. There is one kind so far: engine.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("bench cannot measure %q; want engine, see baton bench --help", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newBenchEngine())
	return cmd
}

func newBenchEngine() *cobra.Command {
	var p bench.Plan
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure the engine alone: prompt and generation speed",
		Long: `Engine measures tokens per second without workers or network:
  ppN    computes a prompt of N tokens: how soon a first token comes
  tgN    generates N tokens one by one: how fast the rest follows
  tgNxB  generates N tokens for each of B sequences at once
tgN is measured with each --batch, the number of sequences that one step generates for,
so --tests tg64 --batch 1,8 measures what --tests tg64,tg64x8 does. The figure counts the
tokens of all: it shows what serving many at once gains. Everything is measured with each
of --threads.

Each test runs --repeat times after one run to warm up; the median counts, and the table
has the standard deviation behind it. One thread is timed by its CPU clock where the
system has one, several by the clock on the wall: close what else runs, or several look
slower than one. Prompts are bound by arithmetic, and gain by threads. Generation for one
sequence is bound by memory: tokens/s times the size of a model that no cache holds is near
what these threads can read.

--json prints a list of {model, test, threads, batch, tokens_per_second}. KERNELS=avx2
and the like choose an older kind of processor. Progress goes to standard error, results
to standard output. Ctrl-C ends after the run under way and prints what is complete; a
second one ends at once.`,
		Example: `  baton bench engine --model smollm2 --threads 2
  baton bench engine --model model.gguf --tests pp512,tg64 --batch 1,2,4,8,16 --threads 1,2
  baton bench engine --model model.gguf --json > figures.json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return benchEngine(p, asJSON) },
	}
	fl := cmd.Flags()
	fl.StringVar(&p.Model, "model", store.Recall, modelHelp)
	fl.IntSliceVar(&p.Threads, "threads", bench.ThreadsDefault(), "engine threads; all tests are measured with each `N`")
	fl.IntSliceVar(&p.Batches, "batch", []int{1}, "sequences that one step of tgN generates for; tgN is measured with each `N`")
	fl.IntVar(&p.Repeat, "repeat", bench.RepeatDefault, "runs per test")
	fl.StringSliceVar(&p.Tests, "tests", bench.TestsDefault(), "what to measure: ppN, tgN, tgNxB")
	fl.BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func benchEngine(p bench.Plan, asJSON bool) error {
	ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
	defer release()
	unwatch := context.AfterFunc(ctx, func() {
		release() // the next signal ends the process
		fmt.Fprintln(os.Stderr, "ending after the run under way; once more ends at once")
	})
	defer unwatch() // before release, whose end of ctx is no signal
	results, err := bench.Engine(ctx, p, os.Stderr)
	if err != nil && len(results) == 0 && !errors.Is(err, context.Canceled) {
		return err
	}
	write := bench.WriteTable
	if asJSON {
		write = bench.WriteJSON
	}
	if werr := write(os.Stdout, results); werr != nil {
		return werr
	}
	if errors.Is(err, context.Canceled) {
		return exitError{code: 130} // what a shell reports for Ctrl-C
	}
	return err
}
