package sim

import (
	"flag"
	"slices"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
)

// The gate explores every scope (proof/gate); here are the two smallest, and tests of the
// world itself.

func TestTheSmallestScopesHold(t *testing.T) {
	for _, sc := range Scopes() {
		if sc.Name != "PROMPT quiet" && sc.Name != "PROMPT unified" {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			r := sc.Run()
			t.Log(r.String())
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

var (
	seeds = flag.Uint64("seeds", 400, "how many random ways through the crowded world")
	seed  = flag.Uint64("seed", 0, "go this way alone")
)

// TestSeededWalksEnd goes random ways through a world of four rooms with every fault. What it
// never meets it does not check, so it has to have met everything that there is a name for.
func TestSeededWalksEnd(t *testing.T) {
	from, to := uint64(1), *seeds
	if *seed != 0 {
		from, to = *seed, *seed
	}
	var sights [witnesses]int
	for n := from; n <= to; n++ {
		sc := Crowd()
		if n%2 == 0 { // longer lives: nobody crashes
			sc.CrashP, sc.CrashD = 0, 0
		}
		sc.Keys, sc.KnownD, sc.KnownP = n%4 < 2, int(n%2), int(n%2)
		if !sc.Keys {
			sc.KnownD, sc.KnownP = 0, 0
		}
		ask := explore.TERM
		if n%3 == 0 { // nothing may need a timer, if the gateway hears of what breaks
			ask, sc.Lose, sc.Tied, sc.Forget = explore.PROMPT, false, true, 0
		}
		y := counting{Rare{System: New(sc), One: 5 + n%7*5}, &sights}
		if r := explore.Walk(&y, ask, n, 60+int(n%5)*40); r.Broken != "" {
			t.Fatalf("go test ./proof/sim -run Seeded -seed %d: %s: %s\n%s", n, r.Broken, r.Reason, r.Chart)
		}
	}
	for i, name := range (&System{}).Witnesses() {
		t.Logf("%s: %d times", name, sights[i])
		if sights[i] == 0 && *seed == 0 {
			t.Errorf("no walk met %q", name)
		}
	}
}

// counting counts the witnesses of a walk.
type counting struct {
	Rare
	sights *[witnesses]int
}

func (c *counting) Apply(w *world, e Event) error {
	err := c.Rare.Apply(w, e)
	for i := range c.sights {
		c.sights[i] += int(w.shows >> i & 1)
	}
	return err
}

// TestScopesAreNamedOnce: mutants and people find a scope by its name, which begins with the
// question that it asks.
func TestScopesAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range Scopes() {
		if seen[sc.Name] {
			t.Errorf("two scopes are called %q", sc.Name)
		}
		seen[sc.Name] = true
		question := map[explore.Question]string{explore.PROMPT: "PROMPT ", explore.TERM: "TERM ", explore.TERM | explore.ALONE: "ALONE "}[sc.Options.Ask]
		if question == "" || len(sc.Name) <= len(question) || sc.Name[:len(question)] != question {
			t.Errorf("%q asks %q", sc.Name, sc.Options.Ask)
		}
	}
}

// TestRoomsThatAreAlikeAreExploredOnce: the order in which decode hears of rooms that differ in
// nothing but their numbers is left out, and nothing else is.
func TestRoomsThatAreAlikeAreExploredOnce(t *testing.T) {
	for _, name := range []string{"PROMPT two rooms", "TERM two rooms crash prefill"} {
		scopes := Scopes()
		sc := scopes[slices.IndexFunc(scopes, func(s Named) bool { return s.Name == name })]
		half := sc.Run()
		sc.Scope.Alike = false
		whole := sc.Run()
		if half.Err() != nil || whole.Err() != nil || half.DeadlinesTerm != whole.DeadlinesTerm || half.Depth != whole.Depth {
			t.Errorf("%s: %s\nand without the reduction: %s", name, &half, &whole)
		}
		if half.States >= whole.States || 2*half.States < whole.States {
			t.Errorf("%s: %d states of %d, want at least half", name, half.States, whole.States)
		}
	}
}

// TestMessagesAndChunksSurvivePacking: everything in flight is kept as one small number.
func TestMessagesAndChunksSurvivePacking(t *testing.T) {
	for _, m := range []msg{
		{kind: msgRequestP}, {kind: msgSettled, room: 1, boot: bootsMax, seq: leasesMax, n: 8, conn: connsMax},
		{kind: msgPrealloc, room: 1, boot: 1, seq: 2, n: 3, conn: 1}, {kind: msgPrealloc, room: 1, boot: bootsMax, seq: leasesMax, n: connsMax, from: tableMax},
	} {
		if got := unpackMsg(m.pack()); got != m {
			t.Errorf("%+v becomes %+v", m, got)
		}
	}
	c := chunk{room: 1, boot: 2, seq: 3, conn: 3, n: 7, first: 3, blocks: 4, last: true, pass: 2}
	if got := unpackChunk(c.pack()); got != c {
		t.Errorf("%+v becomes %+v", c, got)
	}
}

// TestACopyIsIndependent walks one way through the largest scope and looks back at every
// state: what a copy does must not show in the original, and equal states have equal keys.
func TestACopyIsIndependent(t *testing.T) {
	scopes := Scopes()
	at := slices.IndexFunc(scopes, func(s Named) bool { return s.Name == "TERM all crash decode" })
	y := New(scopes[at].Scope)
	w := y.Init()
	for step := range 200 {
		before := y.Key(&w, nil)
		evs := y.Events(&w, nil)
		if len(evs) == 0 {
			break
		}
		for _, e := range evs {
			c := y.Clone(&w)
			if err := y.Apply(&c, e); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(before, y.Key(&w, nil)) {
				t.Fatalf("%s on a copy changed the original", y.Name(&w, e))
			}
		}
		if err := y.Apply(&w, evs[step*7%len(evs)]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGhostsSeeWhatTheyAreFor breaks the world behind the cores' backs: a checker that cannot
// fail proves nothing.
func TestGhostsSeeWhatTheyAreFor(t *testing.T) {
	id := room.ID(1)
	l := lease(1, 1)
	for name, try := range map[string]func(y *System, w *world) error{
		"a source block freed under a write": func(y *System, w *world) error {
			w.writes[0], w.nWrites = write{blocks: 1}, 1
			return y.effectP(w, &prefill.Effect{Kind: prefill.Freed, Blocks: []int32{0}})
		},
		"a source block freed under a step": func(y *System, w *world) error {
			w.pStep = passes{n: 1, item: [roomsMax]pass{{table: [tableMax]uint8{3}, n: 1}}}
			return y.effectP(w, &prefill.Effect{Kind: prefill.Freed, Blocks: []int32{3}})
		},
		"a write of what is not computed": func(y *System, w *world) error {
			return y.effectP(w, &prefill.Effect{Kind: prefill.Write, Room: id, Lease: l, Conn: 1, Blocks: []int32{0}})
		},
		"a write after the final word": func(y *System, w *world) error {
			w.src[0] = stamp(0, 0)
			word := prefill.Effect{Kind: prefill.Settle, Settled: room.Settled{Room: id, Lease: l, Outcome: room.Done(), Chunks: 1}}
			if err := y.effectP(w, &word); err != nil {
				return nil
			}
			return y.effectP(w, &prefill.Effect{Kind: prefill.Write, Room: id, Lease: l, Conn: 1, Blocks: []int32{0}})
		},
		"a leg ended twice": func(y *System, w *world) error {
			return y.effectP(w, &prefill.Effect{Kind: prefill.End, Room: id, Outcome: room.Done()})
		},
		"a room gone without a word": func(y *System, w *world) error {
			y.here = 0
			return y.farewell("prefill", 1)
		},
		"a room that ends and stays": func(y *System, w *world) error {
			y.here = 1
			if err := y.ends(0); err != nil {
				return nil
			}
			return y.farewell("prefill", 1)
		},
		"a leg that ends as a half room": func(y *System, w *world) error {
			w.owedP = 1
			return y.effectP(w, &prefill.Effect{Kind: prefill.EndHalf, Room: id, Outcome: room.Done()})
		},
		"a room that ends twice in a step": func(y *System, w *world) error {
			w.owedD = 1
			if err := y.ends(0); err != nil {
				return nil
			}
			return y.effectD(w, &decode.Effect{Kind: decode.End, Room: id, Outcome: room.Fail(room.Deadline)})
		},
		"a destination freed with a receiver inside": func(y *System, w *world) error {
			w.in[0], w.nIn = inside{id: chunk{blocks: 1}.pack(), table: [tableMax]uint8{2}}, 1
			return y.effectD(w, &decode.Effect{Kind: decode.Freed, Blocks: []int32{2}})
		},
		"two receivers in one block": func(y *System, w *world) error {
			w.in[0], w.nIn = inside{id: chunk{blocks: 1}.pack(), table: [tableMax]uint8{2}}, 1
			return y.effectD(w, &decode.Effect{Kind: decode.Place, OK: true, Blocks: []int32{2}})
		},
		"a start on incomplete KV": func(y *System, w *world) error {
			return y.effectD(w, &decode.Effect{Kind: decode.Begin, Room: id})
		},
		"a start on KV of two passes": func(y *System, w *world) error {
			w.dst[0], w.dst[1], w.by[0], w.by[1] = stamp(0, 0), stamp(0, 1), origin{1, 1, 1}, origin{1, 1, 2}
			return y.effectD(w, &decode.Effect{Kind: decode.Begin, Room: id})
		},
		"a token read from a stranger's block": func(y *System, w *world) error {
			w.dst[0], w.dst[1] = stamp(0, 0), stamp(1, 1)
			return y.effectD(w, &decode.Effect{Kind: decode.Step, Items: []decode.StepItem{{Room: id, From: 31, To: 32, Blocks: []int32{0, 1}}}})
		},
		"tokens of a leg that is over": func(y *System, w *world) error {
			return y.effectD(w, &decode.Effect{Kind: decode.Emit, Room: id})
		},
		"a failure of a room that was left in peace": func(y *System, w *world) error {
			w.owedD = 1
			return y.effectD(w, &decode.Effect{Kind: decode.End, Room: id, Outcome: room.Fail(room.Internal)})
		},
		"a success without its tokens": func(y *System, w *world) error {
			w.owedD = 1
			return y.effectD(w, &decode.Effect{Kind: decode.End, Room: id, Outcome: room.Done()})
		},
		"a decision taken back": func(y *System, w *world) error {
			w.owedD, w.sureD[0] = 1, room.Fail(room.Cancelled)
			return y.effectD(w, &decode.Effect{Kind: decode.End, Room: id, Outcome: room.Done()})
		},
		"an idle core that owes an end": func(y *System, w *world) error {
			w.owedP = 1
			return y.doP(w, prefill.Event{Kind: prefill.Drain})
		},
	} {
		y := New(Scopes()[0].Scope)
		w := y.Init()
		if try(y, &w) == nil {
			t.Errorf("%s goes unseen", name)
		}
	}
}

// TestGhostsSeeWhatIsWrongWithFoundBlocks does the same in a world with prefix caches, in which room
// 1 has found the first block of its prompt and holds block 1 for the rest.
func TestGhostsSeeWhatIsWrongWithFoundBlocks(t *testing.T) {
	for name, try := range map[string]func(y *System, w *world, table []int32) error{
		"a block that is not what it is found as": func(y *System, w *world, table []int32) error {
			w.dst[table[0]] = stamp(0, 1)
			return y.doD(w, decode.Event{Kind: decode.Drain})
		},
		"the same at prefill": func(y *System, w *world, _ []int32) error {
			b, _ := w.p.Found(keyOf(0))
			w.src[b] = 0
			return y.doP(w, prefill.Event{Kind: prefill.Drain})
		},
		"a receiver in a block that was found": func(y *System, w *world, table []int32) error {
			return y.place(w, &decode.Effect{Kind: decode.Place, OK: true, Blocks: table[:1]})
		},
		"a start without the rest": func(y *System, w *world, _ []int32) error { return y.beginD(w, 0) },
		"a start on the rest of another lease": func(y *System, w *world, table []int32) error {
			w.dst[table[1]], w.by[table[1]] = stamp(0, 1), origin{1, 2, 1}
			return y.beginD(w, 0)
		},
		"a start on a found block that was written": func(y *System, w *world, table []int32) error {
			w.dst[table[1]], w.by[table[1]] = stamp(0, 1), origin{1, 1, 1}
			if err := y.beginD(w, 0); err != nil {
				return nil
			}
			w.by[table[0]] = origin{1, 1, 1}
			return y.beginD(w, 0)
		},
		"a block let go of with a receiver inside": func(y *System, w *world, table []int32) error {
			w.in[0], w.nIn = inside{id: chunk{blocks: 1}.pack(), table: [tableMax]uint8{uint8(table[1])}}, 1
			return y.doD(w, decode.Event{Kind: decode.Abort, Room: id(0)})
		},
		"a found block let go of while the engine reads it": func(y *System, w *world, table []int32) error {
			w.hurt, w.dStep = 1, passes{n: 1, item: [roomsMax]pass{{table: [tableMax]uint8{uint8(table[0])}, n: 1}}}
			return y.left(w, 0, table[0], new([roomsMax][]int32))
		},
		"a block given to two": func(y *System, w *world, table []int32) error {
			return y.fresh(w, 1, table[1], &[roomsMax][]int32{table})
		},
		"a source block given away under a write": func(y *System, w *world, _ []int32) error {
			w.writes[0], w.nWrites = write{blocks: 2}, 1
			return y.startFound(w, &prefill.StepItem{Room: id(0), To: 31, Blocks: []int32{1, 0}})
		},
		"a prompt computed behind nothing": func(y *System, w *world, _ []int32) error {
			return y.startFound(w, &prefill.StepItem{Room: id(0), From: 16, To: 31, Cached: 16, Blocks: []int32{1, 0}})
		},
	} {
		y := New(Scope{Rooms: 2, Keys: true, KnownD: 1, KnownP: 1, Tokens: 31, MaxNew: 1, BlocksP: 2, BlocksD: 4, Slots: 1, ChunkTokens: 16})
		w := y.Init()
		for _, ev := range []decode.Event{
			{Kind: decode.Request, Room: id(0), Tokens: 31, Keys: y.keys(31), MaxNew: 1, Deadline: deadline},
			{Kind: decode.LinkUp, Conn: 1},
		} {
			if err := y.doD(&w, ev); err != nil {
				t.Fatal(err)
			}
		}
		table, filled := w.d.Table(id(0))
		if len(table) != 2 || filled != 16 || w.from[0] != 1 {
			t.Fatalf("room 1 holds %v, of which %d tokens are filled, and asks for block %d", table, filled, w.from[0])
		}
		if try(y, &w, table) == nil {
			t.Errorf("%s goes unseen", name)
		}
	}
}

// BenchmarkTransition is one step of the explorer without its index: copy, event, key.
func BenchmarkTransition(b *testing.B) {
	y := New(Scopes()[3].Scope)
	w := y.Init()
	var evs []Event
	for range 6 {
		evs = y.Events(&w, evs[:0])
		if err := y.Apply(&w, evs[0]); err != nil {
			b.Fatal(err)
		}
	}
	evs = y.Events(&w, evs[:0])
	var c world
	var key []byte
	start := time.Now()
	for i := range b.N {
		y.CopyInto(&c, &w)
		if err := y.Apply(&c, evs[i%len(evs)]); err != nil {
			b.Fatal(err)
		}
		key = y.Key(&c, key[:0])
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "transitions/s")
}
