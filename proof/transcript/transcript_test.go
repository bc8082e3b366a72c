package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// echo says what it hears.
type echo struct{ config int }

func (e *echo) Config(a *Args) { e.config = a.Num("size") }
func (e *echo) Step(now time.Duration, verb string, a *Args) []string {
	return []string{fmt.Sprintf("%s %d at %v", verb, a.Num("n"), now)}
}
func (e *echo) Show(time.Duration) []string { return []string{fmt.Sprint("size ", e.config)} }

// TestOldAnswersAreReplaced: what a file said of an earlier core is no part of the script.
func TestOldAnswersAreReplaced(t *testing.T) {
	const script = "# why\n\nconfig size=3\n> go n=1 after=1s\n    something old\n> go after=1s\nshow\n    and more\n"
	const want = "# why\n\nconfig size=3\n> go n=1 after=1s\n    go 1 at 1s\n> go after=1s\n    go 0 at 2s\nshow\n    size 3\n"
	if got := play(t, &echo{}, script); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWordsThatNobodyKnowsAreErrors: a typing error must not count as absent.
func TestWordsThatNobodyKnowsAreErrors(t *testing.T) {
	a := arguments(t, "> end 1#2 said rooms=1,2!,3. left=2s", strings.Fields("1#2 said rooms=1,2!,3. left=2s"))
	a.First(func(w string) bool { return strings.Contains(w, "#") })
	if !a.Has("said") || a.Has("open") || a.Time("left") != 2*time.Second {
		t.Errorf("%+v", a.pairs)
	}
	used := func() (n int) {
		for _, p := range a.pairs {
			if p.used {
				n++
			}
		}
		return n
	}
	if used() != 3 {
		t.Errorf("%d words count as known, want all but rooms", used())
	}
	if r := a.Results(); len(r) != 3 || !r[0].OK || r[1].OK || !r[2].Finished || r[2].Room != 3 {
		t.Errorf("%+v", r)
	}
	a.done()
}
