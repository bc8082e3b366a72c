package scenario

import (
	"fmt"
	"testing"
	"time"

	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Given ten long prompts in front of a prefill worker, when all of their clients leave and a
// short one comes, then it is served at once, and nothing more is computed for those who left.
// Dynamo: issue #13691.
func TestF12ADisconnectReachesPrefill(t *testing.T) {
	s := small()
	s.pBlocks, s.dBlock, s.slots = 1024, 1024, 16
	r := newRig(t, s)
	var gone []*request
	for i := range 10 {
		gone = append(gone, r.ask(fmt.Sprintf("long%d", i), 800, 1))
	}
	r.hold("step p0")
	r.run()
	for _, q := range gone {
		r.leave(q)
	}
	r.run()
	short := r.ask("short", 16, 1)
	r.release()
	r.quiet()
	r.want(room.Cancelled, gone...)
	r.want(room.NoCause, short)
	for _, q := range gone {
		if n := r.asked[q.name+".1"]; n > 64 {
			t.Errorf("%s: %d tokens were computed, more than the chunk that it was in", q.name, n)
		}
	}
}

// Given a transfer of four chunks, when in a hundred rounds the client leaves inside the second
// one, then the blocks of both sides come back in each round and the link is never torn.
// Dynamo: PR #7489, PR #10002.
func TestF13ACancelLeavesTheTransportAlone(t *testing.T) {
	r := newRig(t, small())
	for i := range 100 {
		name := fmt.Sprintf("a%d", i)
		r.hold("body " + name + ".1#1")
		a, b := r.ask(name, 256, 2), r.ask(fmt.Sprintf("b%d", i), 64, 2)
		r.run()
		r.leave(a)
		r.run()
		r.release()
		r.quiet()
		r.want(room.Cancelled, a)
		r.want(room.NoCause, b)
	}
	if r.dials != 1 {
		t.Errorf("the link was made %d times", r.dials)
	}
}

// Given a client that leaves while KV arrives at decode, when the transfer then finishes, fails,
// stalls, or decode itself is frozen, then the client's request is over at once, and decode's
// blocks are free when their receiver is off, and not before.
// SMG gateway: PR #2114.
func TestF14TheAbortOfTheDecodeLegMeetsAReceiver(t *testing.T) {
	for _, then := range []string{"finishes", "fails", "stalls", "frozen"} {
		r := newRig(t, small())
		r.hold("body a.1#1")
		a := r.ask("a", 256, 20)
		r.run()
		if then == "frozen" {
			r.hold("abort decode a.1")
		}
		r.leave(a)
		r.run()
		r.want(room.Cancelled, a)
		if held := r.decodes[0].core.Blocks().Held; held != 18 {
			t.Errorf("%s: decode holds %d blocks with a receiver inside, want 18", then, held)
		}
		switch then {
		case "fails":
			r.drop("body a.1#1")
		case "stalls": // no timer of a room frees what a receiver is inside of
			r.advance(2 * deadline)
			if held := r.decodes[0].core.Blocks().Held; held != 18 {
				t.Errorf("a timer freed blocks: %d are held", held)
			}
			r.cut(r.decodes[0], r.prefills[0]) // the bound on silence
		}
		r.release()
		r.quiet()
		if a.got != 0 {
			t.Errorf("%s: %d tokens for a client that left", then, a.got)
		}
	}
}

// Given prefill legs whose decode legs never arrive, when their clients leave, or the gateway
// dies with its connections, or nobody at all says anything, then prefill is free at once, at
// the worst at the deadline, and holds no block meanwhile.
// vLLM: PR #19223, issue #50425; llm-d: PR #1138.
func TestF15NobodyOwnsTheBlocksBetweenTheLegs(t *testing.T) {
	r := newRig(t, small())                                 // decode is first, and its Cancel goes down with the link
	r.hold("open prefill *", "abort prefill *", "cancel *") // of this leg nothing ever arrives
	a := r.ask("a", 64, 1)
	r.run()
	r.leave(a)
	r.run()
	r.drop("open prefill *")
	r.drop("abort prefill *")
	r.drop("cancel *")
	r.cut(r.decodes[0], r.prefills[0])
	r.quiet()
	for _, how := range []string{"leave", "silence"} {
		r := newRig(t, small())
		r.hold("open decode *")
		var all []*request
		for i := range 16 {
			all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 1))
		}
		r.run()
		if held := r.prefills[0].core.Blocks().Held; held != 0 {
			t.Errorf("prefill holds %d blocks for legs that decode does not know", held)
		}
		if how == "leave" {
			for _, q := range all {
				r.leave(q)
			}
			r.run()
		} else {
			r.hold("abort *") // the gateway is gone, and the network with it
			r.advance(deadline)
		}
		if n := r.prefills[0].core.Queues()[0].Len; n != 0 {
			t.Errorf("%s: prefill still holds %d rooms", how, n)
		}
		r.release("open decode *")
		later := r.ask("later", 64, 1)
		r.run()
		r.want(room.NoCause, later)
		r.release()
		r.quiet()
	}
}

// Given prompts whose first token takes exactly as long as the gateway waits for it, when the
// tie falls either way, then each is generated once, a retry starts only when the first attempt
// is closed, and prefill's blocks are free.
// vLLM: PR #29906.
func TestF17CompletionAndTimeOutInOneInstant(t *testing.T) {
	for _, timerFirst := range []bool{false, true} {
		r := newRig(t, medium())
		r.hold("say decode *.1 tokens")
		var all []*request
		for i := range 30 { // as many retries as the gateway's burst allows
			all = append(all, r.askWithin(fmt.Sprintf("a%d", i), 64, 3, relay.Budgets{Total: deadline, FirstToken: 2 * time.Second}))
		}
		r.run()
		if timerFirst {
			r.hold("closed *")
			r.advance(2 * time.Second)
			if n := r.on("open *"); n > 0 || len(r.attempts) != 30 {
				t.Errorf("%d attempts before the first are closed", len(r.attempts))
			}
		} else {
			r.now = 2 * time.Second
		}
		r.release()
		r.quiet()
		r.want(room.NoCause, all...)
		if retried := len(r.attempts) > 30; retried != timerFirst {
			t.Errorf("timer first %v: %d attempts", timerFirst, len(r.attempts))
		}
	}
	r := newRig(t, medium()) // and who leaves between two attempts is not tried again
	r.hold("say decode *.1 tokens", "closed *")
	a := r.askWithin("a", 64, 3, relay.Budgets{Total: deadline, FirstToken: 2 * time.Second})
	r.advance(2 * time.Second)
	r.leave(a)
	r.release()
	r.quiet()
	r.want(room.Cancelled, a)
	if len(r.attempts) > 1 {
		t.Error("a second attempt for a client that left")
	}
}

// Given a room that both sides give up in one instant, when both of their messages are lost, or
// one, or the link too and nobody notices, then both sides are free without a further message,
// and what comes late changes nothing.
// vLLM: issue #46283, PR #46289.
func TestF18BothSidesAbortAndNobodyWaits(t *testing.T) {
	for _, lost := range []string{"cancel *", "settled *", "both", "link", "none"} {
		r := newRig(t, small())
		r.hold("step p0", "cancel *", "settled *")
		a := r.ask("a", 256, 2)
		r.run()
		r.deliver("step p0")
		r.run()
		r.leave(a)
		r.hold("linkend *")
		r.run()
		r.deliver("step p0") // the engine's, which is no message
		if lost == "link" {
			r.cut(r.decodes[0], r.prefills[0])
		}
		r.run()
		for _, n := range []int{r.prefills[0].core.Blocks().Held, r.decodes[0].core.Blocks().Held} {
			if n != 0 {
				t.Errorf("%s lost: %d blocks wait for a message", lost, n)
			}
		}
		if lost == "both" {
			r.drop("cancel *")
			r.drop("settled *")
		}
		r.drop(lost)
		r.release()
		r.quiet()
		r.want(room.Cancelled, a)
	}
}

// Given one slot, when a request is cancelled at each step of the exchange in which its workers
// accept it, also so that the abort overtakes its request, then nothing runs on.
// Ray Serve: issue #44644, issue #52533.
func TestF19CancelledWhileTheWorkerAccepts(t *testing.T) {
	s := small()
	s.slots = 1
	r := newRig(t, s)
	n := 0
	for _, point := range []string{"pair *", "open prefill *", "open decode *", "open *", "say prefill * accepted", "say decode * accepted", "prealloc *"} {
		for _, overtake := range []bool{false, true} {
			n++
			r.hold(point, "begin *")
			a := r.ask(fmt.Sprintf("a%d", n), 64, 5)
			r.run()
			r.leave(a)
			early := false
			for _, l := range []string{"prefill", "decode"} {
				if overtake && r.has("open "+l+" *") {
					r.deliver("abort " + l + " *")
					early = true
				}
			}
			r.release()
			r.quiet()
			r.want(room.Cancelled, a)
			if c := r.asked[a.name+".1"]; c > 64 || c > 0 && early {
				t.Errorf("%s: %d tokens were computed", point, c)
			}
		}
	}
	b := r.ask("b", 64, 5)
	r.quiet()
	r.want(room.NoCause, b)
}

// Given 200 requests that wait, when all are aborted and sent again under the same names, then
// all are accepted under new rooms, and no table holds the old ones as live.
// SGLang: PR #24070.
func TestF20AnAbortedRequestGivesItsPlaceBack(t *testing.T) {
	s := small()
	s.queued, s.dQueued = 256, 256
	r := newRig(t, s)
	r.hold("step *")
	send := func() (all []*request) {
		for i := range 200 {
			all = append(all, r.ask(fmt.Sprintf("id%d", i), 64, 1))
		}
		r.run()
		return all
	}
	old := send()
	for _, q := range old {
		r.leave(q)
	}
	r.run()
	fresh := send()
	live := 0
	for range r.decodes[0].core.Rooms {
		live++
	}
	if live != 200 || r.relay.Running() != 200 {
		t.Errorf("%d rooms at decode, %d requests at the gateway, want 200", live, r.relay.Running())
	}
	r.release()
	r.quiet()
	r.want(room.Cancelled, old...)
	r.want(room.NoCause, fresh...)
}

// Given a hand-off that prefill has finished, when decode's front refuses the request before
// its scheduler sees it, for any reason, then prefill is free at once, and its word for that
// room never serves a second lease.
// vLLM: PR #41269; vllm-ascend: PR #13929.
func TestF16DecodeRefusesBeforeItsScheduler(t *testing.T) {
	for _, cause := range []room.Cause{room.ClientError, room.Overload, room.Internal} {
		r := newRig(t, medium())
		r.hold("open decode a.1")
		a := r.ask("a", 64, 1)
		r.run()
		r.take("open decode a.1")
		r.ended(r.attempts[a.room(1)], relay.Decode, room.Fail(cause))
		r.run()
		if at := r.attempts[a.room(1)]; at.how[relay.Prefill] != room.Fail(room.Cancelled) {
			t.Errorf("%v: prefill's leg is %v", cause, at.how[relay.Prefill])
		}
		if again := r.attempts[a.room(2)]; (again != nil) == (cause == room.ClientError) {
			t.Errorf("%v: a second attempt %v", cause, again)
		}
		r.quiet()
	}
	r := newRig(t, small())
	a := r.ask("a", 64, 1)
	r.quiet()
	writes := r.asked["a.1"]
	r.prefills[0].event(prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: a.room(1), Lease: room.Lease{Boot: 1, Seq: 9}, Conn: 1, Tokens: 64, Left: time.Second}})
	if !r.has("settled a.1") || r.prefills[0].core.Blocks().Held > 0 {
		t.Error("a second lease of a room that is over is not refused at once")
	}
	r.quiet()
	if r.asked["a.1"] != writes {
		t.Error("the room was served twice")
	}
}
