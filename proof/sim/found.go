package sim

import (
	"errors"
	"fmt"
	"slices"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// This file is what the world knows of prefix caches, in scopes with Keys. All rooms have one
// prompt there, so that what a block holds says nothing of whose it is: the tables do.

// stamp names a piece of KV: block i of a room's prompt, or of everybody's. 0 is nothing.
func (y *System) stamp(r uint8, i int) uint8 {
	if y.scope.Keys {
		r = 0
	}
	return stamp(r, i)
}

// keyOf is the key of block i of everybody's prompt.
func keyOf(i int) blocks.Key { return blocks.Key{byte(i + 1)} }

// keys are those of a prompt's complete blocks.
func (y *System) keys(tokens int) []blocks.Key {
	if !y.scope.Keys {
		return nil
	}
	all := make([]blocks.Key, tokens/room.BlockTokens)
	for i := range all {
		all[i] = keyOf(i)
	}
	return all
}

// before is a room that was here before the world began, with the first blocks of the prompt, and
// is forgotten but for these; and the boot of the decode worker that it was on.
const (
	before     room.ID   = roomsMax + 1
	bootBefore room.Boot = bootsMax + 1
)

var forgotten = room.Timer{Kind: room.TombstoneTimer}

// knowsD lets decode's cache have the first n blocks of the prompt, as a room computes them.
func (y *System) knowsD(w *world, n int) {
	if n == 0 {
		return
	}
	tokens := n * room.BlockTokens
	todo := []decode.Event{{Kind: decode.Request, Room: before, Peer: decode.Local, Tokens: tokens, Keys: y.keys(tokens), MaxNew: 1, Deadline: deadline}}
	for len(todo) > 0 {
		var out decode.Effects
		w.d.Step(0, todo[0], &out)
		todo = todo[1:]
		for _, x := range out.List {
			switch x.Kind {
			case decode.Step:
				todo = append(todo, decode.Event{Kind: decode.StepDone, Results: []decode.Result{{Room: before, OK: true}}})
			case decode.Begin:
				todo = append(todo, decode.Event{Kind: decode.Begun, Room: before, OK: true, Finished: true})
			case decode.End:
				todo = append(todo, decode.Event{Kind: decode.TimerFired, Timer: forgotten})
			}
		}
	}
	for i := range n {
		b, ok := w.d.Found(keyOf(i))
		if !ok {
			panic("sim: decode's pool is too small for what it is to know")
		}
		w.dst[b] = y.stamp(0, i)
	}
}

// knowsP lets prefill's cache have the first n blocks of the prompt.
func (y *System) knowsP(w *world, n int) {
	if n == 0 {
		return
	}
	tokens, l := n*room.BlockTokens, room.Lease{Boot: bootBefore, Seq: 1}
	todo := []prefill.Event{
		{Kind: prefill.Request, Room: before, Tokens: tokens, Keys: y.keys(tokens), Deadline: deadline},
		{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: before, Lease: l, Conn: 1, Tokens: tokens, Left: deadline}},
	}
	for len(todo) > 0 {
		var out prefill.Effects
		w.p.Step(0, todo[0], &out)
		todo = todo[1:]
		for _, x := range out.List {
			switch x.Kind {
			case prefill.Step:
				todo = append(todo, prefill.Event{Kind: prefill.StepDone, Results: []prefill.Result{{Room: before, OK: true}}})
			case prefill.Write:
				todo = append(todo, prefill.Event{Kind: prefill.WriteDone, Room: before, Lease: l, Chunk: x.Chunk, OK: true})
			case prefill.End:
				todo = append(todo, prefill.Event{Kind: prefill.TimerFired, Timer: forgotten})
			}
		}
	}
	for i := range n {
		b, ok := w.p.Found(keyOf(i))
		if !ok {
			panic("sim: prefill's pool is too small for what it is to know")
		}
		w.src[b] = y.stamp(0, i)
	}
}

// tables are decode's block tables, by room.
func (y *System) tables(w *world, all *[roomsMax][]int32) {
	for r := range uint8(y.scope.Rooms) {
		all[r], _ = w.d.Table(id(r))
	}
}

// handed judges which blocks rooms of decode gave back and got in a step, and what can be found
// now. Of blocks that go to the cache, or come from there, no effect speaks. It comes before the
// step's effects.
func (y *System) handed(w *world) error {
	var now [roomsMax][]int32
	y.tables(w, &now)
	for r, table := range y.held {
		for _, b := range table {
			if !slices.Contains(now[r], b) {
				if err := y.left(w, uint8(r), b, &now); err != nil {
					return err
				}
			}
		}
	}
	for _, x := range y.outD.List {
		if x.Kind == decode.Retract {
			y.held[x.Room-1] = nil // what it has now it has anew
		}
	}
	for r, table := range now {
		_, filled := w.d.Table(id(uint8(r)))
		for i, b := range table {
			if slices.Contains(y.held[r], b) {
				continue
			}
			if i < int(filled)/room.BlockTokens {
				if f, ok := w.d.Found(keyOf(i)); !ok || f != b || w.dst[b] != y.stamp(uint8(r), i) {
					return fmt.Errorf("POISON: room %d takes block %d for the beginning of its prompt, and it holds something else", r+1, i)
				}
				continue
			}
			if err := y.fresh(w, r, b, &now); err != nil {
				return err
			}
		}
	}
	for i := range y.scope.Tokens / room.BlockTokens {
		if b, ok := w.d.Found(keyOf(i)); ok {
			if w.dst[b] != y.stamp(0, i) {
				return fmt.Errorf("POISON: decode finds something else under the key of block %d", i)
			}
			w.by[b] = origin{} // whoever finds it does not care
		}
	}
	return nil
}

// left notes that a room has a block no more.
func (y *System) left(w *world, r uint8, b int32, now *[roomsMax][]int32) error {
	for k := range w.nIn {
		if c := unpackChunk(w.in[k].id); c.room == r && w.in[k].has(b) {
			return errors.New("QUIET: decode lets go of a block that a receiver is inside of")
		}
	}
	for _, it := range w.dStep.item[:w.dStep.n] {
		if it.room == r && it.uses(b) {
			return errors.New("QUIET: decode lets go of a block that its engine still uses")
		}
	}
	for _, table := range now {
		if slices.Contains(table, b) {
			w.shows |= 1 << sawShared
		}
	}
	return nil
}

// fresh notes that a block was given to a room to be filled. What it held is lost: it may have been
// in the cache until now.
func (y *System) fresh(w *world, of int, b int32, now *[roomsMax][]int32) error {
	for r, table := range now {
		if r != of && slices.Contains(table, b) {
			return fmt.Errorf("OWN: decode gives room %d a block that room %d holds", of+1, r+1)
		}
	}
	for k := range w.nIn {
		if w.in[k].has(b) {
			return errors.New("QUIET: decode gives a block away that a receiver is inside of")
		}
	}
	for _, it := range w.dStep.item[:w.dStep.n] {
		if it.uses(b) {
			return errors.New("QUIET: decode gives a block away that its engine still uses")
		}
	}
	w.dst[b], w.by[b] = 0, origin{}
	return nil
}

func (in *inside) has(b int32) bool {
	for _, x := range in.table[:unpackChunk(in.id).blocks] {
		if int32(x) == b {
			return true
		}
	}
	return false
}

// beginFound is beginD in a scope with Keys: every block of the prompt was found, or was placed
// under the room's own lease, in one pass, or was computed here.
func (y *System) beginFound(w *world, r uint8, l room.Lease) error {
	table, _ := w.d.Table(id(r))
	var by origin
	for i := range room.BlocksFor(y.scope.Tokens) {
		b := table[i]
		at := w.by[b]
		switch {
		case w.dst[b] != y.stamp(r, i):
			return fmt.Errorf("decode starts room %d on incomplete KV", r+1)
		case at == (origin{}): // found, or computed here
		case lease(at.boot, at.seq) != l:
			return fmt.Errorf("OWN: decode starts room %d on KV of another lease", r+1)
		case i < int(w.from[r]):
			return fmt.Errorf("OWN: block %d of room %d was found and then written", i, r+1)
		case by != (origin{}) && at != by:
			return fmt.Errorf("decode starts room %d on KV of two passes", r+1)
		default:
			by = at
		}
	}
	return nil
}

// startFound judges the table of a step's item at prefill: what the item reads is what was found
// or computed, and nobody reads what it writes. first says that the room has just got its blocks.
func (y *System) startFound(w *world, it *prefill.StepItem) error {
	for i, b := range it.Blocks {
		switch {
		case i < int(it.From)/room.BlockTokens:
			if w.src[b] != y.stamp(uint8(it.Room-1), i) {
				return fmt.Errorf("POISON: prefill computes room %d behind a block that holds something else", it.Room)
			}
		case it.From == it.Cached: // its first step: these blocks are new
			for _, x := range w.writes[:w.nWrites] {
				if x.blocks>>b&1 == 1 {
					return errors.New("QUIET: prefill gives a block away that a write still reads")
				}
			}
			w.src[b] = 0
		}
	}
	return nil
}

// findable judges what can be found at prefill.
func (y *System) findable(w *world) error {
	for i := range y.scope.Tokens / room.BlockTokens {
		if b, ok := w.p.Found(keyOf(i)); ok && w.src[b] != y.stamp(0, i) {
			return fmt.Errorf("POISON: prefill finds something else under the key of block %d", i)
		}
	}
	return nil
}

// foundKey appends what decode's memory holds, room by room. Blocks that no room holds are free, or
// hold what can be found: the core's state says that.
func (y *System) foundKey(w *world, b []byte) []byte {
	for r := range uint8(y.scope.Rooms) {
		b = append(b, w.from[r])
		if !w.dUp {
			continue
		}
		table, _ := w.d.Table(id(r))
		for _, k := range table {
			b = append(b, w.dst[k], w.by[k].boot, w.by[k].seq, w.by[k].pass)
		}
	}
	return b
}

// waiting says that decode lives with a room whose lease is for a part of its prompt.
func (w *world) waiting() bool {
	for r, n := range w.from {
		if n > 0 && w.owedD>>r&1 == 1 {
			return true
		}
	}
	return false
}
