package explore

// Path is what can be walked through. S is a state, E an event; a small plain value is best for
// E, because equal events of different states count as one for fairness ("the deadline of room
// 1", not "the deadline that was armed third").
type Path[S any, E comparable] interface {
	// Init returns the first state.
	Init() S
	// Events appends every event that is possible in s, in a fixed order.
	Events(s *S, dst []E) []E
	// Apply performs e. An error, or a panic, is a broken invariant.
	Apply(s *S, e E) error
	// Done says whether everything is over and nothing is held.
	Done(s *S) bool
	// Class says what kind of event e is.
	Class(e E) Class
	// Name says what e does in s, in a chart.
	Name(s *S, e E) string
}

// System is what can be explored: a Path that one can come back to.
type System[S any, E comparable] interface {
	Path[S, E]
	// Clone copies a state so deeply that Apply on the copy leaves the original alone.
	Clone(s *S) S
	// Key appends what makes s differ from other states: everything that the future depends
	// on, and nothing else.
	Key(s *S, dst []byte) []byte
}

// Class is what an event is to fairness.
type Class uint8

const (
	Progress    Class = iota // compute, I/O of one's own: happens if it stays possible
	Delivery                 // the same, but needs the link between the parts: not so in ALONE
	Timer                    // a deadline runs out: happens if it stays armed; never in PROMPT
	Retry                    // a timer that repeats: like Timer, but not counted as a deadline
	Fault                    // something breaks: may happen, need not
	Environment              // somebody outside acts: may happen, need not
	classes
)

var classNames = [classes]string{"progress", "delivery", "timer", "retry", "fault", "environment"}

func (c Class) String() string { return classNames[c] }

// Question is a set of questions about liveness.
type Question uint8

const (
	TERM Question = 1 << iota
	ALONE
	PROMPT
)

// fair lists the classes that a fair run may not put off for ever, per question.
func (q Question) fair(c Class) bool {
	switch q {
	case TERM:
		return c == Progress || c == Delivery || c == Timer || c == Retry
	case ALONE:
		return c == Progress || c == Timer || c == Retry
	case PROMPT:
		return c == Progress || c == Delivery
	}
	return false
}

func (q Question) String() string {
	s := ""
	for _, one := range []struct {
		q    Question
		name string
	}{{TERM, "TERM"}, {ALONE, "ALONE"}, {PROMPT, "PROMPT"}} {
		if q&one.q != 0 {
			if s != "" {
				s += "+"
			}
			s += one.name
		}
	}
	return s
}

// A System or Path may say more than it must.
type (
	// Copier copies src over dst and reuses dst's memory: a faster Clone.
	Copier[S any] interface{ CopyInto(dst, src *S) }

	// Islander says what Done means when no message arrives any more (ALONE): what lies in
	// the dead link does not count.
	Islander[S any] interface{ DoneAlone(s *S) bool }

	// Witness reports what may be seen right after an event: bit i of Shows stands for
	// Witnesses()[i]. A scope that demands a witness (Options.Must) and never sees it checks
	// nothing, and fails.
	Witness[S any] interface {
		Witnesses() []string
		Shows(s *S) uint64
	}

	// Drawer gives a chart its columns: Cells appends one text per column.
	Drawer[S any] interface {
		Columns() []string
		Cells(s *S, dst []string) []string
	}

	// Finder names what never ends in a state that is not done.
	Finder[S any] interface{ Stuck(s *S) string }

	// Focus leaves events out of a chart that have no part in what is wrong in last.
	Focus[S any, E comparable] interface {
		Concerns(s *S, e E, last *S) bool
	}
)

// Options says how far to go and what to ask.
type Options struct {
	Ask       Question // TERM, ALONE, TERM|ALONE or PROMPT; 0 asks for safety alone
	StatesMax int      // give up above this many states; 0 means StatesMaxDefault
	Must      []string // witnesses that have to be seen, by name
	Audit     int      // of how many states that were met twice the key is doubted; not for keys that identify states by symmetry
}

// StatesMaxDefault keeps a run that nobody limited below about 1 GiB: a state costs 45 bytes,
// 6 for each fair event out of it, and 20 more while liveness is judged.
const StatesMaxDefault = 5_000_000
