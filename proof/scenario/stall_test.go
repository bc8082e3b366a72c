package scenario

import (
	"fmt"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/room"
)

// Given a chunk whose bytes stop in the middle, when the request's time is over and another one
// wants the blocks, then the request ends at once, and its blocks are nobody's until their
// receiver is off; what comes later lands nowhere.
// NIXL: PR #2047; Mooncake: PR #398, PR #2738.
func TestF35InProgressForEverIsNotQuiet(t *testing.T) {
	for _, told := range []bool{true, false} { // by the gateway, or by its own clock
		s := small()
		s.dBlock = 8
		r := newRig(t, s)
		r.hold("body a.1#1")
		if !told {
			r.hold("abort decode a.1")
		}
		a := r.ask("a", 112, 16)
		r.advance(5 * time.Second)
		r.now = deadline - time.Second
		b := r.ask("b", 112, 16)
		r.advance(time.Second)
		r.want(room.Deadline, a)
		r.advance(8 * time.Second) // whatever timer there is
		if held := r.decodes[0].core.Blocks().Held; held != 8 || r.attempts[b.room(1)].made > 0 {
			t.Errorf("told %v: %d blocks are held with a receiver inside, want 8; the next room has %d tokens", told, held, r.attempts[b.room(1)].made)
		}
		r.release()
		r.quiet()
		r.want(room.NoCause, b)
	}
}

// Given a decode pool for two requests, when both of their clients leave and a third waits, then
// it goes on at once; if the pool is really full it waits in the queue, with nothing sent again
// and again; 500 requests, two at a time, end with an empty pool.
// LMCache: issue #1337, issue #1339.
func TestF36AFullReceiverIsWaitedForInAQueue(t *testing.T) {
	s := small()
	s.dBlock = 16
	r := newRig(t, s)
	r.hold("body *")
	a, b, c := r.ask("a", 112, 16), r.ask("b", 112, 16), r.ask("c", 112, 16)
	r.run()
	if got := phase(r.decodes[0].core.Rooms, c.room(1)); got != "needs_blocks" || r.has("prealloc *") {
		t.Errorf("the third is %q", got)
	}
	r.advance(20 * time.Second)
	if n := r.on("prealloc c.1"); n != 0 {
		t.Errorf("%d messages for a room without blocks", n)
	}
	r.leave(a)
	r.leave(b)
	r.release()
	r.quiet()
	r.want(room.NoCause, c)
	var last *request
	for i := range 500 {
		q := r.ask(fmt.Sprintf("q%d", i), 112, 16)
		for last != nil && last.ends == 0 && r.step() {
		}
		last = q
	}
	r.quiet()
	r.want(room.NoCause, r.requests[3:]...)
}

// Given a decode worker that admits one room at a time and needs a second for each, when 24
// requests wait for up to 24 seconds, then none is given up on the way: nobody has a clock but
// the request itself.
// vLLM: issue #53095.
func TestF39WaitingIsNotALease(t *testing.T) {
	s := small()
	s.dBlock, s.slots = 2, 1
	r := newRig(t, s)
	r.hold("step d0")
	var all []*request
	for i := range 24 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 16, 2))
	}
	for range 24 {
		r.advance(time.Second)
		r.deliver("step d0")
	}
	r.run()
	r.want(room.NoCause, all...)
	r.release()
	r.quiet()
}

// Given one pair, when one transfer of it fails once, then the request is served by the same
// two, over a new link if the old one is gone, and so is the next; nobody is dead for ever.
// SGLang: issue #13054, issue #37022.
func TestF40OneErrorDoesNotMarkThePairAsDead(t *testing.T) {
	for _, reset := range []bool{false, true} {
		r := newRig(t, small())
		r.hold("write a.1#0")
		a := r.ask("a", 64, 2)
		r.run()
		if reset {
			r.cut(r.decodes[0], r.prefills[0])
		}
		r.drop("write a.1#0")
		r.run()
		for _, n := range []*node{&r.prefills[0].node, &r.decodes[0].node} {
			if n.suspect { // lost links are blamed on somebody until his health is heard
				r.healthy(n)
			}
		}
		b := r.ask("b", 64, 2)
		r.release()
		r.quiet()
		r.want(room.NoCause, a, b)
		if want := 1; reset && r.dials != want+1 || !reset && r.dials != want {
			t.Errorf("reset %v: %d dials", reset, r.dials)
		}
	}
}

// Given a thousand transfers, when the link is cut under both sides in the middle of them, then
// there is one new link, whatever was on the old one is tried again, and nothing else notices.
// vLLM (a fork's report): wtdcode/vllm-backport issue #33.
func TestF41ALinkThatDiesAfterDaysIsMadeAgain(t *testing.T) {
	r := newRig(t, small())
	for i := range 1000 {
		q := r.ask(fmt.Sprintf("a%d", i), 64, 1)
		if i == 500 {
			r.hold("head *")
			r.run()
			r.cut(r.decodes[0], r.prefills[0])
			r.run()
			r.release()
			r.run()
			r.healthy(&r.prefills[0].node)
			r.healthy(&r.decodes[0].node)
		}
		r.quiet()
		r.want(room.NoCause, q)
	}
	if r.dials != 2 || len(r.links) != 1 || len(r.attempts) != 1001 {
		t.Errorf("%d dials, %d links, %d attempts, want 2, 1, 1001", r.dials, len(r.links), len(r.attempts))
	}
}

// Given 200 requests whose prefill worker cannot be reached, when the dial hangs, then one dial
// is under way for all of them, and all end when it fails.
// SGLang: PR #19305, issue #19271.
func TestF69ALookupIsNotRepeatedPerRequest(t *testing.T) {
	s := small()
	s.queued, s.dQueued = 256, 256
	s.limits.MaxTries = 1
	r := newRig(t, s)
	r.hold("dial *")
	var all []*request
	for i := range 200 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 1))
	}
	r.advance(10 * time.Second)
	if r.dials != 1 {
		t.Errorf("%d dials for 200 requests", r.dials)
	}
	r.prefills[0].up = false
	r.release()
	r.prefills[0].up = true
	r.drop("dial *")
	r.quiet()
	r.want(room.WorkerLost, all...)
	if r.dials != 1 {
		t.Errorf("%d dials behind the failure", r.dials)
	}
}

// Given ten requests that wait for the link to a prefill worker, when that one dies before,
// while and after the link is made, then all ten end cleanly, decode lives, and none of them got
// a token or a step.
// vLLM: PR #41863, PR #33745, PR #26171.
func TestF78AFailedHandshakeIsAnEndOfItsRooms(t *testing.T) {
	for _, when := range []string{"before", "while", "after"} {
		s := small()
		s.slots = 16
		s.limits.MaxTries = 1
		r := newRig(t, s)
		r.hold("dial *")
		var all []*request
		for i := range 10 {
			all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 1))
		}
		if when == "before" {
			r.hold("open *")
		}
		r.run()
		if when == "after" {
			r.hold("prealloc *")
			r.release("dial *")
			r.run()
		}
		r.prefills[0].kill()
		r.release()
		r.quiet()
		r.want(room.WorkerLost, all...)
		for _, q := range all {
			if q.got > 0 {
				t.Errorf("%s: %s has a token", when, q.name)
			}
		}
		r.prefills[0].restart()
		r.healthy(&r.decodes[0].node)
		b := r.ask("b", 64, 1)
		r.quiet()
		r.want(room.NoCause, b)
	}
}

// Given a request that was aborted, when completions of both directions come in one instant, in
// any order, twice, and again seconds later, then nothing happens but that they are unknown.
// vLLM: issue #43226, issue #46240, issue #51786, PR #45628.
func TestF79ACompletionOfWhatIsGone(t *testing.T) {
	r := newRig(t, small())
	r.hold("head a.1#0", "settled a.1", "cancel a.1")
	a := r.ask("a", 64, 3)
	r.run()
	r.leave(a)
	r.run()
	for range 2 {
		r.twice("settled a.1")
		r.twice("head a.1#0")
		r.twice("cancel a.1")
		r.twice("head a.1#0")
		r.twice("settled a.1")
		r.run()
		r.advance(5 * time.Second)
	}
	if r.scrapped != 4 || a.got > 0 || r.attempts[a.room(1)].ends[1] != 1 {
		t.Errorf("%d chunks were turned away, want 4; %d ends", r.scrapped, r.attempts[a.room(1)].ends[1])
	}
	r.release()
	r.quiet()
	b := r.ask("b", 64, 3) // a live one hears its word from two sources
	r.hold("settled b.1")
	r.run()
	r.twice("settled b.1")
	r.run()
	r.want(room.NoCause, b)
	r.release()
	r.quiet()
	r.want(room.NoCause, b)
	r.decodes[0].event(decode.Event{Kind: decode.Settled, Settled: room.Settled{Room: 99, Lease: room.Lease{Boot: 7, Seq: 7}, Outcome: room.Done(), Chunks: 1}})
	r.quiet()
}

// Given two prefill workers, when one cannot be dialled and nobody says so, then every request
// of the other is served meanwhile.
// vLLM: issue #48633, PR #55589.
func TestF125ASlowHandshakeHoldsUpNobodyElse(t *testing.T) {
	s := medium()
	s.pairs = [2]int{2, 1}
	r := newRig(t, s)
	r.hold("dial d0 p0")
	var all []*request
	for i := range 20 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 3))
	}
	r.run()
	served := 0
	for _, q := range all {
		if q.ends == 1 {
			served++
		} else if got := phase(r.decodes[0].core.Rooms, q.room(1)); got != "needs_link" {
			t.Errorf("%s is %q", q.name, got)
		}
	}
	if served != 10 {
		t.Errorf("%d of 20 were served, want the 10 of the other worker", served)
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, all...)
}
