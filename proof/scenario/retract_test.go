package scenario

import (
	"fmt"
	"slices"
	"testing"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// tight is a pair whose decode worker has blocks for the prompts, and not for all answers.
func tight(blocks int) shape {
	s := small()
	s.dBlock, s.slots, s.ahead = blocks, 8, 1
	return s
}

// at returns the requests whose rooms decode has in a phase.
func (r *rig) at(phase string) (all []*request) {
	for v := range r.decodes[0].core.Rooms {
		if v.Phase == phase {
			all = append(all, r.attempts[v.Room].request)
		}
	}
	return all
}

// until delivers until a request is in a phase on decode.
func (r *rig) until(phase string) *request {
	r.Helper()
	for len(r.at(phase)) == 0 {
		if !r.step() {
			r.Fatalf("no room is ever %s:%s", phase, r.left())
		}
	}
	return r.at(phase)[0]
}

// Given a decode pool that is too small for what is generated, when the clients of those whose
// blocks were taken back leave, some while their KV is computed again, then nothing of them is
// left, and nothing was free before the step under way was home; fifty times.
// SGLang: issue #18701, PR #21652.
func TestF11AnAbortFindsWhatWasTakenBack(t *testing.T) {
	for _, phase := range []string{"retracted", "regranted", "recomputing"} {
		s := tight(16)
		if phase == "regranted" { // it has its blocks back, and waits for a slot
			s = tight(13)
			s.slots = 1
		}
		r := newRig(t, s)
		for round := range 17 {
			var all []*request
			for i := range 6 {
				all = append(all, r.ask(fmt.Sprintf("a%d-%d", round, i), 31+round%3, 40))
			}
			q := r.until(phase)
			busy := slices.Clone(r.decodes[0].step)
			r.hold("step d0")
			for _, q := range append(r.at(phase), all[3:]...) {
				r.leave(q)
			}
			r.run()
			if held := r.decodes[0].core.Blocks().Held; phase == "recomputing" && held < len(busy) {
				t.Errorf("round %d: %d blocks are held inside a step that uses %d", round, held, len(busy))
			}
			if left := r.at(phase); len(left) > 0 {
				t.Errorf("round %d: %s is still %s behind its abort", round, left[0].name, phase)
			}
			r.release()
			r.quiet()
			r.want(room.NoCause, all[0]) // the oldest never yields
			r.want(room.Cancelled, q)
		}
	}
}

// Given a decode pool that six requests outgrow, when some of them have to give their blocks back,
// then each goes on in the room that it has, whose state is never "success" before its end, and all
// six end with every token once.
// SGLang: issue #6857.
func TestF38ARetractedRequestGoesOnInItsRoom(t *testing.T) {
	r := newRig(t, tight(20))
	var all []*request
	for i := range 6 {
		all = append(all, r.ask(fmt.Sprintf("a%d", i), 64, 64)) // 4 blocks, and 8 in the end
	}
	for r.step() {
		for v := range r.decodes[0].core.Rooms {
			if v.Poll == room.PollSuccess || v.Phase == "retracted" && v.Queue != room.Waiting {
				t.Fatalf("%s is %s, %v, in the queue %v", r.attempts[v.Room].name, v.Phase, v.Poll, v.Queue)
			}
		}
	}
	r.quiet()
	r.want(room.NoCause, all...)
	if len(r.yielded) < 3 || r.yielded["a0.1"] > 0 || len(r.attempts) != 6 {
		t.Errorf("yielded %v, %d attempts; want three or more, never the oldest, and one attempt each", r.yielded, len(r.attempts))
	}
}

// Given rooms of every length around a block and a chunk, when each gives its KV back behind so many
// tokens, none, one or more of them, and computes it again, then it begins at its first token, ends
// at the token before its newest, in order and without a gap, and goes on with that one.
// vLLM: issue #49250.
func TestF53RecomputingStartsAtTheRightPlace(t *testing.T) {
	seen := map[int32]bool{}
	for _, prompt := range []int{1, 15, 16, 17, 31, 32, 33, 63, 64, 65} {
		for _, other := range []int{16, 30, 46} {
			c := decode.New(decode.Config{Boot: 1, Blocks: max(room.BlocksFor(prompt+40), room.BlocksFor(other+40)), QueuedMax: 9, RunningMax: 9, ChunkTokens: 32, AheadTokens: 1})
			events := []decode.Event{ // the first is the oldest, and grows at the cost of the second
				{Kind: decode.Request, Room: 1, Peer: decode.Local, Tokens: other, MaxNew: 40, Deadline: deadline},
				{Kind: decode.Request, Room: 2, Peer: decode.Local, Tokens: prompt, MaxNew: 40, Deadline: deadline},
			}
			made, next, ended := map[room.ID]int32{}, int32(0), 0
			for len(events) > 0 {
				var out decode.Effects
				c.Step(0, events[0], &out)
				events = events[1:]
				for _, e := range out.List {
					switch e.Kind {
					case decode.Retract:
						if e.Room != 2 {
							t.Fatalf("prompts of %d and %d: the oldest yields", other, prompt)
						}
						next = 0
						seen[made[2]] = true
					case decode.Begin:
						events = append(events, decode.Event{Kind: decode.Begun, Room: e.Room, OK: true})
					case decode.Emit:
						made[e.Room]++
					case decode.End:
						ended++
						if e.Outcome != room.Done() || made[e.Room] != 40 {
							t.Errorf("prompts of %d and %d: room %d ends as %v with %d tokens", other, prompt, e.Room, e.Outcome, made[e.Room])
						}
					case decode.Step:
						var results []decode.Result
						for _, it := range e.Items {
							if it.Room == 2 {
								if it.From != next || it.To <= it.From || int(it.To) > len(it.Blocks)*room.BlockTokens {
									t.Fatalf("prompts of %d and %d, %d tokens made: computes %d to %d in %d blocks, want from %d", other, prompt, made[2], it.From, it.To, len(it.Blocks), next)
								}
								if at := int32(prompt) + made[2] - 1; !it.Prefill && it.From != at || it.Again && it.To > at {
									t.Fatalf("prompts of %d and %d, %d tokens made: prefill %v computes %d to %d, and the newest is %d", other, prompt, made[2], it.Prefill, it.From, it.To, at)
								}
								next = it.To
							}
							results = append(results, decode.Result{Room: it.Room, OK: true, Finished: !it.Prefill && made[it.Room]+1 == 40})
						}
						events = append(events, decode.Event{Kind: decode.StepDone, Results: results})
					}
				}
			}
			if n := c.Blocks(); ended != 2 || n.Free != n.Total {
				t.Errorf("prompts of %d and %d: %d ends, %+v", other, prompt, ended, n)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("rooms yielded behind %v tokens: that is not many places", seen)
	}
}

// Given a room that gives its blocks back behind five tokens or more, when prefill still has its
// prompt, has forgotten it, has begun a new life, or is gone for good, then the room goes on with
// the next token by itself: there is no way back to prefill, because none is needed.
// SGLang: issue #23668, PR #25372; sglang-jax PR #1523.
func TestF99ThereIsNoWayBackToPrefill(t *testing.T) {
	for _, then := range []string{"has it", "forgot it", "restarts", "is gone"} {
		r := newRig(t, tight(12))
		var all []*request
		for i := range 3 {
			all = append(all, r.about("it", fmt.Sprintf("a%d", i), 60, 60))
		}
		q := r.until("retracted")
		for q.got < 5 { // it may have yielded too soon: again
			r.step()
			q = r.until("retracted")
		}
		p := r.prefills[0]
		switch then {
		case "forgot it":
			for range 3 {
				p.event(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
			}
		case "restarts":
			p.kill()
			p.restart()
		case "is gone":
			p.kill()
		}
		r.quiet()
		r.want(room.NoCause, all...)
		if len(r.attempts) != 3 || r.now != 0 {
			t.Errorf("%s: %d attempts, at %v", then, len(r.attempts), r.now)
		}
	}
}
