package relay

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

// TestTranscripts plays testdata/*.txt: comments, "limits", and one event per line behind
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
	c := New(Limits{})
	now := time.Duration(0)
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		word := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
			fmt.Fprintln(&b, line)
		case word[0] == "limits":
			fmt.Fprintln(&b, line)
			a := arguments(t, word[1:])
			c = New(Limits{MaxRunning: a.num("running"), MaxQueued: a.num("queued"), MaxTries: a.num("tries"), RetryBurst: a.num("burst")})
		case word[0] == ">":
			fmt.Fprintln(&b, line)
			a := arguments(t, word[2:])
			now += a.time("after")
			var out Effects
			c.Step(now, event(t, word[1], a), &out)
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

func show(b *strings.Builder, c *Core, now time.Duration) {
	fmt.Fprintf(b, "    running %d, queued %d\n", c.Running(), c.Queue().Len)
	c.Rooms(func(v View) bool {
		fmt.Fprintf(b, "    req %d: %s for %v, attempt %d, prefill %d, decode %d, %d tokens, waits for %s\n",
			v.Req, v.Phase, now-v.Since, v.Attempt, v.Prefill, v.Decode, v.Tokens, v.WaitsFor)
		return true
	})
	if at, timer, ok := c.NextTimer(); ok {
		fmt.Fprintf(b, "    next timer: %s of %d in %v\n", timer.Name, timer.Req, at-now)
	}
}

func describe(e Effect) string {
	switch e.Kind {
	case Place:
		s := fmt.Sprintf("place %d, attempt %d", e.Req, e.Attempt)
		if len(e.Exclude) > 0 {
			s += fmt.Sprintf(", without %v, of which innocent %v", e.Exclude, e.Innocent)
		}
		return s
	case Open:
		return fmt.Sprintf("open %s leg of %d, attempt %d, at worker %d, room %d", e.Leg, e.Req, e.Attempt, e.Worker, e.Room)
	case Close:
		return fmt.Sprintf("close %s leg of %d, attempt %d", e.Leg, e.Req, e.Attempt)
	case Forward:
		return fmt.Sprintf("forward tokens of %d, attempt %d", e.Req, e.Attempt)
	case End:
		if e.Finished {
			return fmt.Sprintf("END %d: %s, finished", e.Req, e.Outcome)
		}
		return fmt.Sprintf("END %d: %s", e.Req, e.Outcome)
	case Blame:
		return fmt.Sprintf("blame worker %d: %s", e.Worker, e.Cause)
	case Release:
		return fmt.Sprintf("release worker %d", e.Worker)
	}
	return "?"
}

// args are key=value pairs; a word without = is a flag. "1#2" stands for request 1, attempt 2.
type args struct {
	t *testing.T
	m map[string]string
}

func arguments(t *testing.T, words []string) args {
	a := args{t, map[string]string{}}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		if req, attempt, ok := strings.Cut(k, "#"); ok {
			a.m["req"], a.m["attempt"] = req, attempt
		} else if _, err := strconv.Atoi(k); err == nil {
			a.m["req"] = k
		} else {
			a.m[k] = v
		}
	}
	return a
}

func (a args) has(k string) bool { _, ok := a.m[k]; return ok }

func (a args) num(k string) int {
	if !a.has(k) {
		return 0
	}
	n, err := strconv.Atoi(a.m[k])
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a args) time(k string) time.Duration {
	if !a.has(k) {
		return 0
	}
	d, err := time.ParseDuration(a.m[k])
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

// pick finds a key among names.
func pick[T fmt.Stringer](a args, all ...T) (found T, ok bool) {
	for _, n := range all {
		if n.String() != "" && a.has(n.String()) {
			return n, true
		}
	}
	return found, false
}

func event(t *testing.T, verb string, a args) Event {
	ev := Event{Req: uint64(a.num("req")), Attempt: int32(a.num("attempt")), N: a.num("n")}
	ev.Leg, _ = pick(a, Prefill, Decode)
	switch verb {
	case "arrive":
		ev.Kind = Arrive
		ev.Budgets = Budgets{Queue: a.time("queue"), Place: a.time("place"), Connect: a.time("connect"), FirstToken: a.time("first"), Gap: a.time("gap"), Total: a.time("total")}
	case "pair":
		ev.Kind, ev.OK, ev.Room = Pair, !a.has("none"), room.ID(a.num("room"))
		ev.Prefill, ev.Decode = int32(a.num("prefill")), int32(a.num("decode"))
	case "open":
		ev.Kind = LegOpen
	case "tokens":
		ev.Kind = Tokens
	case "end":
		ev.Kind, ev.Finished, ev.Said, ev.Outcome = LegEnd, a.has("finished"), a.has("said"), room.Done()
	case "closed":
		ev.Kind = LegClosed
	case "gone":
		ev.Kind = ClientGone
	case "timer":
		name, ok := pick(a, QueueTimer, PlaceTimer, ConnectTimer, FirstTokenTimer, GapTimer, TotalTimer)
		if !ok {
			t.Fatalf("no such timer: %v", a.m)
		}
		ev.Kind, ev.Timer = TimerFired, Timer{ev.Req, name}
	case "drain":
		ev.Kind = Drain
	case "roster":
		ev.Kind, ev.Worker = Roster, int32(a.num("worker"))
	default:
		t.Fatalf("unknown event %q", verb)
	}
	if cause, ok := pick(a, room.Causes()...); ok {
		ev.Outcome = room.Fail(cause)
	}
	return ev
}
