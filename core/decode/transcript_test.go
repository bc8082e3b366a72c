package decode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/proof/transcript"
)

// TestTranscripts plays testdata/*.txt.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func() transcript.Player {
		return &player{New(Config{Boot: 1, Blocks: 8, QueuedMax: 4, RunningMax: 2, ChunkTokens: 32})}
	})
}

// player is the core in the words of the transcripts.
type player struct{ c *Core }

func (p *player) Config(a *transcript.Args) {
	p.c = New(Config{Boot: 1, Blocks: a.Num("blocks"), QueuedMax: a.Num("queued"), RunningMax: a.Num("running"), ChunkTokens: a.Num("chunk"), AheadTokens: a.Num("ahead"), PinnedMax: a.Num("pinned")})
}

func (p *player) Step(now time.Duration, verb string, a *transcript.Args) (said []string) {
	var out Effects
	p.c.Step(now, event(verb, a, now), &out)
	for _, e := range out.List {
		said = append(said, describe(e))
	}
	return said
}

func (p *player) Show(now time.Duration) []string {
	q := p.c.Queues()
	return transcript.ShowNode(p.c, q[:], now)
}

// event reads one event; rooms and leases are small numbers, leases are of boot 1.
func event(kind string, a *transcript.Args, now time.Duration) Event {
	id, l := room.ID(a.Num("room")), room.Lease{Boot: room.Boot(max(1, a.Num("boot"))), Seq: uint64(a.Num("lease"))}
	ev := Event{Room: id, Peer: int32(a.Num("peer")), Lease: l, Conn: room.Conn(a.Num("conn")), Chunk: int32(a.Num("chunk")),
		FirstBlock: int32(a.Num("first")), N: int32(a.Num("n")), Branch: int32(a.Num("branch")), OK: true, Cause: a.Cause(), Finished: a.Has("finished")}
	switch kind {
	case "request":
		prompt, _ := a.Text("prompt")
		ev.Kind, ev.Tokens, ev.MaxNew, ev.Deadline, ev.Keys = Request, a.Num("tokens"), a.Num("new"), now+a.Time("left"), keysOf(prompt)
		ev.Branches, ev.Pin = a.Num("branches"), a.Time("pin")
	case "settled":
		ev.Kind, ev.Settled = Settled, room.Settled{Room: id, Lease: l, Outcome: room.Done(), Chunks: a.Num("chunks")}
		if ev.Cause != room.NoCause {
			ev.Settled.Outcome = room.Fail(ev.Cause)
		}
	case "step":
		ev.Kind = StepDone
		for _, r := range a.Results() {
			ev.Results = append(ev.Results, Result{Room: r.Room, Branch: r.Branch, OK: r.OK, Finished: r.Finished, Cause: ev.Cause})
		}
		if key, ok := a.Text("key"); ok { // of the first
			ev.Results[0].Key = keysOf(key)[len(key)-1]
		}
	case "deadline":
		ev.Kind, ev.Timer = TimerFired, room.Timer{Kind: room.DeadlineTimer, Room: id}
	case "resend":
		ev.Kind, ev.Timer = TimerFired, room.Timer{Kind: room.ResendTimer, Room: id}
	case "tombstone":
		ev.Kind, ev.Timer = TimerFired, room.Timer{Kind: room.TombstoneTimer}
	case "unbegun":
		ev.Kind, ev.OK = Begun, false
	default:
		for k, name := range eventNames {
			if name == kind {
				ev.Kind = EventKind(k)
			}
		}
		if ev.Kind == NoEvent {
			a.Fail("no such event")
		}
	}
	return ev
}

// keysOf gives the keys of a prompt, a letter for the tokens of a complete block.
func keysOf(prompt string) []blocks.Key {
	keys := make([]blocks.Key, len(prompt))
	for i := range keys {
		copy(keys[i][:], prompt[:i+1])
	}
	return keys
}

// branchOf names a branch behind its room, but for the first.
func branchOf(n int32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("/%d", n)
}

func describe(e Effect) string {
	switch e.Kind {
	case Begin, Emit:
		return fmt.Sprintf("%s %d%s", effectNames[e.Kind], e.Room, branchOf(e.Branch))
	case Accept, Retract:
		return fmt.Sprintf("%s %d", effectNames[e.Kind], e.Room)
	case Refuse:
		return fmt.Sprintf("REFUSE %d: %s", e.Room, e.Outcome)
	case Dial:
		return fmt.Sprintf("dial %d", e.Peer)
	case SendPrealloc:
		p := e.Prealloc
		s := fmt.Sprintf("send prealloc %d lease %d on connection %d: %d tokens", p.Room, p.Lease.Seq, p.Conn, p.Tokens)
		if p.From > 0 {
			s += fmt.Sprintf(" from %d", p.From)
		}
		return fmt.Sprintf("%s, %v left", s, p.Left)
	case SendCancel:
		return fmt.Sprintf("send cancel %d lease %d on connection %d: %s", e.Cancel.Room, e.Cancel.Lease.Seq, e.Conn, e.Cancel.Cause)
	case Place:
		if !e.OK {
			return fmt.Sprintf("turn away chunk %d of %d lease %d", e.Chunk, e.Room, e.Lease.Seq)
		}
		return fmt.Sprintf("place chunk %d of %d lease %d into %v", e.Chunk, e.Room, e.Lease.Seq, e.Blocks)
	case Step:
		var all []string
		for _, it := range e.Items {
			s := fmt.Sprintf("room %d%s token %d of blocks %v", it.Room, branchOf(it.Branch), it.From, it.Blocks)
			if it.Prefill {
				what := "prompt"
				if it.Again {
					what = "again"
				}
				s = fmt.Sprintf("room %d %s %d-%d of blocks %v", it.Room, what, it.From, it.To, it.Blocks)
			}
			if it.Last {
				s += " last"
			}
			all = append(all, s)
		}
		copies := ""
		for _, c := range e.Copies {
			copies += fmt.Sprintf("copy block %d over block %d; ", c.From, c.To)
		}
		return "step: " + copies + strings.Join(all, "; ")
	case Freed:
		return fmt.Sprintf("freed %v", e.Blocks)
	case End:
		return fmt.Sprintf("END %d: %s", e.Room, e.Outcome)
	}
	return "?"
}
