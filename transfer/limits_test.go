package transfer

import (
	"strings"
	"testing"
	"time"
)

func TestZeroBoundsTakeTheirDefaultsAndOthersStay(t *testing.T) {
	want := Bounds{Silence: SilenceDefault, Handshake: HandshakeDefault, Window: WindowDefault, Buffer: BufferDefault}
	if got := (Bounds{}).WithDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	own := Bounds{Silence: time.Second, Handshake: 2 * time.Second, Window: 3, Buffer: 4}
	if got := own.WithDefaults(); got != own {
		t.Errorf("got %+v, want %+v", got, own)
	}
	if got := (Bounds{Window: 2 * WindowMax}).WithDefaults().Window; got != WindowMax {
		t.Errorf("window of %d bytes, want the limit %d: a peer refuses more", got, WindowMax)
	}
}

func TestEveryReasonHasAName(t *testing.T) {
	for r := Reason(1); r < reasons; r++ {
		if !r.Valid() || strings.HasPrefix(r.String(), "reason(") || r.String() == "" {
			t.Errorf("reason %d is called %q", r, r)
		}
	}
	for _, r := range []Reason{0, reasons, 255} {
		if r.Valid() {
			t.Errorf("reason %d is valid", r)
		}
		_ = r.String() // must not panic
	}
}

func TestARefusalForTheManifestCarriesBoth(t *testing.T) {
	r := &Refusal{Reason: ReasonManifest, Text: "they differ", Remote: true, Ours: []byte("OURS"), Theirs: []byte("THEIRS")}
	for _, part := range []string{"peer refused", "manifest", "they differ", "ours: OURS", "theirs: THEIRS"} {
		if !strings.Contains(r.Error(), part) {
			t.Errorf("%q does not say %q", r.Error(), part)
		}
	}
}

func TestEveryRoleHasAName(t *testing.T) {
	for r, want := range map[Role]string{0: "none", RolePrefill: "prefill", RoleDecode: "decode", RoleUnified: "unified", 99: "none"} {
		if r.String() != want {
			t.Errorf("role %d is called %q, want %q", r, r, want)
		}
	}
}

// One changed byte anywhere changes the sum.
func TestTheSumSeesEveryByte(t *testing.T) {
	b := make([]byte, 5000)
	want := Sum(b)
	for i := range b {
		b[i] ^= 0x10
		if Sum(b) == want {
			t.Fatalf("byte %d does not count", i)
		}
		b[i] ^= 0x10
	}
}
