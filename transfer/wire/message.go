package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"baton/core/room"
	"baton/transfer"
)

// Plane says which of a link's two connections a Hello opens.
type Plane uint8

const (
	PlaneControl Plane = 1 + iota
	PlaneData
	planes
)

const (
	magic      = 0x4e544142 // "BATN"
	NonceBytes = 32         // as many as the hash puts out
	MACBytes   = 32         // HMAC-SHA256
	errFixed   = 1 + 3*4    // reason and three lengths
)

// Hello is the first frame of the dialling end on each of its two connections.
type Hello struct {
	Version  uint16
	Role     transfer.Role
	Plane    Plane
	Boot     room.Boot // of the dialling end
	Conn     room.Conn
	Window   uint64 // payload bytes that may be sent before the first Grant
	Nonce    [NonceBytes]byte
	Manifest []byte
}

// Challenge answers a Hello.
type Challenge struct {
	Version uint16
	Role    transfer.Role
	Boot    room.Boot // of the listening end
	Nonce   [NonceBytes]byte
}

// Auth proves the secret: first the dialling end's, then the listening end's with its manifest.
type Auth struct {
	MAC      [MACBytes]byte
	Manifest []byte
}

// The room protocol.
type (
	Prealloc room.Prealloc
	Cancel   room.Cancel
	Settled  room.Settled
)

// Grant says that prefill may have sent Total payload bytes on the data connection since its
// start. Totals only grow, so a lost or repeated Grant does no harm.
type Grant struct {
	Conn  room.Conn
	Total uint64
}

// Ping says nothing but that this end lives.
type Ping struct{}

// Err is the last frame of a link or a refusal, with both manifests when they differ. Ours is
// the sender's.
type Err struct {
	Reason       transfer.Reason
	Text         string
	Ours, Theirs []byte
}

func (Hello) kind() Kind     { return KindHello }
func (Challenge) kind() Kind { return KindChallenge }
func (Auth) kind() Kind      { return KindAuth }
func (Prealloc) kind() Kind  { return KindPrealloc }
func (Cancel) kind() Kind    { return KindCancel }
func (Settled) kind() Kind   { return KindSettled }
func (Grant) kind() Kind     { return KindGrant }
func (Ping) kind() Kind      { return KindPing }
func (Err) kind() Kind       { return KindErr }

var le = binary.LittleEndian

func (m Hello) put(b []byte) []byte {
	b = le.AppendUint32(b, magic)
	b = le.AppendUint16(b, m.Version)
	b = append(b, byte(m.Role), byte(m.Plane))
	b = le.AppendUint64(b, uint64(m.Boot))
	b = le.AppendUint64(b, uint64(m.Conn))
	b = le.AppendUint64(b, m.Window)
	b = append(b, m.Nonce[:]...)
	return putBlob(b, m.Manifest)
}

// hello reads no further than the version when that is another one: what follows may differ.
func (c *cursor) hello() (m Hello) {
	if c.u32() != magic {
		c.short = true
		return m
	}
	if m.Version = c.u16(); m.Version != Version {
		c.b = nil
		return m
	}
	m.Role, m.Plane = transfer.Role(c.u8()), Plane(c.u8())
	m.Boot, m.Conn, m.Window = room.Boot(c.u64()), c.conn(), c.u64()
	copy(m.Nonce[:], c.take(NonceBytes))
	m.Manifest = c.blob()
	return m
}

func (m Hello) check() error {
	switch {
	case m.Version != Version:
		return nil // the handshake refuses it with a better sentence
	case m.Role < transfer.RolePrefill || m.Role > transfer.RoleUnified:
		return fmt.Errorf("role %d", m.Role)
	case m.Plane == 0 || m.Plane >= planes:
		return fmt.Errorf("plane %d", m.Plane)
	case m.Boot == 0 || m.Conn == 0:
		return fmt.Errorf("boot %s, connection %d: want both above 0", m.Boot, m.Conn)
	case m.Window == 0 || m.Window > transfer.WindowMax:
		return fmt.Errorf("window of %d bytes, want 1 to %d", m.Window, transfer.WindowMax)
	}
	return checkManifest(m.Manifest)
}

func (m Challenge) put(b []byte) []byte {
	b = le.AppendUint16(b, m.Version)
	b = append(b, byte(m.Role))
	b = le.AppendUint64(b, uint64(m.Boot))
	return append(b, m.Nonce[:]...)
}

func (c *cursor) challenge() (m Challenge) {
	m.Version, m.Role, m.Boot = c.u16(), transfer.Role(c.u8()), room.Boot(c.u64())
	copy(m.Nonce[:], c.take(NonceBytes))
	return m
}

func (m Challenge) check() error {
	if m.Version != Version || m.Role < transfer.RolePrefill || m.Role > transfer.RoleUnified || m.Boot == 0 {
		return fmt.Errorf("version %d, role %d, boot %s", m.Version, m.Role, m.Boot)
	}
	return nil
}

func (m Auth) put(b []byte) []byte { return putBlob(append(b, m.MAC[:]...), m.Manifest) }

func (c *cursor) auth() (m Auth) {
	copy(m.MAC[:], c.take(MACBytes))
	m.Manifest = c.blob()
	return m
}

func (m Auth) check() error { return checkManifest(m.Manifest) }

func checkManifest(m []byte) error {
	if len(m) > transfer.ManifestMax {
		return fmt.Errorf("manifest of %d bytes, want %d at most", len(m), transfer.ManifestMax)
	}
	return nil
}

func putRef(b []byte, r room.ID, l room.Lease) []byte {
	b = le.AppendUint64(b, uint64(r))
	b = le.AppendUint64(b, uint64(l.Boot))
	return le.AppendUint64(b, l.Seq)
}

func (c *cursor) room() room.ID     { return room.ID(c.u64()) }
func (c *cursor) conn() room.Conn   { return room.Conn(c.u64()) }
func (c *cursor) lease() room.Lease { return room.Lease{Boot: room.Boot(c.u64()), Seq: c.u64()} }

func checkRef(r room.ID, l room.Lease) error {
	if r == 0 || r > room.IDMask || l.Boot == 0 || l.Seq == 0 {
		return fmt.Errorf("room %s, lease %s: want neither zero", r, l)
	}
	return nil
}

// put sends a deadline that has passed as no time left.
func (m Prealloc) put(b []byte) []byte {
	b = putRef(b, m.Room, m.Lease)
	b = le.AppendUint64(b, uint64(m.Conn))
	b = le.AppendUint32(b, uint32(m.Tokens))
	b = le.AppendUint32(b, uint32(m.From))
	return le.AppendUint64(b, uint64(max(m.Left, 0)))
}

func (c *cursor) prealloc() (m Prealloc) {
	m.Room, m.Lease, m.Conn = c.room(), c.lease(), c.conn()
	m.Tokens, m.From, m.Left = int(c.u32()), int(c.u32()), time.Duration(c.u64())
	c.short = c.short || m.Left < 0 // put never sends that
	return m
}

func (m Prealloc) check() error {
	if m.Conn == 0 || m.Tokens < 1 || m.Tokens > transfer.TokensMax || m.From < 0 || m.From > m.Tokens || m.From%room.BlockTokens != 0 {
		return fmt.Errorf("connection %d, %d tokens from %d: want 1 to %d tokens, from a multiple of %d among them", m.Conn, m.Tokens, m.From, transfer.TokensMax, room.BlockTokens)
	}
	return checkRef(m.Room, m.Lease)
}

func (m Cancel) put(b []byte) []byte { return append(putRef(b, m.Room, m.Lease), byte(m.Cause)) }

func (m Cancel) check() error {
	if m.Cause > room.Internal {
		return fmt.Errorf("cause %d", m.Cause)
	}
	return checkRef(m.Room, m.Lease)
}

func (m Settled) put(b []byte) []byte {
	b = append(putRef(b, m.Room, m.Lease), byte(m.Outcome.Kind), byte(m.Outcome.Cause))
	return le.AppendUint32(b, uint32(m.Chunks))
}

func (c *cursor) settled() (m Settled) {
	m.Room, m.Lease = c.room(), c.lease()
	m.Outcome = room.Outcome{Kind: room.Kind(c.u8()), Cause: room.Cause(c.u8())}
	m.Chunks = int(c.u32())
	return m
}

func (m Settled) check() error {
	if m.Outcome.Kind < room.Success || m.Outcome.Kind > room.Aborted || m.Outcome.Cause > room.Internal {
		return fmt.Errorf("outcome %d with cause %d", m.Outcome.Kind, m.Outcome.Cause)
	}
	if m.Chunks < 0 || m.Chunks > transfer.ChunksMax {
		return fmt.Errorf("%d chunks, want %d at most", m.Chunks, transfer.ChunksMax)
	}
	return checkRef(m.Room, m.Lease)
}

func (m Grant) put(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, uint64(m.Conn)), m.Total)
}

func (m Grant) check() error {
	if m.Conn == 0 {
		return fmt.Errorf("connection 0")
	}
	return nil
}

func (Ping) put(b []byte) []byte { return b }
func (Ping) check() error        { return nil }

func (m Err) put(b []byte) []byte {
	b = append(b, byte(m.Reason))
	return putBlob(putBlob(putBlob(b, []byte(m.Text)), m.Ours), m.Theirs)
}

func (c *cursor) err() (m Err) {
	m.Reason, m.Text = transfer.Reason(c.u8()), string(c.blob())
	m.Ours, m.Theirs = c.blob(), c.blob()
	return m
}

func (m Err) check() error {
	if !m.Reason.Valid() || len(m.Text) > TextMax {
		return fmt.Errorf("reason %d with %d bytes of text, want %d at most", m.Reason, len(m.Text), TextMax)
	}
	if err := checkManifest(m.Ours); err != nil {
		return err
	}
	return checkManifest(m.Theirs)
}
