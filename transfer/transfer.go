package transfer

import (
	"log/slog"

	"github.com/zeebo/xxh3"

	"baton/core/room"
)

// Memory is a pool of KV blocks, all of one length that never changes. Block returns the bytes
// of physical block i; the same i always gives the same memory.
type Memory interface {
	Block(i int32) []byte
}

// Sum is the sum that travels with each block: xxh3, 64 bits. Prefill takes it when it has
// filled the block, decode compares after the copy (spec: 12 GB/s cold, 60 GB/s hot per core).
func Sum(b []byte) uint64 { return xxh3.Hash(b) }

// Role says which ends a worker may be of a link. The dialling end decodes, the listening
// end prefills.
type Role uint8

const (
	RolePrefill Role = 1 + iota
	RoleDecode
	RoleUnified // both
	roles
)

func (r Role) String() string {
	return [...]string{"none", "prefill", "decode", "unified"}[min(r, roles)%roles]
}

// Identity is what an end says of itself when a link is made.
type Identity struct {
	Boot     room.Boot // this life of this process
	Role     Role      // 0 means the role of the end: prefill for the listener, decode for the dialler
	Secret   []byte    // shared by all workers of a fleet, SecretMin bytes or more; never sent
	Manifest []byte    // layout of the blocks; both ends of a link must have the same bytes
	Bounds   Bounds    // zero fields take the defaults

	Log *slog.Logger // for connections that never became a link; nil is slog.Default
}

// Chunk names the bytes that a receiver is about to place: blocks [FirstBlock, FirstBlock+N) of
// the room, sent as the chunk with this number under this lease over this connection.
type Chunk struct {
	Room       room.ID
	Lease      room.Lease
	Conn       room.Conn
	Chunk      int
	FirstBlock int // logical index in the room, from 0
	N          int // blocks
	Last       bool
}

// Write asks a prefill end to send one chunk. Blocks are physical, in logical order. Sums has
// one sum per block; nil means that they are taken when the blocks are sent, which costs more.
// Side travels with the chunk (SideMax bytes at most). The plane keeps no slice after WriteDone.
type Write struct {
	Room       room.ID
	Lease      room.Lease
	Conn       room.Conn
	Chunk      int
	FirstBlock int
	Blocks     []int32
	Last       bool
	Sums       []uint64
	Side       []byte
}

// Prefill is the listening end: it sends blocks. Methods never block, except Close.
type Prefill interface {
	// Settle sends the final word to the decode worker of the lease; without a link to it the
	// word is dropped and counted.
	Settle(room.Settled)
	// Write sends a chunk and ends in exactly one WriteDone, also when the connection is
	// unknown or has ended, or the end is closed.
	Write(Write)
	Addr() string // where decode workers dial, host:port
	Stats() Stats
	// Close ends every link and waits until nothing moves. Handlers must go on answering
	// meanwhile; it must not be called from a handler. It may be called again, and then waits
	// for the answers to what was asked of the closed end.
	Close() error
}

// PrefillHandler hears what happens at a prefill end. Calls come from goroutines of the plane
// and may block; those of one connection come one after the other, WriteDone aside.
type PrefillHandler interface {
	LinkUp(peer room.Boot, conn room.Conn)
	LinkEnd(peer room.Boot, conn room.Conn, err error) // every WriteDone of accepted writes came before
	Prealloc(room.Prealloc)
	Cancel(room.Cancel)
	WriteDone(r room.ID, l room.Lease, chunk int, err error) // nil: the source is free, nothing said about arrival
}

// Decode is the dialling end: it receives blocks. Methods never block, except Close.
type Decode interface {
	// Dial makes a link to the prefill worker at addr; peer is the caller's name for it and
	// comes back in every call. Ends in LinkUp or LinkFailed, whose error does not repeat addr.
	// Peers that are one worker share a link (T10); Settled then names the one that made it.
	Dial(peer int32, addr string)
	Prealloc(room.Conn, room.Prealloc)
	// Cancel tells prefill that the lease is given up, and makes a receiver that is inside
	// blocks of this room and lease leave them: Off follows (or Placed, if it was through).
	Cancel(room.Conn, room.Cancel)
	Stats() Stats
	Close() error // as Prefill.Close
}

// DecodeHandler hears what happens at a decode end. Calls come from goroutines of the plane and
// may block; Arrived, Placed, Off and Refused of one connection come one after the other.
type DecodeHandler interface {
	LinkUp(peer int32, boot room.Boot, conn room.Conn)
	LinkFailed(peer int32, err error)
	LinkEnd(peer int32, conn room.Conn, err error)
	Settled(peer int32, s room.Settled)
	// Arrived asks where the chunk goes: one physical block for each of c.N, or no. The answer
	// must come; while it is awaited the connection stands still.
	Arrived(c Chunk) (blocks []int32, ok bool)
	// Placed says that every byte of an accepted chunk is there and right. side is only valid
	// during the call.
	Placed(c Chunk, side []byte)
	// Off says that the receiver left an accepted chunk unfinished: nothing touches its blocks.
	Off(c Chunk)
	// Refused follows Off when the reason was a wrong sum.
	Refused(c Chunk)
}

// Stats counts since the start of an end. Bytes are payload: blocks only.
type Stats struct {
	Links          int64 // up now
	LinksRefused   int64 // connections that did not pass the handshake
	SentBytes      int64 // prefill: written to a connection
	PlacedBytes    int64 // decode: in chunks that were placed
	ScrapBytes     int64 // decode: read and thrown away, refused or left by their receiver
	PlacedChunks   int64
	ScrapChunks    int64 // answered with no, or left unfinished
	SumErrors      int64 // chunks with a wrong sum
	WordsDropped   int64 // control frames that had no link to go to
	WritesFailed   int64
	QueueOverflows int64 // links ended because their control queue was full
}
