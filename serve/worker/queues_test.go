package worker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"baton/core/room"
	"baton/serve/observe"
)

// TestEveryQueueShowsItsLengthAndItsOldest stops a pair with rooms in every queue of both
// workers: two in each that can hold two. /debug/rooms and /metrics say how many and how long,
// the ages grow while nothing moves, and all is 0 again behind the last end (TRUTH).
func TestEveryQueueShowsItsLengthAndItsOldest(t *testing.T) {
	p, pf := start(t, Prefill, 64, sizes(1, 8, 16))
	d, df := start(t, Decode, 16, sizes(1, 8, 16))
	r := rand.New(rand.NewPCG(4, 7))
	small := func() (id room.ID, pre, dec *call) { // one block at prefill, two at decode
		q := ask(r, 16, 16, pf.vocab)
		pre, dec = both(t, p, d, q, p.Link())
		return q.Room, pre, dec
	}
	var decs []*call
	stand := func(id room.ID, dec *call, at, there room.Queue) {
		if at != room.NoQueue {
			inQueue(t, p, id, at)
		}
		inQueue(t, d, id, there)
		decs = append(decs, dec)
	}

	// Decode's only slot is held by a room whose step does not come home; two more have all
	// their KV and wait for it.
	dheld, dgo := df.hold()
	defer dgo()
	id, _, dec := small()
	stand(id, dec, room.NoQueue, room.Running)
	within(t, "decode's step", dheld)
	for range 2 {
		id, _, dec = small()
		stand(id, dec, room.NoQueue, room.Waiting)
	}
	// Prefill's only place is held the same way; two more wait for it.
	pheld, pgo := pf.hold()
	defer pgo()
	id, _, dec = small()
	stand(id, dec, room.Inflight, room.Transfer)
	within(t, "prefill's step", pheld)
	for range 2 {
		id, _, dec = small()
		stand(id, dec, room.Waiting, room.Transfer)
	}
	// Twelve of decode's blocks are taken: two rooms that need eight wait for them, and prefill
	// for their Prealloc.
	for range 2 {
		q := ask(r, 100, 20, pf.vocab)
		_, dec := both(t, p, d, q, p.Link())
		stand(q.Room, dec, room.Bootstrap, room.Preallocq)
	}

	for w, want := range map[*Worker]map[room.Queue]int{
		p: {room.Bootstrap: 2, room.Waiting: 2, room.Inflight: 1},
		d: {room.Preallocq: 2, room.Transfer: 3, room.Waiting: 2, room.Running: 1},
	} {
		first := look(t, w).Worker.Queues
		if len(first) != len(want) {
			t.Errorf("%s shows the queues %v, want %v", w.name, first, want)
		}
		for q, n := range want {
			if got := first[q.String()].Len; got != n {
				t.Errorf("%s: %d rooms in %s, want %d", w.name, got, q, n)
			}
		}
		until(t, "the oldest of every queue of "+w.name+" is older", func() bool {
			now := look(t, w).Worker.Queues
			for q := range want {
				if now[q.String()].OldestMS <= first[q.String()].OldestMS+1 {
					return false
				}
			}
			return true
		})
		requireQueueMetrics(t, w, want)
	}

	pgo()
	dgo()
	for _, dec := range decs {
		dec.ended(room.NoCause)
	}
	empty(t, p, d)
	for _, w := range []*Worker{p, d} {
		for q, x := range look(t, w).Worker.Queues {
			if x != (observe.Queue{}) {
				t.Errorf("%s: queue %s is %+v behind the last end", w.name, q, x)
			}
		}
	}
}

// requireQueueMetrics wants a length and an age above 0 for each queue.
func requireQueueMetrics(t *testing.T, w *Worker, want map[room.Queue]int) {
	t.Helper()
	_, body := get(t, w, "/metrics")
	for q, n := range want {
		if line := fmt.Sprintf("baton_queue_length{queue=%q,role=%q} %d\n", q, w.cfg.Role, n); !strings.Contains(body, line) {
			t.Errorf("metrics of %s lack %s", w.name, line)
		}
		var oldest float64
		_, rest, ok := strings.Cut(body, fmt.Sprintf("baton_queue_oldest_seconds{queue=%q,role=%q} ", q, w.cfg.Role))
		if _, err := fmt.Sscan(rest, &oldest); !ok || err != nil || !(oldest > 0) {
			t.Errorf("metrics of %s: the oldest in %s is %v seconds old (shown: %v, %v), want more than 0", w.name, q, oldest, ok, err)
		}
	}
}
