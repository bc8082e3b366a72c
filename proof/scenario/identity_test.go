package scenario

import (
	"fmt"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Given workers that are reached directly, when a second request carries the room of one that
// waits, transfers, was aborted or succeeded, then it is refused in the same step, the first is
// untouched, and both cores live.
// SGLang: issue #40125.
func TestF63ARoomThatIsInUse(t *testing.T) {
	for _, when := range []string{"waiting", "transferring", "aborted", "succeeded"} {
		r := newRig(t, small())
		switch when {
		case "waiting":
			r.hold("prealloc *")
		case "transferring":
			r.hold("body *")
		}
		a := r.ask("a", 64, 3)
		r.run()
		if when == "aborted" {
			r.hold("write *")
			a = r.ask("b", 64, 3)
			r.run()
			r.leave(a)
			r.run()
			r.release()
			r.run()
		}
		var p prefill.Effects
		r.prefills[0].core.Step(r.now, prefill.Event{Kind: prefill.Request, Room: a.room(1), Tokens: 30, Deadline: deadline}, &p)
		var d decode.Effects
		r.decodes[0].core.Step(r.now, decode.Event{Kind: decode.Request, Room: a.room(1), Tokens: 30, MaxNew: 9, Deadline: deadline}, &d)
		if len(p.List) != 1 || p.List[0].Kind != prefill.Refuse || len(d.List) != 1 || d.List[0].Kind != decode.Refuse {
			t.Errorf("%s: a second request of the room brings %+v and %+v, want refusals", when, p.List, d.List)
		}
		r.release()
		r.quiet()
		if when == "aborted" {
			r.want(room.Cancelled, a)
		} else {
			r.want(room.NoCause, a)
		}
	}
}

// Given an attempt that failed behind its first chunk, when the next one runs on the same decode
// worker and the late chunks and the word of the first arrive, then they are turned away, and
// the answer is the second attempt's, under a room of its own.
// kthena: issue #1423, PR #1424.
func TestF66ARetryIsANewRoom(t *testing.T) {
	s := medium()
	s.pairs = [2]int{2, 1}
	r := newRig(t, s)
	r.hold("head a.1#1", "head a.1#2", "settled a.1", "say prefill a.1 end")
	a := r.ask("a", 160, 3)
	r.run()
	r.gateway(relay.Event{Kind: relay.LegEnd, Req: a.id, Attempt: 1, Leg: relay.Prefill, Outcome: room.Fail(room.WorkerLost)})
	r.hold("head a.2#1")
	r.run()
	if r.attempts[a.room(2)] == nil {
		t.Fatal("there is no second attempt")
	}
	r.release("head a.1#1", "head a.1#2", "settled a.1")
	r.run()
	if r.scrapped != 2 {
		t.Errorf("%d chunks of the first attempt were turned away, want 2", r.scrapped)
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, a)
	if a.room(1) == a.room(2) {
		t.Error("both attempts have one room")
	}
}

// Given a live request, when others use its room or its transfer, two and then fifty, then all
// but the first are refused before they take a block.
// vLLM: PR #49796.
func TestF72ARepeatedTransferReplacesNobody(t *testing.T) {
	r := newRig(t, small())
	r.hold("write *", "settled *")
	a := r.ask("a", 64, 2)
	r.run()
	p, d := r.prefills[0].core.Blocks(), r.decodes[0].core.Blocks()
	for i := range 50 {
		var pe prefill.Effects
		r.prefills[0].core.Step(0, prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: a.room(1), Lease: room.Lease{Boot: 9, Seq: uint64(i + 1)}, Conn: 5, Tokens: 64, Left: deadline}}, &pe)
		var de decode.Effects
		r.decodes[0].core.Step(0, decode.Event{Kind: decode.Request, Room: a.room(1), Tokens: 64, MaxNew: 2, Deadline: deadline}, &de)
		if len(pe.List) != 1 || pe.List[0].Kind != prefill.Settle || pe.List[0].Settled.Outcome.Kind != room.Failed || len(de.List) != 1 || de.List[0].Kind != decode.Refuse {
			t.Fatalf("the %d. brings %+v, %+v", i, pe.List, de.List)
		}
	}
	if r.prefills[0].core.Blocks() != p || r.decodes[0].core.Blocks() != d {
		t.Error("a refused request took blocks")
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, a)
}

// Given a running load, when prefill is killed and comes back at the same address, twice, and
// decode hears of the first end only behind the second, then the next request uses the new life,
// and only what was on the dead one is tried again.
// SGLang: PR #36029, issue #10365, PR #6263; NIXL: issue #795.
func TestF75ARestartAtTheSameAddress(t *testing.T) {
	s := medium()
	s.pairs = [2]int{2, 1} // it has a link to each of them
	r := newRig(t, s)
	r.hold("write *", "linkend d0 p0", "linkend d1 p0")
	var all []*request
	for i := range 8 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 2))
	}
	r.run()
	p := r.prefills[0]
	for range 2 {
		p.kill()
		r.run()
		p.restart()
		r.advance(time.Second)
	}
	r.release()
	r.run()
	for _, d := range r.decodes {
		r.healthy(&d.node)
	}
	r.prefills[1].away = true // so that the new life has to serve
	var fresh []*request
	for i := range 4 {
		fresh = append(fresh, r.ask(fmt.Sprintf("b%d", i), 64, 2))
	}
	r.quiet()
	r.want(room.NoCause, append(all, fresh...)...)
	for _, q := range fresh {
		if at := r.attempts[q.room(1)]; at.worker[relay.Prefill] != p.id || at.how[relay.Decode] != room.Done() {
			t.Errorf("%s was not served by the new life at once: %v", q.name, at.how)
		}
	}
	r.prefills[1].away, p.away = false, true // its links are what they were: the rig allows no second one
	var others []*request
	for i := range 4 {
		others = append(others, r.ask(fmt.Sprintf("c%d", i), 64, 2))
	}
	r.quiet()
	r.want(room.NoCause, others...)
}

// Given transfers under way, when prefill restarts and a new request reaches decode before it
// noticed the death, then the old link ends first, with its rooms, a new one is made, and nothing
// is ever written under a lease of the old one.
// vLLM: issue #49238; llm-d: PR #2187.
func TestF76ANewLifeBeforeTheDeathOfTheOld(t *testing.T) {
	r := newRig(t, small())
	r.hold("head *", "linkend d0 p0")
	var all []*request
	for i := range 4 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 2))
	}
	r.run()
	r.prefills[0].kill()
	r.prefills[0].restart()
	r.release("head *")
	b := r.ask("b", 64, 2)
	r.run()
	if r.dials != 1 {
		t.Errorf("decode dials before it knows that the link is gone")
	}
	r.release()
	r.run()
	r.healthy(&r.decodes[0].node)
	r.healthy(&r.prefills[0].node)
	r.quiet()
	r.want(room.NoCause, append(all, b)...)
	if r.dials != 2 || len(r.links) != 1 {
		t.Errorf("%d dials, %d links, want 2 and 1", r.dials, len(r.links))
	}
}

// Given a busy cluster, when its workers are killed, restarted, cut off, or taken out one after
// the other, then every request ends, those without a byte are tried elsewhere, and none brings
// a token twice.
// Dynamo: issue #13088, PR #8182, PR #13095.
func TestF84AWorkerThatLeavesIsWatchedFor(t *testing.T) {
	s := medium()
	s.pairs = [2]int{3, 5}
	for _, how := range []string{"kill", "cut", "away"} {
		r := newRig(t, s)
		var all []*request
		for i := range 120 {
			all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 6))
			for range 20 {
				r.step()
			}
			if i%10 != 9 {
				continue
			}
			d, p := r.decodes[i/10%5], r.prefills[i/10%3]
			switch how {
			case "kill":
				d.kill()
				p.kill()
				for range 40 {
					r.step()
				}
				d.restart()
				p.restart()
			case "cut":
				if r.linkOf(func(l *link) bool { return l.d == d && l.p == p }) != nil {
					r.cut(d, p)
				}
			case "away":
				r.decodes[(i/10+4)%5].away, d.away = false, true
			}
			for _, n := range r.decodes {
				if n.suspect && n.up {
					r.healthy(&n.node)
				}
			}
			for _, n := range r.prefills {
				if n.suspect && n.up {
					r.healthy(&n.node)
				}
			}
		}
		r.quiet()
		if r.now != 0 {
			t.Errorf("%s: it took until %v", how, r.now)
		}
		done := 0
		for _, q := range all {
			if q.outcome == room.Done() {
				done++
			} else if q.got == 0 && int(q.outcome.Cause) != int(room.WorkerLost) {
				t.Errorf("%s: %s ended in %v without a byte", how, q.name, q.outcome)
			}
		}
		if done < 80 {
			t.Errorf("%s: %d of 120 were served", how, done)
		}
	}
}

// Given a decode worker that freezes before the first token, in mid-stream, and behind its last
// token, when nobody speaks any more, then the client hears of it within the budget of that
// phase; a stream that is slow but alive is not cut.
// Dynamo: PR #7929.
func TestF85TheSocketIsOpenAndNobodySpeaks(t *testing.T) {
	b := relay.Budgets{Total: time.Hour, Connect: time.Second, FirstToken: 5 * time.Second, Gap: 5 * time.Second}
	for _, row := range []struct {
		say  int // lines that come: accepted, then tokens
		got  int
		left string
	}{{0, 0, "connect"}, {1, 0, "first token"}, {3, 2, "gap"}, {6, 5, "gap"}} {
		s := small()
		s.limits.MaxTries = 1
		r := newRig(t, s)
		r.hold("say decode *")
		a := r.askWithin("a", 64, 5, b)
		r.run()
		for range row.say {
			r.deliver("say decode a.1 *")
		}
		r.run()
		r.advance(5*time.Second - 1)
		if row.left != "connect" && a.ends > 0 {
			t.Fatalf("%s: cut after %v", row.left, r.now)
		}
		r.advance(1)
		if a.outcome.Kind != room.Failed || a.got != row.got {
			t.Errorf("%s: %v with %d tokens", row.left, a.outcome, a.got)
		}
		r.release()
		r.quiet()
	}
	r := newRig(t, small())
	r.hold("step d0")
	a := r.askWithin("a", 64, 10, b)
	r.run()
	for r.has("step d0") {
		r.advance(4 * time.Second)
		r.deliver("step d0")
		r.run()
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, a)
}

// Given workers with rooms in every phase, when prefill and then decode are told to drain, then
// what is here ends as ever, a stream does not miss a token, what comes is refused, as gone,
// and goes elsewhere, and the worker is idle by itself.
// Dynamo: issue #13559, PR #14279, issue #11173; kthena: issue #1589.
func TestF95ADrainLetsWhatIsHereEnd(t *testing.T) {
	r := newRig(t, medium())
	var all []*request
	for i := range 8 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 200, 30))
		for range 12 {
			r.step()
		}
	}
	r.prefills[0].event(prefill.Event{Kind: prefill.Drain})
	r.decodes[0].event(decode.Event{Kind: decode.Drain})
	before := len(r.attempts)
	for i := range 8 {
		all = append(all, r.ask(fmt.Sprintf("b%d", i), 64, 3))
	}
	r.quiet()
	r.want(room.NoCause, all...)
	if len(r.attempts) == before+8 {
		t.Error("nobody was refused: the drain shows nothing")
	}
	if !r.prefills[0].core.Idle() || !r.decodes[0].core.Idle() {
		t.Error("a drained worker is not idle")
	}
}

// Given four streams, when decode drains in the middle of them, then each gets a token in every
// step as before and ends with its last.
// SMG: PR #1172.
func TestF96ADrainDoesNotStopTheOutput(t *testing.T) {
	r := newRig(t, small())
	r.hold("step d0")
	var all []*request
	for i := range 4 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 16, 20))
	}
	r.run()
	r.deliver("step d0") // in which not all of them were
	r.run()
	for n := range 18 {
		if n == 7 {
			r.decodes[0].event(decode.Event{Kind: decode.Drain})
		}
		var before []int
		for _, q := range all {
			before = append(before, q.got)
		}
		r.deliver("step d0")
		r.run()
		for i, q := range all {
			if q.got != before[i]+1 && q.ends == 0 {
				t.Fatalf("step %d: %s went from %d to %d tokens", n, q.name, before[i], q.got)
			}
		}
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, all...)
}
