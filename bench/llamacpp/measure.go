package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"baton/bench"
	"baton/engine/kernel"
)

// figures are what the rounds gave, by name.
type figures map[string][]float64

func (f figures) add(name string, v float64) { f[name] = append(f[name], v) }

// median of what was added; 0 if nothing was.
func (f figures) median(name string) float64 { return median(f[name]) }

// ratio is the median of the rounds' ratios: where the machine is faster in one round than in the next, for others use it
// too, both sides of a ratio are of one round.
func (f figures) ratio(a, b string) float64 {
	var ratios []float64
	for i := range min(len(f[a]), len(f[b])) {
		if f[b][i] > 0 {
			ratios = append(ratios, f[a][i]/f[b][i])
		}
	}
	return median(ratios)
}

func median(of []float64) float64 {
	v := slices.Sorted(slices.Values(of))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// compare measures one model with each number of threads, in rounds: ours, theirs, the probe.
func (p *place) compare(ctx context.Context, m subject, o options) ([]Line, error) {
	path, err := p.file(ctx, m)
	if err != nil {
		return nil, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("llamacpp: %w", err)
	}
	var lines []Line
	for _, threads := range o.threads {
		got := figures{}
		for round := range o.rounds {
			say("%s, %d threads, round %d of %d", m.name, threads, round+1, o.rounds)
			plan := bench.Plan{Model: path, Tests: []string{"pp512", "tg64"}, Threads: []int{threads}, Batches: []int{1, 8}, Repeat: o.repeat}
			ours, err := bench.Engine(ctx, plan, io.Discard)
			if err != nil {
				return nil, err
			}
			for _, r := range ours {
				got.add(fmt.Sprintf("%s x%d", r.Test, r.Batch), r.TokensPerSecond)
			}
			theirs, err := p.theirs(ctx, path, threads, o.repeat, plan.Tests)
			if err != nil {
				return nil, err
			}
			for test, speed := range theirs {
				got.add("their "+test, speed)
			}
			got.add("probe", kernel.Probe(threads, int(stat.Size()), probeRounds))
			say("  ours by theirs, tokens/s: pp512 %.0f by %.0f, tg64 %.1f by %.1f (%.1f of %.1f GB/s), tg64 x8 %.0f", got["pp512 x1"][round], got["their pp512"][round],
				got["tg64 x1"][round], got["their tg64"][round], got["tg64 x1"][round]*float64(stat.Size())/1e9, got["probe"][round]/1e9, got["tg64 x8"][round])
		}
		lines = append(lines, m.lines(threads, got, float64(stat.Size()))...)
	}
	return lines, nil
}

// probeRounds is how often the probe reads as many bytes as the model has.
const probeRounds = 9

// lines are the goals of one model and number of threads. The embeddings of all subjects are tied: a step of generation
// reads the whole file.
func (m subject) lines(threads int, f figures, bytes float64) []Line {
	prefill := Line{Model: m.name, Test: "pp512", Threads: threads, Ours: f.median("pp512 x1"), Theirs: f.median("their pp512"),
		Ratio: f.ratio("pp512 x1", "their pp512"), Goal: prefillGoal}
	one := f.median("tg64 x1")
	decode := Line{Model: m.name, Test: "tg64", Threads: threads, Ours: one, Theirs: f.median("their tg64"),
		Ratio: f.ratio("tg64 x1", "their tg64"), Goal: m.decode,
		Bandwidth: one * bytes / 1e9, Probe: f.median("probe") / 1e9, Cap: f.ratio("probe", "their tg64") / bytes}
	batch := Line{Model: m.name, Test: "tg64, 8 by 1", Threads: threads, Ours: f.median("tg64 x8"), Theirs: one,
		Ratio: f.ratio("tg64 x8", "tg64 x1"), Goal: batchGoal}
	lines := []Line{prefill, decode, batch}
	for i := range lines {
		lines[i].judge()
	}
	return lines
}
