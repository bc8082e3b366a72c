package poolsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/decode"
	"baton/core/room"
)

// users counts the tables that a block is in; what the outputs of a room share is one.
func (w *LocalWorld) users(b int32) (n int) {
	for i := range w.rooms {
		r := &w.rooms[i]
		if slices.Contains(r.table, b) {
			n++
		}
		for _, own := range r.more {
			if slices.Contains(own, b) {
				n++
			}
		}
	}
	return n
}

// tableOf is the whole table of one output of a room.
func (s *Locals) tableOf(w *LocalWorld, id room.ID, branch int32) []int32 {
	r := &w.rooms[id-1]
	if branch == 0 {
		return r.table
	}
	return slices.Concat(r.table[:len(s.scope.Prompts[id-1])], r.more[branch])
}

func (w *LocalWorld) held(b int32) bool { return w.users(b) > 0 }

// written says that the outstanding step writes to a block.
func (w *LocalWorld) written(b int32) bool {
	return slices.ContainsFunc(w.step, func(it decode.StepItem) bool {
		return slices.Contains(it.Blocks[it.From/room.BlockTokens:room.BlocksFor(int(it.To))], b)
	})
}

// feed steps the core, does what it says, and looks at who has which blocks now.
func (s *Locals) feed(w *LocalWorld, ev decode.Event) error { return s.feedAt(w, 0, ev) }

func (s *Locals) feedAt(w *LocalWorld, now time.Duration, ev decode.Event) error {
	w.out.Reset()
	before := w.mem.found(s.words(), w.core.Found)
	w.core.Step(now, ev, &w.out)
	if s.scope.Pin != nil {
		s.pin(w, before)
	}
	w.starts, w.copies = nil, nil
	for i := range w.rooms {
		w.rooms[i].left = nil
	}
	for i := range w.out.List {
		if err := s.do(w, &w.out.List[i]); err != nil {
			return err
		}
	}
	w.mem.going = w.mem.going[:0]
	for i := range w.rooms {
		table, _ := w.core.Table(room.ID(i + 1))
		w.mem.going = append(w.mem.going, table...)
	}
	for i := range w.rooms {
		s.gives(w, room.ID(i+1)) // what went to the cache
	}
	var err error
	inLine := false                       // behind one that waits for blocks
	w.core.Rooms(func(v room.View) bool { // in order of arrival
		hungry := v.Phase == "needs_blocks" || v.Phase == "retracted"
		comes := hungry && v.Peer == decode.Local && s.comes(w, v.Room) != 0
		if comes {
			w.show(joined)
		}
		if (v.WaitsFor == room.OlderPrefix) != (comes && !inLine) {
			err = fmt.Errorf("TRUTH: room %d waits for %s", v.Room, v.WaitsFor)
			return false
		}
		inLine = inLine || hungry && !comes
		err = s.moved(w, v.Room)
		return err == nil
	})
	if err != nil {
		return err
	}
	if err := s.begin(w); err != nil {
		return err
	}
	if err := w.mem.checkedPins(w.core.Pinned()); err != nil {
		return err
	}
	return w.mem.checked(s.words(), w.core.Blocks(), w.core.Found, w.held)
}

// pin notes what rooms that are over, and first outputs, leave pinned.
func (s *Locals) pin(w *LocalWorld, before map[string]int32) {
	for _, x := range w.out.List {
		if x.Kind == decode.End || x.Kind == decode.Emit && x.Branch == 0 && w.rooms[x.Room-1].emitted[0]+1 == s.outputs(x.Room)[0] {
			r := &w.rooms[x.Room-1]
			w.shows |= w.mem.pin(s.word(x.Room, 0), r.table, s.scope.Pin[x.Room-1], s.scope.PinnedMax, w.mem.first(before, w.core.Found))
		}
	}
}

func (s *Locals) do(w *LocalWorld, x *decode.Effect) error {
	var r *localRoom
	if x.Room != 0 {
		r = &w.rooms[x.Room-1]
	}
	switch x.Kind {
	case decode.Refuse:
		return fmt.Errorf("RELEASE: room %d is refused: %s", x.Room, x.Outcome)
	case decode.Begin:
		r.begins[x.Branch] = true
	case decode.Emit:
		r.emitted[x.Branch]++
	case decode.Step:
		w.starts, w.copies = x.Items, x.Copies
	case decode.Retract:
		w.show(retracted)
		r.retracted = true
		r.gives()
	case decode.Freed:
		s.gives(w, x.Room)
		for _, b := range x.Blocks {
			if !slices.Contains(r.left, b) || !w.mem.used[b] {
				return fmt.Errorf("RELEASE: room %d frees block %d, which is not its own", x.Room, b)
			}
			if w.held(b) || w.written(b) {
				return fmt.Errorf("QUIET: block %d is freed while somebody uses it", b)
			}
			w.mem.used[b] = false
		}
	case decode.End:
		switch well := x.Outcome.Kind == room.Success; {
		case r.ended:
			return fmt.Errorf("RELEASE: the leg of room %d ends twice", x.Room)
		case slices.ContainsFunc(w.step, func(it decode.StepItem) bool { return it.Room == x.Room }):
			return fmt.Errorf("QUIET: room %d ends while its step is under way", x.Room)
		case !well && !r.harmed:
			return fmt.Errorf("CAUSE: room %d ends with %s although nothing of it broke", x.Room, x.Outcome)
		case well && !slices.Equal(r.emitted[:len(s.outputs(x.Room))], s.outputs(x.Room)):
			return fmt.Errorf("WHOLE: room %d succeeds with %d tokens", x.Room, r.emitted)
		case well:
			if w.show(success); r.retracted {
				w.show(wentOn)
			}
			if len(s.outputs(x.Room)) > 1 {
				w.show(several)
			}
		}
		r.gives()
		r.ended, r.left = true, nil
	}
	return nil
}

// gives notes that a room gives back all that it has.
func (r *localRoom) gives() {
	for n, own := range r.more {
		r.left, r.more[n] = append(r.left, own...), nil
	}
	r.left, r.table = append(r.left, r.table...), nil
}

// gives notes that a room gives blocks back: all, or those of an output that is over while others
// go on.
func (s *Locals) gives(w *LocalWorld, id room.ID) {
	r := &w.rooms[id-1]
	table, _ := w.core.Table(id)
	if r.table == nil || table == nil {
		r.gives()
		return
	}
	if n := len(table); n < len(r.table) {
		r.left, r.table = append(r.left, r.table[n:]...), r.table[:n:n]
	}
	for n, own := range r.more {
		if own != nil && w.core.BranchTable(id, int32(n)) == nil {
			r.left, r.more[n] = append(r.left, own...), nil
		}
	}
}

// comes returns an older room that computes here what a room has to, too, and could find then.
func (s *Locals) comes(w *LocalWorld, id room.ID) (who room.ID) {
	word := s.word(id, 0)
	word = word[:min(len(word), (s.tokens(id)+max(w.rooms[id-1].emitted[0], 1)-2)/room.BlockTokens)]
	w.core.Rooms(func(v room.View) bool {
		o, had := s.word(v.Room, 0), s.tokens(v.Room)+max(w.rooms[v.Room-1].emitted[0], 1)-1
		switch v.Phase {
		case "unfilled", "prefilling", "regranted", "recomputing":
			if v.Room != id && v.Peer == decode.Local && w.mem.lacks(o[:min(len(o), had/room.BlockTokens)], w.rooms[v.Room-1].table, word) {
				who = v.Room
			}
		}
		return v.Room != id
	})
	return who
}

// moved compares a room's table with what it was: what is new was found, or is fresh.
func (s *Locals) moved(w *LocalWorld, id room.ID) error {
	r := &w.rooms[id-1]
	table, filled := w.core.Table(id)
	if len(table) == len(r.table) {
		return nil
	}
	old, found := len(r.table), 0
	if who := s.comes(w, id); who != 0 && old == 0 {
		return fmt.Errorf("TWICE: room %d computes what room %d is computing", id, who)
	}
	if old == 0 {
		found = int(filled) / room.BlockTokens
	}
	if !slices.Equal(table[:old], r.table) {
		return fmt.Errorf("OWN: the table of room %d was %v and is %v", id, r.table, table)
	}
	seen, err := w.mem.enters(id, table, old, found, w.held, w.written)
	if err != nil {
		return err
	}
	if w.shows |= seen; r.retracted && seen>>hit&1 == 1 {
		w.show(refound)
	}
	r.table = table
	for i, p := range s.scope.Prompts { // somebody said what is found
		if found > len(p) && s.scope.Says != nil && s.scope.Says[i] != "" && strings.HasPrefix(s.word(id, 0), s.word(room.ID(i+1), 0)) {
			w.show(spoken)
		}
	}
	for n := range s.outputs(id)[1:] {
		whole, common := w.core.BranchTable(id, int32(n+1)), len(s.scope.Prompts[id-1])
		if len(whole) < common || !slices.Equal(whole[:common], table[:common]) {
			return fmt.Errorf("OWN: outputs of room %d have the tables %v and %v", id, table, whole)
		}
		seen, err := w.mem.enters(id, whole[common:], 0, 0, w.held, w.written)
		if err != nil {
			return err
		}
		w.shows |= seen
		r.more[n+1] = whole[common:]
	}
	return w.mem.holds(s.word(id, 0), table, found)
}

// begin starts the step of the event: what it writes to holds nothing known until it is home.
func (s *Locals) begin(w *LocalWorld) error {
	if w.starts == nil {
		return nil
	}
	if w.step != nil {
		return fmt.Errorf("OWN: a second step is started")
	}
	for _, c := range w.copies {
		if !w.held(c.From) || w.users(c.To) != 1 || w.written(c.To) {
			return fmt.Errorf("OWN: block %d is copied over block %d, which others use", c.From, c.To)
		}
	}
	for i := range w.starts {
		it := &w.starts[i]
		table, word := s.tableOf(w, it.Room, it.Branch), s.word(it.Room, it.Branch)
		if !slices.Equal(table, it.Blocks) || it.To <= it.From {
			return fmt.Errorf("WHOLE: room %d computes %d to %d in %v, its table is %v", it.Room, it.From, it.To, it.Blocks, table)
		}
		from := int(it.From) / room.BlockTokens
		if err := w.mem.holds(word, table, min(from, len(word))); err != nil {
			return err
		}
		if err := w.mem.begin(it.Room, it.Blocks[from:room.BlocksFor(int(it.To))], w.users, w.written); err != nil {
			return err
		}
	}
	w.step = w.starts
	return nil
}
