package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"baton/engine/kernel"
)

// Plan says what to measure. The order of results is that of Threads, and of Tests within it.
type Plan struct {
	Model   string   // what results call the model
	Tests   []string // ppN, tgN or tgNxB, as model.Bench takes them
	Threads []int    // of the engine; all tests are measured with each
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
	if p.Repeat < 1 || p.Repeat > RepeatMax {
		return fmt.Errorf("bench: --repeat %d: want 1 to %d", p.Repeat, RepeatMax)
	}
	return nil
}

// Measure runs one test once and returns tokens per second.
type Measure func(test string, threads int) (tokensPerSecond float64, err error)

// Run measures the plan and tells progress what it does, a line for each run. When ctx ends it
// finishes the run under way and returns what is complete, with ctx's error (B3). An error of
// measure ends it the same way.
func (p *Plan) Run(ctx context.Context, measure Measure, progress io.Writer) ([]Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(p.Threads)*len(p.Tests))
	for _, threads := range p.Threads {
		for _, test := range p.Tests {
			speed, err := p.one(ctx, measure, test, threads, progress)
			if err != nil {
				return results, err
			}
			results = append(results, Result{p.Model, test, threads, speed})
		}
	}
	return results, nil
}

// one measures one test with one number of threads (B1).
func (p *Plan) one(ctx context.Context, measure Measure, test string, threads int, progress io.Writer) (float64, error) {
	speeds := make([]float64, 0, p.Repeat)
	for run := range 1 + p.Repeat {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("bench: stopped before run %d of %s: %w", run, test, err)
		}
		speed, err := measure(test, threads)
		if err != nil {
			return 0, fmt.Errorf("bench: %s, threads %d: %w", test, threads, err)
		}
		which := fmt.Sprintf("run %d of %d", run, p.Repeat)
		if run == 0 {
			which = "warm-up"
		} else {
			speeds = append(speeds, speed)
		}
		fmt.Fprintf(progress, "%s, %s, threads %d, %s: %.1f tokens/s\n", p.Model, test, threads, which, speed)
	}
	return median(speeds), nil
}

// median sorts v, which is not empty; of an even number it is the mean of the middle two.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
