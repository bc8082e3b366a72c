package cluster

import (
	"errors"
	"fmt"
	"slices"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// doP steps a prefill core and does what it asks, as its driver would.
func (s *System) doP(w *World, at int, ev prefill.Event) error {
	p := w.prefills[at]
	if p.core == nil {
		return nil
	}
	var out prefill.Effects
	p.core.Step(0, ev, &out)
	var failed []write // into connections that are not there: they return at once
	for i := range out.List {
		e := &out.List[i]
		switch e.Kind {
		case prefill.Accept:
			s.accepted(w, relay.Prefill, at, e.Room)
		case prefill.Refuse:
			s.refused(w, relay.Prefill, at, e.Room, e.Outcome)
		case prefill.Step:
			p.step = slices.Clone(e.Items)
		case prefill.Write:
			wr := write{chunk{e.Room, e.Lease, e.Conn, e.Chunk, e.FirstBlock, int32(len(e.Blocks)), e.Last}, e.Blocks}
			p.writes = append(p.writes, wr)
			if k := w.linkAtP(at, e.Conn); k == nil {
				failed = append(failed, wr)
			} else if k.dUp {
				k.wire = append(k.wire, wr.piece)
			}
		case prefill.Settle:
			w.settle(at, e.Settled)
		case prefill.Freed:
			if p.uses(e.Blocks) {
				return fmt.Errorf("QUIET: prefill %d frees a block that is in use", at)
			}
		case prefill.End:
			l := w.legAt(relay.Prefill, at, e.Room)
			if l == nil {
				return fmt.Errorf("RELEASE: prefill %d ends a leg that is not open", at)
			}
			l.ends(post{outcome: e.Outcome, said: true})
		}
	}
	if n := p.core.Blocks(); p.core.Idle() && n.Free != n.Total {
		return fmt.Errorf("RELEASE: prefill %d is idle and holds blocks: %+v", at, n)
	}
	for _, wr := range failed {
		if err := s.home(w, at, wr.piece, false); err != nil {
			return err
		}
	}
	return nil
}

func (p *prefiller) uses(table []int32) bool {
	in := func(other []int32) bool {
		return slices.ContainsFunc(table, func(b int32) bool { return slices.Contains(other, b) })
	}
	return slices.ContainsFunc(p.writes, func(wr write) bool { return in(wr.blocks) }) ||
		slices.ContainsFunc(p.step, func(it prefill.StepItem) bool { return in(it.Blocks) })
}

// home brings a write home.
func (s *System) home(w *World, at int, x chunk, ok bool) error {
	p := w.prefills[at]
	i := slices.IndexFunc(p.writes, func(wr write) bool { return wr.piece == x })
	if i < 0 {
		return errors.New("a write comes home that was not under way")
	}
	p.writes = slices.Delete(p.writes, i, i+1)
	return s.doP(w, at, prefill.Event{Kind: prefill.WriteDone, Room: x.room, Lease: x.lease, Chunk: x.n, OK: ok})
}

// settle sends a final word over the newest link to its decode worker.
func (w *World) settle(at int, x room.Settled) {
	for _, k := range slices.Backward(w.links) {
		if k.prefill == at && k.pUp && w.decodes[k.decode].boot == x.Lease.Boot {
			if k.dUp {
				k.toD = append(k.toD, word{settled: &x})
			}
			return
		}
	}
}

func (w *World) linkAtP(at int, conn room.Conn) *link {
	for _, k := range w.links {
		if k.conn == conn && k.prefill == at && k.pUp {
			return k
		}
	}
	return nil
}

func (s *System) accepted(w *World, side relay.Leg, at int, id room.ID) {
	for _, l := range w.legs {
		if l.side == side && l.worker == at && l.room == id && l.state == dialled {
			l.state = open
			l.say(post{kind: relay.LegOpen})
		}
	}
}

func (s *System) refused(w *World, side relay.Leg, at int, id room.ID, o room.Outcome) {
	for _, l := range w.legs {
		if l.side == side && l.worker == at && l.room == id && l.state == dialled {
			l.ends(post{outcome: o, said: true})
		}
	}
}

// doD steps a decode core and does what it asks, as its driver would.
func (s *System) doD(w *World, at int, ev decode.Event) error {
	d := w.decodes[at]
	if d.core == nil {
		return nil
	}
	var out decode.Effects
	d.core.Step(0, ev, &out)
	for i := range out.List {
		if err := s.askedByD(w, at, &out.List[i]); err != nil {
			return err
		}
	}
	if n := d.core.Blocks(); d.core.Idle() && n.Free != n.Total {
		return fmt.Errorf("RELEASE: decode %d is idle and holds blocks: %+v", at, n)
	}
	return nil
}

func (s *System) askedByD(w *World, at int, e *decode.Effect) error {
	d := w.decodes[at]
	switch e.Kind {
	case decode.Accept:
		s.accepted(w, relay.Decode, at, e.Room)
	case decode.Refuse:
		s.refused(w, relay.Decode, at, e.Room, e.Outcome)
	case decode.Dial:
		d.dialing = append(d.dialing, e.Peer)
	case decode.SendPrealloc:
		w.send(e.Conn, word{prealloc: &e.Prealloc})
	case decode.SendCancel:
		w.send(e.Conn, word{cancel: &e.Cancel})
	case decode.Place:
		return s.place(w, at, e)
	case decode.Step:
		d.step = slices.Clone(e.Items)
	case decode.Begin:
		d.begin = append(d.begin, e.Room)
		return s.whole(w, at, e.Room)
	case decode.Emit:
		l := w.legAt(relay.Decode, at, e.Room)
		if l == nil {
			return fmt.Errorf("STREAM: decode %d emits a token of a leg that is not open", at)
		}
		l.say(post{kind: relay.Tokens, token: l.made})
		l.made++
	case decode.Freed:
		return s.freed(w, at, e.Blocks)
	case decode.End:
		l := w.legAt(relay.Decode, at, e.Room)
		if l == nil {
			return fmt.Errorf("RELEASE: decode %d ends a leg that is not open", at)
		}
		l.ends(post{outcome: e.Outcome, said: true, finished: e.Outcome.Kind == room.Success})
	}
	return nil
}

func (w *World) send(conn room.Conn, x word) {
	for _, k := range w.links {
		if k.conn == conn && k.dUp && k.pUp {
			k.toP = append(k.toP, x)
		}
	}
}

// place lets the receiver that asked into its blocks.
func (s *System) place(w *World, at int, e *decode.Effect) error {
	for _, k := range w.links {
		if k.decode != at || !k.dUp || k.inside == nil || k.table != nil || k.inside.room != e.Room {
			continue
		}
		if !e.OK {
			k.inside = nil
			return nil
		}
		for _, b := range e.Blocks {
			if _, full := w.decodes[at].filled[b]; full {
				return fmt.Errorf("OWN: a receiver is let into block %d, which is filled", b)
			}
		}
		k.table = e.Blocks
		return nil
	}
	return errors.New("a chunk is answered that did not ask")
}

// whole checks that a room which begins has all its KV, under its own lease.
func (s *System) whole(w *World, at int, id room.ID) error {
	l := w.legAt(relay.Decode, at, id)
	if l == nil {
		return errors.New("a room begins without a leg")
	}
	var own room.Lease
	for v := range w.decodes[at].core.Rooms {
		if v.Room == id {
			own = v.Lease
		}
	}
	n := 0
	for _, lease := range w.decodes[at].filled {
		if lease == own {
			n++
		}
	}
	if want := room.BlocksFor(s.prompt(l.req)); n != want {
		return fmt.Errorf("OWN: room %s begins on %d blocks of its lease, not %d", id, n, want)
	}
	return nil
}

func (s *System) freed(w *World, at int, table []int32) error {
	for _, b := range table {
		for _, k := range w.links {
			if k.decode == at && k.inside != nil && slices.Contains(k.table, b) {
				return fmt.Errorf("QUIET: decode %d frees block %d with a receiver inside", at, b)
			}
		}
		for _, it := range w.decodes[at].step {
			if slices.Contains(it.Blocks, b) {
				return fmt.Errorf("QUIET: decode %d frees block %d, which its engine uses", at, b)
			}
		}
		delete(w.decodes[at].filled, b)
	}
	return nil
}
