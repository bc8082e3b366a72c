package decode

import (
	"slices"
	"testing"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// lending is a core with rooms that generate, two of them from one prompt, and the step that it is in.
func lending(t *testing.T, ahead int) (c *Core, out *Effects) {
	c = New(Config{Boot: 1, Blocks: 4096, QueuedMax: 8, RunningMax: 8, ChunkTokens: 512, AheadTokens: ahead, Lends: true})
	out = &Effects{}
	c.Step(0, Event{Kind: Request, Room: 1, Peer: Local, Tokens: 20, Branches: 2, MaxNew: 10_000, Deadline: time.Hour}, out)
	c.Step(0, Event{Kind: Request, Room: 2, Peer: Local, Tokens: 16, MaxNew: 30_000, Deadline: time.Hour, Keys: make([]blocks.Key, 1, 8)}, out)
	for n := 0; c.count[Generating] < 2 || len(c.items) < 3; n++ {
		list := slices.Clone(out.List)
		if out.Reset(); n == 10 {
			t.Fatal("the rooms do not generate")
		}
		for _, x := range list {
			switch x.Kind {
			case Begin:
				c.Step(0, Event{Kind: Begun, Room: x.Room, Branch: x.Branch, OK: true}, out)
			case Step:
				c.Step(0, Event{Kind: StepDone, Results: home(x.Items, nil)}, out)
			}
		}
	}
	return c, out
}

// home brings the items of a step home, in the memory of into.
func home(items []StepItem, into []Result) []Result {
	for _, it := range items {
		r := Result{Room: it.Room, Branch: it.Branch, OK: true}
		if it.Room == 2 && !it.Prefill && it.To%room.BlockTokens == 0 {
			r.Key = blocks.Key{byte(it.To), byte(it.To >> 8), 1}
		}
		into = append(into, r)
	}
	return into
}

// TestAStepThatGeneratesAllocatesNothing: of a core that lends, but for a room's next block, and for
// the list of its keys, which doubles.
func TestAStepThatGeneratesAllocatesNothing(t *testing.T) {
	c, out := lending(t, 0)
	results := make([]Result, 0, 3)
	step := func() {
		results = home(c.items, results[:0])
		out.Reset()
		c.Step(0, Event{Kind: StepDone, Results: results}, out)
		c.NextTimer()
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(3000, step); n >= 1 {
		t.Errorf("%v allocations in a step", n)
	}
}

// TestLentItemsStandUntilTheStepIsHome: whatever else happens meanwhile; and a copy of the core, and
// the driver's keys, are not written to.
func TestLentItemsStandUntilTheStepIsHome(t *testing.T) {
	c, out := lending(t, 1)
	driver := c.find(2).keys[:1:1]
	items, then := c.items, slices.Clone(c.items)
	twin := c.Clone()
	copied := slices.Clone(twin.find(2).keys)
	for _, ev := range []Event{{Kind: Request, Room: 3, Peer: Local, Tokens: 50, MaxNew: 9, Deadline: time.Hour}, {Kind: Abort, Room: 1}, {Kind: Drain}} {
		c.Step(0, ev, out)
		if !slices.EqualFunc(items, then, func(a, b StepItem) bool {
			return a.Room == b.Room && a.Branch == b.Branch && a.From == b.From && slices.Equal(a.Blocks, b.Blocks)
		}) {
			t.Fatalf("%s: the items of the outstanding step have changed", ev.Kind)
		}
	}
	for range 100 {
		out.Reset()
		c.Step(0, Event{Kind: StepDone, Results: home(c.items, nil)}, out)
	}
	if len(c.find(2).keys) < 4 || !slices.Equal(twin.find(2).keys, copied) || driver[0] != (blocks.Key{}) {
		t.Errorf("keys of the core %d, of its copy %v, were %v", len(c.find(2).keys), twin.find(2).keys, copied)
	}
}
