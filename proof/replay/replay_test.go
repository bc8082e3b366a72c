package replay

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/core/prefill"
	"baton/core/room"
	"baton/serve/recorder"
)

// TestAFreshCoreDoesTheSame: every kind of event and every kind of end of a prefill core.
func TestAFreshCoreDoesTheSame(t *testing.T) {
	for seed := range uint64(8) {
		file := livesOfPrefill(t, t.TempDir(), seed, 3000)
		r, err := Check(file)
		if err != nil || r.Differs != nil || r.End != recorder.EndClosed || r.Events < 1500 || r.Torn != 0 || r.Panic != "" {
			t.Fatalf("seed %d: %v, %v", seed, r, err)
		}
		for _, o := range []room.Outcome{room.Done(), room.Fail(room.Cancelled), room.Fail(room.Deadline), room.Fail(room.Internal)} {
			if r.Outcomes[o] == 0 {
				t.Errorf("seed %d: no room ended %s: %v", seed, o, r)
			}
		}
		if seed == 0 {
			t.Log(r)
		}
	}
}

// TestEveryChangeIsNoticed changes one word of a trace at a time: in what the core was told, so
// that it does something else, and in what it did.
func TestEveryChangeIsNoticed(t *testing.T) {
	for _, c := range []struct{ old, new, shown string }{
		{`"kind":"settle"`, `"kind":"end"`, `  - recorded  {"kind":"end"`},
		{`"kind":"end"`, `"kind":"end_half"`, `  + the core  {"kind":"end",`},
		{`"blocks":"`, `"blocks":"7,`, `  - recorded`},
		{`,"ok":true}]},"effects":[{"kind":"write"`, `}]},"effects":[{"kind":"write"`, `  - recorded  {"kind":"write"`},
		{`{"kind":"accept",`, `{"kind":"freed"},{"kind":"accept",`, `  + the core`},
		{`"event":{"kind":"request"`, `"event":{"kind":"drain"`, `  + the core  no effect`},
		{`"kind":"aborted","cause":"cancelled"`, `"kind":"aborted","cause":"overload"`, `"cause":"overload"`},
	} {
		file := livesOfPrefill(t, t.TempDir(), 1, 3000)
		line := change(t, file, c.old, c.new)
		r, err := Check(file)
		if err != nil || r.Differs == nil || r.Differs.Line < line {
			t.Errorf("%s for %s in line %d: %v, %v", c.new, c.old, line, r, err)
			continue
		}
		chart, err := r.Differs.Draw(r)
		if err != nil {
			t.Error(err)
		}
		if s := r.String() + chart; !strings.Contains(s, "DIFFERS") || !strings.Contains(s, c.shown) {
			t.Errorf("%s for %s shows\n%s", c.new, c.old, s)
		}
	}
}

// TestAClockThatFallsIsADifference, although the core may not mind.
func TestAClockThatFallsIsADifference(t *testing.T) {
	for old, new := range map[string]string{`{"now_ns":9000000,`: `{"now_ns":7999999,`, `{"now_ns":1000000,`: `{"now_ns":-1,`} {
		file := livesOfRelay(t, t.TempDir())
		line := change(t, file, old, new)
		r, err := Check(file)
		if err != nil || r.Differs == nil || r.Differs.Line != line || !strings.Contains(r.String(), ": the clock fell, it stood at ") {
			t.Errorf("%s: %v, %v", new, r, err)
		}
	}
	file := livesOfRelay(t, t.TempDir())
	change(t, file, `{"now_ns":9000000,`, `{"now_ns":8000000,`)
	if r, err := Check(file); err != nil || r.Differs != nil {
		t.Errorf("a clock that stands: %v, %v", r, err)
	}
}

// TestNothingInAFileSpeaksToTheTerminal: names are shown in quotes where they cannot be printed.
func TestNothingInAFileSpeaksToTheTerminal(t *testing.T) {
	file := livesOfRelay(t, t.TempDir())
	change(t, file, `"name":"gateway-0"`, `"name":"\u001b]0;x\u0007\nclean"`)
	change(t, file, `"build":"`, `"build":"\u009b2J`)
	change(t, file, `{"kind":"forward","req":1,"attempt":2}`, `{"kind":"discard","req":1,"attempt":2}`)
	r, err := Check(file)
	if err != nil || r.Differs == nil {
		t.Fatalf("%v, %v", r, err)
	}
	if s := r.String(); strings.ContainsAny(s, "\x1b\x07\u009b") || !strings.Contains(s, `: "\x1b]0;x\a\nclean", 12 events`) || !strings.Contains(s, `(build "\u009b2J`) {
		t.Errorf("got\n%q", s)
	}
	change(t, file, `"baton_trace":1`, `"baton_trace":7`)
	if _, err := Check(file); err == nil || strings.ContainsRune(err.Error(), 0x9b) {
		t.Errorf("%q", err)
	}
}

// TestADifferenceIsDrawn is what a person gets to see.
func TestADifferenceIsDrawn(t *testing.T) {
	file := livesOfRelay(t, t.TempDir())
	line := change(t, file, `{"kind":"forward","req":1,"attempt":2}`, `{"kind":"discard","req":1,"attempt":2}`)
	r, err := Check(file)
	if err != nil || r.Differs == nil || r.Differs.Line != line {
		t.Fatalf("%v, %v", r, err)
	}
	chart, err := r.Differs.Draw(r)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(r.String(), file, "FILE") + chart
	want := `FILE: gateway-0, 12 events in 11ms, 0 requests; DIFFERS
line 13, at 12ms: a fresh core does something else
    event     {"kind":"tokens","req":1,"attempt":2,"leg":"decode","n":1}
  - recorded  {"kind":"discard","req":1,"attempt":2}
  + the core  {"kind":"forward","req":1,"attempt":2}
request 1, before that:
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", got, want)
	}
	for _, s := range []string{"arrive total=60.000s → place attempt=1", "retrying", "prefilling"} {
		if !strings.Contains(chart, s) {
			t.Errorf("%s is not in\n%s", s, chart)
		}
	}
	if strings.Contains(chart, "streaming") {
		t.Errorf("the chart goes on behind the difference:\n%s", chart)
	}
}

// TestARequestIsDrawnOutOfAllFiles merges a gateway's two attempts with what prefill saw.
func TestARequestIsDrawnOutOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	gateway := livesOfRelay(t, dir)
	cfg := prefill.Config{Blocks: 8, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16}
	rec, err := recorder.NewPrefill(dir, life("prefill", 0xf2), cfg)
	if err != nil {
		t.Fatal(err)
	}
	core, out := prefill.New(cfg), prefill.Effects{}
	for i, ev := range []prefill.Event{
		{Kind: prefill.Request, Room: 0xaaa, Tokens: 20, Deadline: time.Minute},
		{Kind: prefill.Request, Room: 0xbbb, Tokens: 20, Deadline: time.Minute},
		{Kind: prefill.Abort, Room: 0xaaa, Cause: room.WorkerLost},
		{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: 0xccc, Lease: room.Lease{Boot: 3, Seq: 4}, Conn: 1, Tokens: 20}},
		{Kind: prefill.Request, Room: 0xccc, Tokens: 20, Deadline: time.Minute},
	} {
		now := time.Duration(i)*2*time.Millisecond + 4500*time.Microsecond
		out.Reset()
		rec.Before(now, &ev, "")
		core.Step(now, ev, &out)
		rec.After(out.List)
	}
	rec.Close()
	for _, f := range []*Film{OfRequest("ours"), OfRoom(0xccc)} {
		for _, file := range []string{gateway, filepath.Join(dir, "prefill-00000000000000f2"+recorder.Suffix)} {
			if r, err := f.Watch(file); err != nil || r.Differs != nil {
				t.Fatalf("%v, %v", r, err)
			}
		}
		got, err := f.Draw()
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Count(got, "\n") - 2
		both := strings.Contains(got, "room=0000000000000aaa") && strings.Contains(got, "room=0000000000000ccc")
		if !both || strings.Contains(got, "0bbb") || !strings.Contains(got, "(and 2 more until 0.0120s)") {
			t.Errorf("got\n%s", got)
		}
		if want := map[string]int{"ours": 14, "": 12}[f.rid]; rows != want {
			t.Errorf("%d rows, want %d:\n%s", rows, want, got)
		}
		if !strings.Contains(got, "worker_lost") || !strings.Contains(got, "→ accept, step to=16 blocks=2") || !strings.Contains(got, "row 1 is at 2026-05-04T03:02:01.002Z") {
			t.Errorf("got\n%s", got)
		}
	}
	f := OfRequest("nobody's")
	if _, err := f.Watch(gateway); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Draw(); !errors.Is(err, ErrNotThere) {
		t.Errorf("a request that nobody knows: %v", err)
	}
}

// TestAPanicOfTheCoreIsReplayed: the last event of a process that an assertion ended.
func TestAPanicOfTheCoreIsReplayed(t *testing.T) {
	dir := t.TempDir()
	cfg := prefill.Config{Blocks: 8, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16}
	rec, err := recorder.NewPrefill(dir, life("prefill", 0xf3), cfg)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("a step that nobody asked for came home, and the core did not mind")
			}
		}()
		defer rec.Close()
		core, out := prefill.New(cfg), prefill.Effects{}
		ev := prefill.Event{Kind: prefill.StepDone, Results: []prefill.Result{{Room: 7, OK: true}}}
		rec.Before(5, &ev, "")
		core.Step(5, ev, &out)
	}()
	file := only(t, dir)
	r, err := Check(file)
	if err != nil || r.Differs != nil || !strings.Contains(r.Panic, "impossible") || !strings.Contains(r.String(), "then and now") {
		t.Errorf("%v, %v", r, err)
	}
	// A core that survives what killed the other is another core; one that dies of what did not, too.
	change(t, file, `{"kind":"step_done","results":[{"room":"0000000000000007","ok":true}]}`, `{"kind":"drain"}`)
	if r, err = Check(file); err != nil || r.Differs == nil || !strings.Contains(r.String(), "a fresh one does not") {
		t.Errorf("%v, %v", r, err)
	}
	change(t, file, `{"kind":"drain"},"end":"panic","events":0}`, `{"kind":"step_done","results":[{"room":"0000000000000007","ok":true}]}}`)
	if r, err = Check(file); err != nil || r.Differs == nil || !strings.Contains(r.String(), "  + the core  panics: ") {
		t.Errorf("%v, %v", r, err)
	}
}

// TestWhatIsNoTraceIsRefusedByNameAndLine holds Y1.
func TestWhatIsNoTraceIsRefusedByNameAndLine(t *testing.T) {
	file := livesOfRelay(t, t.TempDir())
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check := func(b string) (*Report, error) { return read("FILE", strings.NewReader(b), nil) }
	text := string(whole)
	lines := strings.SplitAfter(text, "\n")
	for _, c := range []struct{ is, b, want string }{
		{"empty", "", "FILE: the file is empty"},
		{"cut in its head", text[:20], "not the head of a trace"},
		{"something else", "\x7fELF\x02\x01\n\n", "not the head of a trace"},
		{"of another format", strings.Replace(text, `"baton_trace":1`, `"baton_trace":9`, 1), "format 9, this build reads 1"},
		{"of another core", strings.Replace(text, `"core":"relay"`, `"core":"quux"`, 1), `a trace of a "quux" core`},
		{"of a core that nobody could make", strings.Replace(text, `"config":{`, `"config":{"max_running":2000000000`, 1), "a limit is 2000000000"},
		{"of a core with another config", strings.Replace(text, `"config":{`, `"config":{"wings":2`, 1), `the core's config: at byte`},
		{"broken in the middle", strings.Join(append(append([]string{}, lines[:3]...), append([]string{"{\"now_ns\":1,\"ev\n"}, lines[3:]...)...), ""), "line 4: at byte 16: "},
		{"continued behind its end", text + lines[3], "line 18 stands behind the end"},
		{"without a step in the middle", strings.Join(append(append([]string{}, lines[:len(lines)-3]...), lines[len(lines)-2:]...), ""), "some are missing"},
		{"with an empty line", text[:len(text)-len(lines[len(lines)-2])] + "\n", "it ends where '{' should be"},
		{"with a line that has no end", lines[0] + strings.Repeat("x", recorder.LineMax+1), "line 2 has more than"},
	} {
		if _, err := check(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a file that is %s: %v, want %s", c.is, err, c.want)
		}
	}
	// Cut anywhere behind its head it is read up to there, and what is cut is counted.
	for at := len(lines[0]); at < len(text); at += 7 {
		r, err := check(text[:at])
		if want := len(text[:at]) - 1 - strings.LastIndex(text[:at], "\n"); err != nil || r.Differs != nil || r.Torn != want || r.End != recorder.EndUnknown {
			t.Fatalf("cut at %d: %v, %v, torn %d, want %d", at, r, err, r.Torn, want)
		}
		if r, _ := check(text[:at]); r.Torn > 0 && !strings.Contains(r.String(), "the last line is cut") {
			t.Errorf("%v", r)
		}
	}
	if _, err := Check(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for end, want := range map[recorder.End]string{recorder.EndFull: "the file is full", recorder.EndOverrun: "EVENTS ARE MISSING", recorder.EndUnwritten: "could not be written"} {
		r, err := check(strings.Replace(text, `"end":"closed"`, `"end":"`+string(end)+`"`, 1))
		if err != nil || r.Differs != nil || !strings.Contains(r.String(), want) {
			t.Errorf("%v, %v, want %s", r, err, want)
		}
	}
	// Blanks do not make a difference.
	r, err := check(strings.ReplaceAll(strings.ReplaceAll(text, `,"`, ` , "`), `[{`, `[ {`))
	if err != nil || r.Differs != nil || r.Events != 15 {
		t.Errorf("with blanks: %v, %v", r, err)
	}
}

// FuzzReplay holds Y2: a file that came from anywhere is read, refused, or shown to differ.
func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	for _, file := range []string{livesOfRelay(f, dir), livesOfPrefill(f, dir, 3, 30)} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"baton_trace":1,"core":"decode","config":{"boot":"0000000000000001","blocks":8,"queued_max":4,"running_max":2,"chunk_tokens":16}}
{"now_ns":1,"event":{"kind":"request","room":"0000000000000001","peer":-1,"tokens":20,"max_new":4,"deadline_ns":5},"effects":[{"kind":"accept","room":"0000000000000001"}]}
{"now_ns":2,"event":{"kind":"link_up","peer":2,"conn":1}}
{"end":"closed","events":2}
`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte(`"blocks":`)) && large(b) {
			t.Skip("a pool of the size that a file may ask for takes a second to make")
		}
		film := OfRequest("ours")
		r, err := read("FILE", bytes.NewReader(b), func(m *moment) {
			film.link(&reel{}, m)
			for _, key := range keysOf(m.event) {
				about(m.event, key)
				m.phase(key)
			}
		})
		if err == nil && r.String() == "" {
			t.Error("no word about it")
		}
	})
}

// large says that the head asks for a pool of more than a thousand blocks.
func large(b []byte) bool {
	head, _, _ := bytes.Cut(b, []byte("\n"))
	h, err := recorder.ParseHeader(head)
	if err != nil {
		return false
	}
	if c, err := config[prefill.Config](h.Config); err == nil {
		return c.Blocks > 1000
	}
	_, rest, _ := bytes.Cut(h.Config, []byte(`"blocks":`))
	return len(rest) > 4 && rest[3] >= '0' && rest[3] <= '9'
}

// BenchmarkReplay is how fast a trace is checked.
func BenchmarkReplay(b *testing.B) {
	file := livesOfPrefill(b, b.TempDir(), 1, 20000)
	events := 0
	for b.Loop() {
		r, err := Check(file)
		if err != nil || r.Differs != nil {
			b.Fatal(r, err)
		}
		b.SetBytes(r.Bytes)
		events += r.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
