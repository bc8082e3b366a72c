package schedsim

import (
	"fmt"
	"slices"

	"baton/core/room"
)

// views is what the core shows of its rooms.
type views struct {
	order []uint8 // oldest first
	of    [roomsMax]view
}

// view is what the judge needs of a room; the zero view is one that is not here.
type view struct {
	phase   string
	waits   string
	running bool // has a slot
	decided bool
	table   uint8 // blocks in its last step
}

func (v *views) look(w *World) {
	v.order, v.of = v.order[:0], [roomsMax]view{}
	w.core.Rooms(func(x room.View) bool {
		r := uint8(x.Room - 1)
		v.order = append(v.order, r)
		v.of[r] = view{x.Phase, x.WaitsFor, x.Queue == room.Running, x.Outcome.Ended(), w.rooms[r].out[0].table}
		return true
	})
}

// hungry says that a room waits for blocks and holds none.
func (v view) hungry() bool { return v.phase == "needs_blocks" || v.phase == "retracted" }

// waitsForSlot says that it has blocks.
func (v view) waitsForSlot() bool {
	return v.phase == "ready" || v.phase == "unfilled" || v.phase == "regranted"
}

// holds says that a room holds blocks, and is not on its way out.
func (v view) holds() bool {
	return v.waitsForSlot() || v.computes() || v.phase == "preallocated" || v.phase == "receiving" || v.phase == "beginning" || v.phase == "generating"
}

func (v view) computes() bool { return v.phase == "prefilling" || v.phase == "recomputing" }

// couldYield says that a room holds blocks that nothing touches, between steps.
func (v view) couldYield() bool { return v.waitsForSlot() || v.computes() || v.phase == "generating" }

// isAway says that a room was retracted and does not generate yet.
func (v view) isAway() bool {
	return v.phase == "retracted" || v.phase == "regranted" || v.phase == "recomputing"
}

// judge looks at the whole after a step.
func (y *System) judge(w *World) error {
	n := w.core.Blocks()
	switch {
	case n.Total != n.Free+n.Cached+n.Held+n.Quarantined:
		return fmt.Errorf("the core counts its blocks wrong: %+v", n)
	case w.core.Idle() && n.Held != 0:
		return fmt.Errorf("RELEASE: the core is idle and still holds blocks: %+v", n)
	}
	armed := w.armed()
	for r := range y.scope.Rooms {
		s, v := &w.rooms[r], y.after.of[r]
		switch {
		case s.owed != (v.phase != ""):
			return fmt.Errorf("TERM: room %d is in phase %q and owed an end: %v", r+1, v.phase, s.owed)
		case s.owed && !v.decided && armed>>r&1 == 0:
			return fmt.Errorf("TERM: room %d has no deadline in phase %s", r+1, v.phase)
		}
		over := 0
		for _, o := range s.out {
			if s.owed && !v.decided && o.emitted != o.fed {
				return fmt.Errorf("STREAM: room %d emitted %d of the %d tokens that the engine made", r+1, o.emitted, o.fed)
			}
			over += int(flags(o.over))
		}
		if over > 0 && s.owed && !v.decided {
			w.shows |= 1 << sawLess
			if over == y.scope.Rooms[r].branches() {
				return fmt.Errorf("TERM: all outputs of room %d are over, and the room is not", r+1)
			}
		}
	}
	for _, k := range w.kv {
		if k.room == 0 {
			continue
		}
		s, v := &w.rooms[k.room-1], y.after.of[k.room-1]
		if !s.owed || v.hungry() {
			return fmt.Errorf("RELEASE: a block still holds KV of room %d, which gave its blocks back", k.room)
		}
		// But for the end of the prompt, which the first output leaves to the others.
		isPrompt := int(k.index) < room.BlocksFor(y.scope.Rooms[k.room-1].Tokens)
		if k.branch > 0 && s.out[k.branch-1].over && !v.decided && (k.branch > 1 || !isPrompt) {
			return fmt.Errorf("RELEASE: a block still holds KV of an output of room %d that is over", k.room)
		}
	}
	for r := range w.rooms {
		s := &w.rooms[r]
		if y.letIn() {
			s.since = 0
		}
		if s.over {
			*s = state{asked: true, over: true} // nothing that it was counts any more
		}
	}
	if !y.endless() { // there liveness has to see it by itself
		if err := y.order(w); err != nil {
			return err
		}
	}
	return y.idle(w, n.Free+n.Cached)
}

// letIn says that a room got blocks that had none.
func (y *System) letIn() bool {
	for r := range y.scope.Rooms {
		if y.after.of[r].holds() && !y.before.of[r].holds() {
			return true
		}
	}
	return false
}

// order checks who got blocks and who gave them back.
func (y *System) order(w *World) error {
	hungry, waits := uint8(0), uint8(0) // the oldest that waits for blocks, and for slots, from 1
	for _, r := range y.after.order {
		switch v := y.after.of[r]; {
		case v.running && !y.before.of[r].running && waits > 0:
			return fmt.Errorf("S1: room %d runs before room %d, which came earlier", r+1, waits)
		case v.waitsForSlot() && waits == 0:
			waits = r + 1
		}
		switch v := y.after.of[r]; {
		case v.hungry() && hungry == 0:
			hungry = r + 1
		case v.holds() && !y.before.of[r].holds() && hungry > 0:
			return fmt.Errorf("S1: room %d gets blocks before room %d, which came earlier", r+1, hungry)
		}
	}
	for _, gave := range y.took {
		older, past := false, false
		for _, r := range y.after.order {
			v := y.after.of[r]
			switch {
			case r == gave:
				past = true
			case !past:
				older = older || v.holds()
			case v.couldYield() && y.before.of[r].holds() && !(v.phase == "generating" && y.scope.Rooms[r].branches() > 1):
				return fmt.Errorf("S7: room %d is retracted, room %d came later and keeps its blocks", gave+1, r+1)
			}
		}
		if y.forItself(w, gave) && slices.ContainsFunc(y.after.of[:], func(v view) bool { return v.phase == "draining" }) {
			return fmt.Errorf("S8: room %d gives its own blocks back although somebody who leaves still holds some", gave+1)
		}
		if !older {
			return fmt.Errorf("S7: room %d is retracted although it is the oldest that holds blocks", gave+1)
		}
	}
	return nil
}

// forItself says that a room which gave its blocks back was the only one, of those that it could
// have done it for, that needed one.
func (y *System) forItself(w *World, gave uint8) bool {
	for _, r := range y.after.order {
		o, one := &w.rooms[r].out[0], &y.scope.Rooms[r]
		short := o.fed > 0 && one.branches() == 1 && one.Tokens+int(o.fed) > int(y.before.of[r].table)*room.BlockTokens
		if r == gave {
			return short && y.before.of[r].phase == "generating"
		}
		if short && y.before.of[r].phase == "generating" {
			return false
		}
	}
	return false
}

// idle checks that nothing that fits waits.
func (y *System) idle(w *World, free int) error {
	running, begins, first := 0, false, true
	for r := range y.scope.Rooms {
		if y.after.of[r].running {
			for _, o := range w.rooms[r].out[:y.scope.Rooms[r].branches()] {
				running += int(flags(!o.over || o.emitted < o.fed)) // one that ends with its room keeps its slot as long
			}
		}
		begins = begins || w.rooms[r].begins()
	}
	if running > y.scope.Slots {
		return fmt.Errorf("BOUND: %d outputs run, with %d slots", running, y.scope.Slots)
	}
	for _, r := range y.after.order {
		v, s, one := y.after.of[r], &w.rooms[r], &y.scope.Rooms[r]
		if v.waits == room.OlderPrefix {
			return fmt.Errorf("TRUTH: room %d waits for %s, and no prompt begins as another", r+1, v.waits)
		}
		if v.waitsForSlot() && first {
			if running+one.branches() <= y.scope.Slots {
				return fmt.Errorf("room %d waits for %d slots with %d of %d taken", r+1, one.branches(), running, y.scope.Slots)
			}
			first = false // those behind wait for it
		}
		switch {
		case v.waitsForSlot(), w.step != nil:
			continue
		case v.computes(), v.phase == "generating" && v.waits == "decode: engine":
			return fmt.Errorf("room %d is %s and the engine rests", r+1, v.phase)
		case v.phase == "generating":
			w.shows |= 1 << sawSatOut
		}
		if v.hungry() && !begins {
			fed := int(s.out[0].fed)
			ahead := one.MaxNew - fed
			if y.scope.Ahead > 0 && one.branches() == 1 {
				ahead = min(ahead, y.scope.Ahead)
			}
			if need := one.blocks(fed + ahead); need <= free {
				return fmt.Errorf("nothing runs, and room %d waits for %d blocks with %d free", r+1, need, free)
			}
			begins = true // those behind wait for it
		}
	}
	return nil
}
