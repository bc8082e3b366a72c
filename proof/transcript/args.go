package transcript

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/core/room"
)

// Args are the key=value pairs and the plain words of one line. A word that nobody asks for
// fails the test: it is a typing error that would else count as absent.
type Args struct {
	t     *testing.T
	line  string
	pairs []pair
}

type pair struct {
	key, value string
	used       bool
}

func arguments(t *testing.T, line string, words []string) *Args {
	a := &Args{t: t, line: line}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		a.pairs = append(a.pairs, pair{key: k, value: v})
	}
	return a
}

// done fails if something of the line was never asked for.
func (a *Args) done() {
	for _, p := range a.pairs {
		if !p.used {
			a.t.Fatalf("%q: nobody knows what %s means", a.line, p.key)
		}
	}
}

// Fail ends the test: the line makes no sense to its player.
func (a *Args) Fail(why string) { a.t.Fatalf("%q: %s", a.line, why) }

// Text is the value of a key; ok says that it is there, also as a plain word.
func (a *Args) Text(key string) (value string, ok bool) {
	i := slices.IndexFunc(a.pairs, func(p pair) bool { return p.key == key })
	if i < 0 {
		return "", false
	}
	a.pairs[i].used = true
	return a.pairs[i].value, true
}

// Has says whether a key or a plain word is there.
func (a *Args) Has(key string) bool {
	_, ok := a.Text(key)
	return ok
}

// First takes the first word for which read says yes.
func (a *Args) First(read func(word string) bool) {
	for i := range a.pairs {
		if !a.pairs[i].used && read(a.pairs[i].key) {
			a.pairs[i].used = true
			return
		}
	}
}

// Num is the number of a key, 0 without it.
func (a *Args) Num(key string) int {
	s, ok := a.Text(key)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		a.Fail(err.Error())
	}
	return n
}

// Time is the duration of a key, 0 without it.
func (a *Args) Time(key string) time.Duration {
	s, ok := a.Text(key)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		a.Fail(err.Error())
	}
	return d
}

// Cause is the value of "cause", NoCause without it.
func (a *Args) Cause() (c room.Cause) {
	s, _ := a.Text("cause")
	if err := c.UnmarshalText([]byte(s)); err != nil {
		a.Fail(err.Error())
	}
	return c
}

// Result is how one room, or one of its branches, came out of a step.
type Result struct {
	Room     room.ID
	Branch   int32
	OK       bool
	Finished bool
}

// Results reads rooms=1,2!,3.,4/1 as room 1, which is well, room 2, which failed, room 3, whose
// output is complete, and branch 1 of room 4.
func (a *Args) Results() (all []Result) {
	s, _ := a.Text("rooms")
	for _, w := range strings.Split(s, ",") {
		id, branch, _ := strings.Cut(strings.TrimRight(w, "!."), "/")
		n, err := strconv.Atoi(id)
		k, _ := strconv.Atoi(branch)
		if err != nil {
			a.Fail(err.Error())
		}
		all = append(all, Result{room.ID(n), int32(k), !strings.HasSuffix(w, "!"), strings.HasSuffix(w, ".")})
	}
	return all
}
