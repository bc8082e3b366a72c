package replay

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/serve/recorder"
)

// legsAt records a prefill core to which legs of these rooms come, each after so long.
func legsAt(t *testing.T, dir string, boot room.Boot, legs map[room.ID]time.Duration) {
	t.Helper()
	cfg := prefill.Config{Blocks: 8, QueuedMax: 8, RunningMax: 4, ChunkTokens: 16}
	rec, err := recorder.NewPrefill(dir, life("prefill", boot), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	core, out := prefill.New(cfg), prefill.Effects{}
	for _, id := range slices.SortedFunc(maps.Keys(legs), func(a, b room.ID) int { return int(legs[a] - legs[b]) }) {
		at := legs[id]
		out.Reset()
		ev := prefill.Event{Kind: prefill.Request, Room: id, Tokens: 20, Deadline: time.Minute}
		rec.Before(at, &ev, "")
		core.Step(at, ev, &out)
		rec.After(out.List)
	}
}

// TestWhatNobodySaidIsNoticed: a leg that no gateway opened, one that was opened once and came
// twice, and one that a killed gateway may have opened with its last words.
func TestWhatNobodySaidIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name     string
		legs     map[room.ID]time.Duration // at the prefill worker
		again    bool                      // and a second worker hears the same
		cut      bool                      // the gateway's file has no end: it was killed after 15 ms
		heard    int
		excused  int
		complain string
	}{
		{name: "all were opened", legs: map[room.ID]time.Duration{0xaaa: 5e6, 0xbbb: 6e6, 0xccc: 9e6}, heard: 3},
		{name: "one was not", legs: map[room.ID]time.Duration{0xaaa: 5e6, 0xddd: 9e6}, heard: 1, complain: "the prefill leg of room 0000000000000ddd: nobody said it (core of relay)"},
		{name: "one came twice", legs: map[room.ID]time.Duration{0xaaa: 5e6}, again: true, heard: 1, complain: "room 0000000000000aaa: nobody said it"},
		{name: "the last words of a killed one", legs: map[room.ID]time.Duration{0xaaa: 5e6, 0xddd: 16e6}, cut: true, heard: 1, excused: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			gateway := livesOfRelay(t, dir)
			if c.cut {
				change(t, gateway, `{"end":"closed","events":15}`+"\n", "")
			}
			legsAt(t, dir, 0xf5, c.legs)
			if c.again {
				legsAt(t, dir, 0xf6, c.legs)
			}
			_, mail, err := All(dir)
			// The ends that the gateway heard came from workers that have no files, or other ones.
			if c.complain == "" && len(unsaidBy(mail, "prefill leg")) > 0 || c.complain != "" && (err == nil || !strings.Contains(strings.Join(unsaidBy(mail, "prefill leg"), "\n"), c.complain)) {
				t.Errorf("%s, %v, want %q", mail, err, c.complain)
			}
			if mail.Heard != c.heard {
				t.Errorf("%d were heard, want %d: %s", mail.Heard, c.heard, mail)
			}
			if c.excused > 0 && mail.Excused < c.excused {
				t.Errorf("%d are excused, want %d: %s", mail.Excused, c.excused, mail)
			}
		})
	}
}

func unsaidBy(d Delivery, what string) (some []string) {
	for _, s := range d.Unsaid {
		if strings.Contains(s, what) {
			some = append(some, s)
		}
	}
	return some
}

// TestAWordThatIsChangedOnItsWayIsNoticed: decode hears that a lease is settled in another way
// than prefill said it, which neither core can know.
func TestAWordThatIsChangedOnItsWayIsNoticed(t *testing.T) {
	lease := room.Lease{Boot: 0xd1, Seq: 1}
	for _, c := range []struct {
		name  string
		heard room.Settled
		fine  bool
	}{
		{"as said", room.Settled{Room: 7, Lease: lease, Outcome: room.Fail(room.Cancelled)}, true},
		{"a success", room.Settled{Room: 7, Lease: lease, Outcome: room.Done(), Chunks: 2}, false},
		{"of another lease", room.Settled{Room: 7, Lease: room.Lease{Boot: 0xd1, Seq: 2}, Outcome: room.Fail(room.Cancelled)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			pc := prefill.Config{Blocks: 8, QueuedMax: 8, RunningMax: 4, ChunkTokens: 16}
			p, err := recorder.NewPrefill(dir, life("prefill", 0xf1), pc)
			if err != nil {
				t.Fatal(err)
			}
			core, out := prefill.New(pc), prefill.Effects{}
			ev := prefill.Event{Kind: prefill.Cancel, Cancel: room.Cancel{Room: 7, Lease: lease}}
			p.Before(1, &ev, "")
			core.Step(1, ev, &out)
			p.After(out.List)
			p.Close()
			dc := decode.Config{Boot: 0xd1, Blocks: 8, QueuedMax: 8, RunningMax: 4, ChunkTokens: 16}
			d, err := recorder.NewDecode(dir, life("decode", 0xd1), dc)
			if err != nil {
				t.Fatal(err)
			}
			other, does := decode.New(dc), decode.Effects{}
			word := decode.Event{Kind: decode.Settled, Settled: c.heard}
			d.Before(2, &word, "")
			other.Step(2, word, &does)
			d.After(does.List)
			d.Close()
			_, mail, err := All(dir)
			if told := len(unsaidBy(mail, "Settled")) == 0; told != c.fine || c.fine && mail.Heard != 1 || !c.fine && err == nil {
				t.Errorf("%s, %v", mail, err)
			}
		})
	}
}

// TestADeadlineDoesNotGrowOnItsWay: of what decode says is left, prefill hears no more.
func TestADeadlineDoesNotGrowOnItsWay(t *testing.T) {
	said := room.Prealloc{Room: 7, Lease: room.Lease{Boot: 0xd1, Seq: 1}, Conn: 1, Tokens: 20, Left: 3 * time.Second}
	for left, fine := range map[time.Duration]bool{0: true, 2 * time.Second: true, 3 * time.Second: true, 3*time.Second + 1: false} {
		p := NewPost()
		p.say(&decode.Effect{Kind: decode.SendPrealloc, Prealloc: said})
		heard := said
		heard.Left = left
		p.hear(&moment{event: &prefill.Event{Kind: prefill.Prealloc, Prealloc: heard}}, "FILE", nil)
		mail := p.Judge()
		if told := len(mail.Unsaid) == 0; told != fine || fine != (mail.Heard == 1) || !fine && !strings.Contains(mail.Unsaid[0], "nobody said that 3.000000001s are left of its deadline, 3s were") {
			t.Errorf("%v left: %s", left, mail)
		}
	}
	p := NewPost() // what is over is 0 on the wire
	over := said
	over.Left = -time.Second
	p.say(&decode.Effect{Kind: decode.SendPrealloc, Prealloc: over})
	over.Left = 0
	p.hear(&moment{event: &prefill.Event{Kind: prefill.Prealloc, Prealloc: over}}, "FILE", nil)
	if mail := p.Judge(); mail.Heard != 1 {
		t.Errorf("%s", mail)
	}
}

// TestACopyOfATraceIsRefused: what a process said and heard once would count twice.
func TestACopyOfATraceIsRefused(t *testing.T) {
	dir := t.TempDir()
	gateway := livesOfRelay(t, dir)
	legsAt(t, dir, 0xf5, map[room.ID]time.Duration{0xaaa: 5e6})
	b, err := os.ReadFile(filepath.Join(dir, "prefill-00000000000000f5"+recorder.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	legs := filepath.Join(dir, "prefill-copy"+recorder.Suffix)
	if err := os.WriteFile(legs, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, mail, err := All(dir)
	if err == nil || !strings.Contains(err.Error(), "prefill-copy"+recorder.Suffix+": the same life as ") || len(unsaidBy(mail, "prefill leg")) > 0 || mail.Heard != 1 {
		t.Errorf("%s, %v", mail, err)
	}
	f := OfRequest("ours")
	if _, err := f.Watch(gateway); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Watch(gateway); err == nil || !strings.Contains(err.Error(), "gateway 000000000000009a: name one of them") {
		t.Errorf("a film of a file and the same: %v", err)
	}
}

func TestADirectoryWithoutTracesShowsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := All(dir); err == nil || !strings.Contains(err.Error(), "no trace in") {
		t.Errorf("%v", err)
	}
}
