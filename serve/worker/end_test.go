package worker

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// W4: whoever closes a leg's connection ends its room, wherever it stands, and nothing else.
func TestClosingTheConnectionCancelsInEveryPhase(t *testing.T) {
	const blocks = 16
	phases := []struct {
		name string
		run  func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request)
	}{
		{"prefill bootstrap", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			c := open(t, p, Prefill, q).accepted()
			inQueue(t, p, q.Room, room.Bootstrap)
			c.cancel()
		}},
		{"prefill inflight", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			held, release := pf.hold()
			defer release()
			pre, dec := both(t, p, d, q, p.Link())
			within(t, "a step", held)
			inQueue(t, p, q.Room, room.Inflight)
			pre.cancel()
			until(t, "the room drains", func() bool {
				rooms := look(t, p).Rooms
				return len(rooms) == 1 && rooms[0].Phase == "draining"
			})
			release()
			within(t, "the decode leg to hear of it", dec.over)
			if dec.end == nil || dec.end.Outcome == room.Success {
				t.Fatalf("decode ended with %+v, want a failure", dec.end)
			}
		}},
		{"decode prealloc", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			held, release := df.hold()
			defer release()
			big := ask(rand.New(rand.NewPCG(9, 9)), room.BlockTokens*blocks-8, 8, df.vocab) // the whole pool
			first := open(t, d, Decode, big)
			within(t, "a step", held)
			c := open(t, d, Decode, q).accepted()
			inQueue(t, d, q.Room, room.Preallocq)
			c.cancel()
			until(t, "only the first is left", func() bool { return len(look(t, d).Rooms) == 1 })
			first.cancel()
		}},
		{"decode transfer", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			q.Link = p.Link()
			c := open(t, d, Decode, q).accepted()
			inQueue(t, d, q.Room, room.Transfer)
			c.cancel()
		}},
		{"decode running", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			held, release := df.hold()
			defer release()
			pre, dec := both(t, p, d, q, p.Link())
			pre.ended(room.NoCause)
			within(t, "a decode step", held)
			inQueue(t, d, q.Room, room.Running)
			dec.cancel()
		}},
		{"unified prefill", func(t *testing.T, p, d *Worker, pf, df *fake, q leg.Request) {
			held, release := df.hold()
			defer release()
			c := open(t, d, Decode, q).accepted()
			within(t, "a step", held)
			c.cancel()
		}},
	}
	for i, ph := range phases {
		t.Run(ph.name, func(t *testing.T) {
			p, pf := start(t, Prefill, blocks, sizes(4, 8, 16))
			d, df := start(t, Decode, blocks, sizes(4, 8, 16))
			ph.run(t, p, d, pf, df, ask(rand.New(rand.NewPCG(uint64(i), 7)), 40, 20, pf.vocab))
			empty(t, p, d)
			// The pair is as good as new.
			q := ask(rand.New(rand.NewPCG(uint64(i), 8)), 33, 6, pf.vocab)
			_, dec := both(t, p, d, q, p.Link())
			if got, want := dec.ended(room.NoCause).ids, oracle(q.Tokens, 6, pf.vocab); !slices.Equal(got, want) {
				t.Fatalf("the next room gave %v, want %v", got, want)
			}
		})
	}
}

// The link dies while KV is on its way: both legs end by themselves, nothing stays held, and
// the next room makes a new link.
func TestLinkKilledMidTransferEndsBothLegs(t *testing.T) {
	p, f := start(t, Prefill, 64, sizes(4, 8, 32))
	d, _ := start(t, Decode, 64, sizes(4, 8, 32))
	wire := newProxy(t, p.Link(), 4*rowBytes*room.BlockTokens) // a few blocks pass, the rest is swallowed
	r := rand.New(rand.NewPCG(11, 12))
	pre, dec := both(t, p, d, ask(r, 300, 5, f.vocab), wire.addr())
	within(t, "the wire to run dry", wire.dry)
	wire.cut()
	wire.heal()
	within(t, "the decode leg", dec.over)
	if dec.end == nil || dec.end.Outcome != room.Failed || dec.end.Cause != room.WorkerLost && dec.end.Cause != room.TransferFailed {
		t.Fatalf("decode ended with %+v, %v; want worker_lost or transfer_failed", dec.end, dec.err)
	}
	if dec.end.Message == "" {
		t.Error("nobody says what happened to the link")
	}
	within(t, "the prefill leg", pre.over)
	empty(t, p, d)
	q := ask(r, 300, 5, f.vocab)
	_, dec = both(t, p, d, q, wire.addr())
	if got, want := dec.ended(room.NoCause).ids, oracle(q.Tokens, 5, f.vocab); !slices.Equal(got, want) {
		t.Fatalf("over the new link %v, want %v", got, want)
	}
}

// A link takes what was on its way with it, also the Cancel of a room whose leg has not come to
// prefill. The end of the link is its end: nothing waits for a timer, and a leg that comes late
// hears why.
func TestTheEndOfALinkEndsARoomThatHasOnlyItsPrealloc(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	wire := newProxy(t, p.Link(), -1)
	q := ask(rand.New(rand.NewPCG(21, 22)), 40, 2, f.vocab)
	q.LeftMS = (time.Hour).Milliseconds() // its timer is not what ends it
	late := q
	q.Link = wire.addr()
	dec := open(t, d, Decode, q)
	inQueue(t, p, q.Room, room.Bootstrap)
	wire.cut()
	dec.ended(room.WorkerLost)
	empty(t, p, d)
	open(t, p, Prefill, late).ended(room.WorkerLost)
	empty(t, p, d)
}

func TestAPrefillWorkerThatIsNotThereEndsTheRoom(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	link := p.Link()
	if err := stopNow(p); err != nil {
		t.Fatal(err)
	}
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab)
	q.Link = link
	c := open(t, d, Decode, q).ended(room.WorkerLost)
	if strings.Count(c.end.Message, link) != 1 || !strings.Contains(c.end.Message, "refused") {
		t.Errorf("%q names the worker and the reason, once each", c.end.Message)
	}
	empty(t, d)
}

// M5: KV of another layout must never be read. Both manifests are in the message.
func TestAnotherLayoutIsRefusedWithBothManifests(t *testing.T) {
	ps, f := serveFake(t, 16, "layout one")
	ds, _ := serveFake(t, 16, "layout two")
	p, d := startServed(t, Prefill, ps), startServed(t, Decode, ds)
	pre, dec := both(t, p, d, ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab), p.Link())
	dec.ended(room.Internal)
	for _, m := range []string{"layout one", "layout two"} {
		if !strings.Contains(dec.end.Message, m) {
			t.Errorf("message %q does not name %q", dec.end.Message, m)
		}
	}
	pre.cancel()
	empty(t, p, d)
}

func TestADeadlineEndsARoomThatWaits(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab)
	q.LeftMS = 30
	open(t, p, Prefill, q).ended(room.Deadline) // decode never speaks
	q.Room++
	q.Link = p.Link()
	open(t, d, Decode, q).ended(room.Deadline) // prefill never has the request
	empty(t, p, d)
}

func TestAFullQueueRefusesWithOverload(t *testing.T) {
	u, f := start(t, Unified, 64, sizes(1, 2, 16))
	held, release := f.hold()
	defer release()
	r := rand.New(rand.NewPCG(1, 1))
	open(t, u, Decode, ask(r, 20, 2, f.vocab)).accepted()
	within(t, "a step", held)
	// One runs; how many more are taken is the core's to say, but it is a bounded number.
	for range u.cfg.Sizes.MaxQueued + u.cfg.Sizes.MaxRunning + 1 {
		c := open(t, u, Decode, ask(r, 20, 2, f.vocab)).accepted()
		select {
		case <-c.over:
		default:
			continue
		}
		if c.ended(room.Overload); c.status != http.StatusTooManyRequests {
			t.Fatalf("status %d, want 429", c.status)
		}
		return
	}
	t.Fatal("a worker with places for 3 took more")
}

func TestAnEngineErrorFailsItsRoomsAndNothingElse(t *testing.T) {
	u, f := start(t, Unified, 64)
	r := rand.New(rand.NewPCG(1, 1))
	f.failOnce(errors.New("the engine is on fire"))
	c := open(t, u, Decode, ask(r, 20, 2, f.vocab)).ended(room.Internal)
	if !strings.Contains(c.end.Message, "on fire") {
		t.Errorf("message %q does not say why", c.end.Message)
	}
	open(t, u, Decode, ask(r, 20, 2, f.vocab)).ended(room.NoCause)
	empty(t, u)
}

func TestBadLegsAreRefusedByName(t *testing.T) {
	p, f := start(t, Prefill, 16)
	u, _ := start(t, Unified, 16)
	good := func() leg.Request { return ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab) }
	for _, tt := range []struct {
		spoil func(*leg.Request)
		want  string
	}{
		{func(q *leg.Request) { q.Tokens = nil }, "tokens"},
		{func(q *leg.Request) { q.Tokens[3] = int32(f.vocab) }, "tokens[3]"},
		{func(q *leg.Request) { q.Params.MaxTokens = 16 * room.BlockTokens }, "max_tokens"},
		{func(q *leg.Request) { q.Params.Temperature = -1 }, "temperature"},
		{func(q *leg.Request) { q.Link = "127.0.0.1:1" }, "link"},
	} {
		q := good()
		tt.spoil(&q)
		for kind, w := range map[string]*Worker{Prefill: p, Decode: u} {
			c := open(t, w, kind, q).ended(room.ClientError)
			if c.status != http.StatusBadRequest || !strings.Contains(c.end.Message, tt.want) {
				t.Errorf("%s: status %d, %q; want 400 and %s", kind, c.status, c.end.Message, tt.want)
			}
			if by := c.end.Param; by != "" && !strings.HasPrefix(tt.want, by) || by == "" && (tt.want == "max_tokens" || tt.want == "temperature" || tt.want == "tokens[3]") {
				t.Errorf("%s: the refusal about %s names %q", kind, tt.want, by)
			}
		}
	}
	resp, err := client.Post("http://"+p.HTTP()+"/leg/prefill", "application/json", strings.NewReader("{"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if e, err := leg.ParseEnd(b); resp.StatusCode != 400 || err != nil || e.Cause != room.ClientError {
		t.Errorf("half a body: status %d, %s", resp.StatusCode, b)
	}
	resp, err = client.Post("http://"+p.HTTP()+"/leg/decode", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a decode leg on a prefill worker: status %d, want 404", resp.StatusCode)
	}
	empty(t, p, u)
}

// A second leg for a room that is here must not touch the first, whatever becomes of it.
func TestADuplicateLegLeavesTheFirstAlone(t *testing.T) {
	u, f := start(t, Unified, 64)
	held, release := f.hold()
	defer release()
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 4, f.vocab)
	first := open(t, u, Decode, q).accepted()
	within(t, "a step", held)
	second := open(t, u, Decode, q)
	within(t, "the refusal", second.over)
	if second.end == nil || second.end.Outcome == room.Success || second.status == http.StatusOK {
		t.Fatalf("the duplicate: status %d, %+v", second.status, second.end)
	}
	release()
	if got, want := first.ended(room.NoCause).ids, oracle(q.Tokens, 4, f.vocab); !slices.Equal(got, want) {
		t.Fatalf("the first leg gave %v, want %v", got, want)
	}
}

// Draining refuses new rooms and lets live ones finish; Close then has nothing to cut.
func TestDrainFinishesLiveRoomsAndRefusesNewOnes(t *testing.T) {
	s, f := serveFake(t, 64, "layout")
	s.Context = 1 << 16 // more than the pool holds: the core has to say what is too long
	u := startServed(t, Unified, s)
	held, release := f.hold()
	defer release()
	r := rand.New(rand.NewPCG(1, 1))
	q := ask(r, 20, 4, f.vocab)
	c := open(t, u, Decode, q).accepted()
	within(t, "a step", held)
	resp, err := client.Post("http://"+u.HTTP()+"/drain", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// Not full, but gone for whoever comes now: a gateway waits for another, or goes to one.
	late := open(t, u, Decode, ask(r, 20, 4, f.vocab))
	within(t, "the refusal", late.over)
	if late.status != leg.LeavingStatus || late.end != nil || !strings.Contains(late.body, "is draining") {
		t.Errorf("while draining: status %d and %s, want %d, no outcome, and why", late.status, late.body, leg.LeavingStatus)
	}
	// Draining is no reason for what would be refused anywhere.
	if again := open(t, u, Decode, q).ended(room.Internal); !strings.Contains(again.end.Message, "here already") {
		t.Errorf("a leg twice, while draining: %q", again.end.Message)
	}
	if long := open(t, u, Decode, ask(r, 2000, 4, f.vocab)).ended(room.ClientError); long.status != http.StatusBadRequest || strings.Contains(long.end.Message, "draining") {
		t.Errorf("a prompt too long, while draining: %d %q", long.status, long.end.Message)
	}
	closed := make(chan error, 1)
	go func() { closed <- u.Close(context.Background()) }()
	release()
	if got, want := c.ended(room.NoCause).ids, oracle(q.Tokens, 4, f.vocab); !slices.Equal(got, want) {
		t.Fatalf("the live room gave %v, want %v", got, want)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// Without grace live rooms end, and their gateway sees what it would see of a worker that
// crashed: a stream without an end, which it may try again elsewhere.
func TestCloseEndsLiveRooms(t *testing.T) {
	p, f := start(t, Prefill, 16)
	s, df := serveFake(t, 16, "layout")
	d := startServed(t, Decode, s)
	held, release := df.hold()
	defer release()
	r := rand.New(rand.NewPCG(1, 1))
	_, running := both(t, p, d, ask(r, 20, 4, f.vocab), p.Link())
	within(t, "a decode step", held)
	waiting := open(t, d, Decode, ask(r, 20, 4, f.vocab)).accepted()
	closed := make(chan error, 1)
	go func() { closed <- stopNow(d) }()
	waiting.cut() // the step of the other one still hangs
	release()
	running.cut()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	empty(t, p)
}

// Two legs of one room that are not of one request must not make an answer of two.
func TestLegsThatDisagreeEndTheRoom(t *testing.T) {
	p, f := start(t, Prefill, 64)
	d, _ := start(t, Decode, 64)
	r := rand.New(rand.NewPCG(1, 1))
	for what, spoil := range map[string]func(*leg.Request){
		"seed":   func(q *leg.Request) { q.Params.Seed++ },
		"longer": func(q *leg.Request) { q.Tokens = append(slices.Clone(q.Tokens), 1) },
		"another prompt": func(q *leg.Request) {
			q.Tokens = slices.Clone(q.Tokens)
			q.Tokens[7] = (q.Tokens[7] + 1) % int32(f.vocab)
		},
		"other sampling parameters": func(q *leg.Request) { q.Params.Temperature = 0.5 },
	} {
		q := ask(r, 40, 4, f.vocab)
		pre := open(t, p, Prefill, q)
		spoil(&q)
		q.Link = p.Link()
		dec := open(t, d, Decode, q)
		within(t, what+": the decode leg", dec.over)
		if dec.end == nil || dec.end.Outcome != room.Failed || len(dec.ids) > 0 {
			t.Errorf("%s: decode ended with %+v after %d tokens, want a failure before any", what, dec.end, len(dec.ids))
		}
		word := strings.Fields(what)[0]
		if what == "longer" { // prefill says no to its Prealloc, and has no words for it
			word = ""
		}
		if dec.end.Cause != room.Internal || word != "" && !strings.Contains(dec.end.Message, "legs of the room differ") || !strings.Contains(dec.end.Message, word) {
			t.Errorf("%s: cause %s and message %q do not say what disagrees", what, dec.end.Cause, dec.end.Message)
		}
		within(t, what+": the prefill leg", pre.over)
	}
	empty(t, p, d)
}
