package gate

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/proof/explore"
)

// nightly, if set, explores the scopes that are too large for every change too.
var nightly = os.Getenv("BATON_NIGHTLY") != ""

// together is how many scopes are explored at a time: as many as there are cores, and no more
// than memory bears.
const together = 2

// memoryMax is what a nightly run may take of the machine: two scopes of the largest kind at a
// time, with room to spare.
const memoryMax = 8 << 30

// TestGateHolds is the gate: all interleavings of every small world, and of the large ones in a
// nightly run. At its end stands a table.
func TestGateHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("explores for several seconds")
	}
	debug.SetMemoryLimit(memoryMax)
	var table report
	turn := make(chan bool, together)
	t.Run("scopes", func(t *testing.T) { // ends when all of them have
		for _, s := range Scopes() {
			if s.Nightly && !nightly {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				turn <- true
				defer func() { <-turn }()
				r := s.Run()
				table.add(s, r)
				if nightly { // for whoever waits
					t.Log(r.String())
				}
				if err := r.Err(); err != nil {
					t.Fatalf("%s\n%v", &r, err)
				}
				for _, seen := range r.Seen {
					if seen.Count > 0 && sometimes(seen.Name) && !slices.Contains(s.Must, seen.Name) {
						t.Errorf("the scope reaches %q and does not demand it: a change that stops it from doing so would go unseen", seen.Name)
					}
				}
			})
		}
	})
	t.Logf("\n%s", table.String())
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.Sys > memoryMax*5/4 {
		t.Errorf("the scopes took %d MiB, want at most %d", memory.Sys>>20, memoryMax>>20)
	}
}

// sometimes says which witnesses a scope has to demand if it can: how work ends, and what is made
// for ends that are not the usual one.
func sometimes(witness string) bool {
	for _, word := range []string{"success", "drain", "retry", "retract", "quarantine"} {
		if strings.Contains(witness, word) {
			return true
		}
	}
	return false
}

// report is the table of a run of the gate.
type report struct {
	sync.Mutex
	rows                []string
	states, transitions int
	exploring           time.Duration
}

func (x *report) add(s Scope, r explore.Report) {
	x.Lock()
	defer x.Unlock()
	bound := func(n int) string {
		switch {
		case n == 0:
			return ""
		case s.Rooms > 1:
			return fmt.Sprintf("%d/%d", n, s.Rooms)
		}
		return fmt.Sprint(n)
	}
	x.rows = append(x.rows, fmt.Sprintf("%-44s %9d %10d %5d %8.0f %6.1f %5s %6s  %s", s.Name, r.States, r.Transitions, r.Depth, r.StatesPerSecond(),
		(r.Exploring+r.Judging).Seconds(), bound(r.DeadlinesTerm), bound(r.DeadlinesAlone), r.Sights()))
	x.states += r.States
	x.transitions += r.Transitions
	x.exploring += r.Exploring
}

// String is the table: the two bounds are the most deadlines that may run out, one after the
// other, before every room of the scope is over (4/2: four for two rooms); behind them stands how
// often what was seen.
func (x *report) String() string {
	slices.Sort(x.rows)
	return fmt.Sprintf("%-44s %9s %10s %5s %8s %6s %5s %6s  %s\n%s\ntogether %d scopes, %d states, %d transitions, %.0f states/s of one core", "scope", "states",
		"trans.", "depth", "states/s", "s", "TERM≤", "ALONE≤", "seen", strings.Join(x.rows, "\n"), len(x.rows), x.states, x.transitions, float64(x.states)/x.exploring.Seconds())
}

// comparedMax is up to how many states two explorers are compared in every change.
const comparedMax = 6000

// TestTwoExplorersAgree compares the explorer with one that is too simple to be wrong in the
// same way, on every small scope of every world. (TestScope does the same with each mutant.)
func TestTwoExplorersAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("explores for a few seconds")
	}
	most := comparedMax
	if nightly {
		most *= 10
	}
	compared := map[string]int{}
	for _, s := range Scopes() {
		if s.Check == nil {
			continue
		}
		did, err := s.Check(most)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if did {
			compared[world(s.Name)]++
		}
	}
	t.Log(compared)
	for _, s := range Scopes() {
		if s.Check != nil && compared[world(s.Name)] == 0 {
			t.Errorf("no scope of the world of %q is small enough to be compared", s.Name)
		}
	}
}

// world is the part of a scope's name that says which world it is of: what stands before its
// question.
func world(name string) string {
	at := len(name)
	for _, q := range []string{"PROMPT", "TERM", "ALONE", "SAFETY"} {
		if i := strings.Index(name, q); i >= 0 {
			at = min(at, i)
		}
	}
	return strings.TrimSpace(name[:at])
}

// TestScopesThatReachNothingFail takes the events away by which a scope gets anywhere: first all
// that goes on by itself, then all that breaks and all that people do. What it had to have shown
// is then never seen, and a scope that held all the same would be one that demands nothing.
func TestScopesThatReachNothingFail(t *testing.T) {
	for _, s := range Scopes() {
		if s.Without == nil || s.Nightly && !nightly {
			continue
		}
		if !slices.Contains(s.Must, "success") {
			t.Errorf("%s does not demand a success", s.Name)
		}
		r, _ := s.Without(explore.Progress, explore.Delivery)
		if len(r.Missing) == 0 {
			t.Errorf("%s holds where nothing ever goes on: %s", s.Name, &r)
		}
		r, taken := s.Without(explore.Fault, explore.Environment)
		if taken > 0 && len(r.Missing) == 0 {
			t.Errorf("%s holds where nothing ever breaks and nobody acts: %s", s.Name, &r)
		}
	}
}

// TestScope explores the scopes that BATON_SCOPE names, with semicolons between them: how mutants
// are judged, and how a developer looks at one.
func TestScope(t *testing.T) {
	if os.Getenv("BATON_SCOPE") == "" {
		t.Skip("BATON_SCOPE names no scope")
	}
	all := Scopes()
	for name := range strings.SplitSeq(os.Getenv("BATON_SCOPE"), "; ") {
		i := slices.IndexFunc(all, func(s Scope) bool { return s.Name == name })
		if i < 0 {
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			t.Fatalf("%q is no scope, want one of %q", name, names)
		}
		r := all[i].Run()
		t.Log(r.String())
		if all[i].Check != nil {
			if _, err := all[i].Check(comparedMax); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNamesOfScopesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scopes() {
		if seen[s.Name] || strings.TrimSpace(s.Name) == "" {
			t.Errorf("scope name %q is empty or taken", s.Name)
		}
		seen[s.Name] = true
	}
}

// BenchmarkScopes measures the explorer on the real cores, scope by scope.
func BenchmarkScopes(b *testing.B) {
	for _, s := range Scopes() {
		if s.Nightly {
			continue
		}
		b.Run(strings.ReplaceAll(s.Name, " ", "_"), func(b *testing.B) {
			states, took := 0, time.Duration(0)
			for b.Loop() {
				r := s.Run()
				states += r.States
				took += r.Exploring
			}
			b.ReportMetric(float64(states)/took.Seconds(), "states/s")
		})
	}
}

func ExampleScopes() {
	for _, s := range Scopes() {
		if strings.HasPrefix(s.Name, "relay TERM unified") {
			r := s.Run()
			fmt.Println(r.Err())
		}
	}
	// Output: <nil>
}
