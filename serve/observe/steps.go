package observe

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Work says what an engine step computed.
type Work int

// What a step may compute.
const (
	WorkPrefill Work = iota // prompts alone
	WorkDecode              // output alone
	WorkMixed               // both

	works
)

var workNames = [works]string{"prefill", "decode", "mixed"}

func (p Work) String() string { return workNames[p] }

// Step is one engine step that came home.
type Step struct {
	Work        Work
	Rows        int // sequences in it
	Tokens      int // computed, of all of them
	Took        time.Duration
	WeightBytes int64 // of weights that it read, 0 if that is not known
	KVBytes     int64 // of keys and values that it read, by the lengths of its sequences
}

// rowBuckets are the batch sizes at which kernels change their shape, and beyond.
var rowBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}

type workMetrics struct {
	seconds prometheus.Observer
	rows    prometheus.Observer
	tokens  prometheus.Counter
	recent  recent
	rate    prometheus.Gauge
}

// recentSeconds is how much engine time a rate looks back on. It is of steps, not of the clock: an
// idle worker keeps the speed that it had.
const recentSeconds = 5

// recent is an amount per second of engine time, old time counting less.
type recent struct{ amount, seconds float64 }

func (r *recent) add(amount float64, took time.Duration) float64 {
	s := took.Seconds()
	keep := math.Exp(-s / recentSeconds)
	r.amount, r.seconds = r.amount*keep+amount, r.seconds*keep+s
	if r.seconds <= 0 {
		return 0
	}
	return r.amount / r.seconds
}

func (m *Metrics) newSteps(reg prometheus.Registerer) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "baton_step_seconds", Help: "Time of one engine step.", Buckets: stepBuckets}, []string{"work"})
	rows := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "baton_step_rows", Help: "Sequences in one engine step: the batch size.", Buckets: rowBuckets}, []string{"work"})
	tokens := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "baton_step_tokens_total", Help: "Tokens that engine steps computed."}, []string{"work"})
	rate := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "baton_step_tokens_per_second", Help: "Tokens per second of engine time, over the last steps of its kind."}, []string{"work"})
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "baton_step_read_bytes_total", Help: "Bytes that engine steps read, reckoned from shapes: weights once a step, keys and values of each sequence."}, []string{"what"})
	m.read = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "baton_step_read_bytes_per_second", Help: "The same per second of engine time, over the last steps: near the memory's bandwidth when decode is as fast as it can be."})
	reg.MustRegister(seconds, rows, tokens, rate, bytes, m.read)
	for p := range works {
		name := p.String()
		m.byWork[p] = workMetrics{seconds: seconds.WithLabelValues(name), rows: rows.WithLabelValues(name),
			tokens: tokens.WithLabelValues(name), rate: rate.WithLabelValues(name)}
	}
	m.weights, m.kv = bytes.WithLabelValues("weights"), bytes.WithLabelValues("kv")
}

// Step counts one engine step. It allocates nothing. One goroutine at a time.
func (m *Metrics) Step(s Step) {
	m.steps.Inc()
	p := &m.byWork[s.Work]
	p.seconds.Observe(s.Took.Seconds())
	p.rows.Observe(float64(s.Rows))
	p.tokens.Add(float64(s.Tokens))
	p.rate.Set(p.recent.add(float64(s.Tokens), s.Took))
	m.weights.Add(float64(s.WeightBytes))
	m.kv.Add(float64(s.KVBytes))
	m.read.Set(m.speed.add(float64(s.WeightBytes+s.KVBytes), s.Took))
}
