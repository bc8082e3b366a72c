package explore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// twin is a transition into a state that was there already: its key said so.
type twin struct {
	from int32 // the state it left
	by   uint16
	to   int32 // the state it is said to be
}

// audit doubts X4. Everything rests on keys: if a key leaves something out that matters, what
// follows from it is never visited. So of the transitions that led into a known state some are
// taken again, and the state they made is compared with the one that it is said to be, by
// going on from both by the same events.
type audit struct {
	max   int
	met   int
	chose *rand.Rand
	twins []twin
}

// auditSteps is how far both go on: what a key forgot has to have an effect in as many events.
const auditSteps = 40

func newAudit(n int) *audit { return &audit{max: n, chose: rand.New(rand.NewPCG(1, 1))} }

// offer keeps a fair sample of all that are offered.
func (a *audit) offer(w twin) {
	a.met++
	switch {
	case len(a.twins) < a.max:
		a.twins = append(a.twins, w)
	case a.max > 0:
		if i := a.chose.IntN(a.met); i < a.max {
			a.twins[i] = w
		}
	}
}

// doubt goes on from both states of every pair.
func (x *search[S, E]) doubt() {
	for _, w := range x.audit.twins {
		way := append(x.trace(w.from), x.events[w.by])
		one, other := replay(x.sys, x.trace(w.to)), replay(x.sys, way)
		if what, at := x.differ(&one, &other); what != "" {
			x.fail("KEY", what+": this way and a shorter one lead to states of one key, which differ", append(way, at...))
			return
		}
		x.report.Audited++
	}
}

// differ does the same to both states and says where they part.
func (x *search[S, E]) differ(one, other *S) (what string, after []E) {
	var a, b []E
	for range auditSteps {
		a, b = x.sys.Events(one, a[:0]), x.sys.Events(other, b[:0])
		switch {
		case !slices.Equal(a, b):
			return "events that are possible in one and not in the other", after
		case x.sys.Done(one) != x.sys.Done(other):
			return "one is done and the other is not", after
		case len(a) == 0:
			return "", nil
		}
		e := x.likely(a)
		after = append(after, e)
		if errA, errB := attempt(x.sys, one, e), attempt(x.sys, other, e); errA != nil || errB != nil {
			if fmt.Sprint(errA) != fmt.Sprint(errB) {
				return fmt.Sprintf("%v in one, %v in the other", errA, errB), after
			}
			return "", nil
		}
		if !bytes.Equal(x.sys.Key(one, nil), x.sys.Key(other, nil)) {
			return "one event and two keys", after
		}
	}
	return "", nil
}

// likely draws from what goes on by itself nineteen times in twenty: only then do walks get
// anywhere.
func (x *search[S, E]) likely(possible []E) E {
	rare := x.audit.chose.IntN(20) == 0
	var choice E
	n := 0
	for _, e := range possible {
		c := x.sys.Class(e)
		if rare || c == Progress || c == Delivery {
			n++
			if x.audit.chose.IntN(n) == 0 {
				choice = e
			}
		}
	}
	if n == 0 {
		return possible[x.audit.chose.IntN(len(possible))]
	}
	return choice
}
