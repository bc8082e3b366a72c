package tcp

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strings"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// The handshake of each connection, four frames:
//
//	decode            prefill
//	Hello(nonce)   ->
//	               <- Challenge(nonce)
//	Auth           ->
//	               <- Auth(manifest) or Err
//
// Both proofs are an HMAC over both frames before them, under labels that differ by end. Each
// end put fresh random bytes into what is hashed: an old proof is no proof (no replay), and an
// end's own proof does not fit the other's label (no reflection). Prefill proves nothing to
// somebody who has not proved himself.
const (
	labelDecode  = "baton link 1: decode"
	labelPrefill = "baton link 1: prefill"
)

func proof(secret []byte, label string, parts ...[]byte) (mac [wire.MACBytes]byte) {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(label))
	for _, p := range parts {
		// Lengths keep a byte of one part from passing as one of the next.
		fmt.Fprintf(h, "|%d|", len(p))
		h.Write(p)
	}
	h.Sum(mac[:0])
	return mac
}

func checkIdentity(id Identity, end transfer.Role) error {
	switch {
	case id.Boot == 0:
		return errors.New("tcp: boot id is 0, want a random number")
	case id.Role != end && id.Role != transfer.RoleUnified:
		return fmt.Errorf("tcp: role %s cannot be the %s end of a link, want %s or unified", id.Role, end, end)
	case len(id.Secret) < transfer.SecretMin:
		return fmt.Errorf("tcp: secret of %d bytes, want %d at least: give every worker of the fleet the same random bytes", len(id.Secret), transfer.SecretMin)
	case len(id.Manifest) > transfer.ManifestMax:
		return fmt.Errorf("tcp: manifest of %d bytes, want %d at most", len(id.Manifest), transfer.ManifestMax)
	}
	return nil
}

func refuse(r transfer.Reason, format string, a ...any) *transfer.Refusal {
	return &transfer.Refusal{Reason: r, Text: fmt.Sprintf(format, a...)}
}

func nonce() (n [wire.NonceBytes]byte) {
	rand.Read(n[:]) // never fails (crypto/rand)
	return n
}

// receive reads one frame and returns its bytes too, for the proof.
func receive(c net.Conn) (wire.Message, []byte, error) {
	frame, err := wire.ReadFrame(c, nil, wire.FrameMax)
	if err != nil {
		return nil, nil, err
	}
	m, err := wire.Parse(frame)
	if err != nil {
		return nil, nil, err
	}
	if e, ok := m.(wire.Err); ok {
		return nil, nil, fromErr(e)
	}
	return m, frame, nil
}

// fromErr turns a peer's last frame into an error; its ours is our theirs.
func fromErr(e wire.Err) error {
	return &transfer.Refusal{Reason: e.Reason, Text: e.Text, Remote: true, Ours: e.Theirs, Theirs: e.Ours}
}

// toErr is the frame that tells the peer why; nil for what it sees itself.
func toErr(err error) wire.Message {
	var r *transfer.Refusal
	switch {
	case errors.As(err, &r) && r.Remote:
		return nil
	case errors.As(err, &r):
		return wire.Err{Reason: r.Reason, Text: clip(r.Text), Ours: r.Ours, Theirs: r.Theirs}
	case errors.Is(err, transfer.ErrClosed):
		return wire.Err{Reason: transfer.ReasonClosing, Text: "that worker closes its links"}
	case errors.Is(err, transfer.ErrSilent):
		return wire.Err{Reason: transfer.ReasonSilent, Text: clip(err.Error())}
	case errors.Is(err, transfer.ErrProtocol), errors.Is(err, transfer.ErrOverflow):
		return wire.Err{Reason: transfer.ReasonProtocol, Text: clip(err.Error())}
	}
	return nil
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), wire.TextMax)], "") }

func send(c net.Conn, m wire.Message) ([]byte, error) {
	b := wire.Append(nil, m)
	_, err := c.Write(b)
	return b[8:], err // what ReadFrame returns at the other end
}

// offer is the dialling end's handshake; the caller has set a deadline.
func offer(c net.Conn, id Identity, plane wire.Plane, conn room.Conn) (room.Boot, error) {
	hello, err := send(c, wire.Hello{
		Version: wire.Version, Role: id.Role, Plane: plane, Boot: id.Boot, Conn: conn,
		Window: uint64(id.Bounds.Window), Nonce: nonce(), Manifest: id.Manifest,
	})
	if err != nil {
		return 0, err
	}
	m, challenge, err := receive(c)
	if err != nil {
		return 0, err
	}
	ch, ok := m.(wire.Challenge)
	if !ok {
		return 0, fmt.Errorf("tcp: %T answers Hello, want Challenge: %w", m, transfer.ErrProtocol)
	}
	if ch.Role == transfer.RoleDecode {
		return 0, refuse(transfer.ReasonRole, "the worker dialled is a decode worker, want prefill or unified")
	}
	if _, err = send(c, wire.Auth{MAC: proof(id.Secret, labelDecode, hello, challenge)}); err != nil {
		return 0, err
	}
	if m, _, err = receive(c); err != nil {
		return 0, err
	}
	a, ok := m.(wire.Auth)
	if !ok {
		return 0, fmt.Errorf("tcp: %T answers Auth, want Auth: %w", m, transfer.ErrProtocol)
	}
	mac := proof(id.Secret, labelPrefill, hello, challenge, a.Manifest)
	if !hmac.Equal(a.MAC[:], mac[:]) {
		return 0, refuse(transfer.ReasonSecret, "the worker dialled does not know this fleet's secret; start both workers with the same one")
	}
	return ch.Boot, compareManifests(id.Manifest, a.Manifest)
}

func compareManifests(ours, theirs []byte) error {
	if bytes.Equal(ours, theirs) {
		return nil
	}
	return &transfer.Refusal{
		Reason: transfer.ReasonManifest, Ours: ours, Theirs: theirs,
		Text: "the block layouts differ; start both workers with the same model file, KV dtype and version",
	}
}

// opened is what a listening end knows of a connection that proved itself but has no answer yet.
type opened struct {
	wire.Hello
	welcome wire.Auth
}

// answer is the listening end's handshake up to the last frame, which the caller sends when it
// has a place for the connection. The caller has set a deadline and sends the refusal.
func answer(c net.Conn, id Identity) (o opened, err error) {
	m, hello, err := receive(c)
	if err != nil {
		return o, err
	}
	h, ok := m.(wire.Hello)
	switch {
	case !ok:
		return o, fmt.Errorf("tcp: %T opens a connection, want Hello: %w", m, transfer.ErrProtocol)
	case h.Version != wire.Version:
		return o, refuse(transfer.ReasonVersion, "the dialling worker speaks version %d of the link, this one %d: run the same Baton on both", h.Version, wire.Version)
	case h.Role == transfer.RolePrefill:
		return o, refuse(transfer.ReasonRole, "the dialling worker is a prefill worker, want decode or unified")
	case h.Boot == id.Boot:
		return o, refuse(transfer.ReasonBoot, "boot %s dials itself", h.Boot)
	}
	challenge, err := send(c, wire.Challenge{Version: wire.Version, Role: id.Role, Boot: id.Boot, Nonce: nonce()})
	if err != nil {
		return o, err
	}
	if m, _, err = receive(c); err != nil {
		return o, err
	}
	a, ok := m.(wire.Auth)
	if !ok {
		return o, fmt.Errorf("tcp: %T answers Challenge, want Auth: %w", m, transfer.ErrProtocol)
	}
	mac := proof(id.Secret, labelDecode, hello, challenge)
	if !hmac.Equal(a.MAC[:], mac[:]) {
		return o, refuse(transfer.ReasonSecret, "the dialling worker does not know this fleet's secret; start both workers with the same one")
	}
	if err := compareManifests(id.Manifest, h.Manifest); err != nil {
		return o, err
	}
	return opened{h, wire.Auth{MAC: proof(id.Secret, labelPrefill, hello, challenge, id.Manifest), Manifest: id.Manifest}}, nil
}
