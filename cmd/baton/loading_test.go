package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A parent gets few lines, and the last of them always.
func TestLoadingIsToldNowAndThenAndAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		say := loadingLines(&b)
		for done := int64(1); done <= 1000; done++ {
			say(done, 1000)
		}
		if want := "{\"loading\":1,\"of\":1000}\n{\"loading\":1000,\"of\":1000}\n"; b.String() != want {
			t.Errorf("a load within a moment: %q, want %q", b.String(), want)
		}
		b.Reset()
		for done := int64(1); done <= 10; done++ {
			time.Sleep(loadingSaid) // virtual
			say(done, 1000)
		}
		if n := strings.Count(b.String(), "\n"); n != 10 {
			t.Errorf("%d lines of a slow load, want 10", n)
		}
	})
}

// People see one line of progress for all workers, and none if there is nothing to wait for.
func TestLoadingOfAllWorkersIsOneMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := &loadingShown{w: &b}
		for _, worker := range []string{"prefill", "decode"} {
			l.say(worker, 10, 10)
		}
		if b.Len() > 0 {
			t.Errorf("a load that took no time said %q", b.String())
		}
		for round := range 2 { // a worker that is started again is shown again
			b.Reset()
			for done := int64(0); done <= 100; done += 10 {
				time.Sleep(time.Second) // virtual
				l.say("prefill", done*1e6, 100e6)
				l.say("decode", min(100, done+10)*1e6, 100e6)
			}
			lines := strings.Split(strings.TrimSpace(b.String()), "\n")
			if len(lines) < 2 || !strings.HasPrefix(lines[0], "loading weights ") || !strings.Contains(lines[len(lines)-1], "100 % 200.0 MB of 200.0 MB") {
				t.Errorf("round %d: %q", round, b.String())
			}
		}
	})
}

// There is never more than all of it, however late a worker begins; one that ends while it loads
// is forgotten, and its successor loads in its place.
func TestLoadingIsNeverMoreThanAll(t *testing.T) {
	percent := regexp.MustCompile(`^loading weights +(\d+) % (\S+ MB|0 B) of (\S+) MB`)
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := &loadingShown{w: &b, expected: 4}
		for done := int64(0); done <= 100; done += 10 {
			for _, worker := range []string{"prefill-0", "prefill-1", "decode-0"} {
				l.say(worker, done*1e6, 100e6)
			}
			time.Sleep(2 * time.Second) // virtual
		}
		l.say("decode-0", 0, 0)
		l.say("decode-0", 50e6, 100e6)
		for done := int64(0); done <= 100; done += 10 {
			l.say("decode-1", done*1e6, 100e6)
			time.Sleep(2 * time.Second)
		}
		l.say("decode-0", 100e6, 100e6)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		for i, line := range lines {
			m := percent.FindStringSubmatch(line)
			if m == nil || m[3] != "400.0" || (m[1] == "100") != (i == len(lines)-1) || len(m[1]) > 3 || m[1] > "100" && len(m[1]) == 3 {
				t.Errorf("line %d of %d: %q", i, len(lines), line)
			}
		}
		if len(lines) < 5 {
			t.Errorf("only %q", b.String())
		}
		b.Reset()
		for _, done := range []int64{0, 50} { // alone, and it ends: the next one begins anew
			l.say("decode-1", done*1e6, 100e6)
			time.Sleep(2 * time.Second)
		}
		l.say("decode-1", 0, 0)
		l.say("decode-0", 0, 200e6)
		time.Sleep(10 * time.Second)
		l.say("decode-0", 150e6, 200e6)
		time.Sleep(10 * time.Second)
		l.say("decode-0", 180e6, 200e6)
		if got := b.String(); !strings.Contains(got, " 90 % 180.0 MB of 200.0 MB") {
			t.Errorf("what has ended is not forgotten: %q", got)
		}
	})
}
