package poolsim

import (
	"bytes"
	"testing"

	"baton/core/blocks"
	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
)

// TestCloneIsDeep: events on a copy of a world leave the original alone.
func TestCloneIsDeep(t *testing.T) {
	for _, s := range Scopes() {
		switch {
		case s.Holder != nil:
			deep(t, NewHolders(*s.Holder))
		case s.Pair != nil:
			deep(t, NewPairs(*s.Pair))
		case s.Local != nil:
			deep(t, NewLocals(*s.Local))
		default:
			deep(t, NewPrefills(*s.Prefill))
		}
	}
}

func deep[S any, E comparable](t *testing.T, sys explore.System[S, E]) {
	w := sys.Init()
	for n := 0; ; n++ {
		possible := sys.Events(&w, nil)
		if len(possible) == 0 {
			return
		}
		before := sys.Key(&w, nil)
		for _, e := range possible {
			c := sys.Clone(&w)
			if err := sys.Apply(&c, e); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, sys.Key(&w, nil)) {
				t.Fatalf("%s changed the world that it was not done to", sys.Name(&w, e))
			}
		}
		if err := sys.Apply(&w, possible[n%len(possible)]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheWorldSeesBrokenPromises feeds the world effects that no sound core makes. Room 1 has
// come and computes block 0 of 0, 1, 2; room 2 waits; 3 and 4 are free.
func TestTheWorldSeesBrokenPromises(t *testing.T) {
	item := func(id room.ID, from, to int32, table ...int32) prefill.Effect {
		return prefill.Effect{Kind: prefill.Step, Items: []prefill.StepItem{{Room: id, From: from, To: to, Last: to == 33, Blocks: table}}}
	}
	write := func(id room.ID, first int32, table ...int32) prefill.Effect {
		return prefill.Effect{Kind: prefill.Write, Room: id, FirstBlock: first, Blocks: table}
	}
	ends := prefill.Effect{Kind: prefill.End, Room: 1, Outcome: room.Done()}
	for _, c := range []struct {
		want string
		home bool // the step has come home, so that block 0 holds "a"
		x    prefill.Effect
	}{
		{"a second step", false, item(2, 0, 16, 3, 4)},
		{"a step on a block of another", true, item(2, 0, 16, 1, 3, 4)},
		{"a step on what a write reads", true, item(1, 0, 16, 0, 1, 2)},
		{"a step behind what is not there", true, item(2, 16, 32, 3, 4)},
		{"a step on another table", true, item(1, 16, 32, 0, 1, 3)},
		{"a step of nothing", true, item(1, 16, 16, 0, 1, 2)},
		{"a find of a free block", true, write(2, 0, 3)},
		{"a find of another's prefix", true, write(3, 0, 0)},
		{"a write out of turn", true, write(1, 2, 2)},
		{"a write of what is not there", true, write(1, 1, 1)},
		{"a block freed while it is written", false, prefill.Effect{Kind: prefill.Freed, Room: 1, Blocks: []int32{0}}},
		{"a block freed while it is read", true, prefill.Effect{Kind: prefill.Freed, Room: 1, Blocks: []int32{0}}},
		{"a stranger's block freed", true, prefill.Effect{Kind: prefill.Freed, Room: 2, Blocks: []int32{1}}},
		{"an end with a step under way", false, ends},
		{"a refusal", true, prefill.Effect{Kind: prefill.Refuse, Room: 2}},
	} {
		s := NewPrefills(PrefillScope{Prompts: []string{"ab", "ac", "x"}, Tail: 1, Blocks: 5, Running: 3, Chunk: 1})
		w := s.Init()
		if err := s.do(&w, ptr(item(1, 0, 16, 0, 1, 2))); err != nil {
			t.Fatal(err)
		}
		if c.home {
			w.mem.fill("ab", w.rooms[0].table, 0)
			w.step = nil
			if err := s.do(&w, ptr(write(1, 0, 0))); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.do(&w, &c.x); err == nil {
			t.Errorf("%s is not seen", c.want)
		} else {
			t.Logf("%s: %v", c.want, err)
		}
	}
}

func ptr[T any](x T) *T { return &x }

// TestTheMemorySeesBrokenCaches: what the pool says is compared with what is there.
func TestTheMemorySeesBrokenCaches(t *testing.T) {
	nobody := func(int32) bool { return false }
	for _, c := range []struct {
		want  string
		count blocks.Count
		found int32 // block that is found as "a"
	}{
		{"a count", blocks.Count{Total: 3, Free: 3}, -1},
		{"a sum", blocks.Count{Total: 3, Cached: 2}, -1},
		{"another prefix", blocks.Count{Total: 3, Cached: 2, Free: 1}, 1},
		{"a free block", blocks.Count{Total: 3, Cached: 2, Free: 1}, 2},
	} {
		m := newMemory(3)
		m.used[0], m.used[1] = true, true
		m.bytes[0], m.bytes[1], m.bytes[2] = "a", "ab", "a"
		find := func(k blocks.Key) (int32, bool) { return c.found, c.found >= 0 && k == keyOf("a") }
		if err := m.checked([]string{"ab"}, c.count, find, nobody); err == nil {
			t.Errorf("%s is not seen", c.want)
		}
	}
	m := newMemory(2)
	m.used[0], m.used[1], m.bytes[0], m.bytes[1] = true, true, "a", "ab"
	if _, err := m.give(0, nobody); err == nil {
		t.Error("a beginning that is evicted before what follows it is not seen")
	}
	m.fill("xy", []int32{1, 0}, 1)
	if m.bytes[0] != "" {
		t.Errorf("behind a wrong block stands %q", m.bytes[0])
	}
}
