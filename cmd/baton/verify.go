package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"baton/proof/fleetsim"
)

// Exit codes of verify. Scripts tell a broken promise from a mistake in the command.
const (
	exitBroken  = 2
	exitVacuous = 3 // no promise is broken, and the seeds prove nothing
	exitUsage   = 4
	exitStop    = 130 // what a shell reports for Ctrl-C
)

// seedsMax bounds one run: a month of one core.
const seedsMax = 1_000_000_000

// verifyPlan is what the flags say.
type verifyPlan struct {
	seeds  int
	first  uint64
	sizes  fleetsim.Sizes
	asJSON bool
}

func newVerify() *cobra.Command {
	p := verifyPlan{sizes: fleetsim.DefaultSizes()}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Run simulated fleets until a promise breaks",
		Long: `Verify runs whole fleets in virtual time, in this process, without a model: gateways,
prefill, decode and unified workers on the very code that decides in production, with
links that stall, die, lose, repeat and reorder, nodes that crash, freeze, drift, drain and
are replaced, full pools, wrong bytes, and clients that leave, stall and come in storms.
What happens follows from the seed alone.

At every step it judges Baton's promises, by name:
  TERM     every request ends by its deadline, on every node that knows it
  PROMPT   where everything that breaks is noticed, nothing needs a timer to end
  ALONE    with a link dead for ever, each side still ends
  RELEASE  every block, slot and load count is released once
  QUIET    no memory is reused while something may still touch it
  OWN      bytes of a room are used by that room alone
  STREAM   a client gets the exact text, no gap, no repeat, one end
  CAUSE    an outcome says what really happened, and blames nobody else
  TRUTH    what the nodes show equals the ledger
  BOUND    no table passes its limit, and all are empty in the end
  SAFETY   no assertion fails
  SEED     a seed that is run twice goes the same way

A seed that breaks one is made as short as possible and drawn: one line per event, with
the phase of the request at its gateway, prefill and decode worker behind it. The last
line names what is broken, and the command below the chart shows it again.

With 1000 seeds and more of a fleet of the default sizes, verify also fails if they never
met one of the things that have to be survived (--json lists them with counts): such a run
proves nothing. A fleet of other sizes, or a hard one, may meet some of them seldom: what
it never met, of what it could, is a warning.

Exit codes: 0 all promises hold, 2 one is broken, 3 none is broken and the seeds prove
nothing, 4 the command makes no sense, 130 ended by Ctrl-C; what was done until then is
printed.`,
		Example: `  baton verify                               # 1000 seeds, some seconds
  baton verify --seeds 100000 --seed 5000    # from seed 5000 on
  baton verify --seeds 1 --seed 388          # one seed again, with its chart if it fails
  baton verify --gateways 1 --prefill 1 --decode 2 --seeds 20000
  baton verify --hard --seeds 20000          # storms three times as large, small pools
  baton verify --json | jq .events_per_second`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exitError{exitUsage, fmt.Errorf("verify: unexpected %q; it takes flags only, see `baton verify --help`", args[0])}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return verify(p, os.Stdout, os.Stderr) },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exitError{exitUsage, fmt.Errorf("verify: %w", flagError(c, err))}
	})
	fl := cmd.Flags()
	fl.IntVar(&p.seeds, "seeds", 1000, "how many seeds to run")
	fl.Uint64Var(&p.first, "seed", 1, "the first seed `S`; the others follow")
	fl.IntVar(&p.sizes.Gateways, "gateways", p.sizes.Gateways, "gateways of the fleet")
	fl.IntVar(&p.sizes.Prefills, "prefill", p.sizes.Prefills, "prefill workers of the fleet")
	fl.IntVar(&p.sizes.Decodes, "decode", p.sizes.Decodes, "decode workers of the fleet")
	fl.IntVar(&p.sizes.Unified, "unified", p.sizes.Unified, "workers of the fleet that do both; half of the seeds have them")
	fl.BoolVar(&p.sizes.Hard, "hard", false, "three times the clients and the faults, and small pools")
	fl.BoolVar(&p.asJSON, "json", false, "print the result as JSON")
	return cmd
}

func (p verifyPlan) check() error {
	if p.seeds < 1 || p.seeds > seedsMax {
		return fmt.Errorf("verify: --seeds %d: want 1 to %d", p.seeds, seedsMax)
	}
	for _, x := range []struct {
		flag     string
		n, least int
	}{{"gateways", p.sizes.Gateways, 1}, {"prefill", p.sizes.Prefills, 1}, {"decode", p.sizes.Decodes, 1}, {"unified", p.sizes.Unified, 0}} {
		if x.n < x.least || x.n > fleetsim.NodesMax {
			return fmt.Errorf("verify: --%s %d: want %d to %d", x.flag, x.n, x.least, fleetsim.NodesMax)
		}
	}
	return nil
}

func verify(p verifyPlan, out, progress *os.File) error {
	if err := p.check(); err != nil {
		return exitError{exitUsage, err}
	}
	ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
	defer release()
	defer context.AfterFunc(ctx, release)() // the next signal ends the process
	cores := runtime.GOMAXPROCS(0)
	line := newVerifyLine(progress, p.seeds)
	r := fleetsim.Sweep(ctx, p.first, p.seeds, p.sizes, cores, line.show)
	line.clear()
	write := writeVerified
	if p.asJSON {
		write = writeVerifiedJSON
	}
	if err := write(out, p, &r, min(cores, p.seeds)); err != nil {
		return err
	}
	return p.judge(&r)
}

// judge is the exit code that a report asks for.
func (p verifyPlan) judge(r *fleetsim.Report) error {
	switch {
	case r.Failed != nil:
		return exitError{code: exitBroken}
	case len(r.Missing) > 0:
		return exitError{code: exitVacuous}
	case r.Seeds < p.seeds:
		return exitError{code: exitStop}
	}
	return nil
}

// verifyLine is the progress on a terminal.
type verifyLine struct {
	w     io.Writer // nil: not a terminal
	total int
	began time.Time
	last  time.Time
}

// lineAfter is how often the line is written: as fast as a person reads changing digits.
const lineAfter = 100 * time.Millisecond

func newVerifyLine(f *os.File, total int) *verifyLine {
	now := time.Now()
	l := &verifyLine{total: total, began: now, last: now}
	if term.IsTerminal(int(f.Fd())) {
		l.w = f
	}
	return l
}

// show is called after every seed, one call at a time.
func (l *verifyLine) show(seeds, events int) {
	now := time.Now()
	if l.w == nil || now.Sub(l.last) < lineAfter {
		return
	}
	l.last = now
	took := now.Sub(l.began).Seconds()
	left := time.Duration(took / float64(seeds) * float64(l.total-seeds) * float64(time.Second))
	fmt.Fprintf(l.w, "\r\033[K%d of %d seeds, %.0f seeds/s, %.2f M events/s, %v left", seeds, l.total,
		float64(seeds)/took, float64(events)/took/1e6, left.Round(time.Second))
}

func (l *verifyLine) clear() {
	if l.w != nil {
		fmt.Fprint(l.w, "\r\033[K")
	}
}

// verified is the JSON of a run.
type verified struct {
	Seeds           int              `json:"seeds"`
	First           uint64           `json:"first_seed"`
	Gateways        int              `json:"gateways"`
	Prefill         int              `json:"prefill"`
	Decode          int              `json:"decode"`
	Unified         int              `json:"unified"`
	Hard            bool             `json:"hard,omitempty"`
	Events          int              `json:"events"`
	Seconds         float64          `json:"seconds"`
	Cores           int              `json:"cores"`
	EventsPerSecond float64          `json:"events_per_second"`
	Sights          []fleetsim.Sight `json:"sights"`
	Missing         []string         `json:"missing,omitempty"` // the seeds prove nothing
	Unseen          []string         `json:"unseen,omitempty"`  // a warning
	Broken          *verifiedBroken  `json:"broken,omitempty"`
}

type verifiedBroken struct {
	Seed     uint64 `json:"seed"`
	Property string `json:"property"`
	Reason   string `json:"reason"`
	Choices  int    `json:"choices"`
	Drawn    int    `json:"choices_drawn"`
	Chart    string `json:"chart"`
	Replay   string `json:"replay"`
}

func writeVerifiedJSON(w io.Writer, p verifyPlan, r *fleetsim.Report, cores int) error {
	v := verified{Seeds: r.Seeds, First: p.first, Gateways: p.sizes.Gateways, Prefill: p.sizes.Prefills, Decode: p.sizes.Decodes, Unified: p.sizes.Unified, Hard: p.sizes.Hard, Events: r.Events,
		Seconds: r.Took.Seconds(), Cores: cores, EventsPerSecond: float64(r.Events) / max(r.Took.Seconds(), 1e-9), Sights: r.Sights, Missing: r.Missing, Unseen: r.Unseen}
	if f := r.Failed; f != nil {
		v.Broken = &verifiedBroken{f.Seed, f.Broken, f.Reason, f.Choices, f.Drawn, f.Chart, f.Replay}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func writeVerified(w io.Writer, p verifyPlan, r *fleetsim.Report, cores int) error {
	took := max(r.Took.Seconds(), 1e-9)
	unmet := 0
	for _, s := range r.Sights {
		if s.Count == 0 {
			unmet++
		}
	}
	s := fmt.Sprintf("%d seeds from %d on, %d gateways, %d prefill, %d decode, %d unified: %d events in %.1f s, %.0f seeds/s, %.2f M events/s (%d cores)\n",
		r.Seeds, p.first, p.sizes.Gateways, p.sizes.Prefills, p.sizes.Decodes, p.sizes.Unified, r.Events, took, float64(r.Seeds)/took, float64(r.Events)/took/1e6, cores)
	switch f := r.Failed; {
	case f != nil:
		s += fmt.Sprintf("\n%s IS BROKEN by seed %d: %s\n%d of %d things that were done to the fleet are enough:\n\n%s\nagain: %s\n", f.Broken, f.Seed, f.Reason, f.Choices, f.Drawn, f.Chart, f.Replay)
	case len(r.Missing) > 0:
		s += "no promise is broken, but the seeds prove nothing, they never met:\n" + listed(r.Missing)
	case r.Seeds < p.seeds:
		s += fmt.Sprintf("ended early, after %d of %d seeds; all promises held in them\n", r.Seeds, p.seeds)
	default:
		s += fmt.Sprintf("all promises hold; met %d of the %d things that have to be survived\n", len(r.Sights)-unmet, len(r.Sights))
	}
	if r.Failed == nil && len(r.Unseen) > 0 {
		s += "warning: seeds of these sizes could have met, and never did:\n" + listed(r.Unseen)
	}
	_, err := io.WriteString(w, s)
	return err
}

func listed(names []string) (s string) {
	for _, n := range names {
		s += "  " + n + "\n"
	}
	return s
}
