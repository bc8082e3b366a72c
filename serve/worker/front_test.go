package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"baton/core/room"
)

func dial(t *testing.T, w *Worker, first string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.HTTP())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, first); err != nil {
		t.Fatal(err)
	}
	return c
}

// A leg has its place from when its request was read: half a request takes nobody's.
func TestHalfARequestTakesNoPlace(t *testing.T) {
	w, f := start(t, Unified, 64, sizes(1, 1, 16))
	for range cap(w.legs) + 10 {
		dial(t, w, "POST /leg/decode HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
	}
	until(t, "every half is there", func() bool { return w.bodies.Held() == int64(cap(w.legs)+10) })
	r := rand.New(rand.NewPCG(1, 1))
	open(t, w, Decode, ask(r, 40, 3, f.vocab)).ended(room.NoCause)
	empty(t, w)
}

// A gateway that leaves is seen, also when it sent more behind its request, and its room ends.
func TestALeavingGatewayIsSeenBehindItsRequest(t *testing.T) {
	w, f := start(t, Unified, 64, sizes(1, 4, 16))
	held, release := f.hold()
	defer release()
	r := rand.New(rand.NewPCG(1, 1))
	first := open(t, w, Decode, ask(r, 40, 3, f.vocab)).accepted()
	within(t, "a step", held)
	body, err := json.Marshal(ask(r, 40, 3, f.vocab))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, w, fmt.Sprintf("POST /leg/decode HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s\r\n", len(body), body))
	until(t, "the second is here", func() bool { return len(look(t, w).Rooms) == 2 })
	c.Close()
	until(t, "the second has ended", func() bool { return len(look(t, w).Rooms) == 1 })
	release()
	first.ended(room.NoCause)
	empty(t, w)
}
