package life_test

import (
	"strings"
	"testing"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
	"baton/proof/life"
	"baton/proof/relaysim"
	"baton/proof/schedsim"
	"baton/proof/sim"
	"baton/proof/transcript"
)

// far is how far worlds are explored, breadth first: most of what moves a room does so within a few
// events. That everything holds in them is the gate's business.
var far = explore.Options{StatesMax: 50_000}

// watched explores small worlds that lead into every phase. No scope of the gate was seen to make a
// move, to such a depth, that these do not.
func watched(t *testing.T) (p, d, r *life.Log) {
	p, d, r = &life.Log{}, &life.Log{}, &life.Log{}
	pair := sim.Scope{Rooms: 1, Tokens: 31, MaxNew: 2, BlocksP: 2, BlocksD: 3, Slots: 1, ChunkTokens: 16, Abort: true, GiveUp: true,
		Breaks: 1, Refuse: true, WriteFails: true, StepFails: true}
	with := func(sc sim.Scope, f func(*sim.Scope)) sim.Scope { f(&sc); return sc }
	two := sim.Scope{Rooms: 2, Tokens: 15, MaxNew: 1, BlocksP: 1, BlocksD: 2, Slots: 1, ChunkTokens: 16, GiveUp: true}
	for _, sc := range []sim.Scope{
		pair,
		with(pair, func(sc *sim.Scope) { sc.Gateway, sc.Tied, sc.CrashP = true, true, 1 }),
		with(pair, func(sc *sim.Scope) {
			sc.Abort, sc.Refuse, sc.StepFails, sc.Breaks, sc.Forget = false, false, false, 0, 2
		}),
		two,
		with(two, func(sc *sim.Scope) { sc.BlocksD, sc.Breaks = 1, 1 }),
		with(two, func(sc *sim.Scope) { sc.GiveUp, sc.Abort = false, true }),
		{Rooms: 2, Local: true, Tokens: 31, MaxNew: 2, BlocksP: 1, BlocksD: 6, Slots: 1, ChunkTokens: 16, Abort: true, StepFails: true},
		{Rooms: 2, Local: true, Tokens: 31, MaxNew: 2, BlocksP: 1, BlocksD: 3, Slots: 1, ChunkTokens: 16, Abort: true},
	} {
		y := sim.New(sc)
		y.Prefill, y.Decode = p, d
		whole(t, explore.Run(y, far))
	}
	for _, s := range sim.Scopes() {
		switch s.Name {
		case "PROMPT gateway drain", "PROMPT found two rooms", "PROMPT found two rooms abort":
			y := sim.New(s.Scope)
			y.Prefill, y.Decode = p, d
			whole(t, explore.Run(y, far))
		}
	}
	for _, s := range schedsim.Scopes() {
		switch s.Name {
		case "sched TERM two", "sched TERM pair", "sched PROMPT one slot", "sched PROMPT pairs", "sched PROMPT slow", "sched PROMPT three":
			y := schedsim.New(s.Scope)
			y.Log = d
			whole(t, explore.Run(y, far))
		}
	}
	legs := relaysim.Scope{Requests: 1, Limits: relay.Limits{MaxRunning: 1, MaxQueued: 1, MaxTries: 2, RetryBurst: 2}, Prefills: 2, Decodes: 2, Tokens: 1,
		Causes: []room.Cause{room.WorkerLost, room.ClientError}, Gone: true, Silent: true}
	y := relaysim.New(legs)
	y.Log = r
	whole(t, explore.Run(y, far))
	for _, s := range relaysim.Scopes() {
		switch s.Name {
		case "relay PROMPT roster, two", "relay TERM unified", "relay PROMPT two queued", "relay TERM drain",
			"relay TERM buffered", "relay PROMPT buffered":
			y := relaysim.New(s.Scope)
			y.Log = r
			whole(t, explore.Run(y, far))
		}
	}
	return p, d, r
}

func whole(t *testing.T, r explore.Report) {
	t.Helper()
	t.Logf("%d states", r.States)
	if r.Broken != "" {
		t.Fatal(r.Reason, r.Chart)
	}
}

// TestArchitectureShowsTheLives: the page draws the moves that the cores made in these worlds, which
// lead into every phase of the types. A move that none of them leads to is not on the page.
func TestArchitectureShowsTheLives(t *testing.T) {
	const page = "../../ARCHITECTURE.md"
	p, d, r := watched(t)
	var of [3][]string
	for i := prefill.Phase(0); i <= prefill.Failed; i++ {
		of[0] = append(of[0], i.String())
	}
	for i := decode.Phase(0); i <= decode.Failed; i++ {
		of[1] = append(of[1], i.String())
	}
	for i := relay.Phase(0); i <= relay.Closing; i++ {
		of[2] = append(of[2], i.String())
	}
	for i, core := range []struct {
		name  string
		log   *life.Log
		aside []string
	}{
		{"core/prefill", p, []string{"draining", "failed"}},
		{"core/decode", d, []string{"retracted", "draining", "failed"}},
		{"core/relay", r, []string{"retrying", "closing"}},
	} {
		picture, table, err := core.log.Draw(of[i], core.aside)
		if err != nil {
			t.Fatal(err)
		}
		transcript.Section(t, page, "life in "+core.name, "\n"+picture+"\n"+table)
	}
}

// A page can only be as true as the log: a move that a core made is in it under the event that
// made it, and one that another room's event made as a turn that came.
func TestTheLogSeesWhatAStepMoves(t *testing.T) {
	c := prefill.New(prefill.Config{Blocks: 2, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16})
	l := &life.Log{}
	step := func(ev prefill.Event) {
		var out prefill.Effects
		l.Prefill(c, &ev, func() { c.Step(0, ev, &out) })
	}
	for id := room.ID(1); id <= 2; id++ {
		step(prefill.Event{Kind: prefill.Request, Room: id, Tokens: 16, Deadline: 1})
		step(prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: id, Lease: room.Lease{Boot: 1, Seq: uint64(id)}, Conn: 1, Tokens: 16, Left: 1}})
	}
	step(prefill.Event{Kind: prefill.StepDone, Results: []prefill.Result{{Room: 1, OK: true}}})
	step(prefill.Event{Kind: prefill.Abort, Room: 2})
	step(prefill.Event{Kind: prefill.WriteDone, Room: 1, Lease: room.Lease{Boot: 1, Seq: 1}, OK: true})
	step(prefill.Event{Kind: prefill.StepDone, Results: []prefill.Result{{Room: 2, OK: true}}})
	step(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
	step(prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
	picture, table, err := l.Draw([]string{"needs_prealloc", "queued", "computing", "writing", "draining", "succeeded", "failed"}, []string{"draining", "failed"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[*] --> needs_prealloc: request\n", "needs_prealloc --> queued: prealloc\n", "queued --> computing: its turn\n", "computing --> writing: step_done\n"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is missing in\n%s", want, picture)
		}
	}
	if strings.Contains(picture, "needs_prealloc --> computing") || !strings.Contains(table, "| computing | abort | – |\n") {
		t.Errorf("%s\n%s", picture, table)
	}
	if _, _, err := l.Draw([]string{"needs_prealloc", "needs_request", "queued", "computing", "writing", "draining", "succeeded", "failed"}, nil); err == nil {
		t.Error("a phase that nobody ever saw is drawn")
	}
}
