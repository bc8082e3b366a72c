package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// script is an engine whose speeds are written down, in the order of its runs.
type script struct {
	speeds []float64
	calls  []string
	after  func(run int) error // what happens behind a run, nil: nothing
}

func (s *script) measure(test string, threads int) (float64, error) {
	n := len(s.calls)
	s.calls = append(s.calls, test+"/"+string(rune('0'+threads)))
	if s.after != nil {
		if err := s.after(n); err != nil {
			return 0, err
		}
	}
	return s.speeds[n%len(s.speeds)], nil
}

func result(test string, threads, batch int, speed float64) Result {
	return Result{Model: "m", Test: test, Threads: threads, Batch: batch, TokensPerSecond: speed}
}

// A batch is measured by generation alone, and a test's own counts for it alone.
func TestEveryBatchIsMeasured(t *testing.T) {
	s := &script{speeds: []float64{1}}
	p := Plan{Model: "m", Tests: []string{"pp8", "tg4", "tg2x3"}, Threads: []int{1}, Batches: []int{1, 8}, Repeat: 1}
	got, err := p.Run(t.Context(), s.measure, io.Discard)
	want := []Result{result("pp8", 1, 1, 1), result("tg4", 1, 1, 1), result("tg4", 1, 8, 1), result("tg2", 1, 3, 1)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("results %+v, %v; want %+v", got, err, want)
	}
	if calls := []string{"pp8/1", "pp8/1", "tg4/1", "tg4/1", "tg4x8/1", "tg4x8/1", "tg2x3/1", "tg2x3/1"}; !slices.Equal(s.calls, calls) {
		t.Errorf("the engine was asked for %v, want %v", s.calls, calls)
	}
}

func TestTheSpreadIsTheStandardDeviation(t *testing.T) {
	for _, tt := range []struct {
		v    []float64
		want float64
	}{{[]float64{5}, 0}, {[]float64{4, 4}, 0}, {[]float64{1, 3}, math.Sqrt2}, {[]float64{2, 4, 6}, 2}} {
		if got := spread(tt.v); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("spread of %v is %g, want %g", tt.v, got, tt.want)
		}
	}
}

func plan() Plan {
	return Plan{Model: "m", Tests: []string{"pp512", "tg64"}, Threads: []int{1, 2}, Repeat: 3}
}

// B1: the warm-up, the slowest run here, and the outlier, the fastest, leave no trace.
func TestAFigureIsTheMedianBehindAWarmUp(t *testing.T) {
	for _, tt := range []struct {
		repeat int
		speeds []float64 // the first is the warm-up
		want   float64
	}{
		{1, []float64{1, 7}, 7},
		{2, []float64{1, 6, 8}, 7},
		{3, []float64{1, 1000, 5, 7}, 7},
		{4, []float64{1, 1000, 5, 6, 8}, 7},
	} {
		s := &script{speeds: tt.speeds}
		p := Plan{Model: "m", Tests: []string{"tg64"}, Threads: []int{2}, Repeat: tt.repeat}
		got, err := p.Run(t.Context(), s.measure, io.Discard)
		if err != nil || len(got) != 1 || got[0].Spread < 0 || got[0].TokensPerSecond != tt.want || got[0].Test != "tg64" || got[0].Threads != 2 || got[0].Batch != 1 {
			t.Errorf("%d runs of %v: %+v, %v; want %v", tt.repeat, tt.speeds, got, err, tt.want)
		}
		if len(s.calls) != 1+tt.repeat {
			t.Errorf("%d runs for --repeat %d, want one more", len(s.calls), tt.repeat)
		}
	}
}

func TestEveryTestIsMeasuredWithEveryNumberOfThreads(t *testing.T) {
	s := &script{speeds: []float64{1}}
	p := plan()
	got, err := p.Run(t.Context(), s.measure, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{result("pp512", 1, 1, 1), result("tg64", 1, 1, 1), result("pp512", 2, 1, 1), result("tg64", 2, 1, 1)}
	if !slices.Equal(got, want) {
		t.Errorf("results %+v, want %+v", got, want)
	}
	calls := []string{}
	for _, c := range []string{"pp512/1", "tg64/1", "pp512/2", "tg64/2"} {
		calls = append(calls, c, c, c, c)
	}
	if !slices.Equal(s.calls, calls) {
		t.Errorf("the engine was asked for %v, want %v", s.calls, calls)
	}
}

func TestProgressHasALineForEachRun(t *testing.T) {
	s := &script{speeds: []float64{2.5}}
	var said strings.Builder
	p := Plan{Model: "m", Tests: []string{"tg64"}, Threads: []int{2}, Repeat: 2}
	if _, err := p.Run(t.Context(), s.measure, &said); err != nil {
		t.Fatal(err)
	}
	const want = "m, tg64, threads 2, warm-up: 2.5 tokens/s\n" +
		"m, tg64, threads 2, run 1 of 2: 2.5 tokens/s\n" +
		"m, tg64, threads 2, run 2 of 2: 2.5 tokens/s\n"
	if said.String() != want {
		t.Errorf("progress:\n%swant:\n%s", said.String(), want)
	}
}

// B3: stopped at any run, only tests with all of their runs are in the results.
func TestAStoppedPlanReturnsWhatIsComplete(t *testing.T) {
	for stop := range 4 * 4 {
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{speeds: []float64{1}, after: func(run int) error {
			if run == stop {
				cancel()
			}
			return nil
		}}
		p := plan()
		got, err := p.Run(ctx, s.measure, io.Discard)
		cancel()
		if last := stop == 4*4-1; last != (err == nil) || !last && !errors.Is(err, context.Canceled) {
			t.Errorf("stopped in run %d: error %v", stop, err)
		}
		if len(s.calls) != stop+1 || len(got) != (stop+1)/4 {
			t.Errorf("stopped in run %d: %d runs and %d results, want %d and %d", stop, len(s.calls), len(got), stop+1, (stop+1)/4)
		}
	}
}

func TestAnEnginesErrorNamesItsTestAndKeepsWhatIsComplete(t *testing.T) {
	broken := errors.New("out of memory")
	s := &script{speeds: []float64{1}, after: func(run int) error {
		if run == 5 {
			return broken
		}
		return nil
	}}
	p := plan()
	got, err := p.Run(t.Context(), s.measure, io.Discard)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "tg64, threads 1") || len(got) != 1 {
		t.Errorf("%d results, error %v; want one, and an error that names tg64 and its threads", len(got), err)
	}
}

// B2: nothing is loaded and nothing runs; the error names the value and what is allowed.
func TestAWrongPlanIsRefusedWhole(t *testing.T) {
	for _, tt := range []struct {
		spoil func(*Plan)
		want  []string
	}{
		{func(p *Plan) { p.Tests = nil }, []string{"--tests is empty", "pp512"}},
		{func(p *Plan) { p.Tests = []string{"pp512", "pq64"} }, []string{`"pq64"`, "ppN", "tgNxB"}},
		{func(p *Plan) { p.Tests = []string{"tg0"} }, []string{`"tg0"`, "tgN"}},
		{func(p *Plan) { p.Tests = []string{"pp64x8"} }, []string{`"pp64x8"`, "tgNxB"}},
		{func(p *Plan) { p.Tests = []string{""} }, []string{`""`, "ppN"}},
		{func(p *Plan) { p.Tests = []string{"tg4x257"} }, []string{`"tg4x257"`, "257", "1 to 256"}},
		{func(p *Plan) { p.Tests = []string{"tg4x99999999999999999999"} }, []string{"1 to 256"}},
		{func(p *Plan) { p.Batches = []int{8, 0} }, []string{"--batch 0", "1 to 256"}},
		{func(p *Plan) { p.Batches = []int{257} }, []string{"--batch 257"}},
		{func(p *Plan) { p.Threads = nil }, []string{"--threads is empty", "1 to 256"}},
		{func(p *Plan) { p.Threads = []int{1, 0} }, []string{"--threads 0", "1 to 256"}},
		{func(p *Plan) { p.Threads = []int{-1} }, []string{"--threads -1"}},
		{func(p *Plan) { p.Threads = []int{257} }, []string{"--threads 257", "1 to 256"}},
		{func(p *Plan) { p.Repeat = 0 }, []string{"--repeat 0", "1 to 1000"}},
		{func(p *Plan) { p.Repeat = RepeatMax + 1 }, []string{"--repeat 1001"}},
	} {
		p := plan()
		tt.spoil(&p)
		s := &script{speeds: []float64{1}}
		for name, run := range map[string]func() ([]Result, error){
			"Run":    func() ([]Result, error) { return p.Run(t.Context(), s.measure, io.Discard) },
			"Engine": func() ([]Result, error) { return Engine(t.Context(), p, io.Discard) }, // its model does not exist
		} {
			got, err := run()
			for _, w := range tt.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%s: error %v, want one with %q", name, err, w)
				}
			}
			if len(got)+len(s.calls) != 0 {
				t.Errorf("%s: %d results and %d runs of a plan that is wrong", name, len(got), len(s.calls))
			}
		}
	}
}
