package cluster

import (
	"slices"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

func (s *System) Apply(w *World, e Event) error {
	defer w.tidy()
	if c := s.Class(e); c == explore.Timer || c == explore.Fault || c == explore.Environment {
		w.hurt = true
	}
	switch e.Kind {
	case arrive:
		w.requests[e.A-1].arrived = true
		return s.hear(w, relay.Event{Kind: relay.Arrive, Req: uint64(e.A), Budgets: relay.Budgets{Queue: far, Connect: far, FirstToken: far, Gap: far}, Buffered: e.A <= s.scope.Whole})
	case leave:
		w.left.Leaves--
		w.requests[e.A-1].gone = true
		return s.hear(w, relay.Event{Kind: relay.ClientGone, Req: uint64(e.A)})
	case timerG:
		return s.hear(w, relay.Event{Kind: relay.TimerFired, Timer: relay.Timer{Req: uint64(e.A), Name: relay.TimerName(e.B)}})
	case choose:
		return s.choose(w, uint64(e.A))
	case healthy:
		return s.usable(w, int32(e.A))
	case dispatch, hear, hangUp:
		return s.legEvent(w, e)
	case stepP, stepPBad, returns, timerP, crashP, restartP:
		return s.prefillEvent(w, e)
	case stepD, stepDBad, begun, dialled_, timerD, crashD, restartD:
		return s.decodeEvent(w, e)
	}
	return s.linkEvent(w, e)
}

// choose takes the next pair that may serve, whatever its health: a gateway's view is old.
func (s *System) choose(w *World, req uint64) error {
	r := &w.requests[req-1]
	pick := func(base int32, n int) int32 {
		spare := relay.NoWorker
		for i := range n {
			at := base + int32((i+int(req)+int(r.placing))%n)
			switch {
			case !slices.Contains(r.exclude, at):
				return at
			case slices.Contains(r.innocent, at):
				spare = at
			}
		}
		return spare
	}
	ev := relay.Event{Kind: relay.Pair, Req: req, Attempt: r.placing, Prefill: pick(0, s.scope.Prefills), Decode: pick(decodeBase, s.scope.Decodes)}
	ev.OK = ev.Prefill != relay.NoWorker && ev.Decode != relay.NoWorker
	ev.Outcome = room.Fail(room.WorkerLost)
	w.rooms++
	ev.Room = w.rooms
	r.placing = 0
	return s.hear(w, ev)
}

// up says whether a worker's process runs. Decode workers count from decodeBase.
func (w *World) up(id int32) bool {
	if id >= decodeBase {
		return w.decodes[id-decodeBase].core != nil
	}
	return w.prefills[id].core != nil
}

// usable tells the gateway that a worker may be placed on again.
func (s *System) usable(w *World, id int32) error {
	w.suspects = slices.DeleteFunc(w.suspects, func(x int32) bool { return x == id })
	return s.hear(w, relay.Event{Kind: relay.Roster, Worker: id})
}

func (s *System) legEvent(w *World, e Event) error {
	l := w.leg(e)
	switch e.Kind {
	case hear:
		p := l.posts[0]
		l.posts = slices.Delete(l.posts, 0, 1)
		w.hearing = p.token
		return s.hear(w, relay.Event{Kind: p.kind, Req: l.req, Attempt: l.attempt, Leg: l.side, N: 1, Outcome: p.outcome, Finished: p.finished, Said: p.said})
	case hangUp:
		if l.side == relay.Prefill {
			return s.doP(w, l.worker, prefill.Event{Kind: prefill.Abort, Room: l.room, Cause: room.Cancelled})
		}
		return s.doD(w, l.worker, decode.Event{Kind: decode.Abort, Room: l.room, Cause: room.Cancelled})
	}
	if l.side == relay.Prefill && w.prefills[l.worker].core == nil || l.side == relay.Decode && w.decodes[l.worker].core == nil {
		l.ends(post{outcome: room.Fail(room.WorkerLost)})
		return nil
	}
	if l.side == relay.Prefill {
		return s.doP(w, l.worker, prefill.Event{Kind: prefill.Request, Room: l.room, Tokens: s.prompt(l.req), Deadline: far})
	}
	return s.doD(w, l.worker, decode.Event{Kind: decode.Request, Room: l.room, Peer: l.peer, Tokens: s.prompt(l.req), MaxNew: s.scope.MaxNew, Deadline: far})
}

func (s *System) prefillEvent(w *World, e Event) error {
	p := w.prefills[e.A]
	switch e.Kind {
	case stepP, stepPBad:
		w.left.Steps -= bad(e.Kind == stepPBad)
		var results []prefill.Result
		for _, it := range p.step {
			results = append(results, prefill.Result{Room: it.Room, OK: e.Kind == stepP})
		}
		p.step = nil
		return s.doP(w, e.A, prefill.Event{Kind: prefill.StepDone, Results: results})
	case returns:
		return s.home(w, e.A, p.writes[e.B].piece, true)
	case timerP:
		return s.doP(w, e.A, prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TimerKind(e.B), Room: e.Room}})
	case crashP:
		w.left.Crashes--
		*p = prefiller{}
		for _, k := range w.links {
			if k.prefill == e.A {
				k.pUp, k.toP = false, nil
			}
		}
		w.lost(relay.Prefill, e.A)
	case restartP:
		p.core = s.newPrefill()
		return s.usable(w, int32(e.A))
	}
	return nil
}

// lost ends the legs of a process that died, as far as it had them.
func (w *World) lost(side relay.Leg, at int) {
	for _, l := range w.legs {
		if l.side == side && l.worker == at && l.state == open {
			l.ends(post{outcome: room.Fail(room.WorkerLost)})
		}
	}
}

func (s *System) decodeEvent(w *World, e Event) error {
	d := w.decodes[e.A]
	switch e.Kind {
	case stepD, stepDBad:
		w.left.Steps -= bad(e.Kind == stepDBad)
		var results []decode.Result
		for _, it := range d.step {
			l := w.legAt(relay.Decode, e.A, it.Room)
			results = append(results, decode.Result{Room: it.Room, OK: e.Kind == stepD, Finished: l != nil && l.made+1 == s.scope.MaxNew})
		}
		d.step = nil
		return s.doD(w, e.A, decode.Event{Kind: decode.StepDone, Results: results})
	case begun:
		d.begin = slices.DeleteFunc(d.begin, func(id room.ID) bool { return id == e.Room })
		return s.doD(w, e.A, decode.Event{Kind: decode.Begun, Room: e.Room, OK: true, Finished: s.scope.MaxNew == 1})
	case dialled_:
		d.dialing = slices.DeleteFunc(d.dialing, func(peer int32) bool { return int(peer) == e.B })
		if w.prefills[e.B].core == nil {
			return s.doD(w, e.A, decode.Event{Kind: decode.LinkFailed, Peer: int32(e.B), Cause: room.WorkerLost})
		}
		w.conns++
		w.links = append(w.links, &link{conn: w.conns, boot: d.boot, decode: e.A, prefill: e.B, dUp: true, pUp: true})
		return s.doD(w, e.A, decode.Event{Kind: decode.LinkUp, Peer: int32(e.B), Conn: w.conns})
	case timerD:
		return s.doD(w, e.A, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.TimerKind(e.B), Room: e.Room}})
	case crashD:
		w.left.Crashes--
		*d = decoder{lives: d.lives, boot: d.boot}
		for _, k := range w.links {
			if k.decode == e.A {
				k.dUp, k.toD, k.wire, k.inside, k.table = false, nil, nil, nil, nil
			}
		}
		w.lost(relay.Decode, e.A)
	case restartD:
		s.startDecode(d, e.A)
		return s.usable(w, decodeBase+int32(e.A))
	}
	return nil
}

func (s *System) linkEvent(w *World, e Event) error {
	k := w.link(e.A)
	switch e.Kind {
	case ctlP:
		x := k.toP[0]
		k.toP = k.toP[1:]
		if x.prealloc != nil {
			return s.doP(w, k.prefill, prefill.Event{Kind: prefill.Prealloc, Prealloc: *x.prealloc})
		}
		return s.doP(w, k.prefill, prefill.Event{Kind: prefill.Cancel, Cancel: *x.cancel})
	case ctlD:
		x := k.toD[0]
		k.toD = k.toD[1:]
		return s.doD(w, k.decode, decode.Event{Kind: decode.Settled, Settled: *x.settled})
	case header:
		x := k.wire[0]
		k.wire = k.wire[1:]
		k.inside, k.table = &x, nil
		return s.doD(w, k.decode, decode.Event{Kind: decode.ChunkArrived, Room: x.room, Lease: x.lease, Conn: x.conn, Chunk: x.n, FirstBlock: x.first, N: x.many, Last: x.last})
	case placed, refuse:
		w.left.Refuses -= bad(e.Kind == refuse)
		return s.through(w, k, e.Kind == placed)
	case seenP:
		return s.cutP(w, k)
	case seenD:
		return s.cutD(w, k)
	case breakP, breakD:
		w.left.Breaks--
		if e.Kind == breakP {
			return s.cutP(w, k)
		}
		return s.cutD(w, k)
	}
	panic("cluster: unknown event")
}

// through takes a receiver out of its blocks, with the bytes placed or refused.
func (s *System) through(w *World, k *link, ok bool) error {
	x := k.inside
	ev := decode.Event{Kind: decode.ChunkPlaced, Room: x.room, Lease: x.lease, Conn: x.conn, Chunk: x.n}
	if ok {
		for _, b := range k.table {
			w.decodes[k.decode].filled[b] = x.lease
		}
	} else {
		ev.Kind = decode.ChunkOff
	}
	k.inside, k.table = nil, nil
	if err := s.doD(w, k.decode, ev); err != nil || ok {
		return err
	}
	ev.Kind = decode.ChunkRefused
	return s.doD(w, k.decode, ev)
}

// cutD is what decode does when it sees the end of a connection.
func (s *System) cutD(w *World, k *link) error {
	k.dUp, k.toD, k.wire = false, nil, nil
	if x := k.inside; x != nil {
		k.inside, k.table = nil, nil
		if err := s.doD(w, k.decode, decode.Event{Kind: decode.ChunkOff, Room: x.room, Lease: x.lease, Conn: x.conn, Chunk: x.n}); err != nil {
			return err
		}
	}
	return s.doD(w, k.decode, decode.Event{Kind: decode.LinkEnd, Conn: k.conn})
}

// cutP is what prefill does: the writes that block on it return, then the core hears of it.
func (s *System) cutP(w *World, k *link) error {
	k.pUp, k.toP = false, nil
	for {
		p := w.prefills[k.prefill]
		i := slices.IndexFunc(p.writes, func(wr write) bool { return wr.piece.conn == k.conn })
		if i < 0 {
			break
		}
		if err := s.home(w, k.prefill, p.writes[i].piece, false); err != nil {
			return err
		}
	}
	return s.doP(w, k.prefill, prefill.Event{Kind: prefill.LinkEnd, Boot: k.boot, Conn: k.conn})
}

func bad(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
