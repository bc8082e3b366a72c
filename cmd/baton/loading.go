package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"baton/engine/weights/store"
	"baton/serve/observe"
)

const (
	loadingSaid  = 100 * time.Millisecond // between two lines of a worker to its parent: as often as a bar is drawn
	loadingQuiet = time.Second            // a load that is over by then is not worth a word
)

// loadingLines tells a parent, line by line, how far the load of a worker's weights is. One
// goroutine at a time may call what it returns.
func loadingLines(w io.Writer) func(done, total int64) {
	var last time.Time
	return func(done, total int64) {
		if now := time.Now(); done == total || now.Sub(last) >= loadingSaid {
			last = now
			json.NewEncoder(w).Encode(observe.Loading{Done: done, Total: total}) // a parent that is gone is seen elsewhere
		}
	}
}

// loadingShown shows people how far the weights of all workers are.
type loadingShown struct {
	w io.Writer
	// expected is how many workers load at the start: those that have not spoken yet count as
	// the largest of those that have. Later only who is started again loads.
	expected int

	mu    sync.Mutex
	parts map[string]observe.Loading // of each worker that is at it
	began time.Time                  // when the first of them said so
	meter *store.Meter               // since it is worth it
}

// say tells how far a worker is, or with a total of 0 that it has ended.
func (l *loadingShown) say(worker string, done, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parts == nil {
		l.parts, l.began = map[string]observe.Loading{}, time.Now()
	}
	if l.parts[worker] = (observe.Loading{Done: done, Total: total}); total == 0 {
		delete(l.parts, worker)
	}
	var sum, most observe.Loading
	for _, p := range l.parts {
		sum.Done, sum.Total = sum.Done+p.Done, sum.Total+p.Total
		most.Total = max(most.Total, p.Total)
	}
	sum.Total += most.Total * int64(max(0, l.expected-len(l.parts)))
	if l.meter == nil && time.Since(l.began) >= loadingQuiet && sum.Done < sum.Total {
		l.meter = store.NewMeter(l.w, "loading weights", sum.Done, sum.Total)
	}
	if len(l.parts) > 0 {
		l.meter.Set(sum.Done, sum.Total)
		if sum.Done < sum.Total {
			return
		}
		l.expected = 0
	}
	l.meter.End()
	l.parts, l.meter = nil, nil // a worker that is started again begins anew
}
