package scenario

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// The rig drives the production cores of a gateway, prefill and decode workers by a script.
// Everything that takes time is an item on its way, called by what it is and by its room,
// <request>.<attempt>:
//
//	open|abort|closed prefill|decode a.1   gateway to worker, and a close that is confirmed
//	say prefill|decode a.1 …               worker to gateway: accepted, tokens, end
//	dial d0 p0, prealloc|cancel|settled a.1
//	step p0|d0, begin a.1                  the engine, the first token
//	write|head|body a.1#0                  a chunk: leaves its source, is announced, is placed
//	linkend d0 p0, linkend p0 d0           the first named notices that the link is gone
//
// Names in scripts are patterns of path.Match. Items of one stream arrive in order; time stands
// still unless the script says otherwise, so whatever ends in run ends without a timer (PROMPT).
type rig struct {
	*testing.T
	shape
	now      time.Duration
	relay    *relay.Core
	prefills []*prefillNode
	decodes  []*decodeNode
	links    []*link
	items    []*item
	holds    []string
	random   *rand.Rand // nil: the oldest item first
	requests []*request
	attempts map[room.ID]*attempt
	conns    room.Conn
	boots    room.Boot
	workers  int32 // ids given
	dials    int
	scrapped int              // chunks that nobody let in
	tokens   []token          // of the line that is being heard
	asked    map[string]int32 // tokens computed at prefill, by room
	yielded  map[string]int   // how often decode took a room's blocks back
	audit    bool             // every room that goes must be named by an end
}

// shape sizes a rig.
type shape struct {
	pairs           [2]int // prefill and decode workers
	pBlocks, dBlock int
	chunk           int
	slots           int // of a decode worker
	ahead           int // tokens of output that decode gives blocks for ahead; 0: all of them
	queued, dQueued int // rooms that may wait
	limits          relay.Limits
}

// small is one gateway, one prefill and one decode worker; chunks are four blocks.
func small() shape {
	return shape{pairs: [2]int{1, 1}, pBlocks: 64, dBlock: 64, chunk: 64, slots: 4, queued: 64, dQueued: 64}
}

// medium has two of each.
func medium() shape {
	s := small()
	s.pairs, s.pBlocks, s.dBlock, s.slots = [2]int{2, 2}, 256, 256, 8
	return s
}

// deadline is the whole time of a request unless a script says otherwise.
const deadline = 30 * time.Second

// item is one thing on its way.
type item struct {
	name string
	lane string // items of a lane arrive in order
	held bool
	do   func()
	lost func() // what the sender learns when it is dropped; nil: nothing
}

type request struct {
	name    string
	id      uint64
	prompt  int
	topic   string // what its prompt begins with; "": nobody else's does
	out     int
	budgets relay.Budgets
	arrived time.Duration
	ends    int
	outcome room.Outcome
	got     int // tokens
}

// attempt is what the world knows of a room.
type attempt struct {
	*request
	name   string
	id     room.ID
	worker [2]int32
	closed [2]bool // by the gateway
	ends   [2]int  // said by the core
	how    [2]room.Outcome
	made   int // tokens
}

// token is the n-th of a room.
type token struct {
	at *attempt
	n  int
}

func newRig(t *testing.T, s shape) *rig {
	t.Helper()
	r := &rig{T: t, shape: s, relay: relay.New(s.limits), attempts: map[room.ID]*attempt{}, asked: map[string]int32{}, yielded: map[string]int{}}
	for range s.pairs[0] {
		n := &prefillNode{node: node{r: r, name: fmt.Sprintf("p%d", len(r.prefills))}}
		r.prefills = append(r.prefills, n)
		n.start()
	}
	for range s.pairs[1] {
		n := &decodeNode{node: node{r: r, name: fmt.Sprintf("d%d", len(r.decodes))}}
		r.decodes = append(r.decodes, n)
		n.start()
	}
	return r
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	if err != nil {
		panic(err)
	}
	return ok
}

func (r *rig) isHeld(name string) bool {
	return slices.ContainsFunc(r.holds, func(p string) bool { return match(p, name) })
}

// push puts an item on its way.
func (r *rig) push(it *item) {
	it.held = r.isHeld(it.name)
	r.items = append(r.items, it)
}

// hold stops what matches, now and later, until release of the same pattern.
func (r *rig) hold(patterns ...string) {
	r.holds = append(r.holds, patterns...)
	for _, it := range r.items {
		it.held = r.isHeld(it.name)
	}
}

// release lets go what hold of the same patterns stopped; without a pattern, everything.
func (r *rig) release(patterns ...string) {
	r.holds = slices.DeleteFunc(r.holds, func(p string) bool { return len(patterns) == 0 || slices.Contains(patterns, p) })
	for _, it := range r.items {
		it.held = r.isHeld(it.name)
	}
}

func (r *rig) find(pattern string) int {
	return slices.IndexFunc(r.items, func(it *item) bool { return match(pattern, it.name) })
}

// has says whether something matching is on its way.
func (r *rig) has(pattern string) bool { return r.find(pattern) >= 0 }

// on counts what matches and is on its way.
func (r *rig) on(pattern string) (n int) {
	for _, it := range r.items {
		if match(pattern, it.name) {
			n++
		}
	}
	return n
}

func (r *rig) remove(i int) *item {
	it := r.items[i]
	r.items = slices.Delete(r.items, i, i+1)
	return it
}

// take removes the first item that matches; there must be one.
func (r *rig) take(pattern string) *item {
	r.Helper()
	i := r.find(pattern)
	if i < 0 {
		r.Fatalf("nothing like %q is on its way:%s", pattern, r.left())
	}
	return r.remove(i)
}

// deliver delivers the first item that matches, held or not, before everything else.
func (r *rig) deliver(pattern string) { r.Helper(); r.take(pattern).do() }

// twice delivers the first item that matches and keeps it on its way.
func (r *rig) twice(pattern string) {
	r.Helper()
	i := r.find(pattern)
	if i < 0 {
		r.Fatalf("nothing like %q is on its way:%s", pattern, r.left())
	}
	r.items[i].do()
}

// drop loses everything that matches and is on its way.
func (r *rig) drop(pattern string) {
	for i := r.find(pattern); i >= 0; i = r.find(pattern) {
		if it := r.remove(i); it.lost != nil {
			it.lost()
		}
	}
}

// step delivers one item that is not held and not behind another one in its lane.
func (r *rig) step() bool {
	var seen [16]string
	lanes, ready := seen[:0], []int(nil)
	for i, it := range r.items {
		first := it.lane == "" || !slices.Contains(lanes, it.lane)
		if !it.held && first {
			if r.random == nil {
				r.remove(i).do()
				return true
			}
			ready = append(ready, i)
		}
		if it.lane != "" && first {
			lanes = append(lanes, it.lane)
		}
	}
	if len(ready) == 0 {
		return false
	}
	r.remove(ready[r.random.IntN(len(ready))]).do()
	return true
}

// run delivers until only held items are left. Time stands still.
func (r *rig) run() {
	r.Helper()
	for n := 0; r.step(); n++ {
		if n > 1_000_000 {
			r.Fatalf("it never comes to rest:%s", r.left())
		}
	}
}

// advance lets time pass, with whatever happens meanwhile.
func (r *rig) advance(d time.Duration) {
	r.Helper()
	until := r.now + d
	for {
		r.run()
		at, fire := r.nextTimer()
		if fire == nil || at > until {
			break
		}
		r.now = max(r.now, at)
		fire()
	}
	r.now = until
}

// nextTimer returns the armed timer of any core that is due first.
func (r *rig) nextTimer() (at time.Duration, fire func()) {
	earlier := func(t time.Duration, ok bool, f func()) {
		if ok && (fire == nil || t < at) {
			at, fire = t, f
		}
	}
	t, rt, ok := r.relay.NextTimer()
	earlier(t, ok, func() { r.gateway(relay.Event{Kind: relay.TimerFired, Timer: rt}) })
	for _, n := range r.prefills {
		if n.up {
			t, pt, ok := n.core.NextTimer()
			earlier(t, ok, func() { n.event(prefill.Event{Kind: prefill.TimerFired, Timer: pt}) })
		}
	}
	for _, n := range r.decodes {
		if n.up {
			t, dt, ok := n.core.NextTimer()
			earlier(t, ok, func() { n.event(decode.Event{Kind: decode.TimerFired, Timer: dt}) })
		}
	}
	return at, fire
}

func (r *rig) left() (all string) {
	for _, it := range r.items {
		all += "\n\t" + it.name
	}
	show := func(name string) func(room.View) bool {
		return func(v room.View) bool {
			all += fmt.Sprintf("\n\t%s holds %s, %s", name, r.attempts[v.Room].name, v.Phase)
			return true
		}
	}
	for _, n := range r.prefills {
		n.core.Rooms(show(n.name))
	}
	for _, n := range r.decodes {
		n.core.Rooms(show(n.name))
	}
	for v := range r.relay.Rooms {
		all += fmt.Sprintf("\n\tthe gateway holds %s, %s", r.requests[v.Req-1].name, v.Phase)
	}
	return all
}
