package sample

import (
	"math"
)

// LogprobMin stands for the logarithm of a probability of 0, since JSON has no minus infinity
// (OpenAI and vLLM report -9999 too).
const LogprobMin = -9999

// Clamp returns a log-probability as JSON can carry it: LogprobMin to 0, and LogprobMin for what
// is no number.
func Clamp(l float32) float32 {
	if !(l > LogprobMin) {
		return LogprobMin
	}
	return min(l, 0)
}

// NoToken is the ID of a Choice where no token is allowed.
const NoToken = -1

// Choice is the token that Pick chose.
type Choice struct {
	ID      int32
	Logprob float32      // raw log-softmax (P5); 0 unless Params.Logprobs >= 0
	Top     []TopLogprob // the best tokens, best first; belongs to the Scratch until the next Pick
}

// TopLogprob is one of the best tokens of a position.
type TopLogprob struct {
	ID      int32   `json:"id"`
	Bytes   []byte  `json:"bytes,omitempty"` // the token's bytes, filled in by Sequence
	Logprob float32 `json:"logprob"`
}

// Scratch is the working memory of Pick, which allocates nothing once it has grown (P2); the zero
// value is ready. One goroutine at a time.
type Scratch struct {
	weights  []float64 // by id
	kept     []weighed
	best     []weighed
	top      []TopLogprob
	peaks    []float32 // survey of the logits that are being looked at; none: see survey
	light    []float32 // weights by id, of exp
	sums     []float64 // of light, by peak
	adjusted []float32 // logits by id, changed by a Sequence
	mask     []uint64  // of a grammar
	buckets  [bucketsMax]bucket
}

// Pick chooses the token for position, its index in prompt and output (of which any numbering
// that goes on does). It is what a Sequence without anything that changes logits does. logits has one
// number per token of the vocabulary, at least one, and is read only. A NaN counts as minus
// infinity; if no logit is finite, the token is 0 or the first that is infinite.
//
// The order is: temperature, top_k, top_p, min_p, draw. top_p counts shares of what top_k left;
// min_p compares with the best token's probability, so the order of these two does not matter to
// it. Equal logits at a border are kept from the lowest id up (P1).
func Pick(p *Params, logits []float32, position int, s *Scratch) Choice {
	s.survey(logits)
	best := s.bestToken(logits)
	c := Choice{ID: s.choose(p, logits, best, position)}
	if p.Logprobs >= 0 {
		s.report(&c, logits, logits[best], p.Logprobs)
	}
	return c
}

// choose returns the token for position from logits that were surveyed; best is the best one.
func (s *Scratch) choose(p *Params, logits []float32, best int32, position int) int32 {
	if finite := logits[best]-logits[best] == 0; !finite || p.Greedy() {
		return best
	}
	return s.draw(p, logits, float64(logits[best]), Uniform(p.Seed, p.Choice, uint32(position)))
}

// argMax returns the lowest id of the highest logit.
func argMax(logits []float32) int32 {
	best, high := 0, float32(math.Inf(-1))
	for i, x := range logits {
		if x > high {
			best, high = i, x
		}
	}
	return int32(best)
}

// report fills in the log-probabilities of c and of the n best tokens, from logits that were surveyed.
func (s *Scratch) report(c *Choice, logits []float32, high float32, n int) {
	sum := 0.0
	if s.surveyed() {
		sum = s.exp(logits, float64(high), 1)
	} else {
		for _, x := range logits {
			sum += weight(float64(x) - float64(high))
		}
	}
	lse := float64(high) + math.Log(sum)
	logprob := func(id int32) float32 {
		if x := float64(logits[id]) - lse; x >= LogprobMin {
			return float32(x)
		}
		return LogprobMin // also for what is no number
	}
	c.Logprob = logprob(c.ID)
	s.top = s.top[:0]
	for _, k := range s.reported(logits, float64(high), n) {
		s.top = append(s.top, TopLogprob{ID: k.id, Logprob: logprob(k.id)})
	}
	c.Top = s.top
}

// reported returns the n best tokens, in order.
func (s *Scratch) reported(logits []float32, high float64, n int) []weighed {
	if s.surveyed() && n > 0 {
		if kept := s.bestOf(logits, high, n); len(kept) == n {
			return kept
		}
	}
	s.best = s.best[:0]
	for i, x := range logits {
		k := weighed{int32(i), float64(x)}
		if x != x || n == 0 || len(s.best) == n && !k.before(s.best[n-1]) {
			continue
		}
		if len(s.best) < n {
			s.best = append(s.best, k)
		}
		at := len(s.best) - 1
		for ; at > 0 && k.before(s.best[at-1]); at-- {
			s.best[at] = s.best[at-1]
		}
		s.best[at] = k
	}
	return s.best
}
