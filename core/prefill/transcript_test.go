package prefill

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/core/room"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt")

// TestTranscripts plays testdata/*.txt: comments, "config", and one event per line behind
// ">", each followed by the effects and, where asked by "show", what an operator sees.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(b))
			if *rewrite {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("the core does something else; -rewrite shows what:\n%s", got)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	var b strings.Builder
	c := New(Config{Blocks: 8, QueuedMax: 4, RunningMax: 2, ChunkTokens: 32})
	now := time.Duration(0)
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		word := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
			fmt.Fprintln(&b, line)
		case word[0] == "config":
			fmt.Fprintln(&b, line)
			a := arguments(t, word[1:])
			c = New(Config{Blocks: a.num("blocks"), QueuedMax: a.num("queued"), RunningMax: a.num("running"), ChunkTokens: a.num("chunk")})
		case word[0] == ">":
			fmt.Fprintln(&b, line)
			a := arguments(t, word[2:])
			now += a.time("after")
			var out Effects
			c.Step(now, event(t, word[1], a, now), &out)
			for _, e := range out.List {
				fmt.Fprintln(&b, "   ", describe(e))
			}
		case word[0] == "show":
			fmt.Fprintln(&b, line)
			show(&b, c, now)
		}
	}
	return b.String()
}

// event reads one event; rooms and leases are small numbers, leases are of boot 1.
func event(t *testing.T, kind string, a args, now time.Duration) Event {
	id, l := room.ID(a.num("room")), room.Lease{Boot: room.Boot(max(1, a.num("boot"))), Seq: uint64(a.num("lease"))}
	switch kind {
	case "request":
		return Event{Kind: Request, Room: id, Tokens: a.num("tokens"), Deadline: now + a.time("left")}
	case "abort":
		return Event{Kind: Abort, Room: id, Cause: a.cause()}
	case "prealloc":
		return Event{Kind: Prealloc, Prealloc: room.Prealloc{Room: id, Lease: l, Conn: room.Conn(a.num("conn")),
			Tokens: a.num("tokens"), From: a.num("from"), Left: a.time("left")}}
	case "cancel":
		return Event{Kind: Cancel, Cancel: room.Cancel{Room: id, Lease: l, Cause: a.cause()}}
	case "step":
		ev := Event{Kind: StepDone}
		for _, s := range strings.Split(a.m["rooms"], ",") {
			n, err := strconv.Atoi(strings.TrimSuffix(s, "!"))
			if err != nil {
				t.Fatal(err)
			}
			ev.Results = append(ev.Results, Result{Room: room.ID(n), OK: !strings.HasSuffix(s, "!")})
		}
		return ev
	case "written", "unwritten":
		return Event{Kind: WriteDone, Room: id, Lease: l, Chunk: int32(a.num("chunk")), OK: kind == "written"}
	case "link_end":
		return Event{Kind: LinkEnd, Boot: l.Boot, Conn: room.Conn(a.num("conn"))}
	case "deadline":
		return Event{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id}}
	case "tombstone":
		return Event{Kind: TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}}
	case "drain":
		return Event{Kind: Drain}
	}
	t.Fatalf("no event %q", kind)
	return Event{}
}

func describe(e Effect) string {
	switch e.Kind {
	case Accept:
		return fmt.Sprintf("accept %d", e.Room)
	case Refuse:
		return fmt.Sprintf("REFUSE %d: %s", e.Room, e.Outcome)
	case Step:
		var all []string
		for _, it := range e.Items {
			s := fmt.Sprintf("room %d tokens %d-%d of blocks %v", it.Room, it.From, it.To, it.Blocks)
			if it.Chunk < 0 {
				s += " unsent"
			}
			if it.Last {
				s += " last"
			}
			all = append(all, s)
		}
		return "step: " + strings.Join(all, "; ")
	case Write:
		s := fmt.Sprintf("write %d lease %d chunk %d on connection %d: block %d on, %v", e.Room, e.Lease.Seq, e.Chunk, e.Conn, e.FirstBlock, e.Blocks)
		if e.Last {
			s += " last"
		}
		return s
	case Settle:
		s := fmt.Sprintf("settle %d lease %d: %s", e.Settled.Room, e.Settled.Lease.Seq, e.Settled.Outcome)
		if e.Settled.Chunks > 0 {
			s += fmt.Sprintf(", %d chunks", e.Settled.Chunks)
		}
		return s
	case Freed:
		return fmt.Sprintf("freed %v", e.Blocks)
	case End:
		return fmt.Sprintf("END %d: %s", e.Room, e.Outcome)
	case EndHalf:
		return fmt.Sprintf("end half %d lease %d: %s", e.Room, e.Lease.Seq, e.Outcome)
	}
	return "?"
}

func show(b *strings.Builder, c *Core, now time.Duration) {
	fmt.Fprintf(b, "    blocks %+v\n", c.Blocks())
	for _, q := range c.Queues() {
		if q.Len > 0 {
			fmt.Fprintf(b, "    %s: %d, oldest %v\n", q.Queue, q.Len, now-q.Oldest)
		}
	}
	for _, rooms := range []func(func(room.View) bool){c.Rooms, c.Ended} {
		for v := range rooms {
			fmt.Fprintf(b, "    room %d: %s (%s) for %v", v.Room, v.Phase, v.Poll, now-v.Since)
			if v.Outcome.Ended() {
				fmt.Fprintf(b, ", %s", v.Outcome)
			}
			if v.WaitsFor != "" {
				fmt.Fprintf(b, ", waits for %s", v.WaitsFor)
			}
			fmt.Fprintln(b)
		}
	}
	if at, timer, ok := c.NextTimer(); ok {
		fmt.Fprintf(b, "    next timer: %s of %d in %v\n", timer.Kind, timer.Room, at-now)
	}
}

// args are key=value pairs.
type args struct {
	t *testing.T
	m map[string]string
}

func arguments(t *testing.T, words []string) args {
	a := args{t, map[string]string{}}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			t.Fatalf("%q is not key=value", w)
		}
		a.m[k] = v
	}
	return a
}

func (a args) num(k string) int {
	if a.m[k] == "" {
		return 0
	}
	n, err := strconv.Atoi(a.m[k])
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a args) time(k string) time.Duration {
	if a.m[k] == "" {
		return 0
	}
	d, err := time.ParseDuration(a.m[k])
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

func (a args) cause() (c room.Cause) {
	if err := c.UnmarshalText([]byte(a.m["cause"])); err != nil {
		a.t.Fatal(err)
	}
	return c
}
