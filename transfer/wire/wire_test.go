package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"baton/core/room"
	"baton/transfer"
)

var lease = room.Lease{Boot: 7, Seq: 9}

func samples() []Message {
	return []Message{
		Hello{Version: Version, Role: transfer.RoleDecode, Plane: PlaneData, Boot: 7, Conn: 3, Window: 1 << 20, Nonce: [32]byte{1, 2}, Manifest: []byte(`{"rows":16}`)},
		Challenge{Version: Version, Role: transfer.RolePrefill, Boot: 8, Nonce: [32]byte{3}},
		Auth{MAC: [32]byte{4}, Manifest: []byte("m")},
		Prealloc{Room: 5, Lease: lease, Conn: 3, Tokens: 100, From: 16, Left: 12345},
		Cancel{Room: 5, Lease: lease, Cause: room.Deadline},
		Settled{Room: 5, Lease: lease, Outcome: room.Fail(room.Cancelled), Chunks: 4},
		Grant{Conn: 3, Total: 1 << 40},
		Ping{},
		Err{Reason: transfer.ReasonManifest, Text: "layouts differ", Ours: []byte("a"), Theirs: []byte("b")},
	}
}

func sampleHeader() Header {
	return Header{Chunk: transfer.Chunk{Room: 5, Lease: lease, Conn: 3, Chunk: 2, FirstBlock: 64, N: 32, Last: true}, BlockBytes: 65536, SideBytes: 12, Trailer: 0xdeadbeef}
}

func TestEveryMessageComesBackAsItWasSent(t *testing.T) {
	for _, m := range samples() {
		frame, err := ReadFrame(bytes.NewReader(Append(nil, m)), nil, FrameMax)
		if err != nil {
			t.Fatalf("%s: %v", m.kind(), err)
		}
		got, err := Parse(frame)
		if err != nil {
			t.Fatalf("%s: %v", m.kind(), err)
		}
		want := reflect.New(reflect.TypeOf(m)).Elem()
		want.Set(reflect.ValueOf(m))
		if !reflect.DeepEqual(got, want.Interface()) {
			t.Errorf("%s: got %+v, want %+v", m.kind(), got, m)
		}
	}
}

func TestTheHeaderComesBackAsItWasSent(t *testing.T) {
	for _, h := range []Header{sampleHeader(), {Ping: true}} {
		got, err := ParseHeader(AppendHeader(nil, h))
		if err != nil || got != h {
			t.Errorf("got %+v, %v, want %+v", got, err, h)
		}
	}
}

func TestEveryFlippedBitIsSeen(t *testing.T) {
	head := AppendHeader(nil, sampleHeader())
	for i := range len(head) * 8 {
		head[i/8] ^= 1 << (i % 8)
		if _, err := ParseHeader(head); !errors.Is(err, transfer.ErrProtocol) {
			t.Fatalf("header with bit %d flipped: %v, want a protocol error", i, err)
		}
		head[i/8] ^= 1 << (i % 8)
	}
	for _, m := range samples() {
		b := Append(nil, m)
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			if _, err := ReadFrame(bytes.NewReader(b), nil, FrameMax); err == nil {
				t.Fatalf("%s with bit %d flipped passed", m.kind(), i)
			}
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestLongFramesAreRefusedBeforeTheyAreRead(t *testing.T) {
	r := &counter{r: strings.NewReader("\xff\xff\xff\x7f\x00\x00\x00\x00 and more")}
	if _, err := ReadFrame(r, nil, FrameMax); !errors.Is(err, transfer.ErrProtocol) || r.n != prefixBytes {
		t.Errorf("%v after %d bytes, want a protocol error after %d", err, r.n, prefixBytes)
	}
	b := Append(nil, samples()[0])
	if _, err := ReadFrame(bytes.NewReader(b), nil, 16); !errors.Is(err, transfer.ErrProtocol) {
		t.Errorf("a frame over the caller's limit passed: %v", err)
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

func TestValuesOutsideTheLimitsAreRefused(t *testing.T) {
	over := []Message{
		Prealloc{Room: 5, Lease: lease, Conn: 3, Tokens: transfer.TokensMax + 1},
		Prealloc{Room: 5, Lease: lease, Conn: 3, Tokens: 100, From: 15},
		Prealloc{Room: 5, Lease: lease, Conn: 3, Tokens: 16, From: 32},
		Prealloc{Room: 0, Lease: lease, Conn: 3, Tokens: 100},
		Cancel{Room: 1 << 63, Lease: lease},
		Cancel{Room: 5, Lease: lease, Cause: 99},
		Cancel{Room: 5, Lease: room.Lease{Boot: 7}},
		Settled{Room: 5, Lease: lease, Chunks: 1},
		Settled{Room: 5, Lease: lease, Outcome: room.Done(), Chunks: transfer.ChunksMax + 1},
		Settled{Room: 5, Lease: lease, Outcome: room.Outcome{Kind: room.Failed, Cause: 99}},
		Grant{},
		Err{Reason: 99},
		Auth{Manifest: make([]byte, transfer.ManifestMax+1)},
	}
	for _, m := range over {
		frame := m.put([]byte{byte(m.kind())})
		if got, err := Parse(frame); !errors.Is(err, transfer.ErrProtocol) {
			t.Errorf("%+v passed as %+v, %v", m, got, err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was encoded", m)
				}
			}()
			Append(nil, m)
		}()
	}
}

func TestAnotherVersionIsReadAsFarAsItsNumber(t *testing.T) {
	b := Append(nil, Hello{Version: Version + 1, Manifest: []byte("of another shape")})
	frame, err := ReadFrame(bytes.NewReader(b), nil, FrameMax)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(frame)
	if h, ok := m.(Hello); err != nil || !ok || h.Version != Version+1 {
		t.Errorf("got %+v, %v, want a Hello of version %d", m, err, Version+1)
	}
}

func FuzzFrame(f *testing.F) {
	for _, m := range samples() {
		f.Add(Append(nil, m)[prefixBytes:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		if h, ok := m.(Hello); ok && h.Version != Version {
			return
		}
		if again := Append(nil, m)[prefixBytes:]; !bytes.Equal(again, b) {
			t.Fatalf("%x was read as %+v, which is written %x", b, m, again)
		}
	})
}

// FuzzStream is a control connection of arbitrary bytes: what is read is a prefix of them, frame
// by frame, and whatever a length claims, no buffer grows beyond the longest frame.
func FuzzStream(f *testing.F) {
	var all []byte
	for _, m := range samples() {
		all = Append(all, m)
	}
	f.Add(all)
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var buf []byte
		for {
			at := len(b) - r.Len()
			frame, err := ReadFrame(r, buf, FrameMax)
			if cap(frame) > FrameMax {
				t.Fatalf("a buffer of %d bytes", cap(frame))
			}
			if err != nil {
				if errors.Is(err, io.EOF) && at != len(b) {
					t.Fatalf("the end is said at byte %d of %d", at, len(b))
				}
				return
			}
			if end := len(b) - r.Len(); len(frame) == 0 || !bytes.Equal(frame, b[end-len(frame):end]) || end != at+prefixBytes+len(frame) {
				t.Fatalf("frame %x is not what stands at byte %d", frame, at)
			}
			m, err := Parse(frame)
			if (m == nil) == (err == nil) || err != nil && !errors.Is(err, transfer.ErrProtocol) {
				t.Fatalf("%x: %+v, %v", frame, m, err)
			}
			buf = frame
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(AppendHeader(nil, sampleHeader()))
	f.Add(AppendHeader(nil, Header{Ping: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Most inputs die at the checksum: give them the right one.
		if len(b) == HeaderBytes {
			le.PutUint32(b[HeaderBytes-4:], SumCRC(b[:HeaderBytes-4]))
		}
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		if h.TrailerBytes() > SumBytes*transfer.ChunkBlocksMax+transfer.SideMax || h.PayloadBytes() > transfer.ChunkBlocksMax*transfer.BlockBytesMax {
			t.Fatalf("header over the limits: %+v", h)
		}
		if again := AppendHeader(nil, h); !bytes.Equal(again, b) {
			t.Fatalf("%x was read as %+v, which is written %x", b, h, again)
		}
	})
}
