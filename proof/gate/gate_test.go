package gate

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// nightly, if set, explores the scopes that are too large for every change too.
var nightly = os.Getenv("BATON_NIGHTLY") != ""

// TestGateHolds is the gate: all interleavings of every small world.
func TestGateHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("explores for several seconds")
	}
	var sum sync.Mutex
	states, transitions, exploring := 0, 0, time.Duration(0)
	t.Run("scopes", func(t *testing.T) { // ends when all of them have
		for _, s := range Scopes() {
			if s.Nightly && !nightly {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				r := s.Run()
				t.Log(r.String())
				sum.Lock()
				defer sum.Unlock()
				states += r.States
				transitions += r.Transitions
				exploring += r.Exploring
				if err := r.Err(); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	t.Logf("together %d states, %d transitions, %.0f states/s of one core", states, transitions, float64(states)/exploring.Seconds())
}

// TestScope explores the one scope that BATON_SCOPE names: how mutants are judged, and how a
// developer looks at one.
func TestScope(t *testing.T) {
	name := os.Getenv("BATON_SCOPE")
	if name == "" {
		t.Skip("BATON_SCOPE names no scope")
	}
	var names []string
	for _, s := range Scopes() {
		if s.Name == name {
			r := s.Run()
			t.Log(r.String())
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			return
		}
		names = append(names, s.Name)
	}
	t.Fatalf("BATON_SCOPE=%q is no scope, want one of %q", name, names)
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
