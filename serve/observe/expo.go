package observe

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Registry prints metrics in the Prometheus text format 0.0.4, in the order in which they
// were registered. It is the small part of a client library that Baton needs: counters,
// vectors with a bounded set of label values, histograms with fixed buckets, and gauges that
// are asked at scrape time.
type Registry struct {
	mu       sync.Mutex
	families []family // guarded by mu
}

type family struct {
	name, help, kind string
	print            func(w *Printer, name string)
}

// Printer prints samples of one scrape.
type Printer struct{ w *bufio.Writer }

// Sample prints one line; labels are name, value, name, value …
func (p *Printer) Sample(name string, v float64, labels ...string) {
	p.w.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		p.w.WriteByte(",{"[b2i(i == 0)])
		p.w.WriteString(labels[i])
		p.w.WriteString(`="`)
		labelEscaper.WriteString(p.w, labels[i+1])
		p.w.WriteByte('"')
	}
	if len(labels) > 1 {
		p.w.WriteByte('}')
	}
	p.w.WriteByte(' ')
	p.w.WriteString(number(v))
	p.w.WriteByte('\n')
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (r *Registry) add(f family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.families {
		if o.name == f.name {
			panic("observe: metric registered twice: " + f.name) // a mistake of the program, at its start
		}
	}
	r.families = append(r.families, f)
}

// Counter registers a number that only grows.
func (r *Registry) Counter(name, help string) *Counter {
	c := &Counter{}
	r.add(family{name, help, "counter", func(p *Printer, n string) { p.Sample(n, float64(c.Value())) }})
	return c
}

// Vector registers counters told apart by labels.
func (r *Registry) Vector(name, help string, labels ...string) *Vector {
	v := &Vector{labels: labels, of: map[string]*Counter{}}
	r.add(family{name, help, "counter", v.print})
	return v
}

// Histogram registers a histogram with the upper bounds in le, in seconds, ascending.
func (r *Registry) Histogram(name, help string, le []float64) *Histogram {
	h := &Histogram{le: le, n: make([]uint64, len(le)+1)}
	r.add(family{name, help, "histogram", h.print})
	return h
}

// Gauges registers numbers that print asks for at scrape time; what it does not print is
// absent (O3).
func (r *Registry) Gauges(name, help string, print func(p *Printer, name string)) {
	r.add(family{name, help, "gauge", print})
}

// Print writes everything; its error is w's.
func (r *Registry) Print(w io.Writer) error {
	r.mu.Lock()
	families := r.families[:len(r.families):len(r.families)]
	r.mu.Unlock()
	p := &Printer{bufio.NewWriter(w)}
	for _, f := range families {
		fmt.Fprintf(p.w, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		f.print(p, f.name)
	}
	return p.w.Flush()
}

// ServeHTTP answers a scrape.
func (r *Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	r.Print(w)
}

// Counter is a number that only grows. Safe for everybody.
type Counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Value is the number now.
func (c *Counter) Value() uint64 { return c.n.Load() }

// seriesMax bounds the series of one vector: labels are causes, outcomes and paths, never what
// a client chose. Beyond it everything is counted under the last label value "other".
const seriesMax = 256

// Vector is a set of counters told apart by labels. Safe for everybody.
type Vector struct {
	labels []string
	mu     sync.Mutex
	of     map[string]*Counter // guarded by mu; key: values joined by 0
	keys   []string            // guarded by mu; in order of first use
}

// With returns the counter of these label values.
func (v *Vector) With(values ...string) *Counter {
	if len(values) != len(v.labels) {
		panic(fmt.Sprintf("observe: %d label values for %d labels", len(values), len(v.labels)))
	}
	key := strings.Join(values, "\x00")
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.of[key]
	if c == nil && len(v.keys) >= seriesMax {
		key = strings.Repeat("other\x00", len(v.labels))
		key = key[:len(key)-1]
		c = v.of[key]
	}
	if c == nil {
		c = &Counter{}
		v.of[key] = c
		v.keys = append(v.keys, key)
	}
	return c
}

func (v *Vector) print(p *Printer, name string) {
	v.mu.Lock()
	keys := v.keys[:len(v.keys):len(v.keys)]
	v.mu.Unlock()
	for _, key := range keys {
		values := strings.Split(key, "\x00")
		pairs := make([]string, 0, 2*len(values))
		for i, value := range values {
			pairs = append(pairs, v.labels[i], value)
		}
		p.Sample(name, float64(v.With(values...).Value()), pairs...)
	}
}

// Histogram counts observations by size. Safe for everybody.
type Histogram struct {
	le  []float64
	mu  sync.Mutex
	n   []uint64 // guarded by mu; the last is +Inf
	sum float64  // guarded by mu
}

// Observe counts one value.
func (h *Histogram) Observe(v float64) {
	i := 0
	for i < len(h.le) && v > h.le[i] {
		i++
	}
	h.mu.Lock()
	h.n[i]++
	h.sum += v
	h.mu.Unlock()
}

func (h *Histogram) print(p *Printer, name string) {
	h.mu.Lock()
	n := append([]uint64(nil), h.n...)
	sum := h.sum
	h.mu.Unlock()
	total := uint64(0)
	for i, c := range n {
		total += c
		le := math.Inf(1)
		if i < len(h.le) {
			le = h.le[i]
		}
		p.Sample(name+"_bucket", float64(total), "le", number(le))
	}
	p.Sample(name+"_sum", sum)
	p.Sample(name+"_count", float64(total))
}
