package conformance

import (
	"errors"
	"strings"
	"testing"

	"baton/core/room"
	"baton/transfer"
)

// refused dials once and returns why there is no link; prefill must not have heard of one.
func refused(t *testing.T, f Factory, p plan) *transfer.Refusal {
	t.Helper()
	r := newRig(t, f, p)
	defer r.close()
	r.decode.Dial(4, r.addr())
	err := r.await(1, is("decode.LinkFailed"))[0].err
	var why *transfer.Refusal
	if !errors.As(err, &why) {
		t.Fatalf("the dial failed with %v, want a refusal", err)
	}
	if n := r.count(is("prefill.LinkUp")); n != 0 {
		t.Errorf("prefill heard %d LinkUp of a refused link", n)
	}
	return why
}

func wrongSecret(t *testing.T, f Factory) {
	why := refused(t, f, plan{decodeID: func(id *transfer.Identity) { id.Secret = []byte("another secret, long enough") }})
	if why.Reason != transfer.ReasonSecret {
		t.Errorf("refused for %s, want secret: %v", why.Reason, why)
	}
	r := newRig(t, f, plan{decodeID: func(id *transfer.Identity) { id.Secret = []byte("short") }})
	defer r.close()
	r.decode.Dial(4, r.addr())
	if err := r.await(1, is("decode.LinkFailed"))[0].err; !strings.Contains(err.Error(), "secret of 5 bytes") {
		t.Errorf("a short secret gives %v", err)
	}
}

func wrongManifest(t *testing.T, f Factory) {
	why := refused(t, f, plan{decodeID: func(id *transfer.Identity) { id.Manifest = []byte("another layout") }})
	if why.Reason != transfer.ReasonManifest || string(why.Ours) != "another layout" || string(why.Theirs) != "layout" {
		t.Errorf("got %+v, want both manifests", why)
	}
	for _, part := range []string{"another layout", "theirs: layout", "layouts differ"} {
		if !strings.Contains(why.Error(), part) {
			t.Errorf("%q does not say %q", why.Error(), part)
		}
	}
}

func wrongRole(t *testing.T, f Factory) {
	_, err := f.Listen(transfer.Identity{Boot: 1, Role: transfer.RoleDecode, Secret: secret}, newPool(t, 1, 8), prefillSide{})
	if err == nil || !strings.Contains(err.Error(), "decode") {
		t.Errorf("a decode worker listens: %v", err)
	}
	r := newRig(t, f, plan{decodeID: func(id *transfer.Identity) { id.Role = transfer.RolePrefill }})
	defer r.close()
	r.decode.Dial(4, r.addr())
	r.await(1, is("decode.LinkFailed"))
}

func ownBoot(t *testing.T, f Factory) {
	why := refused(t, f, plan{
		prefillID: func(id *transfer.Identity) { id.Role = transfer.RoleUnified },
		decodeID:  func(id *transfer.Identity) { id.Boot, id.Role = prefillBoot, transfer.RoleUnified },
	})
	if why.Reason != transfer.ReasonBoot {
		t.Errorf("refused for %s, want boot: %v", why.Reason, why)
	}
}

func newLinkReplaces(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	first := r.up()
	second := r.up()
	if second <= first {
		t.Errorf("connections %d, then %d, want them to grow", first, second)
	}
	r.await(1, func(e event) bool { return e.what == "prefill.LinkEnd" && e.conn == first })
	r.await(1, func(e event) bool { return e.what == "decode.LinkEnd" && e.conn == first })
	r.prefill.Settle(room.Settled{Room: 1, Lease: lease(1), Outcome: room.Done()})
	r.await(1, is("decode.Settled"))
	r.write(second, 1, 0, 0, 2)
	r.await(1, is("decode.Placed"))
	r.close()
}

// namesShare: a prefill worker may be reached by two names, which decode takes for two peers until
// it hears who answers. They share a link, also when they dial in the same moment: a second one
// would end the first (T10).
func namesShare(t *testing.T, f Factory) {
	const names = 6
	r := newRig(t, f, plan{})
	for peer := range int32(names) {
		r.decode.Dial(peer, r.addr())
	}
	ups := r.await(names, is("decode.LinkUp"))
	conn := ups[0].conn
	for _, e := range ups {
		if e.conn != conn || e.boot != prefillBoot {
			t.Errorf("peer %d is up on connection %d to %s, want %d to %s for all", e.peer, e.conn, e.boot, conn, prefillBoot)
		}
	}
	r.decode.Dial(names, r.addr()) // and one that comes later
	if late := r.await(names+1, is("decode.LinkUp"))[names]; late.conn != conn {
		t.Errorf("who came later is up on connection %d, want %d", late.conn, conn)
	}
	r.await(1, func(e event) bool { return e.what == "prefill.LinkUp" && e.conn == conn })
	r.write(conn, 1, 0, 0, 2)
	r.await(1, is("decode.Placed"))
	if n := r.count(is("prefill.LinkUp")); n != 1 {
		t.Errorf("prefill has %d links, want one", n)
	}
	if n := r.count(is("decode.LinkEnd")); n != 0 {
		t.Errorf("%d peers heard that their link ended", n)
	}
	if err := r.prefill.Close(); err != nil {
		t.Error(err)
	}
	heard := map[int32]bool{}
	for _, e := range r.await(names+1, is("decode.LinkEnd")) {
		heard[e.peer] = true
		if e.conn != conn {
			t.Errorf("peer %d heard of the end of connection %d, want %d", e.peer, e.conn, conn)
		}
	}
	if len(heard) != names+1 {
		t.Errorf("%d peers heard that their link ended, want %d", len(heard), names+1)
	}
	r.close()
}
