package prefill

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/proof/transcript"
)

// TestEveryPhaseHasAnOwnerAndAnExit holds the phase table complete, and its polls and queues
// in the order in which a room passes them.
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
		if p > 0 && live && (row.Poll < phaseTable[p-1].Poll || row.Queue < phaseTable[p-1].Queue) {
			t.Errorf("%s: poll %s and queue %s go backwards", p, row.Poll, row.Queue)
		}
		if p.timed() != (row.Exit == "deadline") {
			t.Errorf("%s: exit is %q, deadline armed: %v", p, row.Exit, p.timed())
		}
	}
	if ended(room.Done()).Poll() != room.PollSuccess || ended(room.Fail(room.Cancelled)).Poll() != room.PollFailed {
		t.Error("an aborted room shows as Failed, a success as Success")
	}
}

// TestArchitectureShowsThePhases: the page's table is this package's.
func TestArchitectureShowsThePhases(t *testing.T) {
	transcript.Section(t, "../../ARCHITECTURE.md", "phases of core/prefill", transcript.PhaseTable(phaseTable[:]))
}

// ways leads room 1 into each phase.
var ways = [phases][]Event{
	NeedsPrealloc: {request(1)},
	NeedsRequest:  {prealloc(1)},
	Queued:        {request(2), prealloc(2), request(1), prealloc(1)}, // room 2 has the step
	Computing:     {request(1), prealloc(1)},
	Writing:       {request(1), prealloc(1), stepHome(1)},
	Draining:      {request(1), prealloc(1), {Kind: Abort, Room: 1}},
	Succeeded:     {request(1), prealloc(1), stepHome(1), {Kind: WriteDone, Room: 1, Lease: room.Lease{Boot: 1, Seq: 1}, OK: true}},
	Failed:        {request(1), {Kind: Abort, Room: 1}},
}

func request(id room.ID) Event {
	return Event{Kind: Request, Room: id, Tokens: 16, Deadline: time.Minute}
}

func prealloc(id room.ID) Event {
	return Event{Kind: Prealloc, Prealloc: room.Prealloc{Room: id, Lease: room.Lease{Boot: 1, Seq: uint64(id)}, Conn: 1, Tokens: 16, Left: time.Minute}}
}

func stepHome(id room.ID) Event {
	return Event{Kind: StepDone, Results: []Result{{Room: id, OK: true}}}
}

// inPhase returns a core in which room 1 is in phase p.
func inPhase(t *testing.T, p Phase) *Core {
	t.Helper()
	c := New(Config{Blocks: 2, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16})
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
// assertion that names the room: an answer to something that was never asked for.
func TestEveryPhaseTakesEveryEvent(t *testing.T) {
	lease := room.Lease{Boot: 1, Seq: 1}
	other := room.Lease{Boot: 1, Seq: 9}
	events := []Event{
		request(1), request(3), {Kind: Abort, Room: 1}, {Kind: Abort, Room: 3, Cause: room.Overload},
		prealloc(1), prealloc(3), {Kind: Prealloc, Prealloc: room.Prealloc{Room: 1, Lease: other, Conn: 1, Tokens: 16}},
		{Kind: Cancel, Cancel: room.Cancel{Room: 1, Lease: lease}}, {Kind: Cancel, Cancel: room.Cancel{Room: 1, Lease: other}},
		{Kind: Cancel, Cancel: room.Cancel{Room: 3, Lease: other}},
		stepHome(1), {Kind: StepDone, Results: []Result{{Room: 1}}}, stepHome(3), {Kind: StepDone},
		{Kind: WriteDone, Room: 1, Lease: lease, OK: true}, {Kind: WriteDone, Room: 1, Lease: lease},
		{Kind: WriteDone, Room: 1, Lease: other, OK: true}, {Kind: WriteDone, Room: 1, Lease: lease, Chunk: 7},
		{Kind: LinkEnd, Boot: 1, Conn: 1}, {Kind: LinkEnd, Boot: 2, Conn: 1}, {Kind: LinkEnd, Boot: 1, Conn: 2}, {Kind: LinkEnd, Boot: 1}, {Kind: LinkEnd},
		{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 1}},
		{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 3}},
		{Kind: TimerFired, Timer: tombstoneTimer}, {Kind: TimerFired}, {Kind: Drain},
	}
	kinds := map[EventKind]bool{}
	for p := Phase(0); p < phases; p++ {
		for _, ev := range events {
			kinds[ev.Kind] = true
			c := inPhase(t, p)
			if said := steps(c, ev); said != "" {
				if ev.Kind != StepDone && ev.Kind != WriteDone || !strings.Contains(said, "impossible in room") {
					t.Errorf("%s in %s: %s", eventNames[ev.Kind], p, said)
				}
				continue
			}
			finish(t, c, fmt.Sprintf("%s in %s", eventNames[ev.Kind], p))
		}
	}
	if len(kinds) != int(eventsAll)-1 {
		t.Errorf("%d kinds of events were tried, there are %d", len(kinds), eventsAll-1)
	}
}

// eventsAll is the number of kinds, where a variable named events hides it.
const eventsAll = events

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
		for i := c.live.First(); i != room.None; i = c.live.Next(i) {
			if e := &c.rooms[i]; e.inStep {
				results = append(results, Result{Room: e.id})
			}
		}
		if len(results) > 0 {
			c.Step(time.Second, Event{Kind: StepDone, Results: results}, &out)
		}
		for i := c.live.First(); i != room.None; {
			e := &c.rooms[i]
			i = c.live.Next(i)
			for _, chunk := range append([]int32(nil), e.out...) {
				c.Step(time.Second, Event{Kind: WriteDone, Room: e.id, Lease: e.lease, Chunk: chunk}, &out)
			}
		}
	}
	if n := c.Blocks(); !c.Idle() || n.Free != n.Total {
		t.Errorf("after %s: idle %v, blocks %+v", after, c.Idle(), n)
	}
}
