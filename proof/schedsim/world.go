package schedsim

import (
	"cmp"
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/room"
)

// Small-scope limits; exceeding one is a panic, never a silent cut.
const (
	roomsMax    = 4
	blocksMax   = 8
	branchesMax = 3
)

// peer is the prefill worker of rooms whose KV comes over a link.
const peer int32 = 7

// deadline of every request: it only has to be later than now, which is always 0. The explorer
// fires any armed timer at any moment.
const deadline = time.Hour

// Scope says which rooms there are, how small the worker is, and what may happen.
type Scope struct {
	Rooms  []Room
	Blocks int
	Slots  int
	Chunk  int // token budget of a step
	Ahead  int

	Abort      bool // a client may leave, once per room
	StepFails  bool // an engine step may fail, with all rooms in it
	BegunFails bool // a first token may make no sense
	Early      bool // a room's output may end before its longest
	Breaks     uint8
}

// Room is what one request asks for.
type Room struct {
	Tokens, MaxNew int
	Branches       int  // outputs; 0 is 1
	Pair           bool // its KV comes over the link
	Endless        bool // when it is over another one like it comes, for ever
}

// branches is how many outputs a room has.
func (one *Room) branches() int { return max(one.Branches, 1) }

// blocks is how many blocks a room needs for so many tokens of each output: the prompt's full ones
// are one for all.
func (one *Room) blocks(output int) int {
	full := one.Tokens / room.BlockTokens
	return full + one.branches()*(room.BlocksFor(one.Tokens+output)-full)
}

// World is the core, the engine and what every block holds.
type World struct {
	core  *decode.Core
	step  []decode.StepItem // outstanding; never written
	reads []decode.Copy     // that it makes
	rooms [roomsMax]state
	kv    [blocksMax]stamp
	link  link

	shows uint64 // witnesses of the last event; not part of the state
}

// state is one request as the world sees it.
type state struct {
	asked     bool
	owed      bool // accepted and not ended
	over      bool
	gone      bool  // its client has left
	hurt      bool  // something was done to it for which it may end otherwise than well
	retracted uint8 // how often, up to 2
	since     uint8 // tokens that it made since anybody was let in, up to one more than Ahead
	out       [branchesMax]output
	send      send
}

// output is what one branch of a room has said.
type output struct {
	begin   bool // Begin sent, Begun not here
	early   bool // its last token was said before its longest
	over    bool // its last token was made
	fed     uint8
	emitted uint8
	table   uint8 // blocks that it had in its last step
}

// said says that the room has made a token.
func (s *state) said() bool {
	return slices.ContainsFunc(s.out[:], func(o output) bool { return o.fed > 0 })
}

// begins says that a first token is being fed.
func (s *state) begins() bool {
	return slices.ContainsFunc(s.out[:], func(o output) bool { return o.begin })
}

// send is a room's transfer, as prefill sees it.
type send struct {
	lease                        room.Lease
	isOpen, isIn, isPlaced, said bool
	blocks                       []int32 // that its receiver was let into; never written
}

// waits says that chunk or word are still to come under the lease.
func (s *send) waits() bool { return s.isOpen && (!s.isPlaced || !s.said) }

// link is the one to prefill.
type link struct {
	conn    uint8 // newest; they count from 1
	up      bool
	dialing bool
	breaks  uint8
}

// stamp says what a block holds: the first n tokens of the index-th block of a room, and whose
// output is among them. The zero stamp is nothing.
type stamp struct{ room, branch, index, n uint8 } // room and branch count from 1; branch is 0 if all are of the prompt

// stamped is what a block of a branch holds when the branch has n tokens, or all of the block.
func (y *System) stamped(r, branch uint8, index, n int) stamp {
	k := stamp{r + 1, branch + 1, uint8(index), uint8(min(room.BlockTokens, n-index*room.BlockTokens))}
	if index*room.BlockTokens+int(k.n) <= y.scope.Rooms[r].Tokens {
		k.branch = 0
	}
	return k
}

func id(r uint8) room.ID { return room.ID(r) + 1 }

// Init returns a world in which nobody has asked yet.
func (y *System) Init() World {
	sc := &y.scope
	if len(sc.Rooms) > roomsMax || sc.Blocks > blocksMax {
		panic("schedsim: the scope is larger than a world: raise roomsMax or blocksMax")
	}
	w := World{core: decode.New(decode.Config{
		Boot: 1, Blocks: sc.Blocks, QueuedMax: roomsMax, RunningMax: sc.Slots, ChunkTokens: sc.Chunk, AheadTokens: sc.Ahead,
	})}
	w.link.breaks = sc.Breaks
	return w
}

// CopyInto copies src over dst and reuses the memory of dst's core.
func (y *System) CopyInto(dst, src *World) {
	core := dst.core
	if core == nil {
		core = new(decode.Core)
	}
	*dst = *src
	dst.core = core
	src.core.CopyTo(core)
}

// Clone copies a world.
func (y *System) Clone(s *World) World {
	var c World
	y.CopyInto(&c, s)
	return c
}

// Key appends everything that the future depends on. The numbers of blocks do not count: what they
// hold is written room by room.
func (y *System) Key(w *World, b []byte) []byte {
	b = w.core.AppendState(b)
	b = append(b, byte(len(w.step)), byte(len(w.reads)), w.link.conn, flags(w.link.up, w.link.dialing), w.link.breaks)
	for r := range y.scope.Rooms {
		s := &w.rooms[r]
		b = append(b, flags(s.asked, s.owed, s.over, s.gone, s.hurt), s.retracted, s.since,
			flags(s.send.isOpen, s.send.isIn, s.send.isPlaced, s.send.said), byte(s.send.lease.Seq))
		for _, o := range s.out[:y.scope.Rooms[r].branches()] {
			b = append(b, flags(o.begin, o.early, o.over), o.fed, o.emitted, o.table)
		}
	}
	held := w.kv
	slices.SortFunc(held[:], stamp.compare)
	for _, k := range held {
		if k.room > 0 {
			b = append(b, k.room, k.branch, k.index, k.n)
		}
	}
	return b
}

func (k stamp) compare(l stamp) int {
	return cmp.Or(cmp.Compare(k.room, l.room), cmp.Compare(k.branch, l.branch), cmp.Compare(k.index, l.index), cmp.Compare(k.n, l.n))
}

func flags(all ...bool) (b byte) {
	for i, x := range all {
		if x {
			b |= 1 << i
		}
	}
	return b
}

// Done says that every room that does not come again is over, and if none does that nothing is
// held.
func (y *System) Done(w *World) bool {
	for r, one := range y.scope.Rooms {
		if !one.Endless && !w.rooms[r].over {
			return false
		}
	}
	return y.endless() || w.core.Idle() && w.step == nil
}

// endless says that some rooms of the scope come again and again.
func (y *System) endless() bool {
	return slices.ContainsFunc(y.scope.Rooms, func(one Room) bool { return one.Endless })
}
