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

	mu    sync.Mutex
	parts map[string]observe.Loading // of each worker that is at it
	began time.Time                  // when the first of them said so
	meter *store.Meter               // since it is worth it
	shown int64                      // what the meter has
}

func (l *loadingShown) say(worker string, done, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parts == nil {
		l.parts, l.began = map[string]observe.Loading{}, time.Now()
	}
	l.parts[worker] = observe.Loading{Done: done, Total: total}
	var sum observe.Loading
	for _, p := range l.parts {
		sum.Done, sum.Total = sum.Done+p.Done, sum.Total+p.Total
	}
	if l.meter == nil && time.Since(l.began) >= loadingQuiet && sum.Done < sum.Total {
		l.meter, l.shown = store.NewMeter(l.w, "loading weights", sum.Done, sum.Total), sum.Done
	}
	if l.meter != nil {
		l.meter.Add(int(sum.Done - l.shown))
		l.shown = sum.Done
	}
	if sum.Done < sum.Total {
		return
	}
	if l.meter != nil {
		l.meter.End()
	}
	l.parts, l.meter = nil, nil // a worker that is started again begins anew
}
