package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"baton/engine/kernel"
)

// Plan says what to measure. The order of results is that of Threads, of Tests within it, and of Batches within that.
type Plan struct {
	Model   string   // what results call the model
	Bytes   int64    // of the model's file, for the table
	Tests   []string // ppN, tgN, or tgNxB, which is tgN with a batch of its own
	Threads []int    // of the engine; all tests are measured with each
	Batches []int    // sequences that tgN generates at once; empty means one
	Repeat  int      // runs of each test that count
}

// Defaults of a Plan.
const (
	// RepeatDefault is the least whose median ignores one run that somebody disturbed.
	RepeatDefault = 3
	// RepeatMax keeps a typing error from measuring for a day.
	RepeatMax = 1000
)

// TestsDefault are what llama.cpp's own benchmark is usually quoted with.
func TestsDefault() []string { return []string{"pp512", "tg64"} }

// BatchMax is the largest batch, as model.Bench takes it.
const BatchMax = 256

// ThreadsDefault shows the engine alone and what a second thread adds.
func ThreadsDefault() []int { return []int{1, 2} }

// testName is the form of a test's name; sizes depend on the model, which checks them.
var testName = regexp.MustCompile(`^(pp[1-9][0-9]*|tg[1-9][0-9]*(x[1-9][0-9]*)?)$`)

// Check says what is wrong with a plan, in the words of the command's flags (B2).
func (p *Plan) Check() error {
	if len(p.Tests) == 0 {
		return errors.New("bench: --tests is empty; want a list as pp512,tg64,tg64x8")
	}
	for _, t := range p.Tests {
		_, b, _ := strings.Cut(t, "x")
		if n, err := strconv.Atoi(b); b != "" && (err != nil || n > BatchMax) {
			return fmt.Errorf("bench: --tests %q: a batch of %s, want 1 to %d", t, b, BatchMax)
		}
		if !testName.MatchString(t) {
			return fmt.Errorf("bench: --tests %q: want ppN (a prompt of N tokens), tgN (N tokens one by one) or tgNxB (of B sequences at once), as pp512, tg64 or tg64x8", t)
		}
	}
	if len(p.Threads) == 0 {
		return fmt.Errorf("bench: --threads is empty; want a number from 1 to %d, or a list of them as 1,2", kernel.TeamMax)
	}
	for _, n := range p.Threads {
		if n < 1 || n > kernel.TeamMax {
			return fmt.Errorf("bench: --threads %d: want 1 to %d", n, kernel.TeamMax)
		}
	}
	for _, n := range p.Batches {
		if n < 1 || n > BatchMax {
			return fmt.Errorf("bench: --batch %d: want 1 to %d", n, BatchMax)
		}
	}
	if p.Repeat < 1 || p.Repeat > RepeatMax {
		return fmt.Errorf("bench: --repeat %d: want 1 to %d", p.Repeat, RepeatMax)
	}
	return nil
}

// Measure runs one test once and returns tokens per second. The test is ppN, tgN, or tgNxB for B sequences at once.
type Measure func(test string, threads int) (tokensPerSecond float64, err error)

// Run measures the plan and tells progress what it does, a line for each run. When ctx ends it
// finishes the run under way and returns what is complete, with ctx's error (B3). An error of
// measure ends it the same way.
func (p *Plan) Run(ctx context.Context, measure Measure, progress io.Writer) ([]Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var results []Result
	for _, threads := range p.Threads {
		for _, test := range p.Tests {
			for _, t := range p.batches(test) {
				r, err := p.one(ctx, measure, t, threads, progress)
				if err != nil {
					return results, err
				}
				results = append(results, r)
			}
		}
	}
	return results, nil
}

// batched is a test with its batch.
type batched struct {
	test  string
	batch int
}

// batches returns the batches that a test is measured with.
func (p *Plan) batches(test string) []batched {
	if name, b, ok := strings.Cut(test, "x"); ok {
		n, _ := strconv.Atoi(b) // Check has read it
		return []batched{{name, n}}
	}
	if len(p.Batches) == 0 || strings.HasPrefix(test, "pp") {
		return []batched{{test, 1}}
	}
	var list []batched
	for _, n := range p.Batches {
		list = append(list, batched{test, n})
	}
	return list
}

// name is what Measure calls it.
func (t batched) name() string {
	if t.batch == 1 {
		return t.test
	}
	return fmt.Sprintf("%sx%d", t.test, t.batch)
}

// one measures one test with one number of threads (B1).
func (p *Plan) one(ctx context.Context, measure Measure, t batched, threads int, progress io.Writer) (Result, error) {
	test := t.name()
	speeds := make([]float64, 0, p.Repeat)
	for run := range 1 + p.Repeat {
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("bench: stopped before run %d of %s: %w", run, test, err)
		}
		speed, err := measure(test, threads)
		if err != nil {
			return Result{}, fmt.Errorf("bench: %s, threads %d: %w", test, threads, err)
		}
		which := fmt.Sprintf("run %d of %d", run, p.Repeat)
		if run == 0 {
			which = "warm-up"
		} else {
			speeds = append(speeds, speed)
		}
		fmt.Fprintf(progress, "%s, %s, threads %d, %s: %.1f tokens/s\n", p.Model, test, threads, which, speed)
	}
	return Result{Model: p.Model, Test: t.test, Threads: threads, Batch: t.batch,
		TokensPerSecond: median(speeds), Spread: spread(speeds), Bytes: p.Bytes}, nil
}

// spread is the standard deviation; of one run, 0.
func spread(v []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(max(1, len(v)-1)))
}

// median sorts v, which is not empty; of an even number it is the mean of the middle two.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
