package schedsim

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"baton/core/decode"
	"baton/core/room"
	"baton/proof/explore"
)

// TestCloneIsDeep: events on a copy of a world leave the original alone. (The scopes themselves
// are explored by proof/gate.)
func TestCloneIsDeep(t *testing.T) {
	for _, sc := range Scopes() {
		sys := New(sc.Scope)
		w := sys.Init()
		for n := range 25 {
			possible := sys.Events(&w, nil)
			before := sys.Key(&w, nil)
			for _, e := range possible {
				c := sys.Clone(&w)
				if err := sys.Apply(&c, e); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(before, sys.Key(&w, nil)) {
					t.Fatalf("%s: %s changed the world that it was not done to", sc.Name, sys.Name(&w, e))
				}
			}
			if len(possible) == 0 {
				break
			}
			if err := sys.Apply(&w, possible[n%len(possible)]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWalksOfACrowd goes random ways through worlds that are far too large to explore, some of
// whose rooms come again and again.
func TestWalksOfACrowd(t *testing.T) {
	endless, ends := Crowd(), Crowd()
	ends.Rooms = append([]Room(nil), ends.Rooms...)
	ends.Rooms[2].Endless = false // then order is judged too
	events, seen := 0, map[string]int{}
	for seed := range uint64(600) {
		sc := ends
		if seed%4 == 0 {
			sc = endless
		}
		sc.Ahead = []int{1, 2, 16, 0}[seed/4%4]
		sc.Blocks -= int(seed / 16 % 2) // with fewer the one of several outputs leaves nothing to others
		if seed%2 == 0 {                // outputs of full length
			sc.Abort, sc.Early, sc.StepFails, sc.BegunFails = false, false, false, false
		}
		sys := &counted{System: New(sc), seen: seen}
		r := explore.Walk(sys, explore.TERM, seed, 250)
		events += r.Transitions
		if r.Broken != "" {
			t.Fatalf("seed %d: %s does not hold: %s\n%s", seed, r.Broken, r.Reason, r.Chart)
		}
	}
	for _, name := range New(ends).Witnesses() {
		if seen[name] == 0 {
			t.Errorf("no walk showed %s", name)
		}
	}
	if events < 20_000 {
		t.Errorf("only %d events in all walks", events)
	}
}

// counted counts what is seen.
type counted struct {
	*System
	seen map[string]int
}

func (c *counted) Apply(w *World, e Event) error {
	err := c.System.Apply(w, e)
	for i, name := range c.Witnesses() {
		c.seen[name] += int(w.shows >> i & 1)
	}
	return err
}

// TestTheWorldSeesBrokenPromises feeds the world effects that no sound core makes, of a room that
// made one token and has its first block.
func TestTheWorldSeesBrokenPromises(t *testing.T) {
	sc := Scope{Rooms: []Room{{Tokens: 14, MaxNew: 9}, {Tokens: 15, MaxNew: 9}}, Blocks: 4, Slots: 2, Chunk: 16, Ahead: 1}
	item := func(from, to int32, table ...int32) decode.StepItem {
		return decode.StepItem{Room: 1, From: from, To: to, Blocks: table}
	}
	of := func(branch int32) func(from, to int32, table ...int32) decode.StepItem {
		return func(from, to int32, table ...int32) decode.StepItem {
			it := item(from, to, table...)
			it.Branch = branch
			return it
		}
	}
	step := func(items ...decode.StepItem) decode.Effect { return decode.Effect{Kind: decode.Step, Items: items} }
	again := item(0, 14, 0)
	again.Prefill, again.Again = true, true
	second, third := of(1), of(2)
	other := item(0, 15, 0)
	other.Room, other.Prefill, other.Last = 2, true, true
	for _, c := range []struct {
		want    string
		effects []decode.Effect
	}{
		{"STREAM: room 1 emits", []decode.Effect{{Kind: decode.Emit, Room: 1}}},
		{"STREAM: room 1 begins twice", []decode.Effect{{Kind: decode.Begin, Room: 1}}},
		{"STREAM: room 1 is a success", []decode.Effect{{Kind: decode.End, Room: 1, Outcome: room.Done()}}},
		{"CAUSE: room 1 ends as", []decode.Effect{{Kind: decode.End, Room: 1, Outcome: room.Fail(room.Internal)}}},
		{"CAUSE: room 2 is refused", []decode.Effect{{Kind: decode.Refuse, Room: 2, Outcome: room.Fail(room.Overload)}}},
		{"RELEASE: room 1 ends twice", []decode.Effect{{Kind: decode.End, Room: 1, Outcome: room.Fail(room.Cancelled)}, {Kind: decode.End, Room: 1, Outcome: room.Fail(room.Cancelled)}}},
		{"S6: room 1 is retracted", []decode.Effect{{Kind: decode.Retract, Room: 1}}},
		{"while one is running", []decode.Effect{step(item(14, 15, 0)), step(item(14, 15, 0))}},
		{"STREAM: room 1 feeds token 15", []decode.Effect{step(item(15, 16, 0))}},
		{"room 1 computes tokens 0 to 14", []decode.Effect{step(again)}},
		{"OWN: room 1 needs the KV", []decode.Effect{step(item(14, 15, 1))}},
		{"OWN: room 2 computes in a block of another", []decode.Effect{step(other)}},
		{"QUIET: a block of room 1 is freed", []decode.Effect{step(item(14, 15, 0)), {Kind: decode.Freed, Room: 1, Blocks: []int32{0}}}},
		{"OWN: two outputs of room 1 write one block", []decode.Effect{step(item(14, 15, 0), second(14, 15, 0))}},
		{"OWN: block 0, which holds", []decode.Effect{{Kind: decode.Step, Copies: []decode.Copy{{From: 0, To: 0}}, Items: []decode.StepItem{item(14, 15, 0)}}}},
		{"OWN: room 1 needs the KV", []decode.Effect{step(second(14, 15, 3))}}, // nothing was copied
		{"QUIET: a block of room 1 is freed that a step still copies", []decode.Effect{
			{Kind: decode.Step, Copies: []decode.Copy{{From: 0, To: 3}}, Items: []decode.StepItem{second(14, 15, 3)}}, {Kind: decode.Freed, Room: 1, Blocks: []int32{0}}}},
		{"room 1 computes for its output 2", []decode.Effect{step(third(14, 15, 0))}},
		{"STREAM: room 1 has several outputs", []decode.Effect{{Kind: decode.Retract, Room: 1}}},
		{"OWN: room 2 frees a block of room 1", []decode.Effect{{Kind: decode.Freed, Room: 2, Blocks: []int32{0}}}},
	} {
		sys := New(sc)
		sys.scope.Rooms = slices.Clone(sc.Rooms)
		events := []Event{{Kind: ask}, {Kind: home}, {Kind: begun}}
		if several := strings.Contains(c.want, "output") || len(c.effects[0].Copies) > 0 || c.effects[0].Items != nil && c.effects[0].Items[0].Branch > 0; several {
			sys.scope.Rooms[0].Branches = 2
			events = append(events, Event{Kind: begun, Branch: 1})
		}
		w := sys.Init()
		for _, e := range events {
			if err := sys.Apply(&w, e); err != nil {
				t.Fatal(err)
			}
		}
		w.step, w.rooms[1].owed = nil, true
		w.rooms[0].hurt = c.want != "CAUSE: room 1 ends as"
		var err error
		for i := range c.effects {
			if err = sys.effect(&w, &c.effects[i]); err != nil && i < len(c.effects)-1 {
				t.Errorf("%s: too early: %v", c.want, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
