package observe

import (
	"net/http"
	"slices"
	"time"
)

// stepBuckets spans one decode token of a tiny model (0.1 ms) to a prefill chunk of a large
// one on a slow machine (10 s), in seconds.
var stepBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics are a worker's counters. Gauges come from a snapshot at scrape time, so that they
// cannot drift from what the core says.
type Metrics struct {
	RoomsEnded    *Vector // outcome, cause
	Refused       *Vector // cause: legs refused before a room existed
	Steps         *Counter
	StepSeconds   *Histogram
	Tokens        *Vector // kind: prompt (computed), output
	TransferBytes *Vector // direction: sent, received
	ChunksRefused *Counter
	CanaryHits    *Counter
	SlowReaders   *Counter // rooms ended because their gateway did not read its lines
	LinkEnds      *Counter
	Late          *Counter // events that came home after their room had ended

	registry Registry
}

// NewMetrics returns the counters of one worker. snapshot is asked once per scrape; it says
// false when the node loop did not answer in time, and then the gauges are absent (O3).
func NewMetrics(snapshot func() (Snapshot, bool)) *Metrics {
	m := &Metrics{}
	r := &m.registry
	m.RoomsEnded = r.Vector("baton_rooms_ended_total", "Rooms that reached their outcome.", "outcome", "cause")
	m.Refused = r.Vector("baton_legs_refused_total", "Legs refused before a room was made.", "cause")
	m.Steps = r.Counter("baton_steps_total", "Engine steps.")
	m.StepSeconds = r.Histogram("baton_step_seconds", "Time of one engine step.", stepBuckets)
	m.Tokens = r.Vector("baton_tokens_total", "Prompt tokens computed and output tokens made.", "kind")
	m.TransferBytes = r.Vector("baton_transfer_bytes_total", "KV bytes handed to a link or placed from it.", "direction")
	m.ChunksRefused = r.Counter("baton_chunks_refused_total", "Chunks whose sum was wrong on arrival.")
	m.CanaryHits = r.Counter("baton_canary_hits_total", "Freed blocks that changed before they were given out again.")
	m.SlowReaders = r.Counter("baton_slow_readers_total", "Rooms ended because their gateway did not read its lines.")
	m.LinkEnds = r.Counter("baton_link_ends_total", "Links that ended.")
	m.Late = r.Counter("baton_late_events_total", "Events that came home after their room had ended.")

	// One snapshot serves the gauges of one scrape: the first family asks, the others print
	// what it got. Scrapes are serialised by the handler below.
	var s Snapshot
	var ok bool
	r.Gauges("baton_rooms_live", "Rooms that have not ended.", func(p *Printer, name string) {
		if s, ok = snapshot(); ok {
			p.Sample(name, float64(len(s.Rooms)))
		}
	})
	gauge := func(name, help string, print func(p *Printer, name string)) {
		r.Gauges(name, help, func(p *Printer, name string) {
			if ok {
				print(p, name)
			}
		})
	}
	gauge("baton_draining", "1 while the worker takes no new rooms.", func(p *Printer, name string) {
		p.Sample(name, float64(b2i(s.Worker.Draining)))
	})
	gauge("baton_queue_length", "Rooms in a queue.", func(p *Printer, name string) {
		for _, q := range queueNames(s.Worker.Queues) {
			p.Sample(name, float64(s.Worker.Queues[q].Len), "queue", q)
		}
	})
	gauge("baton_queue_oldest_seconds", "How long the oldest room has stood in a queue.", func(p *Printer, name string) {
		for _, q := range queueNames(s.Worker.Queues) {
			p.Sample(name, float64(s.Worker.Queues[q].OldestMS)/1000, "queue", q)
		}
	})
	gauge("baton_blocks", "KV blocks by state.", func(p *Printer, name string) {
		b := s.Worker.Blocks
		p.Sample(name, float64(b.Free), "state", "free")
		p.Sample(name, float64(b.Cached), "state", "cached")
		p.Sample(name, float64(b.Held), "state", "held")
		p.Sample(name, float64(b.Quarantined), "state", "quarantined")
	})
	return m
}

// Handler answers scrapes, one at a time.
func (m *Metrics) Handler() http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			m.registry.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// Step counts one engine step.
func (m *Metrics) Step(took time.Duration) {
	m.Steps.Inc()
	m.StepSeconds.Observe(took.Seconds())
}

func queueNames(q map[string]Queue) []string {
	names := make([]string, 0, len(q))
	for n := range q {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
