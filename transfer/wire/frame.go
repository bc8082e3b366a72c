package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"baton/core/room"
	"baton/transfer"
)

// Version of everything in this package. Ends with different versions refuse each other.
const Version = 1

// Sizes of frames.
const (
	prefixBytes = 8 // length and checksum
	// FrameMax is the longest frame: an Err with two manifests and its text.
	FrameMax = 1 + errFixed + TextMax + 2*transfer.ManifestMax
	TextMax  = 512 // bytes of the sentence in an Err
)

// Kind tells control frames apart. Append only.
type Kind uint8

const (
	KindHello Kind = 1 + iota
	KindChallenge
	KindAuth
	KindPrealloc
	KindCancel
	KindSettled
	KindGrant
	KindPing
	KindErr
	kinds
)

var kindNames = [kinds]string{"", "hello", "challenge", "auth", "prealloc", "cancel", "settled", "grant", "ping", "err"}

func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Message is one control frame: Hello, Challenge, Auth, Prealloc, Cancel, Settled, Grant, Ping
// or Err.
type Message interface {
	kind() Kind
	check() error // is it within the limits
	put(b []byte) []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append adds the frame of m to b. A message outside the limits is an error of this process.
func Append(b []byte, m Message) []byte {
	if err := m.check(); err != nil {
		panic(fmt.Sprintf("assertion: %s frame of our own: %v", m.kind(), err))
	}
	at := len(b)
	b = append(b, make([]byte, prefixBytes)...)
	b = append(b, byte(m.kind()))
	b = m.put(b)
	body := b[at+prefixBytes:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(body, castagnoli))
	return b
}

// ReadFrame reads one frame into buf, which it grows as far as max, and returns kind and body.
// Errors of r come back as they are; io.EOF only before the first byte.
func ReadFrame(r io.Reader, buf []byte, max int) ([]byte, error) {
	var prefix [prefixBytes]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return buf[:0], err
	}
	n := binary.LittleEndian.Uint32(prefix[:])
	if n == 0 || n > uint32(min(max, FrameMax)) {
		return buf[:0], fmt.Errorf("wire: frame of %d bytes, want 1 to %d: %w", n, min(max, FrameMax), transfer.ErrProtocol)
	}
	if uint32(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return buf[:0], err
	}
	if got, want := crc32.Checksum(buf, castagnoli), binary.LittleEndian.Uint32(prefix[4:]); got != want {
		return buf[:0], fmt.Errorf("wire: frame of %d bytes has checksum %08x, says %08x: %w", n, got, want, transfer.ErrProtocol)
	}
	return buf, nil
}

// Parse decodes what ReadFrame returned. Slices in the message are copies.
func Parse(frame []byte) (Message, error) {
	if len(frame) == 0 {
		return nil, fmt.Errorf("wire: empty frame: %w", transfer.ErrProtocol)
	}
	c := cursor{b: frame[1:]}
	var m Message
	switch k := Kind(frame[0]); k {
	case KindHello:
		m = c.hello()
	case KindChallenge:
		m = c.challenge()
	case KindAuth:
		m = c.auth()
	case KindPrealloc:
		m = c.prealloc()
	case KindCancel:
		m = Cancel{Room: c.room(), Lease: c.lease(), Cause: room.Cause(c.u8())}
	case KindSettled:
		m = c.settled()
	case KindGrant:
		m = Grant{Conn: c.conn(), Total: c.u64()}
	case KindPing:
		m = Ping{}
	case KindErr:
		m = c.err()
	default:
		return nil, fmt.Errorf("wire: %s is no frame of version %d: %w", k, Version, transfer.ErrProtocol)
	}
	if c.short || len(c.b) != 0 {
		return nil, fmt.Errorf("wire: %s frame of %d bytes has the wrong length: %w", m.kind(), len(frame), transfer.ErrProtocol)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("wire: %s frame: %w: %w", m.kind(), err, transfer.ErrProtocol)
	}
	return m, nil
}

// cursor takes a body apart. Reads past the end give zeros and set short.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u8() uint8 {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if v := c.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if v := c.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if v := c.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// blob reads a length and that many bytes; take bounds it by the frame, which is bounded.
func (c *cursor) blob() []byte {
	n := c.u32()
	if n > FrameMax {
		c.short, c.b = true, nil
		return nil
	}
	return append([]byte(nil), c.take(int(n))...)
}

func putBlob(b, v []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
}
