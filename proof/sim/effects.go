package sim

import (
	"errors"
	"fmt"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// doP steps prefill, if it is up, and does what it asks, in order.
func (y *System) doP(w *world, ev prefill.Event) error {
	if !w.pUp {
		return nil
	}
	y.answers = 0
	y.failed = y.failed[:0]
	y.outP.Reset()
	y.here, y.over = 0, 0
	w.p.Rooms(y.note)
	before := y.here
	y.Prefill.Prefill(w.p, &ev, func() { w.p.Step(0, ev, &y.outP) })
	if y.scope.Keys {
		if err := y.findable(w); err != nil {
			return err
		}
	}
	for i := range y.outP.List {
		if err := y.effectP(w, &y.outP.List[i]); err != nil {
			return err
		}
	}
	if err := y.audit("prefill", w.p.Blocks(), w.p.Idle(), w.owedP); err != nil {
		return err
	}
	y.decided, y.here = [roomsMax]room.Outcome{}, 0
	w.p.Rooms(y.note)
	if err := y.farewell("prefill", before); err != nil {
		return err
	}
	if err := y.stands(w, "prefill", sawDrainP, &w.sureP); err != nil {
		return err
	}
	// Writes into a connection that is not there return at once.
	if len(y.failed) == 0 {
		return nil
	}
	answers, failed := y.answers, append([]uint32(nil), y.failed...)
	for _, x := range failed {
		if err := y.returned(w, x, false); err != nil {
			return err
		}
	}
	y.answers = answers
	return nil
}

// audit checks what a core says of its pool, and that an idle core owes and holds nothing.
func (y *System) audit(who string, n blocks.Count, idle bool, owed uint8) error {
	switch {
	case n.Total != n.Free+n.Cached+n.Held+n.Quarantined:
		return fmt.Errorf("%s counts its blocks wrong: %+v", who, n)
	case idle && n.Free+n.Cached != n.Total, n.Cached > 0 && !y.scope.Keys:
		return fmt.Errorf("RELEASE: %s is idle and still holds blocks: %+v", who, n)
	case idle && owed != 0:
		return fmt.Errorf("TERM: %s is idle and has not ended every leg that it accepted", who)
	}
	return nil
}

// stands checks that no decision was taken back. y.decided holds what the core says now: a room
// that is still here although it is decided drains.
func (y *System) stands(w *world, who string, drains int, sure *[roomsMax]room.Outcome) error {
	for r, o := range y.decided {
		if o.Ended() {
			w.shows |= 1 << drains
		}
		if sure[r].Ended() && y.here>>r&1 == 1 && o != sure[r] {
			return fmt.Errorf("CAUSE: %s decided %s for room %d and then %s", who, sure[r], r+1, o)
		}
		sure[r] = o
	}
	return nil
}

// farewell checks that each room which was here before the step and is not any more, and no
// other, ended with an effect: y.here holds who is here now, y.over who ended.
func (y *System) farewell(who string, before uint8) error {
	switch gone := before &^ y.here; {
	case gone&^y.over != 0:
		return fmt.Errorf("TERM: a room is gone from %s, and nothing said that it ended", who)
	case y.over&y.here != 0:
		return fmt.Errorf("TERM: %s says that a room ended which is still here", who)
	}
	return nil
}

// ends notes an effect that ends a room.
func (y *System) ends(r uint8) error {
	if y.over>>r&1 == 1 {
		return fmt.Errorf("RELEASE: room %d ends twice in one step", r+1)
	}
	y.over |= 1 << r
	return nil
}

func (y *System) effectP(w *world, x *prefill.Effect) error {
	r := uint8(x.Room - 1)
	switch x.Kind {
	case prefill.Accept:
		y.answers++
		if w.owedP>>r&1 == 1 {
			return errors.New("prefill accepts a leg twice")
		}
		w.owedP |= 1 << r
	case prefill.Refuse:
		y.answers++
		if w.owedP>>r&1 == 0 {
			y.tell(w, msgAbortD, r)
		}
		return w.unhurt(r, x.Outcome)
	case prefill.Step:
		return y.startP(w, x.Items)
	case prefill.Write:
		return y.startWrite(w, x)
	case prefill.Settle:
		return y.sayWord(w, &x.Settled)
	case prefill.Freed:
		return y.freedP(w, x.Blocks)
	case prefill.EndHalf:
		if w.owedP>>r&1 == 1 {
			return errors.New("TERM: prefill ends a room as a half one although it accepted its leg")
		}
		if err := w.unhurt(r, x.Outcome); err != nil {
			return err
		}
		return y.ends(r)
	case prefill.End:
		if err := y.ends(r); err != nil {
			return err
		}
		if w.owedP>>r&1 == 0 {
			return errors.New("RELEASE: prefill ends a leg twice")
		}
		if w.sureP[r].Ended() && w.sureP[r] != x.Outcome {
			return fmt.Errorf("CAUSE: prefill decided %s for room %d and ends it with %s", w.sureP[r], x.Room, x.Outcome)
		}
		if err := w.unhurt(r, x.Outcome); err != nil {
			return err
		}
		w.owedP &^= 1 << r
		w.saw(x.Outcome, sawAbortP)
		if x.Outcome.Kind != room.Success {
			y.tell(w, msgAbortD, r)
		}
	}
	return nil
}

func (y *System) startP(w *world, items []prefill.StepItem) error {
	if w.pStep.n != 0 {
		return errors.New("prefill starts a step while one is running")
	}
	for _, it := range items {
		r := uint8(it.Room - 1)
		p := pass{room: r, from: uint8(it.From), to: uint8(it.To)}
		if y.scope.Keys {
			if err := y.startFound(w, &it); err != nil {
				return err
			}
		}
		for i, b := range it.Blocks {
			if w.src[b] != 0 && w.src[b] != y.stamp(r, i) {
				return fmt.Errorf("OWN: prefill computes room %d in a block of another", r+1)
			}
			p.table[i] = uint8(b)
			p.n++
		}
		if y.scope.Once && it.From == 0 {
			if w.ranP>>r&1 == 1 {
				return fmt.Errorf("prefill computes room %d twice", r+1)
			}
			w.ranP |= 1 << r
		}
		w.pStep.item[w.pStep.n] = p
		w.pStep.n++
	}
	return nil
}

// startWrite puts a chunk on its connection, if that stands.
func (y *System) startWrite(w *world, x *prefill.Effect) error {
	c := chunk{
		room: uint8(x.Room - 1), boot: uint8(x.Lease.Boot), seq: uint8(x.Lease.Seq), conn: uint8(x.Conn), n: uint8(x.Chunk),
		first: uint8(x.FirstBlock), blocks: uint8(len(x.Blocks)), last: x.Last, pass: w.pInc,
	}
	if w.said[c.room]&leaseBit(c.boot, c.seq) != 0 {
		return fmt.Errorf("prefill writes under lease %s after its final word", x.Lease)
	}
	wr := write{id: c.pack()}
	for i, b := range x.Blocks {
		if w.src[b] != y.stamp(c.room, int(c.first)+i) {
			return fmt.Errorf("prefill writes block %d of room %d before it is computed", int(c.first)+i, x.Room)
		}
		wr.blocks |= 1 << b
	}
	if w.nWrites == chunksMax {
		panic("sim: too many writes: raise chunksMax")
	}
	w.writes[w.nWrites] = wr
	w.nWrites++
	k := c.conn
	if k > w.conn || w.pCut>>k&1 == 1 {
		y.failed = append(y.failed, wr.id)
	} else if w.dCut>>k&1 == 0 {
		w.wire.add(wr.id)
	}
	return nil
}

func (y *System) sayWord(w *world, s *room.Settled) error {
	m := msg{kind: msgSettled, room: uint8(s.Room - 1), boot: uint8(s.Lease.Boot), seq: uint8(s.Lease.Seq)}
	if s.Outcome.Kind == room.Success {
		m.n = uint8(s.Chunks)
	}
	for i := range w.nWrites {
		if c := unpackChunk(w.writes[i].id); c.room == m.room && c.boot == m.boot && c.seq == m.seq {
			return fmt.Errorf("prefill settles lease %s with a write under way", s.Lease)
		}
	}
	w.said[m.room] |= leaseBit(m.boot, m.seq)
	y.send(w, m, w.linkOf(m.boot))
	return nil
}

func (y *System) freedP(w *world, table []int32) error {
	for _, b := range table {
		for i := range w.nWrites {
			if w.writes[i].blocks>>b&1 == 1 {
				return errors.New("QUIET: prefill frees a block that a write still reads")
			}
		}
		for _, it := range w.pStep.item[:w.pStep.n] {
			if it.uses(b) {
				return errors.New("QUIET: prefill frees a block that its engine still writes")
			}
		}
		w.src[b] = 0
	}
	return nil
}

func (p *pass) uses(b int32) bool {
	for _, x := range p.table[:p.n] {
		if int32(x) == b {
			return true
		}
	}
	return false
}

// doD steps decode, if it is up, and does what it asks, in order.
func (y *System) doD(w *world, ev decode.Event) error {
	if !w.dUp {
		return nil
	}
	y.answers, y.places = 0, 0
	y.outD.Reset()
	y.here, y.over = 0, 0
	w.d.Rooms(y.note)
	before := y.here
	if y.scope.Keys {
		y.tables(w, &y.held)
	}
	y.Decode.Decode(w.d, &ev, func() { w.d.Step(0, ev, &y.outD) })
	if y.scope.Keys {
		if err := y.handed(w); err != nil {
			return err
		}
	}
	for i := range y.outD.List {
		if err := y.effectD(w, &y.outD.List[i]); err != nil {
			return err
		}
	}
	if want := int(bit(ev.Kind == decode.ChunkArrived)); y.places != want {
		return fmt.Errorf("a chunk got %d answers instead of %d", y.places, want)
	}
	if err := y.audit("decode", w.d.Blocks(), w.d.Idle(), w.owedD); err != nil {
		return err
	}
	y.decided, y.here = [roomsMax]room.Outcome{}, 0
	w.d.Rooms(y.note)
	if err := y.farewell("decode", before); err != nil {
		return err
	}
	return y.stands(w, "decode", sawDrainD, &w.sureD)
}

func (y *System) effectD(w *world, x *decode.Effect) error {
	r := uint8(x.Room - 1)
	switch x.Kind {
	case decode.Accept:
		y.answers++
		if w.owedD>>r&1 == 1 {
			return errors.New("decode accepts a leg twice")
		}
		w.owedD |= 1 << r
	case decode.Refuse:
		y.answers++
		if w.owedD>>r&1 == 0 {
			y.tell(w, msgAbortP, r)
		}
		return w.unhurt(r, x.Outcome)
	case decode.Dial:
		if w.dialing {
			return errors.New("decode dials while it is dialling")
		}
		w.dialing = true
	case decode.SendPrealloc:
		p := &x.Prealloc
		m := msg{kind: msgPrealloc, room: r, boot: uint8(p.Lease.Boot), seq: uint8(p.Lease.Seq), n: uint8(p.Conn), from: uint8(p.From / room.BlockTokens)}
		if m.seq > w.seq {
			w.from[r] = m.from
			w.seq = m.seq
			w.leases++
		}
		y.send(w, m, uint8(x.Conn))
	case decode.SendCancel:
		l := x.Cancel.Lease
		y.send(w, msg{kind: msgCancel, room: r, boot: uint8(l.Boot), seq: uint8(l.Seq)}, uint8(x.Conn))
	case decode.Place:
		return y.place(w, x)
	case decode.Step:
		return y.startD(w, x.Items)
	case decode.Begin:
		return y.beginD(w, r)
	case decode.Emit:
		if w.owedD>>r&1 == 0 {
			return errors.New("STREAM: decode emits tokens of a leg that is over")
		}
		w.made[r]++
	case decode.Retract:
		w.shows |= 1 << sawRetract
		w.from[r] = 0
	case decode.Freed:
		return y.freedD(w, x.Blocks)
	case decode.End:
		return y.endD(w, r, x.Outcome)
	}
	return nil
}

// place lets a receiver in, or turns it away.
func (y *System) place(w *world, x *decode.Effect) error {
	y.places++
	if !x.OK {
		w.shows |= 1 << sawRevoked
		return nil
	}
	in := inside{id: y.arriving}
	for i, b := range x.Blocks {
		in.table[i] = uint8(b)
		for k := range w.nIn {
			for j := range unpackChunk(w.in[k].id).blocks {
				if int32(w.in[k].table[j]) == b {
					return errors.New("OWN: two receivers are let into one block")
				}
			}
		}
		for k := range w.dStep.n {
			if w.dStep.item[k].uses(b) {
				return errors.New("OWN: a receiver is let into a block that the engine uses")
			}
		}
		if w.dst[b] != 0 {
			return errors.New("OWN: a receiver is let into a block that is filled")
		}
	}
	if w.nIn == chunksMax {
		panic("sim: too many receivers: raise chunksMax")
	}
	i := w.nIn
	for ; i > 0 && w.in[i-1].id > in.id; i-- {
		w.in[i] = w.in[i-1]
	}
	w.in[i] = in
	w.nIn++
	return nil
}

func (y *System) startD(w *world, items []decode.StepItem) error {
	if w.dStep.n != 0 {
		return errors.New("decode starts a step while one is running")
	}
	for _, it := range items {
		p := pass{room: uint8(it.Room - 1), from: uint8(it.From), to: uint8(it.To), prefill: it.Prefill}
		// The token at the position From was the (From - Tokens + 1)th; this makes one more.
		p.finish = !it.Prefill && int(it.From)-y.scope.Tokens+2 == y.scope.MaxNew
		for i, b := range it.Blocks {
			p.table[i] = uint8(b)
			p.n++
		}
		for i := range room.BlocksFor(y.scope.Tokens) {
			if !it.Prefill && w.dst[it.Blocks[i]] != y.stamp(p.room, i) {
				return fmt.Errorf("OWN: decode reads block %d of room %d, which holds something else", i, it.Room)
			}
		}
		w.dStep.item[w.dStep.n] = p
		w.dStep.n++
	}
	return nil
}

// beginD checks that all KV of a prompt is there, from one pass under the room's own lease, or
// computed here after a retraction.
func (y *System) beginD(w *world, r uint8) error {
	var l room.Lease
	for v := range w.d.Rooms {
		if v.Room == id(r) {
			l = v.Lease
		}
	}
	complete := y.beginWhole
	if y.scope.Keys {
		complete = y.beginFound
	}
	if err := complete(w, r, l); err != nil {
		return err
	}
	if y.scope.Once {
		if w.ranD>>r&1 == 1 {
			return fmt.Errorf("decode generates room %d twice", r+1)
		}
		w.ranD |= 1 << r
	}
	w.begin |= 1 << r
	return nil
}

// beginWhole is beginD where nothing can be found.
func (y *System) beginWhole(w *world, r uint8, l room.Lease) error {
	var by origin
	var all uint8
	for k, st := range w.dst {
		if st == 0 || (st-1)>>4 != r {
			continue
		}
		if all != 0 && w.by[k] != by {
			return fmt.Errorf("decode starts room %d on KV of two passes or leases", r+1)
		}
		by = w.by[k]
		all |= 1 << ((st - 1) & 15)
	}
	if all != 1<<room.BlocksFor(y.scope.Tokens)-1 {
		return fmt.Errorf("decode starts room %d on incomplete KV", r+1)
	}
	if l != (room.Lease{}) && by != (origin{}) && lease(by.boot, by.seq) != l {
		return fmt.Errorf("OWN: decode starts room %d on KV of another lease", r+1)
	}
	return nil
}

func (y *System) freedD(w *world, table []int32) error {
	for _, b := range table {
		for i := range w.nIn {
			for j := range unpackChunk(w.in[i].id).blocks {
				if int32(w.in[i].table[j]) == b {
					return errors.New("QUIET: decode frees a block that a receiver is inside of")
				}
			}
		}
		for i := range w.dStep.n {
			if w.dStep.item[i].uses(b) {
				return errors.New("QUIET: decode frees a block that its engine still uses")
			}
		}
		w.dst[b], w.by[b] = 0, origin{}
	}
	return nil
}

func (y *System) endD(w *world, r uint8, o room.Outcome) error {
	if err := y.ends(r); err != nil {
		return err
	}
	if w.owedD>>r&1 == 0 {
		return errors.New("RELEASE: decode ends a leg twice")
	}
	if w.begin>>r&1 == 1 {
		return errors.New("decode ends a leg while its first token is being fed")
	}
	if w.sureD[r].Ended() && w.sureD[r] != o {
		return fmt.Errorf("CAUSE: decode decided %s for room %d and ends it with %s", w.sureD[r], r+1, o)
	}
	if err := w.unhurt(r, o); err != nil {
		return err
	}
	made, found := int(w.made[r]), w.from[r] > 0
	w.owedD &^= 1 << r
	w.made[r], w.from[r] = 0, 0
	if o.Kind == room.Success {
		if made != y.scope.MaxNew {
			return fmt.Errorf("STREAM: decode calls room %d a success after %d of %d tokens", r+1, made, y.scope.MaxNew)
		}
		w.shows |= 1<<sawSuccess | uint64(bit(found))<<sawFound
		return nil
	}
	if found && o.Cause == room.WorkerLost {
		w.shows |= 1 << sawFoundBreak
	}
	w.saw(o, sawAbortD)
	y.tell(w, msgAbortP, r)
	return nil
}
