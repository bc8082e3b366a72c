package sim

import (
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// cutD ends a connection at decode: what is in flight on it is lost, its receivers leave
// their blocks, then the core hears of it.
func (y *System) cutD(w *world, k uint8) error {
	w.dCut |= 1 << k
	w.drop(k, msgSettled, msgSettled)
	for i := 0; i < int(w.wire.n); {
		if x := w.wire.at[i]; unpackChunk(x).conn == k {
			w.wire.remove(x)
		} else {
			i++
		}
	}
	for i := 0; i < int(w.nIn); {
		c := unpackChunk(w.in[i].id)
		if c.conn != k {
			i++
			continue
		}
		w.leave(w.in[i].id)
		err := y.doD(w, decode.Event{Kind: decode.ChunkOff, Room: id(c.room), Lease: lease(c.boot, c.seq), Chunk: int32(c.n)})
		if err != nil {
			return err
		}
	}
	return y.doD(w, decode.Event{Kind: decode.LinkEnd, Conn: room.Conn(k)})
}

// cutP ends a connection at prefill: the writes blocked on it return, then the core hears of it.
func (y *System) cutP(w *world, k uint8) error {
	w.pCut |= 1 << k
	w.drop(k, msgPrealloc, msgCancel)
	for i := 0; i < int(w.nWrites); {
		x := w.writes[i].id
		if unpackChunk(x).conn != k {
			i++
			continue
		}
		if err := y.returned(w, x, false); err != nil {
			return err
		}
		i = 0 // the step may have started others
	}
	boot := room.Boot(1 + w.late>>k&1)
	return y.doP(w, prefill.Event{Kind: prefill.LinkEnd, Boot: boot, Conn: room.Conn(k)})
}

// drop loses the messages of some kinds that travel on a connection.
func (w *world) drop(k uint8, from, to msgKind) {
	for i := 0; i < int(w.net.n); {
		x := w.net.at[i]
		if m := unpackMsg(x); m.conn == k && m.kind >= from && m.kind <= to {
			w.net.remove(x)
		} else {
			i++
		}
	}
}

// send puts a message of one of the workers on the wire. In a scope in which messages travel
// on links (Tied), one whose link is gone is dropped, as the driver is told to do.
func (y *System) send(w *world, m msg, conn uint8) {
	if y.scope.Tied {
		cut := w.dCut
		if m.kind == msgSettled {
			cut = w.pCut
		}
		if conn == 0 || cut>>conn&1 == 1 {
			return
		}
		m.conn = conn
		if other := w.dCut | w.pCut; other>>conn&1 == 1 {
			return // the other end is gone: nobody will read it
		}
	}
	w.net.add(m.pack())
}

// linkOf is prefill's newest connection to a life of decode, or 0.
func (w *world) linkOf(boot uint8) uint8 {
	for k := w.conn; k > 0; k-- {
		if w.pCut>>k&1 == 0 && (w.late>>k&1 == 1) == (boot == 2) {
			return k
		}
	}
	return 0
}

// tell lets the gateway end the other leg, if there is a gateway in this scope.
func (y *System) tell(w *world, k msgKind, r uint8) {
	if y.scope.Gateway && (k != msgAbortP || w.unsent>>r&1 == 0) {
		w.net.add(msg{kind: k, room: r}.pack())
	}
}

// crash takes a process away with everything it had in memory.
func (y *System) crash(w *world, ofPrefill bool) {
	all := uint8(1)<<(w.conn+1) - 2
	if y.scope.Tied {
		y.hangUp(w, ofPrefill)
	}
	if ofPrefill {
		for r := range uint8(y.scope.Rooms) {
			if w.owedP>>r&1 == 1 {
				y.tell(w, msgAbortD, r)
			}
		}
		w.pUp, w.pCut = false, all
		w.drained &^= 1
		w.crashP--
		w.writes, w.nWrites, w.pStep = [chunksMax]write{}, 0, passes{}
		w.src, w.owedP, w.ranP, w.said = [blocksMax]uint8{}, 0, 0, [roomsMax]uint16{}
		w.sureP = [roomsMax]room.Outcome{}
		for k := uint8(1); k <= w.conn; k++ {
			w.drop(k, msgPrealloc, msgCancel)
		}
		return
	}
	for r := range uint8(y.scope.Rooms) {
		if w.owedD>>r&1 == 1 {
			y.tell(w, msgAbortP, r)
		}
	}
	if w.waiting() {
		w.shows |= 1 << sawFoundCrash
	}
	w.dUp, w.dCut = false, all
	w.drained &^= 2
	w.crashD--
	w.wire, w.in, w.nIn, w.dStep = set{}, [chunksMax]inside{}, 0, passes{}
	w.dst, w.by = [blocksMax]uint8{}, [blocksMax]origin{}
	w.owedD, w.ranD, w.begin, w.dialing, w.seq = 0, 0, 0, false, 0
	w.made, w.from, w.sureD = [roomsMax]uint8{}, [roomsMax]uint8{}, [roomsMax]room.Outcome{}
	for k := uint8(1); k <= w.conn; k++ {
		w.drop(k, msgSettled, msgSettled)
	}
}

// hangUp ends the HTTP connections of a process that dies: what the gateway sent and was not
// read goes with them, and the gateway sees it.
func (y *System) hangUp(w *world, ofPrefill bool) {
	for r := range uint8(y.scope.Rooms) {
		request, abort, other := msg{kind: msgRequestP, room: r}, msg{kind: msgAbortP, room: r}, msgAbortD
		if !ofPrefill {
			request.kind, abort.kind, other = msgRequestD, msgAbortD, msgAbortP
		}
		if w.net.remove(request.pack()) {
			y.tell(w, other, r)
		}
		w.net.remove(abort.pack())
	}
}

// newP starts a life of prefill. The second may cut prompts otherwise than the first.
func (y *System) newP(w *world) {
	cfg := prefill.Config{Blocks: y.scope.BlocksP, QueuedMax: roomsMax, RunningMax: roomsMax, ChunkTokens: y.scope.ChunkTokens}
	if y.scope.Recut && w.pInc == 2 {
		cfg.ChunkTokens *= 2
	}
	w.p = prefill.New(cfg)
}

func (y *System) newD(w *world) {
	w.d = decode.New(decode.Config{
		Boot: room.Boot(w.dInc), Blocks: y.scope.BlocksD, QueuedMax: roomsMax, RunningMax: y.scope.Slots, ChunkTokens: y.scope.ChunkTokens, AheadTokens: y.scope.Ahead,
	})
}
