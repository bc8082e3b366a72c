package sim

import (
	"encoding/binary"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// Small-scope limits: a world is a flat value apart from its two cores, so that copying it is
// cheap. Exceeding one is a panic, never a silent cut.
const (
	roomsMax  = 4
	blocksMax = 16 // in each pool
	tableMax  = 4  // blocks of one room
	netMax    = 64 // messages in flight
	chunksMax = 16 // chunks in one place
	leasesMax = 8  // leases of one life of decode
	connsMax  = 7  // data connections over the life of a world
	bootsMax  = 2  // lives of each process
)

// world is the whole system: both cores, the wire, the data plane, engines, budgets for
// faults, and the ghosts by which invariants are checked.
type world struct {
	p    *prefill.Core
	d    *decode.Core
	pUp  bool
	dUp  bool
	pInc uint8 // lives of prefill so far; names its forward passes
	dInc uint8 // the same of decode; also its boot

	net  set // control messages and requests in flight: see msg
	wire set // chunks whose header has not been read: see chunk

	in  [chunksMax]inside // chunks that a receiver is inside of, in the order of their ids
	nIn uint8

	writes  [chunksMax]write // outstanding at prefill, in the order they were started
	nWrites uint8
	pStep   passes // outstanding engine step of prefill
	dStep   passes // outstanding engine step of decode
	begin   uint8  // rooms whose first token is being fed, one bit each
	dialing bool

	conn uint8 // newest data connection; they count from 1
	dCut uint8 // connections whose end decode has seen, one bit each
	pCut uint8 // the same at prefill

	late uint8 // connections of decode's second life, one bit each
	seq  uint8 // newest lease of decode's life

	gone    uint8 // client aborts spent, one bit per room
	unsent  uint8 // rooms whose leg at prefill will never be opened, one bit each
	opened  uint8 // rooms whose Request reached prefill, one bit each
	drained uint8 // sides that were drained, one bit each
	leases  uint8 // leases given in this world
	crashP  uint8 // budgets left
	crashD  uint8
	breaks  uint8
	forget  uint8

	// Ghosts. What they say is not known to anybody in the world.
	hurt  uint8                  // rooms to which anything was done: only they may fail. One bit each
	owedP uint8                  // legs that prefill accepted and did not end, one bit per room
	owedD uint8                  // the same at decode
	ranP  uint8                  // Once: rooms that this life of prefill began to compute
	ranD  uint8                  // Once: rooms that this life of decode began
	said  [roomsMax]uint16       // leases on which this life of prefill gave its final word
	src   [blocksMax]uint8       // prefill: what each block holds, see stamp
	dst   [blocksMax]uint8       // decode: the same
	by    [blocksMax]origin      // decode: where it came from, by which lease; nothing if it was found or computed there
	from  [roomsMax]uint8        // decode: blocks that a lease leaves out, because they were found
	made  [roomsMax]uint8        // decode: tokens that went to the client
	sureP [roomsMax]room.Outcome // outcomes that were decided; labels, not part of the state
	sureD [roomsMax]room.Outcome
	shows uint64 // witnesses of the last event; not part of the state
}

// origin is the lease under which, and the pass by which, a block was filled.
type origin struct{ boot, seq, pass uint8 }

// write is one outstanding write of prefill.
type write struct {
	id     uint32 // the chunk it moves
	blocks uint16 // source blocks it reads, one bit each
}

// inside is a receiver in decode's memory.
type inside struct {
	id    uint32          // the chunk it places
	table [tableMax]uint8 // the blocks it was let into
}

// passes is one outstanding engine step.
type passes struct {
	n    uint8
	item [roomsMax]pass
}

type pass struct {
	room     uint8
	from, to uint8
	prefill  bool            // of decode: a chunk of a local prompt
	finish   bool            // of decode: the last token
	table    [tableMax]uint8 // blocks of the room
	n        uint8           // length of table
}

// stamp names a piece of KV: block i of a room's prompt. 0 is nothing.
func stamp(r uint8, i int) uint8 { return 1 + r<<4 + uint8(i) }

// set is a small ordered set of packed messages or chunks. Loss and duplication without limit
// cost nothing: a message is there or not.
type set struct {
	n  uint8
	at [netMax]uint32
}

func (s *set) add(m uint32) {
	i := 0
	for ; i < int(s.n); i++ {
		if s.at[i] == m {
			return
		}
		if s.at[i] > m {
			break
		}
	}
	if int(s.n) == netMax {
		panic("sim: too many messages in flight: raise netMax")
	}
	copy(s.at[i+1:s.n+1], s.at[i:s.n])
	s.at[i] = m
	s.n++
}

func (s *set) remove(m uint32) (found bool) {
	for i := range s.n {
		if s.at[i] == m {
			copy(s.at[i:], s.at[i+1:s.n])
			s.n--
			s.at[s.n] = 0
			return true
		}
	}
	return false
}

func (s *set) has(m uint32) bool {
	for _, x := range s.all() {
		if x == m {
			return true
		}
	}
	return false
}

func (s *set) all() []uint32 { return s.at[:s.n] }

func (s *set) key(b []byte) []byte {
	b = append(b, s.n)
	for _, m := range s.all() {
		b = binary.LittleEndian.AppendUint32(b, m)
	}
	return b
}

// A message: kind, room, boot of decode, lease, connection or chunk count.
type msg struct {
	kind msgKind
	room uint8
	boot uint8 // of the lease
	seq  uint8
	n    uint8 // Prealloc: data connection. Settled: chunks of a success, 0 for a failure
	conn uint8 // the link it travels on, 0 where messages outlive links
	from uint8 // Prealloc: first block that is wanted
}

type msgKind uint8

const (
	msgRequestP msgKind = iota
	msgRequestD
	msgAbortP
	msgAbortD
	msgPrealloc
	msgCancel
	msgSettled
)

func (m msg) pack() uint32 {
	return uint32(m.from)<<24 | uint32(m.kind)<<20 | uint32(m.room)<<16 | uint32(m.boot)<<12 | uint32(m.seq)<<8 | uint32(m.n)<<4 | uint32(m.conn)
}

func unpackMsg(x uint32) msg {
	return msg{msgKind(x >> 20 & 15), uint8(x >> 16 & 15), uint8(x >> 12 & 15), uint8(x >> 8 & 15), uint8(x >> 4 & 15), uint8(x & 15), uint8(x >> 24)}
}

// lease of a message or chunk.
func lease(boot, seq uint8) room.Lease { return room.Lease{Boot: room.Boot(boot), Seq: uint64(seq)} }

// chunk is one chunk on its way.
type chunk struct {
	room, boot, seq uint8
	conn            uint8
	n               uint8 // its number
	first, blocks   uint8
	last            bool
	pass            uint8 // ghost: life of prefill that computed it
}

func (c chunk) pack() uint32 {
	x := uint32(c.pass)<<28 | uint32(c.room)<<24 | uint32(c.boot)<<21 | uint32(c.seq)<<17 | uint32(c.conn)<<13 | uint32(c.n)<<9 | uint32(c.first)<<5 | uint32(c.blocks)<<1
	if c.last {
		x |= 1
	}
	return x
}

func unpackChunk(x uint32) chunk {
	return chunk{
		room: uint8(x >> 24 & 15), boot: uint8(x >> 21 & 7), seq: uint8(x >> 17 & 15), conn: uint8(x >> 13 & 15),
		n: uint8(x >> 9 & 15), first: uint8(x >> 5 & 15), blocks: uint8(x >> 1 & 15), last: x&1 == 1, pass: uint8(x >> 28),
	}
}

// CopyInto copies src over dst and reuses the memory of dst's cores.
func (y *System) CopyInto(dst, src *world) {
	p, d := dst.p, dst.d
	if p == nil {
		p, d = new(prefill.Core), new(decode.Core)
	}
	*dst = *src
	dst.p, dst.d = p, d
	if src.pUp {
		src.p.CopyTo(p)
	}
	if src.dUp {
		src.d.CopyTo(d)
	}
}

// Clone copies a world.
func (y *System) Clone(s *world) world {
	var c world
	y.CopyInto(&c, s)
	return c
}

// Key appends everything that the future depends on. The numbers of blocks do not count, so
// what they hold is written in the order of its stamps. No two blocks have the same stamp,
// because nobody is let into a block twice; with Keys two may have it, see foundKey.
func (y *System) Key(w *world, b []byte) []byte {
	b = append(b, bit(w.pUp)|bit(w.dUp)<<1|bit(w.dialing)<<2, w.pInc, w.dInc, w.begin, w.conn, w.dCut, w.pCut, w.gone,
		w.leases, w.crashP, w.crashD, w.breaks, w.forget, w.hurt, w.owedP, w.owedD, w.ranP, w.ranD, w.drained, w.unsent, w.opened)
	for r := range y.scope.Rooms {
		b = append(b, uint8(w.said[r]), uint8(w.said[r]>>8), w.made[r])
	}
	b = w.net.key(b)
	b = w.wire.key(b)
	b = append(b, w.nWrites, w.nIn, w.late, w.seq)
	for i := range w.nIn {
		b = binary.LittleEndian.AppendUint32(b, w.in[i].id)
	}
	for i := range w.nWrites {
		b = binary.LittleEndian.AppendUint32(b, w.writes[i].id)
	}
	// Room by room, block by block: what decode's memory holds. (Steps, tables and prefill's
	// memory follow from the cores: no need to write them too.)
	if y.scope.Keys {
		b = y.foundKey(w, b)
	}
	var held [roomsMax * tableMax]origin
	for k, st := range w.dst {
		if st != 0 && !y.scope.Keys {
			held[(st-1)>>4*tableMax+(st-1)&15] = origin{1 + w.by[k].boot, w.by[k].seq, w.by[k].pass}
		}
	}
	for _, o := range held[:tableMax*y.scope.Rooms] {
		b = append(b, o.boot, o.seq<<4|o.pass)
	}
	if w.pUp {
		b = w.p.AppendState(b)
	}
	if w.dUp {
		b = w.d.AppendState(b)
	}
	return b
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
