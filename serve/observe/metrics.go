package observe

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"baton/transfer"
)

// stepBuckets spans one decode token of a tiny model (0.1 ms) to a prefill chunk of a large
// one on a slow machine (10 s), in seconds.
var stepBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics are a worker's counters. What a core or a link counts itself is asked at scrape
// time, so that it cannot drift from what they say.
type Metrics struct {
	RoomsEnded  *prometheus.CounterVec // outcome, cause
	Refused     *prometheus.CounterVec // cause: legs that did not become rooms
	Prompt      prometheus.Counter     // prompt tokens computed
	Cached      prometheus.Counter     // prompt tokens found in the prefix cache
	PrefixHits  prometheus.Counter     // rooms that found some
	Spared      prometheus.Counter     // prompt tokens found in the prefix cache of decode: their KV did not travel
	Evicted     prometheus.Counter     // cached blocks that gave way to rooms
	Output      prometheus.Counter     // output tokens made
	Retractions prometheus.Counter     // rooms that gave their blocks to an older one
	Recomputed  prometheus.Counter     // tokens whose KV was computed again for that
	CanaryHits  prometheus.Counter     // freed blocks that somebody wrote to
	SlowReaders prometheus.Counter     // rooms ended because their gateway did not read
	Unsound     prometheus.Counter     // rooms ended because the model computed what is no number
	LinkEnds    prometheus.Counter
	Grammars    *prometheus.CounterVec // result: legs whose grammar was compiled or found, or refused
	GrammarWait prometheus.Histogram   // seconds until a leg had its grammar

	steps    prometheus.Counter
	byWork   [works]workMetrics
	weights  prometheus.Counter // bytes
	kv       prometheus.Counter // bytes
	speed    recent             // bytes per second of all steps
	read     prometheus.Gauge
	registry *prometheus.Registry
}

// Sources are what a scrape asks.
type Sources struct {
	// Snapshot says false when the node loop did not answer in time; its gauges are then
	// absent (O3).
	Snapshot func() (Snapshot, bool)
	// Grammars says what the cache of grammars holds and how often it was asked; false before the
	// first grammar. nil for nobody to ask.
	Grammars func() (Grammars, bool)
	// Transfer counts what links moved; nil for a worker without links.
	Transfer func() transfer.Stats
}

// Grammars is what a worker's cache of compiled grammars says.
type Grammars struct {
	Entries, Bytes int64
	Hits, Misses   uint64
}

// NewMetrics returns the metrics of one worker, in a registry of their own.
func NewMetrics(role string, from Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"role": role}, m.registry)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	m.RoomsEnded = vector("baton_rooms_ended_total", "Rooms that reached their outcome.", "outcome", "cause")
	m.Refused = vector("baton_legs_refused_total", "Legs that did not become rooms.", "cause")
	m.steps = counter("baton_steps_total", "Engine steps.")
	m.Prompt = counter("baton_prompt_tokens_total", "Prompt tokens computed.")
	m.Cached = counter("baton_cached_tokens_total", "Prompt tokens found in the prefix cache, not computed.")
	m.PrefixHits = counter("baton_prefix_hits_total", "Rooms that found a part of their prompt in the prefix cache.")
	m.Spared = counter("baton_spared_tokens_total", "Prompt tokens found in this worker's prefix cache whose KV so did not travel.")
	m.Evicted = counter("baton_prefix_evictions_total", "Cached blocks that gave way to rooms.")
	m.Output = counter("baton_output_tokens_total", "Output tokens made.")
	m.Retractions = counter("baton_retractions_total", "Times that a room gave its KV up for an older one that needed memory.")
	m.Recomputed = counter("baton_recomputed_tokens_total", "Tokens whose KV was computed again after a retraction.")
	m.CanaryHits = counter("baton_canary_hits_total", "Freed blocks that changed before they were given out again.")
	m.SlowReaders = counter("baton_slow_readers_total", "Rooms ended because their gateway did not read.")
	m.Unsound = counter("baton_unsound_rooms_total", "Rooms ended because the model computed no finite number.")
	m.LinkEnds = counter("baton_link_ends_total", "Links that ended.")
	m.Grammars = vector("baton_grammars_total", "Legs with a grammar, by what became of it: ready (compiled, or found in the cache) or refused.", "result")
	m.GrammarWait = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "baton_grammar_seconds", Help: "Time until a leg had its grammar.", Buckets: stepBuckets})
	m.newSteps(reg)
	reg.MustRegister(m.GrammarWait, &gauges{from})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// gauges collects what a snapshot and a link's own counters say.
type gauges struct{ from Sources }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	queueLen      = describe("baton_queue_length", "Rooms in a queue.", "queue")
	queueOldest   = describe("baton_queue_oldest_seconds", "How long the oldest room has stood in a queue.", "queue")
	blockCount    = describe("baton_blocks", "KV blocks by state.", "state")
	pinnedCount   = describe("baton_blocks_pinned", "KV blocks, cached or held, that requests asked to be evicted last.")
	liveCount     = describe("baton_rooms_live", "Rooms that have not ended.")
	drainState    = describe("baton_draining", "1 while the worker takes no new rooms.")
	linkCount     = describe("baton_links", "Links that are up.")
	movedBytes    = describe("baton_transfer_bytes_total", "KV bytes sent, placed, or read and thrown away.", "what")
	movedChunks   = describe("baton_transfer_chunks_total", "Chunks placed, refused for a wrong sum, or thrown away.", "what")
	writeFails    = describe("baton_transfer_writes_failed_total", "Chunk writes that failed.")
	grammarsHeld  = describe("baton_grammar_cache_entries", "Compiled grammars in the cache.")
	grammarsBytes = describe("baton_grammar_cache_bytes", "Memory of the compiled grammars in the cache, reckoned.")
	grammarsAsked = describe("baton_grammar_cache_lookups_total", "Times that the cache of grammars was asked, by whether it had the grammar.", "result")
	wordsLost     = describe("baton_transfer_words_dropped_total", "Control messages without a link to go to.")
)

func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueLen, queueOldest, blockCount, pinnedCount, liveCount, drainState,
		grammarsHeld, grammarsBytes, grammarsAsked, linkCount, movedBytes, movedChunks, writeFails, wordsLost} {
		ch <- d
	}
}

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, float64(v), labels...)
	}
	if g.from.Grammars != nil {
		if c, ok := g.from.Grammars(); ok {
			put(grammarsHeld, prometheus.GaugeValue, c.Entries)
			put(grammarsBytes, prometheus.GaugeValue, c.Bytes)
			put(grammarsAsked, prometheus.CounterValue, int64(c.Hits), "hit")
			put(grammarsAsked, prometheus.CounterValue, int64(c.Misses), "miss")
		}
	}
	if g.from.Transfer != nil {
		s := g.from.Transfer()
		put(linkCount, prometheus.GaugeValue, s.Links)
		put(movedBytes, prometheus.CounterValue, s.SentBytes, "sent")
		put(movedBytes, prometheus.CounterValue, s.PlacedBytes, "placed")
		put(movedBytes, prometheus.CounterValue, s.ScrapBytes, "scrap")
		put(movedChunks, prometheus.CounterValue, s.PlacedChunks, "placed")
		put(movedChunks, prometheus.CounterValue, s.SumErrors, "wrong_sum")
		put(movedChunks, prometheus.CounterValue, s.ScrapChunks, "scrap")
		put(writeFails, prometheus.CounterValue, s.WritesFailed)
		put(wordsLost, prometheus.CounterValue, s.WordsDropped)
	}
	s, ok := g.from.Snapshot()
	if !ok {
		return
	}
	for name, q := range s.Worker.Queues {
		put(queueLen, prometheus.GaugeValue, int64(q.Len), name)
		ch <- prometheus.MustNewConstMetric(queueOldest, prometheus.GaugeValue, float64(q.OldestMS)/1000, name)
	}
	b := s.Worker.Blocks
	put(blockCount, prometheus.GaugeValue, int64(b.Free), "free")
	put(blockCount, prometheus.GaugeValue, int64(b.Cached), "cached")
	put(blockCount, prometheus.GaugeValue, int64(b.Held), "held")
	put(blockCount, prometheus.GaugeValue, int64(b.Quarantined), "quarantined")
	put(pinnedCount, prometheus.GaugeValue, int64(b.Pinned))
	put(liveCount, prometheus.GaugeValue, int64(len(s.Rooms)))
	draining := int64(0)
	if s.Worker.Draining {
		draining = 1
	}
	put(drainState, prometheus.GaugeValue, draining)
}
