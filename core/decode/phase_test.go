package decode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/proof/transcript"
)

// TestEveryPhaseHasAnOwnerAndAnExit holds the phase table complete, and its queues in the
// order in which a room passes them.
func TestEveryPhaseHasAnOwnerAndAnExit(t *testing.T) {
	names := map[string]bool{}
	for p := Phase(0); p < phases; p++ {
		row := phaseTable[p]
		if row.Name == "" || row.Exit == "" || names[row.Name] {
			t.Errorf("phase %d: name %q, exit %q: missing or used twice", p, row.Name, row.Exit)
		}
		names[row.Name] = true
		live := p < Succeeded
		if live != (row.WaitsFor != "") || live != (row.Queue != room.NoQueue) {
			t.Errorf("%s: a live room, and only a live one, waits for somebody and stands in a queue", p)
		}
		if p.timed() != (row.Exit == "deadline") {
			t.Errorf("%s: exit is %q, deadline armed: %v", p, row.Exit, p.timed())
		}
	}
	for _, way := range [][]Phase{
		{NeedsLink, NeedsBlocks, Preallocated, Receiving, Ready, Beginning, Generating},
		{NeedsBlocks, Unfilled, Prefilling, Beginning, Generating},
		{Retracted, Regranted, Recomputing, Beginning, Generating},
	} {
		place := -1
		for i, p := range way {
			at := place
			for k, q := range room.DecodeQueues {
				if q == p.Queue() {
					at = k
				}
			}
			if at < place || i > 0 && p.Poll() < way[i-1].Poll() {
				t.Errorf("%s after %s: queue %s and poll %s go backwards", p, way[i-1], p.Queue(), p.Poll())
			}
			place = at
		}
	}
	if ended(room.Done()).Poll() != room.PollSuccess || ended(room.Fail(room.Cancelled)).Poll() != room.PollFailed {
		t.Error("an aborted room shows as Failed, a success as Success")
	}
}

// TestArchitectureShowsThePhases: the page's table is this package's.
func TestArchitectureShowsThePhases(t *testing.T) {
	transcript.Section(t, "../../ARCHITECTURE.md", "phases of core/decode", transcript.PhaseTable(phaseTable[:]))
}

var (
	one   = room.Lease{Boot: 1, Seq: 1}
	other = room.Lease{Boot: 1, Seq: 9}
)

func request(id room.ID, peer int32) Event {
	return Event{Kind: Request, Room: id, Peer: peer, Tokens: 16, MaxNew: 3, Deadline: time.Minute}
}

// about room 1 and its only chunk.
func chunkEvent(k EventKind, l room.Lease, n int32) Event {
	return Event{Kind: k, Room: 1, Lease: l, Conn: 1, Chunk: n, N: 1}
}

func settledEvent(l room.Lease, chunks int) Event {
	return Event{Kind: Settled, Settled: room.Settled{Room: 1, Lease: l, Outcome: room.Done(), Chunks: chunks}}
}

func stepHome(id room.ID, ok bool) Event {
	return Event{Kind: StepDone, Results: []Result{{Room: id, OK: ok}}}
}

// short requests a room whose first block is full with its first token of output.
func short(id room.ID) Event {
	ev := request(id, Local)
	ev.Tokens = 15
	return ev
}

// retracting takes room 1 its block for room 2 where there is one slot, and lets it come back.
var retracting = []Event{short(2), short(1), stepHome(2, true), {Kind: Begun, Room: 2, OK: true}, stepHome(2, true),
	{Kind: Abort, Room: 2}, stepHome(2, true)}

// ways leads room 1 into each phase. Room 2 is there to be in its way.
var ways = [phases][]Event{
	NeedsLink:    {request(1, 7)},
	NeedsBlocks:  {request(2, Local), request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}},
	Preallocated: {request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}},
	Receiving:    {request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, chunkEvent(ChunkArrived, one, 0)},
	Ready: {request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, chunkEvent(ChunkArrived, one, 0),
		request(2, Local), chunkEvent(ChunkPlaced, one, 0), settledEvent(one, 1)},
	Unfilled:    {request(2, Local), request(1, Local)},
	Prefilling:  {request(1, Local)},
	Beginning:   {request(1, Local), stepHome(1, true)},
	Generating:  {request(1, Local), stepHome(1, true), {Kind: Begun, Room: 1, OK: true}},
	Retracted:   retracting[:5],
	Regranted:   {short(2), short(3), short(1), retracting[2], retracting[3], retracting[4], {Kind: Abort, Room: 2}, stepHome(2, true)},
	Recomputing: retracting,
	Draining: {request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, chunkEvent(ChunkArrived, one, 0),
		{Kind: Abort, Room: 1}},
	Succeeded: {request(1, Local), stepHome(1, true), {Kind: Begun, Room: 1, OK: true, Finished: true}},
	Failed:    {request(1, 7), {Kind: Abort, Room: 1}},
}

// inPhase returns a core in which room 1 is in phase p.
func inPhase(t *testing.T, p Phase) *Core {
	t.Helper()
	cfg := Config{Boot: 1, Blocks: 4, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16}
	switch p {
	case NeedsBlocks:
		cfg.Blocks = 2
	case Retracted, Recomputing:
		cfg.Blocks, cfg.AheadTokens = 2, 1
	case Regranted:
		cfg.Blocks, cfg.AheadTokens = 3, 1
	}
	c := New(cfg)
	var out Effects
	for _, ev := range ways[p] {
		c.Step(0, ev, &out)
	}
	if s := c.tombs.Find(1); s != nil && c.find(1) == nil && ended(s.Outcome) == p {
		return c
	}
	if e := c.find(1); e == nil || e.phase != p {
		t.Fatalf("the way to %s leads to %+v", p, e)
	}
	return c
}

// TestEveryPhaseTakesEveryEvent steps every event in every phase, with the right and with
// wrong names. It either is taken, and then the room can still be brought to its end, or is an
// assertion that names the room: an answer to something that was never asked for, or a link
// that ends with a receiver inside.
func TestEveryPhaseTakesEveryEvent(t *testing.T) {
	all := []Event{
		request(1, 7), request(3, 7), request(3, Local), {Kind: Abort, Room: 1}, {Kind: Abort, Room: 3, Cause: room.Overload},
		settledEvent(one, 1), settledEvent(one, 2), settledEvent(one, 0), settledEvent(other, 1),
		{Kind: Settled, Settled: room.Settled{Room: 1, Lease: one, Outcome: room.Fail(room.Overload)}},
		{Kind: LinkUp, Peer: 7, Conn: 2}, {Kind: LinkFailed, Peer: 7}, {Kind: LinkFailed, Peer: 9},
		{Kind: LinkEnd, Conn: 1}, {Kind: LinkEnd, Conn: 9}, {Kind: LinkEnd},
		chunkEvent(ChunkArrived, one, 0), chunkEvent(ChunkArrived, one, 1), chunkEvent(ChunkArrived, other, 0), chunkEvent(ChunkArrived, room.Lease{}, 0),
		chunkEvent(ChunkPlaced, one, 0), chunkEvent(ChunkPlaced, other, 0), chunkEvent(ChunkOff, one, 0), chunkEvent(ChunkOff, one, 3),
		chunkEvent(ChunkRefused, one, 0), chunkEvent(ChunkRefused, other, 0),
		stepHome(1, true), stepHome(1, false), stepHome(2, true), {Kind: StepDone}, {Kind: StepDone, Results: []Result{{Room: 1, OK: true, Finished: true}}},
		{Kind: Begun, Room: 1, OK: true}, {Kind: Begun, Room: 1}, {Kind: Begun, Room: 1, OK: true, Finished: true}, {Kind: Begun, Room: 3},
		{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 1}}, {Kind: TimerFired, Timer: room.Timer{Kind: room.ResendTimer, Room: 1}},
		{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 3}}, {Kind: TimerFired, Timer: tombstoneTimer}, {Kind: TimerFired}, {Kind: Drain},
	}
	// What answers an effect, and may therefore be impossible.
	answers := map[EventKind]bool{LinkUp: true, LinkFailed: true, LinkEnd: true, ChunkPlaced: true, ChunkOff: true, StepDone: true, Begun: true}
	kinds := map[EventKind]bool{}
	for p := Phase(0); p < phases; p++ {
		for _, ev := range all {
			kinds[ev.Kind] = true
			c := inPhase(t, p)
			if said := steps(c, ev); said != "" {
				if !answers[ev.Kind] || !strings.Contains(said, "impossible in room") {
					t.Errorf("%s in %s: %s", eventNames[ev.Kind], p, said)
				}
				continue
			}
			finish(t, c, fmt.Sprintf("%s in %s", eventNames[ev.Kind], p))
		}
	}
	if len(kinds) != int(events)-1 {
		t.Errorf("%d kinds of events were tried, there are %d", len(kinds), events-1)
	}
}

// steps steps one event and returns what a panic said.
func steps(c *Core, ev Event) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	var out Effects
	c.Step(time.Second, ev, &out)
	return ""
}

// finish brings everything home and aborts every room: nothing may be left.
func finish(t *testing.T, c *Core, after string) {
	t.Helper()
	var out Effects
	for range 2 {
		for id := room.ID(1); id <= 3; id++ {
			c.Step(time.Second, Event{Kind: Abort, Room: id}, &out)
		}
		var results []Result
		var home []Event
		for i := c.live.First(); i != room.None; i = c.live.Next(i) {
			e := &c.rooms[i]
			if e.inStep {
				results = append(results, Result{Room: e.id})
			}
			if e.beginning {
				home = append(home, Event{Kind: Begun, Room: e.id})
			}
			for _, x := range e.chunks {
				if !x.isPlaced {
					home = append(home, Event{Kind: ChunkOff, Room: e.id, Lease: e.lease, Chunk: x.n})
				}
			}
		}
		if len(results) > 0 {
			home = append(home, Event{Kind: StepDone, Results: results})
		}
		for _, ev := range home {
			c.Step(time.Second, ev, &out)
		}
	}
	if n := c.Blocks(); !c.Idle() || n.Free != n.Total || c.slots != 0 {
		t.Errorf("after %s: idle %v, blocks %+v, slots %d", after, c.Idle(), n, c.slots)
	}
}

// A first token that cannot be used ends its room for the reason that the driver knows. Where it
// knows none, side data from a link made no sense, or our own step did.
func TestABadFirstTokenEndsTheRoomForItsReason(t *testing.T) {
	remote := []Event{request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, chunkEvent(ChunkArrived, one, 0), chunkEvent(ChunkPlaced, one, 0), settledEvent(one, 1)}
	for _, row := range []struct {
		way         []Event
		cause, want room.Cause
	}{
		{remote, room.NoCause, room.TransferFailed}, {remote, room.Internal, room.Internal},
		{ways[Beginning], room.NoCause, room.Internal}, {ways[Beginning], room.TransferFailed, room.TransferFailed},
	} {
		c := New(Config{Boot: 1, Blocks: 4, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16})
		var out Effects
		for _, ev := range row.way {
			c.Step(0, ev, &out)
		}
		out.Reset()
		c.Step(0, Event{Kind: Begun, Room: 1, Cause: row.cause}, &out)
		ended := out.List[len(out.List)-1]
		for _, x := range out.List {
			if x.Kind == End {
				ended = x
			}
		}
		if ended.Kind != End || ended.Outcome != room.Fail(row.want) {
			t.Errorf("from %v, for %q: %v, want an end with %s", row.way[0].Peer, row.cause, out.List, row.want)
		}
	}
}

// Two names of one prefill worker have one link. When it ends no room of either waits for a word
// over it, and each is dialled again for the rooms that have no lease yet.
func TestPeersThatShareALinkLoseItTogether(t *testing.T) {
	c := New(Config{Boot: 1, Blocks: 4, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16}) // for two rooms
	var out Effects
	for _, ev := range []Event{request(1, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, request(2, 8), {Kind: LinkUp, Peer: 8, Conn: 1},
		request(3, 7), request(4, 8)} {
		c.Step(0, ev, &out)
	}
	out.Reset()
	c.Step(0, Event{Kind: LinkEnd, Conn: 1}, &out)
	var got []string
	for _, x := range out.List {
		switch x.Kind {
		case End:
			got = append(got, fmt.Sprint("end ", x.Room, x.Outcome))
		case Dial:
			got = append(got, fmt.Sprint("dial ", x.Peer))
		}
	}
	slices.Sort(got)
	want := []string{"dial 7", "dial 8", fmt.Sprint("end ", room.ID(1), room.Fail(room.WorkerLost)), fmt.Sprint("end ", room.ID(2), room.Fail(room.WorkerLost))}
	if !slices.Equal(got, want) || c.PhaseOf(3) != NeedsLink.String() || c.PhaseOf(4) != NeedsLink.String() {
		t.Errorf("got %q, rooms 3 and 4 in %s and %s; want %q and both in %s", got, c.PhaseOf(3), c.PhaseOf(4), want, NeedsLink)
	}
	out.Reset()
	c.Step(0, Event{Kind: LinkEnd, Peer: 8, Conn: 1}, &out) // the other peer's
	if len(out.List) != 0 {
		t.Errorf("the end of a link that was heard of: %v", out.List)
	}
}

// A room that prefills here waits for no link: the end of one is nothing to it, also while it waits
// for blocks.
func TestALocalRoomOutlivesEveryLink(t *testing.T) {
	c := New(Config{Boot: 1, Blocks: 4, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16}) // for two rooms
	var out Effects
	for _, ev := range []Event{request(1, Local), request(2, 7), {Kind: LinkUp, Peer: 7, Conn: 1}, request(3, Local), {Kind: LinkEnd, Conn: 1}} {
		c.Step(0, ev, &out)
	}
	if c.PhaseOf(1) != Prefilling.String() || c.PhaseOf(2) != Failed.String() || c.PhaseOf(3) != Unfilled.String() {
		t.Errorf("rooms 1 to 3 are %s, %s, %s; want the local ones to go on", c.PhaseOf(1), c.PhaseOf(2), c.PhaseOf(3))
	}
}
