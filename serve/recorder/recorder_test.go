package recorder

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func life(role string) Life {
	return Life{Role: role, Name: role + "-0", Boot: 0xb007, Began: time.Now(), Log: slog.New(slog.DiscardHandler)}
}

var config = prefill.Config{Blocks: 8, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16}

// record starts a recorder in a directory of its own and returns it with its file.
func record(t testing.TB) (*Prefill, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := NewPrefill(dir, life("prefill"), config)
	if err != nil {
		t.Fatal(err)
	}
	return r, filepath.Join(dir, "prefill-000000000000b007"+Suffix)
}

// request and its effects are what the tests record.
func request(i int) (prefill.Event, []prefill.Effect) {
	id := room.ID(i + 1)
	return prefill.Event{Kind: prefill.Request, Room: id, Tokens: 40, Deadline: time.Minute},
		[]prefill.Effect{{Kind: prefill.Accept, Room: id}, {Kind: prefill.Freed, Room: id, Blocks: []int32{1, 2, 5}}}
}

// lines reads a file back: its head, its steps, its end and what is cut.
func lines(t testing.TB, file string) (h Header, all []Line[prefill.Event, prefill.Effect], torn string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	form := NewLines[prefill.Event, prefill.Effect]()
	for i, line := range bytes.SplitAfter(b, []byte("\n")) {
		switch {
		case !bytes.HasSuffix(line, []byte("\n")):
			torn = string(line)
		case i == 0:
			if h, err = ParseHeader(line); err != nil {
				t.Fatal(err)
			}
		default:
			l, err := form.Parse(line)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			all = append(all, l)
		}
	}
	return h, all, torn
}

func TestAFileSaysAllThatAFreshCoreNeeds(t *testing.T) {
	r, file := record(t)
	const steps = 100
	for i := range steps {
		ev, effects := request(i)
		rid := ""
		if i == 7 {
			rid = "seven \"7\"\n"
		}
		r.Before(time.Duration(i), &ev, rid)
		r.After(effects[:i%3])
	}
	r.Close()
	h, all, torn := lines(t, file)
	if h.Core != CorePrefill || h.Role != "prefill" || h.Name != "prefill-0" || h.Boot != "000000000000b007" || h.Build == "" || time.Since(h.Started) > time.Minute {
		t.Errorf("head %+v", h)
	}
	if c, err := NewForm[prefill.Config]().Parse(h.Config); err != nil || c != config {
		t.Errorf("config %+v, %v", c, err)
	}
	if len(all) != steps+1 || torn != "" {
		t.Fatalf("%d lines and %q, want %d and an end", len(all), torn, steps)
	}
	for i, l := range all[:steps] {
		ev, effects := request(i)
		if !reflect.DeepEqual(l.Event, ev) || l.Now != time.Duration(i) || len(l.Effects) != i%3 || i%3 > 0 && !reflect.DeepEqual(l.Effects, effects[:i%3]) || l.End != EndUnknown {
			t.Errorf("step %d is %+v", i, l)
		}
		if rid := all[i].RID; rid != "" != (i == 7) || i == 7 && rid != "seven \"7\"\n" {
			t.Errorf("step %d has the rid %q", i, rid)
		}
	}
	if end := all[steps]; end.End != EndClosed || end.Events != steps {
		t.Errorf("the end is %+v", end)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
}

// TestAKilledProcessLeavesAllButItsLastMoment: nobody closes the file, and it is there.
func TestAKilledProcessLeavesAllButItsLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, file := record(t)
		defer r.Close()
		for i := range 3 {
			ev, effects := request(i)
			r.Before(0, &ev, "")
			r.After(effects)
			time.Sleep(gatherAfter + 1)
			synctest.Wait()
			if _, all, torn := lines(t, file); len(all) != i+1 || torn != "" {
				t.Errorf("after step %d the file has %d and %q", i, len(all), torn)
			}
		}
	})
}

// TestAStepThatDoesNotReturnIsTheLast holds V5.
func TestAStepThatDoesNotReturnIsTheLast(t *testing.T) {
	r, file := record(t)
	func() {
		defer func() { recover() }()
		defer r.Close() // as a loop does
		for i := range 3 {
			ev, effects := request(i)
			r.Before(time.Duration(i), &ev, "")
			if i == 2 {
				panic("impossible")
			}
			r.After(effects)
		}
	}()
	_, all, torn := lines(t, file)
	if len(all) != 3 || torn != "" {
		t.Fatalf("%d lines and %q", len(all), torn)
	}
	if l := all[2]; l.End != EndPanic || l.Event.Room != 3 || l.Now != 2 || l.Events != 2 || len(l.Effects) != 0 {
		t.Errorf("the last is %+v", l)
	}
}

// TestAFullFileSaysSo holds V4 and V1: whatever its bound, it is kept and said.
func TestAFullFileSaysSo(t *testing.T) {
	for most := range 4 {
		r, file := record(t)
		ev, effects := request(0)
		step := len(r.lines.appendStep(nil, 0, "", &ev, effects))
		r.max = r.wrote + most*step + endBytes + step/2
		for range 10 {
			r.Before(0, &ev, "")
			r.After(effects)
		}
		r.Close()
		_, all, _ := lines(t, file)
		if len(all) != most+1 || all[most].End != EndFull || all[most].Events != most {
			t.Errorf("room for %d steps: %d lines, last %+v", most, len(all), all[len(all)-1])
		}
		if info, err := os.Stat(file); err != nil || info.Size() > int64(r.max) {
			t.Errorf("%d bytes, at most %d: %v", info.Size(), r.max, err)
		}
	}
}

// TestAFileThatCannotBeWrittenEndsWithItsLastWholeLine: as on a disk that is full.
func TestAFileThatCannotBeWrittenEndsWithItsLastWholeLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, file := record(t)
		var log bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&log, nil))
		ev, effects := request(0)
		step := func() {
			r.Before(0, &ev, "")
			r.After(effects)
			time.Sleep(gatherAfter + 1)
			synctest.Wait()
		}
		step()
		step()
		if _, err := r.file.WriteString(`{"now_ns":1,"event":{"ki`); err != nil {
			t.Fatal(err)
		}
		r.unwritten()
		if _, all, torn := lines(t, file); len(all) != 3 || all[2].End != EndUnwritten || all[2].Events != 2 || torn != "" {
			t.Errorf("%d lines and %q, last %+v", len(all), torn, all[len(all)-1])
		}
		r.file.Close()
		step()
		if !r.ended.Load() || !strings.Contains(log.String(), "a trace could not be written") {
			t.Errorf("ended %v, log %s", r.ended.Load(), log.String())
		}
		step()
		r.Close()
	})
}

// TestTheLoopNeverWaits holds V3: the writer does not get to write, as on a disk that stalls, and
// the file ends where the queue was full.
func TestTheLoopNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // here the writer gathers for ever while this goroutine runs
		r, file := record(t)
		ev, _ := request(0)
		r.mu.Lock()
		r.queue = make([]step[prefill.Event], QueueMax-2) // waiting
		r.mu.Unlock()
		for range 5 {
			r.Before(1, &ev, "")
			r.After(nil)
		}
		if !r.ended.Load() {
			t.Error("a full queue did not end it")
		}
		r.Close()
		_, all, _ := lines(t, file)
		if n := len(all); n != QueueMax+1 || all[n-1].End != EndOverrun || all[n-1].Events != QueueMax || all[n-2].Now != 1 {
			t.Errorf("%d lines, last %+v", n, all[n-1])
		}
	})
}

func TestOffIsNothing(t *testing.T) {
	var r *Relay
	ev := relay.Event{}
	r.Before(0, &ev, "")
	r.After(nil)
	r.Close()
	if n := testing.AllocsPerRun(100, func() { r.Before(0, &ev, ""); r.After(nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestADirectoryIsBoundedAndSaysSo(t *testing.T) {
	dir := t.TempDir()
	for i := range FilesMax {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, Suffix)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full := func() error {
		_, err := NewPrefill(dir, life("prefill"), config)
		return err
	}
	if err := full(); err == nil || !strings.Contains(err.Error(), "remove or move old ones") {
		t.Errorf("%v", err)
	}
	if err := Check(dir); err != nil { // nothing that should keep a fleet from serving
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "0"+Suffix)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "1"+Suffix), DirMax); err != nil { // it has holes, and takes no space
		t.Fatal(err)
	}
	if err := full(); err == nil || !strings.Contains(err.Error(), "4096 MiB") {
		t.Errorf("%v", err)
	}
	file := filepath.Join(dir, "2"+Suffix)
	if err := Check(file); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a file for a directory: %v", err)
	}
	if _, err := NewRelay(filepath.Join(file, "in"), life("gateway"), relay.Limits{}); err == nil {
		t.Error("a file for a directory was taken")
	}
}

// TestAFileWithoutAHeadIsTakenAway: as on a disk that is full.
func TestAFileWithoutAHeadIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	if _, err := open[prefill.Event, prefill.Effect](dir, life("prefill"), CorePrefill, []byte("{no config")); err == nil {
		t.Error("a head that cannot be written was")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestBuildsOfOneRevisionAreToldApart when the revision is not all that they were built from.
func TestBuildsOfOneRevisionAreToldApart(t *testing.T) {
	program := func(is string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(is)), nil }
	}
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified}}
	}
	for _, c := range []struct {
		settings []debug.BuildSetting
		begins   string
		alike    bool
	}{{nil, "unknown+", false}, {settings("true"), "0123456789ab+", false}, {settings("false"), "0123456789ab", true}} {
		one, same, other := buildOf(c.settings, program("a")), buildOf(c.settings, program("a")), buildOf(c.settings, program("b"))
		if one != same || one == other != c.alike || !strings.HasPrefix(one, c.begins) {
			t.Errorf("%v: %s, %s, %s", c.settings, one, same, other)
		}
	}
	if b := buildOf(nil, executable); len(b) != len("unknown+")+12 || !strings.HasPrefix(Build(), "unknown+") && strings.HasPrefix(b, Build()) {
		t.Errorf("this program is %s", b)
	}
}

func TestABootComesOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on demand")
	cfg := decode.Config{Boot: 1, Blocks: 1, QueuedMax: 1, RunningMax: 1, ChunkTokens: 16}
	r, err := NewDecode(dir, life("decode"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := NewDecode(dir, life("decode"), cfg); err == nil || !strings.Contains(err.Error(), "a boot id came twice") {
		t.Errorf("a second file of one life: %v", err)
	}
}

func TestAForeignHeadIsSaidToBeOne(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "not the head of a trace",
		"GGUF":                            "not the head of a trace",
		`{"now_ns":1}`:                    "not the head of a trace",
		`{"baton_trace":2,"build":"abc"}`: "format 2, this build reads 1: replay it with the build that wrote it, abc",
	} {
		if _, err := ParseHeader([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// BenchmarkStep is what recording costs the loop, per step: off, on, and what the writer does.
func BenchmarkStep(b *testing.B) {
	ev, effects := request(0)
	b.Run("off", func(b *testing.B) {
		var r *Prefill
		for b.Loop() {
			r.Before(1, &ev, "")
			r.After(effects)
		}
	})
	b.Run("on", func(b *testing.B) {
		r, _ := record(b)
		r.max = 1 << 40
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%(gatherMax/2) == 0 { // a pace that the writer can keep, off the clock
				b.StopTimer()
				for waits := 1; waits > 0; {
					r.mu.Lock()
					waits = len(r.queue)
					r.mu.Unlock()
				}
				b.StartTimer()
			}
			r.Before(1, &ev, "")
			r.After(effects)
		}
		if r.ended.Load() {
			b.Fatal("it was too slow")
		}
		r.Close()
	})
	b.Run("writer", func(b *testing.B) {
		form := NewLines[prefill.Event, prefill.Effect]()
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = form.appendStep(buf[:0], 1, "", &ev, effects)
		}
		b.SetBytes(int64(len(buf)))
	})
	b.Run("parse", func(b *testing.B) {
		form := NewLines[prefill.Event, prefill.Effect]()
		line := form.appendStep(nil, 1, "", &ev, effects)
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := form.Parse(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}
