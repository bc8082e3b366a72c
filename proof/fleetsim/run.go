package fleetsim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"baton/proof/explore"
)

// Result is what one seed showed.
type Result struct {
	Seed    uint64
	Events  int    // in both runs
	Broken  string // property; "" if all hold, "SEED" if the two runs differ
	Reason  string
	Chart   string // of the shortened run
	Choices int    // left after shrinking
	Drawn   int    // at first
	Replay  string // the command that shows it again
	sights  sights
}

// Run runs a seed, twice, and shortens it if something is wrong.
func Run(seed uint64, s Sizes) Result {
	p := newPlan(seed, s)
	w := newWorld(p)
	w.run()
	r := Result{Seed: seed, Events: w.events, Broken: w.broken, Reason: w.reason, Drawn: len(p.choices), sights: w.sights}
	if r.Broken == "" {
		again := newWorld(newPlan(seed, s))
		again.run()
		r.Events += again.events
		if again.hash != w.hash || again.events != w.events {
			r.Broken, r.Reason = "SEED", fmt.Sprintf("the seed runs otherwise a second time: %d and %d events", w.events, again.events)
		}
		if r.Broken == "" {
			return r
		}
	}
	r.Replay = fmt.Sprintf("baton verify --seeds 1 --seed %d", seed)
	if s != DefaultSizes() {
		r.Replay += fmt.Sprintf(" --gateways %d --prefill %d --decode %d --unified %d", s.Gateways, s.Prefills, s.Decodes, s.Unified)
	}
	if s.Hard {
		r.Replay += " --hard"
	}
	if r.Broken == "SEED" {
		return r
	}
	p = shrink(p, r.Broken)
	last := newWorld(p)
	last.run()
	r.Reason, r.Choices = last.reason, len(p.choices)
	r.Chart = chart(p, last.stuck, r.Broken+": "+r.Reason)
	return r
}

// Report is what a sweep of seeds showed.
type Report struct {
	Seeds   int
	Events  int
	Took    time.Duration
	Sights  []Sight
	Missing []string // sights that were never met, if there were SeedsEnough, of DefaultSizes
	Unseen  []string // the same, of other sizes: they may be rare there, which is no failure
	Failed  *Result  // the lowest seed that broke something
}

// SeedsFirst and SeedsGate are the seeds of every change: what fits into ten seconds of one core.
const (
	SeedsFirst = 1
	SeedsGate  = 1600
)

// SeedsEnough is how many seeds of DefaultSizes have to meet every sight; with fewer, luck decides.
const SeedsEnough = 1000

// Sweep runs n seeds from the first on, on several goroutines, until ctx is done or one breaks
// something. Progress, if not nil, hears after each seed how many are done.
func Sweep(ctx context.Context, first uint64, n int, s Sizes, goroutines int, progress func(seeds, events int)) Report {
	var (
		mu      sync.Mutex
		next    int
		all     sights
		report  Report
		workers sync.WaitGroup
		began   = time.Now()
	)
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || ctx.Err() != nil || report.Failed != nil {
			return 0, false
		}
		next++
		return first + uint64(next-1), true
	}
	done := func(r *Result) {
		mu.Lock()
		defer mu.Unlock()
		report.Seeds++
		report.Events += r.Events
		for i, x := range r.sights {
			all[i] += x
		}
		if r.Broken != "" && (report.Failed == nil || r.Seed < report.Failed.Seed) {
			report.Failed = r
		}
		if progress != nil {
			progress(report.Seeds, report.Events)
		}
	}
	for range max(goroutines, 1) {
		workers.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				r := Run(seed, s)
				done(&r)
			}
		})
	}
	workers.Wait()
	report.Took = time.Since(began)
	report.met(&all, s)
	return report
}

// met notes what was met, and what not of all that the sizes allow. How often a sight comes was
// tuned for DefaultSizes: only there does its absence say that the seeds check nothing.
func (r *Report) met(all *sights, s Sizes) {
	r.Sights = all.list(s)
	if r.Seeds < SeedsEnough {
		return
	}
	for _, x := range r.Sights {
		switch {
		case x.Count > 0:
		case s == DefaultSizes():
			r.Missing = append(r.Missing, x.Name)
		default:
			r.Unseen = append(r.Unseen, x.Name)
		}
	}
}

// Err says what is wrong, or nothing.
func (r *Report) Err() error {
	switch {
	case r.Failed != nil:
		return fmt.Errorf("fleetsim: %s does not hold: %s (seed %d, %d choices of %d)\n%s", r.Failed.Broken, r.Failed.Reason, r.Failed.Seed, r.Failed.Choices, r.Failed.Drawn, r.Failed.Chart)
	case len(r.Missing) > 0:
		return fmt.Errorf("fleetsim: the seeds are vacuous: never met: %s", strings.Join(r.Missing, ", "))
	}
	return nil
}

// Explored is the report in the words of the gate, which judges mutants by it.
func (r *Report) Explored() explore.Report {
	x := explore.Report{Transitions: r.Events, Done: r.Seeds, Exploring: r.Took, Missing: r.Missing}
	if f := r.Failed; f != nil {
		x.Broken, x.Reason, x.Chart = f.Broken, fmt.Sprintf("%s (seed %d, %d choices of %d)", f.Reason, f.Seed, f.Choices, f.Drawn), f.Chart
	}
	return x
}
