package wire

import (
	"fmt"
	"hash/crc32"

	"baton/core/room"
	"baton/transfer"
)

// HeaderBytes is the length of a data header.
const HeaderBytes = 72

// SumBytes is the length of one block's sum.
const SumBytes = 8

const dataMagic = 0x31564b42 // "BKV1"; a new layout takes a new digit

// What a data header announces.
const (
	dataChunk uint8 = 1 + iota
	dataPing
)

const flagLast = 1

// Header announces one chunk on a data connection, or nothing at all (Ping). It names no
// address: where the blocks go is the receiver's business.
type Header struct {
	Ping bool
	transfer.Chunk
	BlockBytes int    // bytes of one block
	SideBytes  int    // bytes of side data
	Trailer    uint32 // crc32c of sums and side data
}

// SumCRC is the checksum that Trailer holds.
func SumCRC(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// TrailerBytes is how much follows the header before the first block.
func (h Header) TrailerBytes() int { return SumBytes*h.N + h.SideBytes }

// PayloadBytes is the length of all blocks together.
func (h Header) PayloadBytes() int { return h.N * h.BlockBytes }

// AppendHeader adds the bytes of h to b.
func AppendHeader(b []byte, h Header) []byte {
	if err := h.check(); err != nil {
		panic(fmt.Sprintf("assertion: data header of our own: %v", err))
	}
	at := len(b)
	what, flags := dataChunk, byte(0)
	if h.Ping {
		what = dataPing
	}
	if h.Last {
		flags |= flagLast
	}
	b = le.AppendUint32(b, dataMagic)
	b = append(b, what, flags, 0, 0)
	b = putRef(b, h.Room, h.Lease)
	b = le.AppendUint64(b, uint64(h.Conn))
	for _, v := range [...]int{h.Chunk.Chunk, h.FirstBlock, h.N, h.BlockBytes, h.SideBytes} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = le.AppendUint32(b, h.Trailer)
	b = le.AppendUint32(b, 0)
	return le.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// ParseHeader decodes HeaderBytes bytes.
func ParseHeader(b []byte) (h Header, err error) {
	if len(b) != HeaderBytes {
		return h, fmt.Errorf("wire: data header of %d bytes, want %d: %w", len(b), HeaderBytes, transfer.ErrProtocol)
	}
	c := cursor{b: b}
	if m := c.u32(); m != dataMagic {
		return h, fmt.Errorf("wire: data header starts with %08x, want %08x: %w", m, dataMagic, transfer.ErrProtocol)
	}
	if got, want := crc32.Checksum(b[:HeaderBytes-4], castagnoli), le.Uint32(b[HeaderBytes-4:]); got != want {
		return h, fmt.Errorf("wire: data header has checksum %08x, says %08x: %w", got, want, transfer.ErrProtocol)
	}
	what, flags, zero := c.u8(), c.u8(), c.u16()
	h.Ping, h.Last = what == dataPing, flags&flagLast != 0
	h.Room, h.Lease, h.Conn = c.room(), c.lease(), c.conn()
	h.Chunk.Chunk, h.FirstBlock, h.N = int(c.u32()), int(c.u32()), int(c.u32())
	h.BlockBytes, h.SideBytes, h.Trailer = int(c.u32()), int(c.u32()), c.u32()
	if zero != 0 || c.u32() != 0 || flags&^flagLast != 0 || what == 0 || what > dataPing {
		return Header{}, fmt.Errorf("wire: data header of kind %d with flags %02x: %w", what, flags, transfer.ErrProtocol)
	}
	if err := h.check(); err != nil {
		return Header{}, fmt.Errorf("wire: data header: %w: %w", err, transfer.ErrProtocol)
	}
	return h, nil
}

func (h Header) check() error {
	if h.Ping {
		if h != (Header{Ping: true, Chunk: transfer.Chunk{Conn: h.Conn}}) {
			return fmt.Errorf("a ping that names a chunk")
		}
		return nil
	}
	switch {
	case h.Conn == 0:
		return fmt.Errorf("connection 0")
	case h.Chunk.Chunk < 0 || h.Chunk.Chunk >= transfer.ChunksMax:
		return fmt.Errorf("chunk %d, want less than %d", h.Chunk.Chunk, transfer.ChunksMax)
	case h.N < 0 || h.N > transfer.ChunkBlocksMax:
		return fmt.Errorf("%d blocks, want %d at most", h.N, transfer.ChunkBlocksMax)
	case h.FirstBlock < 0 || h.FirstBlock+h.N > transfer.TokensMax/room.BlockTokens:
		return fmt.Errorf("%d blocks from %d, want them below %d", h.N, h.FirstBlock, transfer.TokensMax/room.BlockTokens)
	case h.BlockBytes < 1 || h.BlockBytes > transfer.BlockBytesMax:
		return fmt.Errorf("blocks of %d bytes, want 1 to %d", h.BlockBytes, transfer.BlockBytesMax)
	case h.SideBytes < 0 || h.SideBytes > transfer.SideMax:
		return fmt.Errorf("%d bytes of side data, want %d at most", h.SideBytes, transfer.SideMax)
	}
	return checkRef(h.Room, h.Lease)
}
