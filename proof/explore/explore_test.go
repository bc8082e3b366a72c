package explore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// graph is a system written down as a table: out[s] lists where each event leads.
type graph struct {
	out  [][]arrow
	done []bool
	bad  []bool // states that may not be entered
}

type arrow struct {
	e  step
	to int
}

type step struct {
	n int
	c Class
}

func (g *graph) Init() int          { return 0 }
func (g *graph) Clone(s *int) int   { return *s }
func (g *graph) Done(s *int) bool   { return g.done[*s] }
func (g *graph) Class(e step) Class { return e.c }
func (g *graph) Events(s *int, dst []step) []step {
	for _, a := range g.out[*s] {
		dst = append(dst, a.e)
	}
	return dst
}
func (g *graph) Apply(s *int, e step) error {
	for _, a := range g.out[*s] {
		if a.e == e {
			*s = a.to
			if g.bad[a.to] {
				return errors.New("entered a forbidden state")
			}
			return nil
		}
	}
	panic("event is not possible")
}
func (g *graph) Key(s *int, dst []byte) []byte { return append(dst, byte(*s)) }
func (g *graph) Name(s *int, e step) string    { return fmt.Sprintf("%d: %s %d", *s, e.c, e.n) }
func (g *graph) Columns() []string             { return []string{"state"} }
func (g *graph) Cells(s *int, dst []string) []string {
	return append(dst, fmt.Sprint(*s))
}

// randomGraph has few states and events, so that everything about it can be tried out.
func randomGraph(r *rand.Rand) *graph {
	n := 2 + r.IntN(7)
	g := &graph{out: make([][]arrow, n), done: make([]bool, n), bad: make([]bool, n)}
	classOf := make([]Class, 4)
	for i := range classOf {
		classOf[i] = Class(r.IntN(int(classes)))
	}
	for s := range n {
		for e := range classOf {
			if r.IntN(2) == 0 {
				g.out[s] = append(g.out[s], arrow{step{e, classOf[e]}, r.IntN(n)})
			}
		}
		g.done[s] = r.IntN(3) == 0
	}
	if r.IntN(4) == 0 {
		g.bad[1+r.IntN(n-1)] = true
	}
	return g
}

// naive answers the same by other means: a map, every set of states tried as a trap, and
// every path walked for the deadlines.
type naive struct {
	states, depth int
	unsafe        int // length of the shortest way into a forbidden state; -1 if none
	trap          int // length of the shortest way into a trap; -1 if none
	deadlines     int
}

func ask(g *graph, q Question) naive {
	far := map[int]int{0: 0}
	a := naive{unsafe: -1, trap: -1}
	order := []int{0}
	for i := 0; i < len(order); i++ {
		s := order[i]
		for _, w := range g.out[s] {
			if q == PROMPT && (w.e.c == Timer || w.e.c == Retry) {
				continue
			}
			if g.bad[w.to] {
				a.unsafe = far[s] + 1
				return a
			}
			if _, ok := far[w.to]; !ok {
				far[w.to] = far[s] + 1
				order = append(order, w.to)
			}
		}
	}
	a.states = len(order)
	for _, s := range order {
		a.depth = max(a.depth, far[s])
	}
	for set := 1; set < 1<<len(g.out); set++ {
		if isTrap(g, q, far, set) {
			for s := range g.out {
				if set>>s&1 == 1 && (a.trap < 0 || far[s] < a.trap) {
					a.trap = far[s]
				}
			}
		}
	}
	for _, s := range order {
		a.deadlines = longer(a.deadlines, expiries(g, q, s, map[[2]int]bool{}))
	}
	return a
}

// isTrap tries the definition: reachable, not done, every state reaches every other inside,
// and what is possible in all of them is taken inside.
func isTrap(g *graph, q Question, far map[int]int, set int) bool {
	open, taken := map[int]int{}, map[int]bool{}
	size := 0
	leave := false
	for s := range g.out {
		if set>>s&1 == 0 {
			continue
		}
		size++
		if _, ok := far[s]; !ok || g.done[s] {
			return false
		}
		inside := 1 << s
		for range g.out {
			for t := range g.out {
				if inside>>t&1 == 0 {
					continue
				}
				for _, w := range g.out[t] {
					if q.fair(w.e.c) && set>>w.to&1 == 1 {
						inside |= 1 << w.to
					}
				}
			}
		}
		if inside != set {
			return false
		}
		for _, w := range g.out[s] {
			if !q.fair(w.e.c) {
				continue
			}
			leave = true
			open[w.e.n]++
			if set>>w.to&1 == 1 {
				taken[w.e.n] = true
			}
		}
	}
	for e, n := range open {
		if n == size && !taken[e] {
			return false
		}
	}
	return len(taken) > 0 || size == 1 && !leave
}

const endless = -1

func longer(a, b int) int {
	if a == endless || b == endless {
		return endless
	}
	return max(a, b)
}

// expiries walks every fair path from s; a deadline on a cycle makes it endless.
func expiries(g *graph, q Question, s int, on map[[2]int]bool) int {
	if g.done[s] {
		return 0
	}
	most := 0
	for _, w := range g.out[s] {
		if !q.fair(w.e.c) {
			continue
		}
		one := 0
		if w.e.c == Timer {
			one = 1
		}
		if one == 1 && reaches(g, q, w.to, s) {
			return endless
		}
		edge := [2]int{s, w.e.n}
		if on[edge] {
			continue
		}
		on[edge] = true
		rest := expiries(g, q, w.to, on)
		delete(on, edge)
		if rest != endless {
			rest += one
		}
		most = longer(most, rest)
	}
	return most
}

func reaches(g *graph, q Question, from, to int) bool {
	seen := map[int]bool{}
	todo := []int{from}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if g.done[s] || seen[s] {
			continue
		}
		if s == to {
			return true
		}
		seen[s] = true
		for _, w := range g.out[s] {
			if q.fair(w.e.c) {
				todo = append(todo, w.to)
			}
		}
	}
	return false
}

// TestCheckersAgree compares the explorer with definitions tried out one by one.
func TestCheckersAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	unsafe, traps, holds, unbounded := 0, 0, 0, 0
	for i := range 6000 {
		g := randomGraph(r)
		q := []Question{TERM, ALONE, PROMPT}[i%3]
		got, want := Run(g, Options{Ask: q}), ask(g, q)
		switch {
		case want.unsafe >= 0:
			unsafe++
			if got.Broken != "SAFETY" || len(got.Trace) != want.unsafe {
				t.Fatalf("graph %d, %s: %q after %d events, want SAFETY after %d\n%+v", i, q, got.Broken, len(got.Trace), want.unsafe, g)
			}
			continue
		case want.trap >= 0:
			traps++
			if got.Broken != q.String() || len(got.Trace) != want.trap {
				t.Fatalf("graph %d, %s: %q after %d events, want a trap after %d\n%+v", i, q, got.Broken, len(got.Trace), want.trap, g)
			}
		default:
			holds++
			if got.Broken != "" {
				t.Fatalf("graph %d, %s: %s, want nothing\n%s\n%+v", i, q, got.Broken, got.Chart, g)
			}
		}
		if got.States != want.states || got.Depth != want.depth {
			t.Fatalf("graph %d: %d states, depth %d, want %d and %d", i, got.States, got.Depth, want.states, want.depth)
		}
		deadlines := map[Question]int{TERM: got.DeadlinesTerm, ALONE: got.DeadlinesAlone}
		if n, ok := deadlines[q]; ok && n != want.deadlines {
			t.Fatalf("graph %d, %s: %d deadlines, want %d\n%+v", i, q, n, want.deadlines, g)
		}
		if want.deadlines == endless {
			unbounded++
		}
	}
	if min(unsafe, traps, holds, unbounded) < 100 {
		t.Fatalf("the graphs are not various enough: %d unsafe, %d traps, %d hold, %d without bound", unsafe, traps, holds, unbounded)
	}
}

// TestTwoQuestionsOnOneGraph holds that asking both at once finds what asking each finds.
func TestTwoQuestionsOnOneGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 3000 {
		g := randomGraph(r)
		both, term, alone := Run(g, Options{Ask: TERM | ALONE}), Run(g, Options{Ask: TERM}), Run(g, Options{Ask: ALONE})
		want := term
		if want.Broken == "" {
			want = alone
		}
		if both.Broken != want.Broken || len(both.Trace) != len(want.Trace) {
			t.Fatalf("graph %d: %q after %d events, want %q after %d", i, both.Broken, len(both.Trace), want.Broken, len(want.Trace))
		}
	}
}

// stuckAt1 goes 0 → 1 and stays there, with a way out that only a timer opens.
func stuckAt1() *graph {
	return &graph{
		out: [][]arrow{
			{{step{0, Progress}, 1}, {step{1, Environment}, 0}},
			{{step{2, Timer}, 2}},
			nil,
		},
		done: []bool{false, false, true},
		bad:  make([]bool, 3),
	}
}

// TestPromptFindsWhatDeadlinesHide: the timer saves TERM, and only PROMPT sees why it had to.
func TestPromptFindsWhatDeadlinesHide(t *testing.T) {
	if r := Run(stuckAt1(), Options{Ask: TERM}); r.Err() != nil || r.DeadlinesTerm != 1 {
		t.Fatalf("TERM: %v, %d deadlines, want none and 1", r.Err(), r.DeadlinesTerm)
	}
	r := Run(stuckAt1(), Options{Ask: PROMPT})
	want := "       event          state\n    1  0: progress 0  1\n       ⇒ PROMPT: never ends\n"
	if r.Broken != "PROMPT" || r.Chart != want {
		t.Fatalf("got %s\n%swant\n%s", r.Broken, r.Chart, want)
	}
}

func TestErrSaysWhatIsWrong(t *testing.T) {
	g := stuckAt1()
	g.out[1] = append(g.out[1], arrow{step{3, Progress}, 7})
	for _, c := range []struct {
		name string
		r    Report
		want string
	}{
		{"a panic", Run(g, Options{}), "panic"},
		{"too large", Run(stuckAt1(), Options{StatesMax: 1}), "gave up"},
		{"a trap", Run(stuckAt1(), Options{Ask: PROMPT}), "PROMPT does not hold"},
		{"never done", Run(&graph{out: make([][]arrow, 1), done: []bool{false}, bad: []bool{false}}, Options{}), "no state is done"},
	} {
		if err := c.r.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// shy is a system with witnesses: odd states, and one that never comes.
type shy struct{ *graph }

func (shy) Witnesses() []string { return []string{"odd", "never"} }
func (shy) Shows(s *int) uint64 { return uint64(*s & 1) }

func TestVacuousScopeFails(t *testing.T) {
	if r := Run(shy{stuckAt1()}, Options{Ask: TERM, Must: []string{"odd"}}); r.Err() != nil || r.Seen[0].Count != 1 {
		t.Errorf("%v, seen %v; want it to hold, odd seen once", r.Err(), r.Seen)
	}
	r := Run(shy{stuckAt1()}, Options{Ask: TERM, Must: []string{"odd", "never"}})
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "never saw never") {
		t.Errorf("%v, want a vacuous scope", err)
	}
}

// forgetful leaves out of its key what matters three events later.
type forgetful struct{ *graph }

func (forgetful) Key(s *int, dst []byte) []byte { return append(dst, byte(*s%10)) }

func TestAuditSeesWhatAKeyForgot(t *testing.T) {
	p := func(n int) step { return step{n, Progress} }
	g := forgetful{&graph{out: make([][]arrow, 15), done: make([]bool, 15), bad: make([]bool, 15)}}
	g.out[0] = []arrow{{p(0), 1}, {p(1), 11}} // 1 and 11 have one key
	g.out[1], g.out[2], g.out[3] = []arrow{{p(2), 2}}, []arrow{{p(3), 3}}, []arrow{{p(4), 4}}
	g.out[11], g.out[12] = []arrow{{p(2), 12}}, []arrow{{p(3), 13}} // 13 is where it stops
	g.done[4] = true
	if r := Run(g, Options{Ask: TERM}); r.Err() != nil {
		t.Fatalf("without audit: %v; want it to be fooled", r.Err())
	}
	if r := Run(g, Options{Ask: TERM, Audit: 10}); r.Broken != "KEY" {
		t.Errorf("with audit: %v, want KEY", r.Err())
	}
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 500 {
		if r := Run(randomGraph(r), Options{Ask: TERM, Audit: 50}); r.Broken == "KEY" {
			t.Fatalf("graph %d has a complete key, the audit says %s", i, r.Reason)
		}
	}
}

// TestManyStates makes the index grow.
func TestManyStates(t *testing.T) {
	r := Run(counter{bits: 15}, Options{Ask: TERM})
	if r.States != 1<<15 || r.Transitions != 15<<14 || r.Depth != 15 || r.Err() != nil {
		t.Fatalf("%s, %v; want %d states, %d transitions, depth 15", &r, r.Err(), 1<<15, 15<<14)
	}
}

// counter sets bits in any order.
type counter struct{ bits int }

func (c counter) Init() uint32              { return 0 }
func (c counter) Clone(s *uint32) uint32    { return *s }
func (c counter) CopyInto(dst, src *uint32) { *dst = *src }
func (c counter) Events(s *uint32, dst []int) []int {
	for b := range c.bits {
		if *s>>b&1 == 0 {
			dst = append(dst, b)
		}
	}
	return dst
}
func (c counter) Apply(s *uint32, b int) error { *s |= 1 << b; return nil }
func (c counter) Key(s *uint32, dst []byte) []byte {
	return append(dst, byte(*s), byte(*s>>8), byte(*s>>16))
}
func (c counter) Done(s *uint32) bool          { return *s == 1<<c.bits-1 }
func (c counter) Class(int) Class              { return Progress }
func (c counter) Name(_ *uint32, b int) string { return fmt.Sprint(b) }

// BenchmarkExplore says what the explorer itself costs per state, with a system that costs
// next to nothing.
func BenchmarkExplore(b *testing.B) {
	states := 0
	for b.Loop() {
		r := Run(counter{bits: 16}, Options{Ask: TERM | ALONE})
		states += r.States
	}
	b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
}

func ExampleRun() {
	r := Run(counter{bits: 3}, Options{Ask: TERM})
	fmt.Println(r.States, r.Transitions, r.Err())
	// Output: 8 12 <nil>
}
