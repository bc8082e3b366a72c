package model

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"baton/engine/kernel"
)

// Bounds of Bench's sizes, so that a typing error does not run for hours.
const (
	benchTokensMax = 1 << 16
	benchBatchMax  = 256
)

// Bench measures tokens per second once: "ppN" runs a prompt of N tokens in chunks and ends with
// the logits of the last, "tgN" decodes N tokens of one sequence after a first one, "tgNxB" of B
// sequences in one batch (all of their tokens count). One thread is timed by its own CPU clock
// where the system has one, so that other processes do not count; several by the wall clock.
// The caller repeats and takes a median. No Step of the model may be under way.
func Bench(m *Model, test string, threads int) (tokensPerSecond float64, err error) {
	kind, n, batch, err := parseBench(test, m.config.Context)
	if err != nil {
		return 0, err
	}
	if threads < 1 || threads > kernel.TeamMax {
		return 0, fmt.Errorf("model: bench with %d threads, want 1 to %d", threads, kernel.TeamMax)
	}
	team := kernel.NewTeam(threads)
	defer team.Close()
	blocks := (n+1)/BlockTokens + 1
	kv, err := m.NewKV(blocks * batch)
	if err != nil {
		return 0, err
	}
	defer kv.Close()
	r := m.newRunner(kv, team)
	defer r.Close()
	runtime.LockOSThread() // the CPU clock is the thread's
	defer runtime.UnlockOSThread()
	now := time.Now
	clock := func() float64 { return float64(now().UnixNano()) / 1e9 }
	if threads == 1 && cpuSeconds() > 0 {
		clock = cpuSeconds
	}
	items := make([]Item, batch)
	for b := range items {
		t := make([]int32, blocks)
		for i := range t {
			t[i] = int32(b*blocks + i)
		}
		items[b] = Item{Table: t, Want: true}
	}
	run := benchDecode
	if kind == "pp" {
		run = benchPrefill
	}
	if err := run(r, items, min(n, 16)); err != nil { // buffers reach their size, threads wake
		return 0, err
	}
	began := clock()
	if err := run(r, items, n); err != nil {
		return 0, err
	}
	return float64(n*batch) / (clock() - began), nil
}

// CheckBench says what is wrong with a test of Bench for a model of so many tokens of context.
func CheckBench(test string, context int) error {
	_, _, _, err := parseBench(test, context)
	return err
}

// parseBench reads the name of a test.
func parseBench(test string, context int) (kind string, n, batch int, err error) {
	wrong := fmt.Errorf("model: bench %q, want ppN, tgN or tgNxB with N from 1 to %d and B to %d, as pp512 or tg64x8", test, min(benchTokensMax, context-1), benchBatchMax)
	kind, rest := test[:min(2, len(test))], test[min(2, len(test)):]
	batch = 1
	if a, b, ok := strings.Cut(rest, "x"); ok && kind == "tg" {
		if batch, err = strconv.Atoi(b); err != nil || batch < 1 || batch > benchBatchMax {
			return "", 0, 0, wrong
		}
		rest = a
	}
	n, err = strconv.Atoi(rest)
	if err != nil || kind != "pp" && kind != "tg" || n < 1 || n > min(benchTokensMax, context-1) {
		return "", 0, 0, wrong
	}
	return kind, n, batch, nil
}

// benchToken spreads tokens over the vocabulary without a generator.
func benchToken(i, vocab int) int32 { return int32(i * 7919 % vocab) }

func benchPrefill(r *Runner, items []Item, n int) error {
	it := items[:1]
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = benchToken(i, r.m.config.Vocab)
	}
	for at := 0; at < n; {
		c := min(n-at, r.m.chunkMax)
		it[0].Tokens, it[0].Pos, it[0].Prompt, it[0].Want = ids[at:at+c], at, true, at+c == n
		if err := r.Step(it); err != nil {
			return err
		}
		at += c
	}
	return nil
}

func benchDecode(r *Runner, items []Item, n int) error {
	ids := make([]int32, len(items))
	for i := range n {
		for b := range items {
			ids[b] = benchToken(i+b, r.m.config.Vocab)
			items[b].Tokens, items[b].Pos = ids[b:b+1], i
		}
		if err := r.Step(items); err != nil {
			return err
		}
	}
	return nil
}
