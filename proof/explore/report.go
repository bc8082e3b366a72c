package explore

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Report is what an exploration found.
type Report struct {
	States, Transitions int
	Depth               int // events on the longest of the shortest ways to a state
	Done                int // states in which everything is over
	Capped              bool

	Broken   string   // what does not hold: "SAFETY", "TERM", "ALONE", "PROMPT", or "KEY" if keys leave something out
	Reason   string   // what is wrong, for people; empty if everything holds
	Trace    []string // the events of a shortest way there, by name
	Chart    string   // the same as a sequence chart
	Deadends int      // traps found, of all questions
	Audited  int      // states met twice that were compared

	// Most deadlines that may run out, one after the other, before everything is over:
	// per question, TERM and ALONE; -1 if there is no bound.
	DeadlinesTerm, DeadlinesAlone int

	Seen    []Sight  // how often each witness was seen
	Missing []string // witnesses that were demanded and never seen

	Exploring, Judging time.Duration
}

// Sight counts the transitions that showed a witness.
type Sight struct {
	Name  string
	Count int
}

// StatesPerSecond is the speed of the search itself.
func (r *Report) StatesPerSecond() float64 {
	return float64(r.States) / max(r.Exploring.Seconds(), 1e-9)
}

// Sights lists the witnesses that were seen, and how often.
func (r *Report) Sights() string {
	var all []string
	for _, s := range r.Seen {
		if s.Count > 0 {
			all = append(all, fmt.Sprintf("%s %d", s.Name, s.Count))
		}
	}
	return strings.Join(all, ", ")
}

// Err says what is wrong: a violation with its chart, a scope that was too large to finish,
// or one that never showed what it was made to show. It is nil if everything holds.
func (r *Report) Err() error {
	switch {
	case r.Broken != "":
		return fmt.Errorf("explore: %s does not hold: %s\n%s", r.Broken, r.Reason, r.Chart)
	case r.Capped:
		return fmt.Errorf("explore: gave up after %d states: raise StatesMax or make the scope smaller", r.States)
	case len(r.Missing) > 0:
		return fmt.Errorf("explore: the scope is vacuous: never saw %s", strings.Join(r.Missing, ", "))
	case r.Done == 0:
		return errors.New("explore: the scope is vacuous: no state is done")
	}
	return nil
}

// String is one line of figures.
func (r *Report) String() string {
	s := fmt.Sprintf("%d states, %d transitions, depth %d, %.2f s, %.0f states/s", r.States, r.Transitions,
		r.Depth, (r.Exploring + r.Judging).Seconds(), r.StatesPerSecond())
	if r.DeadlinesTerm != 0 || r.DeadlinesAlone != 0 {
		s += fmt.Sprintf(", deadlines TERM %d ALONE %d", r.DeadlinesTerm, r.DeadlinesAlone)
	}
	if r.Audited > 0 {
		s += fmt.Sprintf(", %d keys doubted", r.Audited)
	}
	switch {
	case r.Broken != "":
		s += ", BROKEN: " + r.Broken
	case r.Capped:
		s += ", GAVE UP"
	case len(r.Missing) > 0:
		s += ", VACUOUS"
	}
	return s
}
