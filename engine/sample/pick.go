package sample

import (
	"math"
	"slices"
)

const (
	// weightless is the logarithm of the weight (the best token's is 1) below which a token is
	// never drawn: Uniform has 53 bits, and exp(-60) is less than 2^-86.
	weightless = -60
	// logprobLeast stands for a probability of 0, since JSON has no minus infinity (OpenAI
	// reports -9999.0 too).
	logprobLeast = -9999
)

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

// Scratch is the working memory of Pick; the zero value is ready. One goroutine at a time.
type Scratch struct {
	kept []weighed
	top  []TopLogprob
	best []weighed
}

// weighed is a token and its logit, or later its weight: its probability times a constant.
type weighed struct {
	id int32
	w  float64
}

// before orders by weight, highest first, and the lowest id first among equals (P1).
func (a weighed) before(b weighed) bool { return a.w > b.w || a.w == b.w && a.id < b.id }

func compare(a, b weighed) int {
	if a.before(b) {
		return -1
	}
	return 1
}

// Pick chooses the token for position, the index of the generated token from 0. logits has one
// number per token of the vocabulary, at least one, and is read only. A NaN counts as minus
// infinity; without any finite logit the token is 0.
//
// The order is: temperature, top_k, top_p, min_p, draw. top_p counts the probabilities that are
// left after top_k, made to sum to 1; min_p compares with the best token's. Sums run over the
// tokens in the order of before, so they do not depend on anything but the logits.
func Pick(p *Params, logits []float32, position int, s *Scratch) Choice {
	best := argMax(logits)
	c := Choice{ID: best}
	if finite := logits[best]-logits[best] == 0; finite && !p.Greedy() {
		c.ID = s.draw(p, logits, logits[best], Uniform(p.Seed, p.Choice, uint32(position)))
	}
	if p.Logprobs >= 0 {
		s.report(&c, logits, logits[best], p.Logprobs)
	}
	return c
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

// draw walks over the kept tokens until u of their weight is passed.
func (s *Scratch) draw(p *Params, logits []float32, high float32, u float64) int32 {
	kept := s.keep(p, logits, high)
	total := 0.0
	for _, k := range kept {
		total += k.w
	}
	at := u * total
	for _, k := range kept {
		if at -= k.w; at < 0 {
			return k.id
		}
	}
	return kept[len(kept)-1].id // rounding left a crumb
}

// keep returns the tokens that may be drawn with their weights exp((logit-high)/temperature), so
// that the best one's is 1. They are in the order of before if anything was cut by rank, else in
// the order of ids.
func (s *Scratch) keep(p *Params, logits []float32, high float32) []weighed {
	s.kept = s.kept[:0]
	for i, x := range logits {
		if x >= -math.MaxFloat32 { // neither NaN nor minus infinity
			s.kept = append(s.kept, weighed{int32(i), float64(x)})
		}
	}
	kept := s.kept
	if p.TopK > 0 && p.TopK < len(kept) {
		selectBest(kept, p.TopK)
		kept = kept[:p.TopK]
		slices.SortFunc(kept, compare)
	}
	// Cutting by min_p first leaves the same tokens as cutting by it last, unless top_p counts
	// what it drops: only then is it left for later.
	least := p.MinP
	if p.TopP < 1 {
		least = 0
	}
	n := 0
	for _, k := range kept {
		e := (k.w - float64(high)) / p.Temperature
		if e < weightless {
			continue
		}
		if w := math.Exp(e); w >= least {
			kept[n] = weighed{k.id, w}
			n++
		}
	}
	kept = kept[:n]
	if p.TopP < 1 {
		kept = cutShare(kept, p.TopP)
		for len(kept) > 1 && kept[len(kept)-1].w < p.MinP {
			kept = kept[:len(kept)-1]
		}
	}
	return kept
}

// cutShare returns the fewest best tokens whose weights reach share of the sum, best first.
func cutShare(kept []weighed, share float64) []weighed {
	total := 0.0
	for _, k := range kept {
		total += k.w
	}
	// Mostly few tokens are enough, and sorting all of a vocabulary costs milliseconds: sort a
	// head that doubles until it reaches the share.
	for head := 64; ; head *= 2 {
		n := min(head, len(kept))
		if n < len(kept) {
			selectBest(kept, n)
		}
		slices.SortFunc(kept[:n], compare)
		sum := 0.0
		for i, k := range kept[:n] {
			if sum += k.w; sum >= share*total {
				return kept[:i+1]
			}
		}
		if n == len(kept) {
			return kept
		}
	}
}

// selectBest brings the n best of s to its front, in no order (quickselect; 0 < n < len(s)).
// before is a total order, so which ones they are is determined.
func selectBest(s []weighed, n int) {
	lo, hi := 0, len(s)-1
	for lo < hi {
		pivot := middle(s[lo], s[lo+(hi-lo)/2], s[hi])
		i, j := lo, hi
		for i <= j {
			for s[i].before(pivot) {
				i++
			}
			for pivot.before(s[j]) {
				j--
			}
			if i <= j {
				s[i], s[j] = s[j], s[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			hi = j
		case n-1 >= i:
			lo = i
		default:
			return
		}
	}
}

func middle(a, b, c weighed) weighed {
	if b.before(a) {
		a, b = b, a
	}
	if c.before(b) {
		b = c
		if b.before(a) {
			b = a
		}
	}
	return b
}

// report fills in the log-probabilities of c and of the n best tokens.
func (s *Scratch) report(c *Choice, logits []float32, high float32, n int) {
	sum := 0.0
	for _, x := range logits {
		if e := math.Exp(float64(x) - float64(high)); e > 0 {
			sum += e
		}
	}
	lse := float64(high) + math.Log(sum)
	logprob := func(id int32) float32 {
		x := float64(logits[id])
		if x != x || math.IsInf(lse, 0) || math.IsInf(x, -1) {
			return logprobLeast
		}
		return float32(x - lse)
	}
	c.Logprob = logprob(c.ID)
	s.best, s.top = s.best[:0], s.top[:0]
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
	for _, k := range s.best {
		s.top = append(s.top, TopLogprob{ID: k.id, Logprob: logprob(k.id)})
	}
	c.Top = s.top
}
