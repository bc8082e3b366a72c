package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/relay"
	"baton/core/room"
)

// Given a pair, when prefill reports an error before decode has its word, behind the first
// token, behind the last, and behind the end, then before the first token it is the outcome;
// afterwards decode has all of the KV and the answer stays whole; and no end is followed by
// another.
// Dynamo: PR #14260.
func TestF103AnErrorOfPrefillBehindDecode(t *testing.T) {
	for _, tokens := range []int{0, 1, 3, 4} {
		s := small()
		s.limits.MaxTries = 1
		r := newRig(t, s)
		r.hold("say prefill a.1 end", "say decode a.1 *")
		a := r.ask("a", 64, 3)
		r.run()
		r.deliver("say decode a.1 accepted")
		for range tokens { // the fourth is the end
			r.deliver("say decode a.1 *")
		}
		r.gateway(relay.Event{Kind: relay.LegEnd, Req: a.id, Attempt: 1, Leg: relay.Prefill, Outcome: room.Fail(room.Internal), Said: true})
		r.release()
		r.quiet()
		if tokens == 0 {
			r.want(room.Internal, a)
		} else {
			r.want(room.NoCause, a)
		}
	}
}

// Given random orders, losses of links, deaths of workers and leaving clients, when a hundred
// requests run, then each of them has one end, no stream has a gap, and nobody's books are open.
// vLLM: issue #52852.
func TestF104EveryStreamHasAnEnd(t *testing.T) {
	for seed := range uint64(25) {
		s := medium()
		s.pBlocks, s.dBlock = 40, 40
		r := newRig(t, s)
		r.audit = true
		r.random = rand.New(rand.NewPCG(seed, 104))
		for i := range 100 {
			q := r.ask(fmt.Sprintf("a%d", i), 16+r.random.IntN(200), 1+r.random.IntN(9))
			for range r.random.IntN(80) {
				r.step()
			}
			switch n := r.random.IntN(25); {
			case n < 2:
				r.leave(q)
			case n == 2 && len(r.links) > 0:
				l := r.links[r.random.IntN(len(r.links))]
				r.cut(l.d, l.p)
			case n == 3:
				d := r.decodes[r.random.IntN(2)]
				d.kill()
				d.restart()
			case n == 4:
				p := r.prefills[r.random.IntN(2)]
				p.kill()
				p.restart()
			case n == 5 && r.has("write *"):
				r.drop(r.items[r.find("write *")].name)
			case n == 6:
				r.drop("begin *")
			case n == 7 && r.has("step *"):
				r.drop(r.items[r.find("step *")].name)
			}
			for _, n := range r.decodes {
				r.healthy(&n.node)
			}
			for _, n := range r.prefills {
				r.healthy(&n.node)
			}
		}
		r.advance(deadline) // for requests that wait for a worker
		r.quiet()
	}
}

// Given requests that take up to twenty minutes, when more come than may run, for two hours,
// then the count of the running is what runs, no live one is ever forgotten for its age, and in
// the end the queue is empty.
// llm-d: llm-d-router issue #2295.
func TestF108NoBooksAreClosedByAge(t *testing.T) {
	s := medium()
	s.limits = relay.Limits{MaxRunning: 8, MaxQueued: 64}
	s.slots = 4
	r := newRig(t, s)
	r.hold("step d0", "step d1")
	var all []*request
	for minute := range 120 {
		if minute < 60 && minute%2 == 0 {
			all = append(all, r.askWithin(fmt.Sprintf("a%d", minute), 16, 1+minute%20, relay.Budgets{Total: 4 * time.Hour, Gap: 5 * time.Minute}))
		}
		r.advance(time.Minute)
		live := map[room.ID]bool{}
		for _, d := range r.decodes {
			for v := range d.core.Rooms {
				live[v.Room] = true
			}
		}
		if r.relay.Running() != len(live) {
			t.Fatalf("minute %d: the gateway counts %d, the workers hold %d:%s", minute, r.relay.Running(), len(live), r.left())
		}
		for _, d := range []string{"step d0", "step d1"} {
			if r.has(d) {
				r.deliver(d)
			}
		}
		r.run()
	}
	r.want(room.NoCause, all...)
	r.release()
	r.quiet()
}

// Given sixteen rights to run, when five hundred requests arrive in one instant, then never more
// than sixteen are on the workers, the others wait in their order, and nobody is dropped between
// two looks at one number.
// llm-d: llm-d-router PR #2066, issue #2881.
func TestF109TheGateAndTheChoiceAreOneStep(t *testing.T) {
	s := medium()
	s.limits = relay.Limits{MaxRunning: 16, MaxQueued: 500}
	r := newRig(t, s)
	var all []*request
	for i := range 500 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 16, 2))
	}
	last := -1
	for r.step() {
		on := 0
		for _, n := range r.decodes {
			on += n.load
		}
		if on > 16 {
			t.Fatalf("%d requests are on the workers", on)
		}
		for last+1 < len(all) && r.attempts[all[last+1].room(1)] != nil {
			last++
		}
		for _, q := range all[min(last+17, len(all)):] {
			if r.attempts[q.room(1)] != nil {
				t.Fatalf("%s overtook %s", q.name, all[last+1].name)
			}
		}
	}
	r.quiet()
	r.want(room.NoCause, all...)

	c := relay.New(relay.Limits{}) // an answer that was looked up before the worker came
	var out relay.Effects
	c.Step(0, relay.Event{Kind: relay.Arrive, Req: 1}, &out)
	c.Step(0, relay.Event{Kind: relay.Roster, Worker: 3}, &out)
	out.Reset()
	c.Step(0, relay.Event{Kind: relay.Pair, Req: 1, Attempt: 1, Outcome: room.Fail(room.WorkerLost)}, &out)
	if len(out.List) != 1 || out.List[0].Kind != relay.Place {
		t.Errorf("an old answer that nobody is there brings %+v, want another question", out.List)
	}
}

// Given one engine step with two rooms that finish, one that fails, one that was cancelled, one
// whose time is over, and one that goes on, when it comes home, then five ends leave that turn,
// each with its own cause.
// oMLX: jundot/omlx issue #1621.
func TestF115TwoResultsInOneStep(t *testing.T) {
	c := decode.New(decode.Config{Boot: 1, Blocks: 64, QueuedMax: 8, RunningMax: 8, ChunkTokens: 128})
	ends := map[room.ID]room.Outcome{}
	var items []decode.StepItem
	var step func(decode.Event)
	step = func(ev decode.Event) {
		var out decode.Effects
		c.Step(0, ev, &out)
		for _, e := range out.List {
			switch e.Kind {
			case decode.End:
				ends[e.Room] = e.Outcome
			case decode.Step:
				items = e.Items
			case decode.Begin:
				step(decode.Event{Kind: decode.Begun, Room: e.Room, OK: true})
			}
		}
	}
	home := func(how map[room.ID]decode.Result) {
		var all []decode.Result
		for _, it := range items {
			x := how[it.Room]
			x.Room = it.Room
			all = append(all, x)
		}
		items = nil
		step(decode.Event{Kind: decode.StepDone, Results: all})
	}
	ok := map[room.ID]decode.Result{}
	for id := room.ID(1); id <= 6; id++ {
		step(decode.Event{Kind: decode.Request, Room: id, Peer: decode.Local, Tokens: 16, MaxNew: 9, Deadline: deadline})
		ok[id] = decode.Result{OK: true}
	}
	for len(items) != 6 { // until all generate in one step
		home(ok)
	}
	step(decode.Event{Kind: decode.Abort, Room: 4})
	step(decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 5}})
	if len(ends) != 0 {
		t.Fatalf("ends with their step under way: %v", ends)
	}
	home(map[room.ID]decode.Result{1: {OK: true, Finished: true}, 2: {OK: true, Finished: true}, 3: {}, 4: {OK: true}, 5: {OK: true, Finished: true}, 6: {OK: true}})
	want := map[room.ID]room.Outcome{1: room.Done(), 2: room.Done(), 3: room.Fail(room.Internal), 4: room.Fail(room.Cancelled), 5: room.Fail(room.Deadline)}
	if fmt.Sprint(ends) != fmt.Sprint(want) {
		t.Errorf("ends %v, want %v", ends, want)
	}
	if live := c.Queues()[3].Len; live != 1 {
		t.Errorf("%d rooms run on, want 1", live)
	}
}

// Given a decode pool that holds the growth of one request and a half, when seven come together,
// then all end, and at every moment each that is admitted can reach its end with what it holds;
// the others hold nothing.
// SGLang: issue #30033.
func TestF120GrowthIsReservedBeforeItBegins(t *testing.T) {
	s := small()
	s.dBlock, s.slots = 32, 8
	r := newRig(t, s)
	var all []*request
	for i := range 7 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 256))
	}
	for r.step() {
		waiting, admitted := 0, 0
		for v := range r.decodes[0].core.Rooms {
			if v.Phase == "needs_blocks" || v.Phase == "needs_link" {
				waiting++
			} else {
				admitted++
			}
		}
		if held := r.decodes[0].core.Blocks().Held; held != 20*admitted {
			t.Fatalf("%d blocks for %d that were admitted and %d that wait", held, admitted, waiting)
		}
	}
	r.quiet()
	r.want(room.NoCause, all...)
}

// Given a request that can never fit, into either pool, when fifty small ones stand behind it,
// then it is refused as the client's error, and the fifty run.
// SGLang: issue #31205.
func TestF121WhatCanNeverRunBlocksNobody(t *testing.T) {
	for _, row := range []struct{ pBlocks, dBlocks, prompt, out int }{{20, 64, 330, 1}, {64, 20, 330, 1}, {64, 20, 64, 300}} {
		s := small()
		s.pBlocks, s.dBlock, s.slots = row.pBlocks, row.dBlocks, 64
		r := newRig(t, s)
		big := r.ask("big", row.prompt, row.out)
		var all []*request
		for i := range 50 {
			all = append(all, r.ask(fmt.Sprintf("a%d", i), 16, 1))
		}
		r.quiet()
		r.want(room.ClientError, big)
		r.want(room.NoCause, all...)
	}
}

// Given three times the load that a pair can bear, when the clients leave after two seconds and
// come back once, then nothing is held for one who left, anywhere, from that instant on.
// SGLang: issue #8177, issue #11809, issue #10110.
func TestF123NoQueueKeepsWhoLeft(t *testing.T) {
	s := small()
	s.queued, s.dQueued = 256, 256
	s.limits = relay.Limits{MaxRunning: 6, MaxQueued: 64} // some never come further than the gateway
	r := newRig(t, s)
	r.hold("step *")
	var here []*request
	for round := range 60 {
		var old []*request
		old, here = here, nil
		for i := range 12 {
			here = append(here, r.ask(fmt.Sprintf("a%d-%d", round, i), 64, 2))
		}
		r.advance(2 * time.Second)
		for _, name := range []string{"step p0", "step d0"} {
			if r.has(name) {
				r.deliver(name)
			}
		}
		for _, q := range old {
			r.leave(q)
		}
		r.run()
		for v := range r.relay.Rooms {
			if q := r.requests[v.Req-1]; slices.Contains(old, q) {
				t.Fatalf("the gateway still has %s, %s", q.name, v.Phase)
			}
		}
		for _, q := range old {
			for name, all := range map[string]func(func(room.View) bool){"prefill": r.prefills[0].core.Rooms, "decode": r.decodes[0].core.Rooms} {
				if p := phase(all, q.room(1)); p != "" && p != "draining" {
					t.Fatalf("%s still has %s, %s", name, q.name, p)
				}
			}
		}
	}
	r.release()
	r.quiet()
}

// Given one right to run and twenty requests of a second each with five seconds to live, when
// they arrive together, then about five succeed, and the others end by their deadline before
// anything is computed for them; none as a short answer.
// Avarok-Cybersecurity/atlas: issue #482.
func TestF135TheDeadlineCountsFromArrival(t *testing.T) {
	s := small()
	s.limits = relay.Limits{MaxRunning: 1, MaxQueued: 64}
	r := newRig(t, s)
	r.hold("step p0")
	var all []*request
	for i := range 20 {
		all = append(all, r.askWithin(fmt.Sprintf("a%d", i), 64, 2, relay.Budgets{Total: 5*time.Second + 1}))
	}
	for range 8 {
		r.advance(time.Second)
		if r.has("step p0") {
			r.deliver("step p0")
		}
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, all[:5]...)
	r.want(room.Deadline, all[5:]...)
	for _, q := range all[6:] { // the sixth was in its step
		if r.asked[q.name+".1"] > 0 || q.got > 0 {
			t.Errorf("%s: %d tokens computed, %d sent", q.name, r.asked[q.name+".1"], q.got)
		}
	}
}
