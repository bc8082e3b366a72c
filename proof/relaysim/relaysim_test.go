package relaysim

import (
	"bytes"
	"testing"

	"baton/core/relay"
	"baton/core/room"
)

// TestCloneIsDeep: events on a copy of a world leave the original alone. (The scopes
// themselves are explored by proof/gate.)
func TestCloneIsDeep(t *testing.T) {
	for _, sc := range Scopes() {
		sys := New(sc.Scope)
		w := sys.Init()
		for range 12 {
			possible := sys.Events(&w, nil)
			before := sys.Key(&w, nil)
			for _, e := range possible {
				c := sys.Clone(&w)
				if err := sys.Apply(&c, e); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(before, sys.Key(&w, nil)) {
					t.Fatalf("%s: %s changed the world that it was not done to", sc.Name, sys.Name(&w, e))
				}
			}
			if len(possible) == 0 {
				break
			}
			if err := sys.Apply(&w, possible[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWorldSeesBrokenPromises feeds the world effects that no sound core makes.
func TestWorldSeesBrokenPromises(t *testing.T) {
	sys := New(Scopes()[0].Scope)
	for _, c := range []struct {
		want    string
		effects []relay.Effect
	}{
		{"two ends", []relay.Effect{{Kind: relay.End, Req: 1, Outcome: failed}, {Kind: relay.End, Req: 1, Outcome: failed}}},
		{"release for nothing", []relay.Effect{{Kind: relay.Release, Req: 1, Worker: 7}}},
		{"two releases", []relay.Effect{{Kind: relay.Open, Req: 1, Worker: 7}, {Kind: relay.Release, Req: 1, Worker: 7}, {Kind: relay.Release, Req: 1, Worker: 7}}},
		{"tokens behind the end", []relay.Effect{{Kind: relay.End, Req: 1, Outcome: failed}, {Kind: relay.Forward, Req: 1}}},
		{"a retry behind the first token", []relay.Effect{{Kind: relay.Forward, Req: 1}, {Kind: relay.Place, Req: 1, Attempt: 2}}},
		{"a retry beside an open leg", []relay.Effect{{Kind: relay.Open, Req: 1, Worker: 7}, {Kind: relay.Place, Req: 1, Attempt: 2}}},
		{"tokens taken back that a client has", []relay.Effect{{Kind: relay.Forward, Req: 1}, {Kind: relay.Discard, Req: 1}}},
		{"two closes", []relay.Effect{{Kind: relay.Open, Req: 1, Worker: 7}, {Kind: relay.Close, Req: 1}, {Kind: relay.Close, Req: 1}}},
		{"success without a finish reason", []relay.Effect{{Kind: relay.End, Req: 1, Outcome: done}}},
		{"an outcome without a cause", []relay.Effect{{Kind: relay.End, Req: 1, Outcome: room.Fail(room.Overload)}}},
		{"a client error that blames", []relay.Effect{{Kind: relay.Blame, Worker: 7, Cause: failed.Cause}}},
	} {
		w := sys.Init()
		sys.due = []due{{1, failed}, {1, done}}
		var err error
		for i, e := range c.effects {
			if err = sys.perform(&w, e); err != nil && i < len(c.effects)-1 {
				t.Errorf("%s: too early: %v", c.want, err)
			}
		}
		if err == nil {
			t.Errorf("%s is not seen", c.want)
		}
	}
}

var failed, done = room.Fail(room.ClientError), room.Done()
