package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Given a prompt whose chunks are written one by one, when one write cannot be posted, or the
// process dies behind it, then decode is told at once and without a timer, nothing of it is
// decoded, and the other writes are home before their blocks are free.
// vLLM: PR #50754, issue #48633.
func TestF23AWriteThatWasNeverPostedIsCounted(t *testing.T) {
	for _, dies := range []bool{false, true} {
		r := newRig(t, small())
		r.hold("write *", "pair a") // one pair: the retry has to wait for us
		a := r.ask("a", 512, 2)
		r.deliver("pair a")
		r.run()
		for range 4 {
			r.deliver("write a.1#*")
		}
		r.run()
		if dies {
			r.prefills[0].kill()
		} else {
			r.drop("write a.1#4")
		}
		r.run()
		if held := r.prefills[0].core.Blocks().Held; !dies && held != 32 {
			t.Errorf("%d blocks are held with three writes under way, want 32", held)
		}
		r.release("write *")
		r.run()
		at := r.attempts[a.room(1)]
		if at.how[relay.Decode].Kind != room.Failed || at.made != 0 {
			t.Errorf("dies %v: decode ends in %v with %d tokens", dies, at.how[relay.Decode], at.made)
		}
		if dies {
			r.prefills[0].restart()
		}
		r.release()
		r.quiet()
		r.want(room.NoCause, a)
	}
}

// Given rooms that fill prefill's pool while nothing of them can be delivered, when all are
// cancelled and no message of any kind comes any more, then the end of the link frees the pool
// without new work, and the next request runs; ten times.
// TensorRT-LLM: PR #12313, PR #11715, PR #17343.
func TestF24CleanUpNeedsNoNewWork(t *testing.T) {
	s := small()
	s.slots = 16
	r := newRig(t, s)
	for round := range 10 {
		r.hold("write *", "cancel *", "abort prefill *", "prealloc probe*")
		var all []*request
		for i := range 16 {
			all = append(all, r.ask(fmt.Sprintf("a%d-%d", round, i), 60, 1))
		}
		r.run()
		if free := r.prefills[0].core.Blocks().Free; free != 0 {
			t.Fatalf("%d blocks are free: the pool is not full", free)
		}
		for _, q := range all {
			r.leave(q)
		}
		r.run()
		r.drop("cancel *")
		r.drop("abort prefill *")
		r.cut(r.decodes[0], r.prefills[0]) // the bound on silence, an event of the link alone
		r.run()
		if b := r.prefills[0].core.Blocks(); b.Free != b.Total {
			t.Errorf("round %d: %+v without new work", round, b)
		}
		r.release()
		probe := r.ask(fmt.Sprintf("probe%d", round), 60, 1)
		r.quiet()
		r.want(room.NoCause, probe)
	}
}

// Given a pool that is nearly full of a request whose writes wait, when others come that would
// need its blocks, then they wait, the blocks stay its own until the last write is home, and
// everybody ends.
// TensorRT-LLM: issue #12542, issue #12540.
func TestF25TheSourceStaysUntilItIsSent(t *testing.T) {
	s := small()
	s.pBlocks, s.slots = 16, 8
	r := newRig(t, s)
	r.hold("write a.1#*")
	a := r.about("it", "a", 128, 1)
	r.run()
	var others []*request
	for i := range 4 {
		others = append(others, r.about(fmt.Sprint(i), fmt.Sprintf("b%d", i), 64, 1))
	}
	r.run()
	if n := r.prefills[0].core.Blocks(); n.Held+n.Cached != 16 {
		t.Errorf("%+v: the pool is not full, nothing is in danger", n)
	}
	for i := range 8 {
		kept := false
		for _, st := range r.prefills[0].stamps {
			kept = kept || st == r.attempts[a.room(1)].holds(int32(i))
		}
		if !kept {
			t.Errorf("block %d of the request that waits was given away", i)
		}
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, append(others, a)...)
}

// Given four streams and a fifth request whose chunks stand still, when nothing of it moves,
// then the four go on to their ends, and the fifth ends by its own time.
// TensorRT-LLM: PR #14414.
func TestF26AReceiveThatNeverEndsStopsNobody(t *testing.T) {
	s := small()
	s.slots = 5
	r := newRig(t, s)
	r.hold("body stuck.1#0")
	stuck := r.ask("stuck", 64, 4)
	r.run()
	var all []*request
	for i := range 4 { // over their own connection: the data lane of this one stands
		q := r.ask(fmt.Sprintf("a%d", i), 16, 50)
		all = append(all, q)
	}
	r.hold("head *")
	r.run()
	for r.has("head a*") {
		r.deliver("head a*")
		r.deliver("body a*")
		r.run()
	}
	r.want(room.NoCause, all...)
	r.advance(deadline)
	r.want(room.Deadline, stuck)
	r.release()
	r.quiet()
}

// Given rooms in every phase of the types, when behind any single event nothing comes any more that
// one of them waits for, then each ends alone, in time, on both sides: no wait is without a limit but
// that for what touches memory, which the transport and the engine bound.
// vLLM: issue #35943.
func TestF27EveryWaitHasALimit(t *testing.T) {
	met := map[string]bool{}
	for _, out := range []int{10, 700, yields} {
		for seed := range uint64(2) {
			if testing.Short() && seed > 0 && out > 10 {
				break
			}
			for after := 0; ; after += 1 + after/60 {
				r, _, _, a := crowded(t, out, seed)
				more := true
				for i := 0; i < after && more; i++ {
					more = r.step()
				}
				if !more {
					break
				}
				r.meet(met, a)
				r.hold("*")
				r.advance(deadline)
				for _, q := range r.requests {
					if q.ends == 0 {
						t.Errorf("%d, behind %d events: the gateway still waits with %s", out, after, q.name)
					}
				}
				left := func(but string) {
					for name, live := range map[string]func(func(room.View) bool){"prefill": r.prefills[0].core.Rooms, "decode": r.decodes[0].core.Rooms} {
						for v := range live {
							if v.Phase != but {
								t.Errorf("%d, behind %d events: %s still has %s, %s", out, after, name, r.attempts[v.Room].name, v.Phase)
							}
						}
					}
				}
				left("draining")
				for _, memory := range []string{"step *", "write *", "body *", "head *", "begin *"} {
					r.drop(memory)
				}
				left("")
			}
		}
	}
	for _, p := range phases() {
		if !strings.HasSuffix(p, " draining") && !met[p] {
			t.Errorf("nothing was withheld from a room in the phase of %s", p)
		}
	}
}

// Given each budget of a request in turn, with and without a prefill worker of its own, when the
// stage that it bounds stalls, then the request ends at that moment and not another.
// SGLang: PR #34457; kthena: PR #1711.
func TestF29EveryTimeOutIsObeyed(t *testing.T) {
	const second = time.Second
	for _, row := range []struct {
		name    string
		b       relay.Budgets
		unified bool
		stage   int // 0 queued, 1 nobody there, 2 not accepted, 3 no token, 4 one token
		cause   room.Cause
	}{
		{"queue", relay.Budgets{Queue: second}, false, 0, room.Overload},
		{"place", relay.Budgets{Place: second}, false, 1, room.WorkerLost},
		{"connect", relay.Budgets{Connect: second}, false, 2, room.WorkerLost},
		{"first token", relay.Budgets{FirstToken: second}, false, 3, room.Deadline},
		{"gap", relay.Budgets{Gap: second}, false, 4, room.Deadline},
		{"connect, unified", relay.Budgets{Connect: second}, true, 2, room.WorkerLost},
		{"first token, unified", relay.Budgets{FirstToken: second}, true, 3, room.Deadline},
		{"gap, unified", relay.Budgets{Gap: second}, true, 4, room.Deadline},
		{"total", relay.Budgets{}, false, 3, room.Deadline},
	} {
		minute := 60 * second
		for _, d := range []*time.Duration{&row.b.Queue, &row.b.Place, &row.b.Connect, &row.b.FirstToken, &row.b.Gap} {
			if *d == 0 {
				*d = minute
			}
		}
		row.b.Total = minute
		at := second
		if row.name == "total" {
			row.b.Total, row.b.FirstToken, at = second, minute, second
		}
		c := relay.New(relay.Limits{MaxRunning: 1, MaxTries: 1})
		var out relay.Effects
		step := func(ev relay.Event) { c.Step(0, ev, &out) }
		if row.stage == 0 {
			step(relay.Event{Kind: relay.Arrive, Req: 9, Budgets: relay.Budgets{Total: 2 * minute}})
		}
		step(relay.Event{Kind: relay.Arrive, Req: 1, Budgets: row.b})
		pair := relay.Event{Kind: relay.Pair, Req: 1, Attempt: 1, OK: row.stage > 1, Room: 5, Prefill: 1, Decode: 2, Outcome: room.Fail(room.WorkerLost)}
		if row.unified {
			pair.Prefill = relay.NoWorker
		}
		if row.stage > 0 {
			step(pair)
		}
		if row.stage > 2 {
			step(relay.Event{Kind: relay.LegOpen, Req: 1, Attempt: 1, Leg: relay.Prefill})
			step(relay.Event{Kind: relay.LegOpen, Req: 1, Attempt: 1, Leg: relay.Decode})
		}
		if row.stage > 3 {
			step(relay.Event{Kind: relay.Tokens, Req: 1, Attempt: 1, N: 1})
		}
		due, timer, ok := c.NextTimer()
		if !ok || due != at {
			t.Errorf("%s: the next timer is %v at %v, want %v", row.name, timer, due, at)
		}
		out.Reset()
		c.Step(due, relay.Event{Kind: relay.TimerFired, Timer: timer}, &out)
		ended := false
		for _, e := range out.List {
			ended = ended || e.Kind == relay.End && e.Req == 1 && e.Outcome == room.Fail(row.cause)
		}
		if !ended {
			t.Errorf("%s: the timer brings %+v, want an end by %v", row.name, out.List, row.cause)
		}
	}
}

// Given 32 requests for four slots, when decode is slow but works, then none fails for having
// waited; and given a room that prefill failed, when its Prealloc comes three seconds later,
// then the tombstone answers at once.
// SMG and TokenSpeed: smg PR #2463.
func TestF30TheClockDoesNotCountQueueing(t *testing.T) {
	for _, blocks := range []int{256, 20} { // they wait for a slot, or already for their blocks
		s := small()
		s.dBlock = blocks
		r := newRig(t, s)
		r.hold("step d0")
		var all []*request
		for i := range 32 {
			all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 4))
		}
		for range 80 { // a step each third of a second: the last waits 25 s
			r.advance(300 * time.Millisecond)
			if r.has("step d0") {
				r.deliver("step d0")
			}
		}
		r.release()
		r.quiet()
		r.want(room.NoCause, all...)
	}

	r := newRig(t, small())
	r.hold("prealloc a.1", "closed *", "abort decode *")
	a := r.ask("a", 64, 1)
	r.run()
	r.prefills[0].event(prefill.Event{Kind: prefill.Abort, Room: a.room(1), Cause: room.Internal})
	r.advance(3 * time.Second)
	r.deliver("prealloc a.1")
	r.run()
	if at := r.attempts[a.room(1)]; at.how[relay.Decode] != room.Fail(room.Internal) {
		t.Errorf("decode ends in %v, want prefill's word at once", at.how[relay.Decode])
	}
	r.release()
	r.quiet()
}

// Given a room that decode waits for, when it fails at prefill before, during and behind its
// Prealloc, and is forgotten in between or not, then decode learns it without a timer, and no
// late word makes a room.
// SGLang: PR #36108, issue #36033, PR #30327, PR #36612.
func TestF31AFailureDoesNotStayWhereItHappened(t *testing.T) {
	for _, when := range []string{"before", "computing", "writing"} {
		for _, forget := range []bool{false, true} {
			r := newRig(t, small())
			r.hold(map[string]string{"before": "prealloc a.1", "computing": "step p0", "writing": "write *"}[when])
			r.hold("say prefill a.1 end") // the gateway does not help
			a := r.ask("a", 128, 2)
			r.run()
			r.prefills[0].event(prefill.Event{Kind: prefill.Abort, Room: a.room(1), Cause: room.Internal})
			if forget {
				r.prefills[0].event(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
			}
			r.release("prealloc a.1", "step p0", "write *")
			r.run()
			at := r.attempts[a.room(1)]
			if when == "before" && forget {
				// Nobody remembers the room: the Prealloc opens half of one, which the gateway
				// ends when it hears of the other leg.
				r.release()
				r.run()
			}
			if at.how[relay.Decode].Kind != room.Failed && at.how[relay.Decode].Kind != room.Aborted {
				t.Errorf("%s, forgotten %v: decode's leg is %v", when, forget, at.how[relay.Decode])
			}
			r.release()
			r.quiet()
			n := len(r.attempts)
			r.decodes[0].event(decode.Event{Kind: decode.Settled, Settled: room.Settled{Room: a.room(1), Lease: room.Lease{Boot: 1, Seq: 1}, Outcome: room.Fail(room.Internal)}})
			r.quiet()
			if len(r.attempts) != n {
				t.Error("a late word made a room")
			}
		}
	}
}

// Given a cluster of three prefill and five decode workers, when two thirds of a storm of
// clients leave at random moments, then nothing needs a timer, nothing is held for them, and
// everybody who stayed has the whole answer.
// SGLang: PR #28651.
func TestF32AStormOfAbortsLeavesNoTrace(t *testing.T) {
	s := medium()
	s.pairs, s.queued, s.dQueued, s.slots = [2]int{3, 5}, 512, 512, 8
	for seed := range uint64(4) {
		r := newRig(t, s)
		r.random = rand.New(rand.NewPCG(seed, 32))
		var stay, left []*request
		for i := range 200 {
			q := r.ask(fmt.Sprintf("a%d", i), 16+r.random.IntN(300), 1+r.random.IntN(10))
			if i%3 > 0 {
				left = append(left, q)
			} else {
				stay = append(stay, q)
			}
			for range r.random.IntN(60) {
				r.step()
			}
			if len(left) > 3 {
				r.leave(left[r.random.IntN(len(left))])
			}
		}
		for _, q := range left {
			r.leave(q)
		}
		held := 0
		r.run()
		for _, d := range r.decodes {
			held += d.core.Blocks().Held
		}
		if held != 0 || r.now != 0 {
			t.Errorf("seed %d: %d blocks held at %v", seed, held, r.now)
		}
		r.quiet()
		r.want(room.NoCause, stay...)
	}
}
