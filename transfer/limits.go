package transfer

import (
	"errors"
	"fmt"
	"time"
)

// Limits. Everything that a peer may name is bounded by one of them (T9).
const (
	SecretMin      = 16       // bytes: 128 bits, below which guessing offline is thinkable
	ManifestMax    = 64 << 10 // bytes: a manifest is a page of JSON
	SideMax        = 64 << 10 // bytes: first token, log-probabilities of one position
	ChunkBlocksMax = 4096     // blocks of one chunk: 64 Ki tokens, far above any step's token budget
	BlockBytesMax  = 64 << 20 // bytes of one block: 16 tokens of the widest layout known take 6 MiB
	TokensMax      = 1 << 24  // tokens of one prompt: sixteen times the longest context sold today
	ChunksMax      = 1 << 20  // chunks of one room: TokensMax in blocks of 16
	ControlMax     = 4096     // control frames queued on one link; a worker holds fewer rooms
	WritesMax      = 1 << 16  // writes queued on one link
	LinksMax       = 1024     // links of one prefill end
	HalfOpenMax    = 64       // connections in the handshake; the oldest makes place
)

// Bounds are the times and sizes that tests and slow networks may want otherwise. A zero field
// takes its default.
type Bounds struct {
	Silence   time.Duration // a connection on which nothing moves for so long ends
	Handshake time.Duration // dial and handshake together
	Window    int           // bytes of payload that decode lets be on the way per data connection
	Buffer    int           // bytes of SO_SNDBUF and SO_RCVBUF of data connections
}

// Defaults of Bounds. Silence is several times the longest pause of a healthy, overloaded
// worker; pings go at a quarter of it. Window and Buffer are those that measured best on one
// host: smaller ones cost throughput, larger ones leave dead bytes behind an abort.
const (
	SilenceDefault   = 10 * time.Second
	HandshakeDefault = 5 * time.Second
	WindowDefault    = 4 << 20
	BufferDefault    = 1 << 20
	WindowMax        = 1 << 30
)

// WithDefaults fills the zero fields.
func (b Bounds) WithDefaults() Bounds {
	if b.Silence <= 0 {
		b.Silence = SilenceDefault
	}
	if b.Handshake <= 0 {
		b.Handshake = HandshakeDefault
	}
	if b.Window <= 0 {
		b.Window = WindowDefault
	}
	b.Window = min(b.Window, WindowMax)
	if b.Buffer <= 0 {
		b.Buffer = BufferDefault
	}
	return b
}

// Errors that callers branch on. All errors of a plane wrap one of these or are a *Refusal.
var (
	ErrClosed     = errors.New("transfer: this end is closed")
	ErrNoLink     = errors.New("transfer: no such connection")
	ErrSilent     = errors.New("transfer: nothing moved on the connection within the silence bound")
	ErrOverflow   = errors.New("transfer: control queue full, the peer does not read")
	ErrProtocol   = errors.New("transfer: peer broke the protocol")
	ErrCancelled  = errors.New("transfer: decode gave the lease up before the chunk was sent")
	ErrTooMany    = errors.New("transfer: too many writes queued on the connection")
	ErrBadRequest = errors.New("transfer: the chunk cannot be sent as asked")
)

// Reason says why a link was refused. Append only: it is on the wire.
type Reason uint8

const (
	ReasonProtocol Reason = 1 + iota // broken frame, broken rule
	ReasonVersion                    // another version of the wire
	ReasonSecret                     // the secrets differ
	ReasonManifest                   // the layouts differ
	ReasonRole                       // that worker cannot be this end
	ReasonBoot                       // an old boot or an old connection number
	ReasonBusy                       // too many links or half-open connections
	ReasonClosing                    // the end is being closed
	ReasonSilent                     // nothing moved
	reasons
)

var reasonNames = [reasons]string{"", "protocol", "version", "secret", "manifest", "role", "boot", "busy", "closing", "silent"}

func (r Reason) String() string {
	if r == 0 || r >= reasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasonNames[r]
}

// Valid says whether the reason is one of those named above.
func (r Reason) Valid() bool { return r > 0 && r < reasons }

// Refusal is the error of a link that was refused in the handshake or ended with a stated
// reason. Ours and Theirs are the two manifests when they differ.
type Refusal struct {
	Reason Reason
	Text   string // a sentence: what was found, what is wanted
	Remote bool   // the peer refused us; otherwise we refused it
	Ours   []byte
	Theirs []byte
}

func (r *Refusal) Error() string {
	who := "refused"
	if r.Remote {
		who = "peer refused"
	}
	s := fmt.Sprintf("transfer: %s the link (%s): %s", who, r.Reason, r.Text)
	if r.Reason == ReasonManifest {
		s += fmt.Sprintf("; ours: %s; theirs: %s", r.Ours, r.Theirs)
	}
	return s
}
