package scenario

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Given a decode pool for one request, when A is aborted with a receiver inside its blocks and
// B wants them all, then B waits until the receiver is off, and B's KV is B's own in every one
// of a thousand orders.
// SGLang: issue #24527, PR #24578, PR #24580, PR #32564, PR #35049, PR #31357.
func TestF43PagesAreNotGivenAwayUnderAWriter(t *testing.T) {
	s := small()
	s.dBlock = 8
	r := newRig(t, s)
	r.hold("body a.1#0")
	a := r.ask("a", 120, 4)
	r.run()
	b := r.ask("b", 120, 4)
	r.leave(a)
	r.run()
	if got := phase(r.decodes[0].core.Rooms, b.room(1)); got != "needs_blocks" {
		t.Fatalf("B is %q while a receiver is inside A's blocks", got)
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, b)
	for seed := range uint64(1000) {
		r := newRig(t, s)
		r.random = rand.New(rand.NewPCG(seed, 43))
		a, b := r.ask("a", 120, 4), r.ask("b", 120, 4)
		for range r.random.IntN(40) {
			r.step()
		}
		r.leave(a)
		r.quiet()
		r.want(room.NoCause, b)
	}
}

// Given 200 aborts that land inside a write, when prefill would forget their rooms on the very
// next turn, then each gets its word behind the write, not before and not never, and not one
// block waits for a timer.
// SGLang: PR #38961.
func TestF44TheProofOfQuietIsNotLost(t *testing.T) {
	r := newRig(t, small())
	for i := range 200 {
		r.hold("write *", "settled *")
		a := r.ask(fmt.Sprintf("a%d", i), 64, 1)
		r.run()
		r.leave(a)
		r.run()
		r.prefills[0].event(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
		r.run()
		if r.has("settled *") || r.prefills[0].core.Blocks().Held != 4 {
			t.Fatalf("the word is said, or blocks are free, with a write under way: %+v", r.prefills[0].core.Blocks())
		}
		r.deliver("write *")
		if n := r.on("settled *"); n != 1 {
			t.Fatalf("%d words behind the write", n)
		}
		r.release()
		r.quiet()
	}
	if q := r.prefills[0].core.Blocks().Quarantined + r.decodes[0].core.Blocks().Quarantined; q != 0 {
		t.Errorf("%d blocks are in quarantine", q)
	}
}

// Given three writes under way, when the first fails and the request is cancelled, in any order
// of the others' ends, then the word comes behind the last of them.
// SGLang: PR #36707.
func TestF46CleanUpDoesNotForgetWrites(t *testing.T) {
	for _, order := range [][]int{{1, 2}, {2, 1}} {
		for _, failed := range []bool{false, true} {
			r := newRig(t, small())
			r.hold("write *", "settled *")
			a := r.ask("a", 256, 1)
			r.run()
			r.drop("write a.1#0") // fails; its siblings are on their way
			r.leave(a)
			r.run()
			for _, n := range append(order, 3) {
				if r.has("settled *") {
					t.Fatalf("the word is said with write %d under way", n)
				}
				if failed {
					r.drop(fmt.Sprintf("write a.1#%d", n))
				} else {
					r.deliver(fmt.Sprintf("write a.1#%d", n))
				}
			}
			if n := r.on("settled *"); n != 1 {
				t.Errorf("%d words behind the last write", n)
			}
			r.release()
			r.quiet()
		}
	}
}

// Given four parts of one transfer, when the second fails and another request takes every block
// that is free, then the failure is known at once, and the blocks of the first come when its
// other parts are home.
// vLLM: PR #56104.
func TestF47TheFirstFailingPartDoesNotFreeItsSiblings(t *testing.T) {
	s := small()
	s.pBlocks, s.dBlock = 16, 34
	s.limits.MaxTries = 1
	r := newRig(t, s)
	r.hold("write a.1#*")
	a := r.ask("a", 256, 1)
	r.run()
	b := r.ask("b", 256, 1)
	r.run()
	r.drop("write a.1#1")
	r.run()
	if got := phase(r.prefills[0].core.Rooms, a.room(1)); got != "draining" {
		t.Errorf("A is %q at prefill", got)
	}
	if got := phase(r.prefills[0].core.Rooms, b.room(1)); got != "queued" {
		t.Errorf("B is %q with A's writes under way", got)
	}
	r.release()
	r.quiet()
	r.want(room.TransferFailed, a)
	r.want(room.NoCause, b)
}

// Given a step that was launched with A in it, when A ends or is aborted before the step is home
// and B waits for its blocks, then no chunk of B is let into them until that step ended.
// vLLM: PR #45357, PR #45096, issue #37285; vllm-ascend: issue #14055, issue #13501.
func TestF48ALaunchedStepStillOwnsItsBlocks(t *testing.T) {
	s := small()
	s.dBlock = 8
	r := newRig(t, s)
	r.hold("step d0")
	a := r.ask("a", 100, 20)
	r.run()
	b := r.ask("b", 100, 20)
	r.leave(a)
	r.run()
	if got := phase(r.decodes[0].core.Rooms, b.room(1)); got != "needs_blocks" || r.decodes[0].core.Blocks().Held != 8 {
		t.Errorf("B is %q, %+v, with A's step under way", got, r.decodes[0].core.Blocks())
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, b)
}

// Given ten requests whose chunks wait for a frozen decode worker, when prefill serves ten others
// for another one meanwhile, then the blocks of the first are still theirs when it wakes, and
// every answer is right.
// vLLM: issue #21570, PR #25897, PR #41383; aws-samples/aws-do-eks PR #84.
func TestF49NoLeaseEndsUnderAReader(t *testing.T) {
	s := small()
	s.pairs, s.pBlocks, s.slots = [2]int{1, 2}, 40, 16
	r := newRig(t, s)
	r.decodes[1].away = true
	r.hold("write a*")
	var all []*request
	for i := range 8 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 2))
	}
	r.run()
	r.decodes[0].away, r.decodes[1].away = true, false
	for i := range 10 {
		all = append(all, r.ask(fmt.Sprintf("b%d", i), 64, 2))
	}
	r.advance(4e9)
	r.want(room.NoCause, all[8:]...)
	r.release()
	r.quiet()
	r.want(room.NoCause, all...)
}

// Given a room that waits for its KV, when a chunk comes for a room that nobody knows, under
// another lease, with blocks out of range, a second time, or behind its end, then each is turned
// away before it touches memory, and what cannot be of this transfer ends the room without a token.
// vLLM: issue #52234.
func TestF50AWrongReferenceIsNeverAnAnswer(t *testing.T) {
	offer := func(change func(*decode.Event)) (*rig, *request, bool) {
		r := newRig(t, small())
		r.hold("write *")
		a := r.ask("a", 128, 2)
		r.run()
		d := r.decodes[0]
		ev := decode.Event{Kind: decode.ChunkArrived, Room: a.room(1), Lease: room.Lease{Boot: d.boot, Seq: 1}, Conn: 1, N: 4}
		change(&ev)
		d.event(ev)
		r.run()
		return r, a, d.answer.OK
	}
	for name, row := range map[string]struct {
		change func(*decode.Event)
		ends   bool
	}{
		"unknown room":      {func(e *decode.Event) { e.Room = 77 }, false},
		"another lease":     {func(e *decode.Event) { e.Lease.Seq = 2 }, false},
		"another life":      {func(e *decode.Event) { e.Lease.Boot++ }, false},
		"another link":      {func(e *decode.Event) { e.Conn = 9 }, false},
		"beyond the prompt": {func(e *decode.Event) { e.FirstBlock = 6 }, true},
		"before the prompt": {func(e *decode.Event) { e.FirstBlock = -1 }, true},
		"too many blocks":   {func(e *decode.Event) { e.N = 1 << 30 }, true},
		"no blocks":         {func(e *decode.Event) { e.N = 0 }, true},
	} {
		r, a, ok := offer(row.change)
		if at := r.attempts[a.room(1)]; ok || row.ends != (at.how[relay.Decode] == room.Fail(room.TransferFailed)) || at.made > 0 {
			t.Errorf("%s: let in %v, the room is %v", name, ok, at.how[relay.Decode])
		}
		r.release()
		r.quiet()
		r.want(room.NoCause, a) // by another attempt where this one ended
	}
	r := newRig(t, small()) // bytes with a wrong sum
	r.hold("body a.1#0")
	a := r.ask("a", 64, 2)
	r.run()
	ev := r.decodes[0].inside[0].ev
	r.drop("body a.1#0")
	ev.Kind = decode.ChunkRefused
	r.decodes[0].event(ev)
	r.run()
	if at := r.attempts[a.room(1)]; at.how[relay.Decode] != room.Fail(room.TransferFailed) || at.made > 0 {
		t.Errorf("wrong bytes: the room is %v with %d tokens", at.how[relay.Decode], at.made)
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, a)
	r = newRig(t, small())
	r.hold("body a.1#0")
	a = r.ask("a", 128, 2)
	r.run()
	ev = r.decodes[0].inside[0].ev
	ev.Kind = decode.ChunkArrived
	r.decodes[0].event(ev)
	if r.decodes[0].answer.OK {
		t.Error("a chunk is let in a second time")
	}
	r.release()
	r.quiet()
	r.want(room.NoCause, a)
	r.decodes[0].event(ev)
	if r.decodes[0].answer.OK {
		t.Error("a chunk is let in behind the room's end")
	}
	r.quiet()
}

// Given a request whose link hangs in its handshake, when its time is over and another one takes
// the source blocks, and then the link comes up, even with the tombstone gone, then nothing is
// written for the first.
// vLLM: PR #55470.
func TestF51AWriteThatWaitedIsNotSent(t *testing.T) {
	for _, forget := range []bool{false, true} {
		s := medium()
		s.pBlocks, s.pairs = 8, [2]int{1, 2}
		r := newRig(t, s)
		r.decodes[0].away = true
		r.hold("dial d1 p0")
		a := r.askWithin("a", 128, 1, relay.Budgets{Total: 3e9})
		r.run()
		r.advance(3e9)
		r.want(room.Deadline, a)
		r.decodes[0].away, r.decodes[1].away = false, true
		b := r.ask("b", 128, 1)
		r.run()
		r.want(room.NoCause, b)
		if forget {
			for range 3 {
				for _, n := range r.prefills {
					n.event(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
				}
			}
		}
		r.release()
		r.quiet()
		if r.asked["a.1"] != 0 || r.scrapped != 0 {
			t.Errorf("%d tokens were computed and %d chunks written for a request that was over", r.asked["a.1"], r.scrapped)
		}
	}
	r := newRig(t, small()) // a lease that was served, and whose tombstone is gone
	r.hold("prealloc a.1")
	a := r.ask("a", 64, 1)
	r.run()
	r.twice("prealloc a.1")
	r.run()
	r.want(room.NoCause, a)
	r.prefills[0].event(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
	r.deliver("prealloc a.1")
	if p := phase(r.prefills[0].core.Rooms, a.room(1)); p != "" || !r.has("settled a.1") {
		t.Errorf("a lease is served a second time: %s", p)
	}
	r.quiet()
}

// Given a prompt of six blocks, the last partly full, of which decode says that it has the first
// so many, and prefill has found the first so many in its cache, all pairs, when prefill sends the
// rest, then every block that is written carries the index that decode misses, once, and none that
// it has, and nothing is computed that was found.
// vLLM: issue #48633, PR #48758.
func TestF52TheRightEndIsTrimmed(t *testing.T) {
	for have := range 6 {
		for warm := range 6 {
			for _, chunk := range []int{16, 32, 64} {
				trimmed(t, have, warm, chunk)
			}
		}
	}
}

func trimmed(t *testing.T, have, warm, chunk int) {
	const tokens = 90
	c := prefill.New(prefill.Config{Blocks: 12, QueuedMax: 4, RunningMax: 4, ChunkTokens: chunk})
	var keys []blocks.Key
	for i := range tokens / room.BlockTokens {
		keys = append(keys, blocks.Key{byte(i + 1)})
	}
	// play runs one room, of which decode has the first blocks, and returns what came of it.
	play := func(id room.ID, tokens, have int) (next int, computed int32, last bool, settled room.Settled) {
		lease := room.Lease{Boot: 3, Seq: uint64(id)}
		events := []prefill.Event{
			{Kind: prefill.Request, Room: id, Tokens: tokens, Keys: keys[:tokens/room.BlockTokens], Deadline: deadline},
			{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: id, Lease: lease, Conn: 1, Tokens: tokens, From: 16 * have, Left: deadline}},
		}
		var table, written []int32 // of the first step, and of the writes
		next = have
		for len(events) > 0 {
			var out prefill.Effects
			c.Step(0, events[0], &out)
			events = events[1:]
			for _, e := range out.List {
				switch e.Kind {
				case prefill.Step:
					table = e.Items[0].Blocks
					computed += e.Items[0].To - e.Items[0].From
					events = append(events, prefill.Event{Kind: prefill.StepDone, Results: []prefill.Result{{Room: id, OK: true}}})
				case prefill.Write:
					if int(e.FirstBlock) != next {
						t.Fatalf("decode has %d, prefill %d, chunks of %d: a write from block %d, want %d", have, warm, chunk, e.FirstBlock, next)
					}
					next += len(e.Blocks)
					written = append(written, e.Blocks...)
					last = e.Last
					events = append(events, prefill.Event{Kind: prefill.WriteDone, Room: id, Lease: lease, Chunk: e.Chunk, OK: true})
				case prefill.Settle:
					settled = e.Settled
				}
			}
		}
		for i, b := range written {
			if table[have+i] != b {
				t.Fatalf("decode has %d, prefill %d, chunks of %d: block %d is written from %d, want %d", have, warm, chunk, have+i, b, table[have+i])
			}
		}
		return next, computed, last, settled
	}
	if warm > 0 {
		play(1, 16*warm, 0)
	}
	next, computed, last, settled := play(2, tokens, have)
	if next != 6 || !last || settled.Outcome != room.Done() || int(computed) != tokens-16*warm {
		t.Errorf("decode has %d, prefill %d, chunks of %d: written up to block %d, last %v, %+v, %d tokens computed", have, warm, chunk, next, last, settled, computed)
	}
}

// Given pools that are nearly full, prompts that begin alike, and answers that outgrow decode, when
// 4,000 requests run, one in ten of whose clients leaves, in random order, then every step read the
// KV of its own tokens, and everybody who stayed has the whole answer.
// SGLang: issue #23020.
func TestF55TheLastAnswerIsAsRightAsTheFirst(t *testing.T) {
	s := medium()
	s.pBlocks, s.dBlock, s.ahead = 64, 32, 1
	r := newRig(t, s)
	r.random = rand.New(rand.NewPCG(55, 1))
	var stay, open []*request
	n := 4000
	if testing.Short() {
		n = 400
	}
	for i := range n {
		topic := []string{"", "this", "that", "it"}[r.random.IntN(4)]
		q := r.about(topic, fmt.Sprintf("a%d", i), 16+r.random.IntN(150), 1+r.random.IntN(40))
		if r.random.IntN(10) == 0 {
			for range r.random.IntN(40) {
				r.step()
			}
			r.leave(q)
		} else {
			stay, open = append(stay, q), append(open, q)
		}
		for len(open) > 12 { // as many as fit and some that wait
			if open[0].ends > 0 {
				open = open[1:]
			} else if !r.step() {
				t.Fatal(r.left())
			}
		}
	}
	r.quiet()
	r.want(room.NoCause, stay...)
	computed, prompts := int32(0), int32(0)
	for _, at := range r.attempts {
		computed, prompts = computed+r.asked[at.name], prompts+int32(at.prompt)
	}
	if computed > prompts*9/10 || len(r.yielded) < n/40 {
		t.Errorf("%d of %d tokens were computed, %d rooms gave blocks back: the pools were not tight", computed, prompts, len(r.yielded))
	}
}
