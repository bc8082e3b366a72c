package relay

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/proof/transcript"
)

// TestTranscripts plays testdata/*.txt.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func() transcript.Player { return &player{New(Limits{})} })
}

// player is the core in the words of the transcripts.
type player struct{ c *Core }

func (p *player) Config(a *transcript.Args) {
	p.c = New(Limits{MaxRunning: a.Num("running"), MaxQueued: a.Num("queued"), MaxTries: a.Num("tries"), RetryBurst: a.Num("burst")})
}

func (p *player) Step(now time.Duration, verb string, a *transcript.Args) (said []string) {
	var out Effects
	p.c.Step(now, event(verb, a), &out)
	for _, e := range out.List {
		said = append(said, describe(e))
	}
	return said
}

func (p *player) Show(now time.Duration) []string {
	rows := []string{fmt.Sprintf("running %d, queued %d", p.c.Running(), p.c.Queue().Len)}
	for v := range p.c.Rooms {
		rows = append(rows, fmt.Sprintf("req %d: %s for %v, attempt %d, prefill %d, decode %d, %d tokens, waits for %s",
			v.Req, v.Phase, now-v.Since, v.Attempt, v.Prefill, v.Decode, v.Tokens, v.WaitsFor))
	}
	if at, timer, ok := p.c.NextTimer(); ok {
		rows = append(rows, fmt.Sprintf("next timer: %s of %d in %v", timer.Name, timer.Req, at-now))
	}
	return rows
}

func describe(e Effect) string {
	switch e.Kind {
	case Place:
		s := fmt.Sprintf("place %d, attempt %d", e.Req, e.Attempt)
		if len(e.Exclude) > 0 {
			s += fmt.Sprintf(", without %v, of which innocent %v", e.Exclude, e.Innocent)
		}
		return s
	case Open:
		return fmt.Sprintf("open %s leg of %d, attempt %d, at worker %d, room %d", e.Leg, e.Req, e.Attempt, e.Worker, e.Room)
	case Close:
		return fmt.Sprintf("close %s leg of %d, attempt %d", e.Leg, e.Req, e.Attempt)
	case Forward:
		return fmt.Sprintf("forward tokens of %d, attempt %d", e.Req, e.Attempt)
	case Discard:
		return fmt.Sprintf("discard what came of %d, attempt %d", e.Req, e.Attempt)
	case End:
		if e.Finished {
			return fmt.Sprintf("END %d: %s, finished", e.Req, e.Outcome)
		}
		return fmt.Sprintf("END %d: %s", e.Req, e.Outcome)
	case Blame:
		return fmt.Sprintf("blame worker %d: %s", e.Worker, e.Cause)
	case Release:
		return fmt.Sprintf("release worker %d", e.Worker)
	}
	return "?"
}

// pick finds a key among names.
func pick[T fmt.Stringer](a *transcript.Args, all ...T) (found T, ok bool) {
	for _, n := range all {
		if n.String() != "" && a.Has(n.String()) {
			return n, true
		}
	}
	return found, false
}

// event reads one event; "1#2" stands for request 1, attempt 2, and "1" for request 1.
func event(verb string, a *transcript.Args) Event {
	ev := Event{N: a.Num("n")}
	a.First(func(w string) bool {
		req, attempt, _ := strings.Cut(w, "#")
		n, err := strconv.Atoi(req)
		k, _ := strconv.Atoi(attempt)
		ev.Req, ev.Attempt = uint64(n), int32(k)
		return err == nil
	})
	ev.Leg, _ = pick(a, Prefill, Decode)
	switch verb {
	case "arrive":
		ev.Kind, ev.Buffered, ev.Worth = Arrive, a.Has("buffered"), a.Num("worth")
		ev.Budgets = Budgets{Queue: a.Time("queue"), Place: a.Time("place"), Connect: a.Time("connect"), FirstToken: a.Time("first"), Gap: a.Time("gap"), Total: a.Time("total")}
	case "pair":
		ev.Kind, ev.OK, ev.Room = Pair, !a.Has("none"), room.ID(a.Num("room"))
		ev.Prefill, ev.Decode = int32(a.Num("prefill")), int32(a.Num("decode"))
	case "open":
		ev.Kind = LegOpen
	case "tokens":
		ev.Kind = Tokens
	case "waits":
		ev.Kind = Waits
	case "end":
		ev.Kind, ev.Finished, ev.Said, ev.Outcome = LegEnd, a.Has("finished"), a.Has("said"), room.Done()
	case "closed":
		ev.Kind = LegClosed
	case "gone":
		ev.Kind = ClientGone
	case "timer":
		name, ok := pick(a, QueueTimer, PlaceTimer, ConnectTimer, FirstTokenTimer, GapTimer, TotalTimer)
		if !ok {
			a.Fail("no such timer")
		}
		ev.Kind, ev.Timer = TimerFired, Timer{ev.Req, name}
	case "drain":
		ev.Kind = Drain
	case "roster":
		ev.Kind, ev.Worker = Roster, int32(a.Num("worker"))
	default:
		a.Fail("no such event")
	}
	if cause, ok := pick(a, room.Causes()...); ok {
		ev.Outcome = room.Fail(cause)
	}
	return ev
}
