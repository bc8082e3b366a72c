package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"baton/bench"
)

// options are the command's flags.
type options struct {
	dir            string
	only           []string
	threads        []int
	rounds, repeat int
	big, prefix    bool
	json           bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = measure(ctx, o)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	fl := flag.NewFlagSet("llamacpp", flag.ContinueOnError)
	fl.Usage = func() {
		fmt.Fprint(fl.Output(), "Llamacpp measures the engine and llama.cpp on the same files, in turns, and compares with the goals.\nRun it from the repository's root: go run ./bench/llamacpp [flags]\n\n")
		fl.PrintDefaults()
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	var threads, only string
	fl.StringVar(&o.dir, "dir", filepath.Join(cache, "baton", "llamacpp"), "folder for llama.cpp's libraries and the model files")
	fl.StringVar(&only, "only", "", "models to measure, as smol-q8_0,smollm2; empty: all, the big ones with -big")
	fl.StringVar(&threads, "threads", "1,2", "numbers of threads; one is timed by the processor's clock, more by the wall's")
	fl.IntVar(&o.rounds, "rounds", 3, "rounds of ours, theirs and the memory probe; the median counts")
	fl.IntVar(&o.repeat, "repeat", 3, "runs of each test in a round; the median counts")
	fl.BoolVar(&o.big, "big", false, "measure the shape of Llama 1B too: 4.6 GB of files")
	fl.BoolVar(&o.prefix, "prefix", true, "measure the first token behind a cached prefix of 1,000 tokens, through baton serve")
	fl.BoolVar(&o.json, "json", false, "print a JSON list")
	if err := fl.Parse(args); err != nil {
		return o, err
	}
	if fl.NArg() > 0 {
		return o, fmt.Errorf("llamacpp: %q: there are flags only, see -help", fl.Arg(0))
	}
	if o.rounds < 1 || o.rounds > 100 || o.repeat < 1 || o.repeat > 64 {
		return o, fmt.Errorf("llamacpp: -rounds %d -repeat %d: want 1 to 100 rounds and 1 to 64 runs", o.rounds, o.repeat)
	}
	for t := range strings.SplitSeq(threads, ",") {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 || n > 256 {
			return o, fmt.Errorf("llamacpp: -threads %q: want numbers from 1 to 256, as 1,2", threads)
		}
		o.threads = append(o.threads, n)
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	return o, o.checkNames()
}

// checkNames says which models there are if one is named that is not.
func (o *options) checkNames() error {
	known := map[string]bool{}
	var names []string
	for _, m := range subjects() {
		known[m.name] = true
		names = append(names, m.name)
	}
	for _, n := range o.only {
		if !known[n] {
			return fmt.Errorf("llamacpp: -only %q: want some of %s", n, strings.Join(names, ", "))
		}
	}
	return nil
}

// wants says whether a model is to be measured.
func (o *options) wants(m subject) bool {
	if len(o.only) == 0 {
		return o.big || !m.big
	}
	for _, n := range o.only {
		if n == m.name {
			return true
		}
	}
	return false
}

// measure prints a line for each goal.
func measure(ctx context.Context, o options) error {
	p, err := prepare(ctx, o.dir)
	if err != nil {
		return err
	}
	lines := []Line{}
	for _, m := range subjects() {
		if !o.wants(m) {
			continue
		}
		got, err := p.compare(ctx, m, o)
		if err != nil {
			return err
		}
		lines = append(lines, got...)
	}
	if o.prefix {
		l, err := p.prefix(ctx, o)
		if err != nil {
			return err
		}
		lines = append(lines, l)
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(lines)
	}
	rows := [][]string{head}
	for i := range lines {
		rows = append(rows, lines[i].row())
	}
	return bench.WriteColumns(os.Stdout, rows)
}
