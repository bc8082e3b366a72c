package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"baton/core/room"
)

// metrics are the gateway's own. Labels are causes, outcomes, roles and places in the fleet,
// never what a client chose.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec
	refused     *prometheus.CounterVec
	attempts    prometheus.Counter
	blames      *prometheus.CounterVec
	slowClients prometheus.Counter
	stripped    prometheus.Counter
	tokens      *prometheus.CounterVec
	firstToken  prometheus.Histogram
	duration    prometheus.Histogram
}

// seconds spans a tiny model's answer to the longest that a client waits for.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

func newMetrics(g *Gateway) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds})
		m.registry.MustRegister(h)
		return h
	}
	m.requests = vector("baton_gateway_requests_total", "Accepted requests that reached their outcome.", "outcome", "cause")
	m.refused = vector("baton_gateway_refused_total", "Requests refused before they were accepted, by HTTP status.", "status")
	m.attempts = counter("baton_gateway_attempts_total", "Attempts placed on workers; above the requests, these are retries.")
	m.blames = vector("baton_gateway_blames_total", "Failures for which a worker was blamed.", "worker", "cause")
	m.slowClients = counter("baton_gateway_slow_clients_total", "Requests ended because their client did not read.")
	m.stripped = counter("baton_gateway_stripped_total", "Requests that carried fields which only a gateway may send.")
	m.tokens = vector("baton_gateway_tokens_total", "Tokens of requests that succeeded.", "kind")
	m.firstToken = histogram("baton_gateway_time_to_first_token_seconds", "From arrival to the first piece for the client.")
	m.duration = histogram("baton_gateway_request_duration_seconds", "From arrival to the outcome.")
	m.registry.MustRegister(&gauges{g})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) ended(c *call, o room.Outcome, after time.Duration) {
	m.requests.WithLabelValues(o.Kind.String(), o.Cause.String()).Inc()
	m.duration.Observe(after.Seconds())
	if o.Kind == room.Success {
		m.tokens.WithLabelValues("prompt").Add(float64(c.end.PromptTokens))
		m.tokens.WithLabelValues("output").Add(float64(c.end.OutputTokens))
	}
}

// gauges asks the loop at scrape time, so that they cannot drift from what it knows.
type gauges struct{ g *Gateway }

var (
	runningDesc = prometheus.NewDesc("baton_gateway_running", "Requests that hold workers or are about to.", nil, nil)
	queuedDesc  = prometheus.NewDesc("baton_gateway_queued", "Requests that wait for a right to run.", nil, nil)
	oldestDesc  = prometheus.NewDesc("baton_gateway_queue_oldest_seconds", "How long the oldest of them has waited, 0 without one.", nil, nil)
	servingDesc = prometheus.NewDesc("baton_gateway_serving", "1 while a new request could be placed.", nil, nil)
	upDesc      = prometheus.NewDesc("baton_worker_up", "1 while requests may be placed on the worker.", []string{"worker", "role"}, nil)
	loadDesc    = prometheus.NewDesc("baton_worker_legs", "Legs that are open at the worker.", []string{"worker", "role"}, nil)
)

// Describe implements prometheus.Collector.
func (c *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runningDesc, queuedDesc, oldestDesc, servingDesc, upDesc, loadDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. A loop that does not answer leaves its gauges out.
func (c *gauges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), inspectAfter)
	defer cancel()
	var samples []prometheus.Metric
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		samples = append(samples, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	if c.g.ask(ctx, func(l *loop) {
		gauge(runningDesc, float64(l.runningRequests()))
		q, oldest := l.core.Queue(), time.Duration(0)
		if q.Len > 0 {
			oldest = l.g.clock() - q.Oldest
		}
		gauge(queuedDesc, float64(q.Len))
		gauge(oldestDesc, oldest.Seconds())
		gauge(servingDesc, flag(l.roster.serving()))
		for m := range l.roster.places { // two lives of one place would be one series twice
			gauge(upDesc, flag(m.usable()), m.Name, m.Role)
			gauge(loadDesc, float64(l.roster.legs(m.Name)), m.Name, m.Role)
		}
	}) != nil {
		return
	}
	for _, s := range samples {
		out <- s
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
