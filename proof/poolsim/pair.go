package poolsim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
)

// PairScope sizes a world of core/prefill and core/decode with a cache each and a link between them
// that loses nothing: decode asks for what it has not found, prefill computes what it has not.
type PairScope struct {
	LocalScope          // decode's side: every room is of two legs; of the output one token is enough
	Source     int      // blocks of the prefill worker
	Slots      int      // rooms in flight there
	Other      []string // what prefill is asked instead, by a gateway's mistake; nil: the same
}

// PairWorld is one state of it. LocalWorld is decode's side.
type PairWorld struct {
	LocalWorld
	source prefill.Core
	smem   memory
	sstep  []prefill.StepItem
	flight []flight
	toP    []decode.Effect // control messages, in order
	toD    []room.Settled
	sout   prefill.Effects
}

// flight is a chunk on its way.
type flight struct {
	room   room.ID
	chunk  int32
	first  int32
	last   bool
	bytes  []string // as they left, once a receiver has them; nil before
	source []int32
	blocks []int32 // of decode, that a receiver is inside of
}

// Pairs explores a scope.
type Pairs struct {
	scope  PairScope
	locals Locals
}

// NewPairs returns the system of a scope.
func NewPairs(sc PairScope) *Pairs { return &Pairs{sc, Locals{sc.LocalScope}} }

func (s *Pairs) Init() PairWorld {
	sc := &s.scope
	c := prefill.New(prefill.Config{Blocks: sc.Source, QueuedMax: len(sc.Prompts), RunningMax: sc.Slots, ChunkTokens: sc.Chunk * room.BlockTokens})
	return PairWorld{LocalWorld: s.locals.Init(), source: *c, smem: newMemory(sc.Source)}
}

func (s *Pairs) Clone(w *PairWorld) PairWorld {
	var d PairWorld
	s.CopyInto(&d, w)
	return d
}

func (s *Pairs) CopyInto(dst, src *PairWorld) {
	s.locals.CopyInto(&dst.LocalWorld, &src.LocalWorld)
	src.source.CopyTo(&dst.source)
	src.smem.copyTo(&dst.smem)
	dst.sstep = src.sstep
	dst.flight = append(dst.flight[:0], src.flight...)
	dst.toP = append(dst.toP[:0], src.toP...)
	dst.toD = append(dst.toD[:0], src.toD...)
}

func (s *Pairs) Done(w *PairWorld) bool {
	return s.locals.Done(&w.LocalWorld) && w.source.Idle() && w.source.Blocks().Held == 0 && len(w.flight)+len(w.toP)+len(w.toD) == 0 && w.sstep == nil
}

func (s *Pairs) Class(e Event) explore.Class {
	switch e.Kind {
	case Told, Heard, Arrives, Placed:
		return explore.Delivery
	case SourceFails:
		return explore.Fault
	}
	return (*Prefills)(nil).Class(e)
}

func (s *Pairs) Events(w *PairWorld, dst []Event) []Event {
	dst = s.locals.Events(&w.LocalWorld, dst)
	if w.sstep != nil {
		dst = append(dst, Event{Kind: SourceHome})
		if s.scope.StepFails {
			dst = append(dst, Event{Kind: SourceFails, Room: w.sstep[0].Room})
		}
	}
	if len(w.toP) > 0 {
		dst = append(dst, Event{Kind: Told})
	}
	if len(w.toD) > 0 {
		dst = append(dst, Event{Kind: Heard})
	}
	for i, x := range w.flight {
		if slices.ContainsFunc(w.flight[:i], func(y flight) bool { return y.room == x.room }) {
			continue // one after the other, in a room
		}
		kind := Arrives
		if x.bytes != nil {
			kind = Placed
		}
		dst = append(dst, Event{Kind: kind, Room: x.room, Chunk: x.chunk})
	}
	return dst
}

func (s *Pairs) Apply(w *PairWorld, e Event) error {
	w.shows = 0
	id := e.Room
	switch e.Kind {
	case Come:
		w.rooms[id-1].came = true
		if err := s.feedP(w, prefill.Event{Kind: prefill.Request, Room: id, Tokens: s.locals.tokens(id), Keys: keysOf(s.asked(id)), Deadline: 1}); err != nil {
			return err
		}
		return s.feedD(w, s.locals.request(id, 1))
	case First: // reads the whole prompt
		prompt := s.scope.Prompts[id-1]
		begun := s.locals.begun(&w.LocalWorld, e)
		if prompt != s.asked(id) { // the side data says so
			w.show(unlike)
			w.rooms[id-1].harmed = true
			begun.OK, begun.Cause = false, room.Internal
			return s.feedD(w, begun)
		}
		if err := w.mem.holds(prompt, w.rooms[id-1].table, len(prompt)); err != nil {
			return err
		}
		return s.feedD(w, begun)
	case Abort:
		w.rooms[id-1].harmed = true
		if err := s.feedD(w, decode.Event{Kind: decode.Abort, Room: id}); err != nil {
			return err
		}
		return s.feedP(w, prefill.Event{Kind: prefill.Abort, Room: id}) // the gateway gives both legs up
	case Home, Fails:
		if e.Kind == Fails {
			w.show(failed)
			w.rooms[id-1].harmed = true
		}
		if err := s.locals.home(&w.LocalWorld, id); err != nil {
			return err
		}
		return s.talk(w)
	case Over:
		if err := s.locals.Apply(&w.LocalWorld, e); err != nil {
			return err
		}
		return s.talk(w)
	case SourceHome, SourceFails:
		if e.Kind == SourceFails {
			w.show(failed)
			w.rooms[id-1].harmed = true
		}
		return s.sourceHome(w, id)
	case Told:
		x := w.toP[0]
		w.toP = slices.Delete(w.toP, 0, 1)
		if x.Kind == decode.SendCancel {
			return s.feedP(w, prefill.Event{Kind: prefill.Cancel, Cancel: x.Cancel})
		}
		if x.Prealloc.From > 0 {
			w.show(unsent)
		}
		return s.feedP(w, prefill.Event{Kind: prefill.Prealloc, Prealloc: x.Prealloc})
	case Heard:
		x := w.toD[0]
		w.toD = slices.Delete(w.toD, 0, 1)
		return s.feedD(w, decode.Event{Kind: decode.Settled, Settled: x})
	}
	i := slices.IndexFunc(w.flight, func(x flight) bool { return x.room == id && x.chunk == e.Chunk })
	x := w.flight[i]
	if e.Kind == Arrives {
		return s.arrives(w, i)
	}
	for k, b := range x.blocks {
		if w.written(b) || w.users(b) != 1 {
			return fmt.Errorf("OWN: chunk %d of room %d is placed into block %d, which others use", x.chunk, id, b)
		}
		w.mem.bytes[b] = x.bytes[k]
	}
	w.flight = slices.Delete(w.flight, i, i+1)
	return s.feedD(w, decode.Event{Kind: decode.ChunkPlaced, Room: id, Lease: w.leaseOf(id), Chunk: x.chunk})
}

// asked is the prompt of the leg at prefill.
func (s *Pairs) asked(id room.ID) string {
	if s.scope.Other != nil {
		return s.scope.Other[id-1]
	}
	return s.scope.Prompts[id-1]
}

// leaseOf: decode gives leases in the order in which rooms get blocks; a room has one at most.
func (w *PairWorld) leaseOf(id room.ID) room.Lease {
	return leaseIn(w.core.Rooms, id)
}

// arrives asks decode for a place. The bytes are what they were when they left, and the source is
// free from then on.
func (s *Pairs) arrives(w *PairWorld, i int) error {
	x := w.flight[i]
	x.bytes = make([]string, len(x.source))
	for k, b := range x.source {
		x.bytes[k] = w.smem.bytes[b]
	}
	w.flight[i] = x
	lease := w.leaseOf(x.room)
	place := decode.Effect{}
	if lease != (room.Lease{}) {
		err := s.feedD(w, decode.Event{Kind: decode.ChunkArrived, Room: x.room, Lease: lease, Conn: 1, Chunk: x.chunk, FirstBlock: x.first, N: int32(len(x.source)), Last: x.last})
		if err != nil {
			return err
		}
		for _, e := range w.out.List {
			if e.Kind == decode.Place {
				place = e
			}
		}
	}
	i = slices.IndexFunc(w.flight, func(y flight) bool { return y.room == x.room && y.chunk == x.chunk })
	if place.OK {
		w.flight[i].blocks = place.Blocks
	} else {
		w.flight = slices.Delete(w.flight, i, i+1)
	}
	return s.feedP(w, prefill.Event{Kind: prefill.WriteDone, Room: x.room, Lease: leaseIn(w.source.Rooms, x.room), Chunk: x.chunk, OK: true})
}

// leaseIn is the lease of a room in a core.
func leaseIn(rooms func(yield func(room.View) bool), id room.ID) (l room.Lease) {
	rooms(func(v room.View) bool {
		if v.Room == id {
			l = v.Lease
		}
		return l == room.Lease{}
	})
	return l
}

// feedD steps decode's side and takes its messages.
func (s *Pairs) feedD(w *PairWorld, ev decode.Event) error {
	if err := s.locals.feed(&w.LocalWorld, ev); err != nil {
		return err
	}
	return s.talk(w)
}

// talk takes what decode's last step says to the link.
func (s *Pairs) talk(w *PairWorld) error {
	dial := false
	for _, x := range w.out.List {
		switch x.Kind {
		case decode.SendPrealloc, decode.SendCancel:
			w.toP = append(w.toP, x)
		case decode.Freed:
			for _, f := range w.flight {
				for _, b := range f.blocks {
					if slices.Contains(x.Blocks, b) {
						return fmt.Errorf("QUIET: block %d is freed with a receiver inside", b)
					}
				}
			}
		case decode.Dial:
			dial = true
		}
	}
	if dial {
		return s.feedD(w, decode.Event{Kind: decode.LinkUp, Peer: 1, Conn: 1})
	}
	return nil
}

// feedP steps prefill and does what it says; its own account of its pool is judged in Prefills.
func (s *Pairs) feedP(w *PairWorld, ev prefill.Event) error {
	w.sout.Reset()
	w.source.Step(0, ev, &w.sout)
	for i := range w.sout.List {
		switch x := &w.sout.List[i]; x.Kind {
		case prefill.Settle:
			w.toD = append(w.toD, x.Settled)
		case prefill.Step:
			w.sstep = x.Items
			for _, it := range x.Items {
				for _, b := range it.Blocks[it.From/room.BlockTokens : room.BlocksFor(int(it.To))] {
					w.smem.bytes[b] = ""
				}
			}
		case prefill.Write:
			w.flight = append(w.flight, flight{room: x.Room, chunk: x.Chunk, first: x.FirstBlock, last: x.Last, source: x.Blocks})
		}
	}
	return nil
}

func (s *Pairs) sourceHome(w *PairWorld, fails room.ID) error {
	ev := prefill.Event{Kind: prefill.StepDone}
	for i := range w.sstep {
		it := &w.sstep[i]
		ok := it.Room != fails
		ev.Results = append(ev.Results, prefill.Result{Room: it.Room, OK: ok})
		if ok {
			w.smem.compute(s.asked(it.Room), it.Blocks, it.From, it.To, w.source.Found)
		}
	}
	w.sstep = nil
	return s.feedP(w, ev)
}

func (s *Pairs) Key(w *PairWorld, b []byte) []byte {
	b = s.locals.Key(&w.LocalWorld, b)
	b = w.source.AppendState(b)
	b = append(b, byte(len(w.sstep)), byte(len(w.flight)), byte(len(w.toP)), byte(len(w.toD)))
	for i := range w.rooms { // what prefill's blocks hold follows from its state, if there is no mistake
		b = binary.AppendUvarint(b, w.leaseOf(room.ID(i+1)).Seq)
	}
	for _, x := range w.flight {
		b = append(b, byte(x.room), byte(x.chunk), byte(x.first), flag(x.last), flag(x.bytes != nil), flag(x.blocks != nil))
		prompt := s.asked(x.room)
		for k, bytes := range x.bytes {
			n := int(x.first) + k
			b = append(b, flag(n < len(prompt) && bytes == prompt[:min(n+1, len(prompt))]))
		}
	}
	for _, x := range w.toP {
		b = append(b, byte(x.Kind), byte(x.Room), byte(x.Prealloc.From/room.BlockTokens), byte(x.Prealloc.Lease.Seq+x.Cancel.Lease.Seq))
	}
	for _, x := range w.toD {
		b = append(b, byte(x.Room), byte(x.Chunks), flag(x.Outcome.Kind == room.Success), byte(x.Lease.Seq))
	}
	return b
}

func (s *Pairs) Witnesses() []string               { return sights[:] }
func (s *Pairs) Shows(w *PairWorld) uint64         { return w.shows }
func (s *Pairs) Name(_ *PairWorld, e Event) string { return (*Prefills)(nil).Name(nil, e) }
func (s *Pairs) Columns() []string                 { return append(s.locals.Columns(), "prefill") }
func (s *Pairs) Stuck(w *PairWorld) string         { return s.locals.Stuck(&w.LocalWorld) }
func (s *Pairs) Cells(w *PairWorld, dst []string) []string {
	dst = s.locals.Cells(&w.LocalWorld, dst)
	cell := ""
	w.source.Rooms(func(v room.View) bool {
		cell += fmt.Sprintf("%d:%s ", v.Room, v.Phase)
		return true
	})
	return append(dst, cell)
}
