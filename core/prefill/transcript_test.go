package prefill

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
		return &player{New(Config{Blocks: 8, QueuedMax: 4, RunningMax: 2, ChunkTokens: 32})}
	})
}

// player is the core in the words of the transcripts.
type player struct{ c *Core }

func (p *player) Config(a *transcript.Args) {
	p.c = New(Config{Blocks: a.Num("blocks"), QueuedMax: a.Num("queued"), RunningMax: a.Num("running"), ChunkTokens: a.Num("chunk"), PinnedMax: a.Num("pinned")})
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
	switch kind {
	case "request":
		prompt, _ := a.Text("prompt")
		return Event{Kind: Request, Room: id, Tokens: a.Num("tokens"), Keys: keysOf(prompt), Pin: a.Time("pin"), Deadline: now + a.Time("left")}
	case "abort":
		return Event{Kind: Abort, Room: id, Cause: a.Cause()}
	case "prealloc":
		return Event{Kind: Prealloc, Prealloc: room.Prealloc{Room: id, Lease: l, Conn: room.Conn(a.Num("conn")),
			Tokens: a.Num("tokens"), From: a.Num("from"), Left: a.Time("left")}}
	case "cancel":
		return Event{Kind: Cancel, Cancel: room.Cancel{Room: id, Lease: l, Cause: a.Cause()}}
	case "step":
		ev := Event{Kind: StepDone}
		for _, r := range a.Results() {
			ev.Results = append(ev.Results, Result{Room: r.Room, OK: r.OK})
		}
		return ev
	case "written", "unwritten":
		return Event{Kind: WriteDone, Room: id, Lease: l, Chunk: int32(a.Num("chunk")), OK: kind == "written"}
	case "link_end":
		return Event{Kind: LinkEnd, Boot: l.Boot, Conn: room.Conn(a.Num("conn"))}
	case "deadline":
		return Event{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id}}
	case "tombstone":
		return Event{Kind: TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}}
	case "drain":
		return Event{Kind: Drain}
	}
	a.Fail("no such event")
	return Event{}
}

// keysOf gives the keys of a prompt, a letter for the tokens of a complete block.
func keysOf(prompt string) []blocks.Key {
	keys := make([]blocks.Key, len(prompt))
	for i := range keys {
		copy(keys[i][:], prompt[:i+1])
	}
	return keys
}

func describe(e Effect) string {
	switch e.Kind {
	case Accept:
		return fmt.Sprintf("accept %d", e.Room)
	case Refuse:
		return fmt.Sprintf("REFUSE %d: %s", e.Room, e.Outcome)
	case Step:
		var all []string
		for _, it := range e.Items {
			s := fmt.Sprintf("room %d tokens %d-%d of blocks %v", it.Room, it.From, it.To, it.Blocks)
			if it.Chunk < 0 {
				s += " unsent"
			}
			if it.Cached > 0 {
				s += fmt.Sprintf(" after %d found", it.Cached)
			}
			if it.Last {
				s += " last"
			}
			all = append(all, s)
		}
		return "step: " + strings.Join(all, "; ")
	case Write:
		s := fmt.Sprintf("write %d lease %d chunk %d on connection %d: block %d on, %v", e.Room, e.Lease.Seq, e.Chunk, e.Conn, e.FirstBlock, e.Blocks)
		if e.Last {
			s += " last"
		}
		return s
	case Settle:
		s := fmt.Sprintf("settle %d lease %d: %s", e.Settled.Room, e.Settled.Lease.Seq, e.Settled.Outcome)
		if e.Settled.Chunks > 0 {
			s += fmt.Sprintf(", %d chunks", e.Settled.Chunks)
		}
		return s
	case Freed:
		return fmt.Sprintf("freed %v", e.Blocks)
	case End:
		return fmt.Sprintf("END %d: %s", e.Room, e.Outcome)
	case EndHalf:
		return fmt.Sprintf("end half %d lease %d: %s", e.Room, e.Lease.Seq, e.Outcome)
	}
	return "?"
}
