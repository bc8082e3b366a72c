package sample

import (
	"math"
	"slices"
)

// weighed is a token and its logit, or its weight: its probability times a constant.
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

// draw picks a token: u of the sum of the weights exp((logit-high)/temperature) of what is kept,
// the best one's being 1.
func (s *Scratch) draw(p *Params, logits []float32, high, u float64) int32 {
	if p.TopK <= 0 && p.TopP >= 1 {
		return s.drawAny(p, logits, high, u)
	}
	return drawWeighed(s.keep(p, logits, high), u)
}

// weigh turns the logits of kept into weights and drops what min_p drops.
func (s *Scratch) weigh(p *Params, kept []weighed, high float64) []weighed {
	n := 0
	for _, k := range kept { // the best one has the weight 1 and stays
		if k.w = weight((k.w - high) / p.Temperature); k.w >= p.MinP {
			kept[n] = k
			n++
		}
	}
	return kept[:n]
}

// drawWeighed picks a token of kept: u of the sum of the weights.
func drawWeighed(kept []weighed, u float64) int32 {
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

// drawAny is draw where nothing is cut by rank: in the order of ids, without a list.
func (s *Scratch) drawAny(p *Params, logits []float32, high, u float64) int32 {
	switch {
	case !s.surveyed():
	case p.MinP > 0:
		s.kept = s.above(s.kept[:0], logits, floorOf(high, p.Temperature, p.MinP))
		return drawWeighed(s.weigh(p, s.kept, high), u)
	default:
		return s.drawLight(u * s.exp(logits, high, p.Temperature))
	}
	s.weights = slices.Grow(s.weights[:0], len(logits))
	total, last := 0.0, 0
	for i, x := range logits {
		w := weight((float64(x) - high) / p.Temperature)
		if w < p.MinP {
			w = 0
		}
		if w > 0 {
			total, last = total+w, i
		}
		s.weights = append(s.weights, w)
	}
	at := u * total
	for i, w := range s.weights {
		if at -= w; at < 0 {
			return int32(i)
		}
	}
	return int32(last) // rounding left a crumb
}

// A bucket holds the tokens whose logit is so many steps below the best one: counting in them
// finds where a cut falls without sorting a vocabulary.
type bucket struct {
	tokens int
	w      float64
}

const (
	bucketsPerLogit = 16
	bucketsMax      = 1024 // 64 logits; exp(-64) is nothing. The last bucket takes the rest.
)

// bucketOf returns the bucket of a logit, -1 for NaN and minus infinity. Its order agrees with
// that of the logits.
func bucketOf(x float32, high float64) int {
	if !(x >= -math.MaxFloat32) {
		return -1
	}
	if d := (high - float64(x)) * bucketsPerLogit; d < bucketsMax-1 {
		return int(d)
	}
	return bucketsMax - 1
}

// keep returns the tokens that top_k, top_p and min_p leave, with their weights.
func (s *Scratch) keep(p *Params, logits []float32, high float64) []weighed {
	var kept []weighed
	if p.TopK > 0 {
		kept = s.bestOf(logits, high, p.TopK)
		total := 0.0
		for i := range kept {
			kept[i].w = weight((kept[i].w - high) / p.Temperature)
			total += kept[i].w
		}
		if p.TopP < 1 {
			kept = share(kept, p.TopP*total)
		}
	} else {
		kept = s.shareOf(p, logits, high)
	}
	n := 0
	for _, k := range kept { // the best one has the weight 1 and stays
		if k.w >= p.MinP {
			kept[n] = k
			n++
		}
	}
	return kept[:n]
}

// share returns the head of kept, which is in order, that reaches the weight want.
func share(kept []weighed, want float64) []weighed {
	sum := 0.0
	for i, k := range kept {
		if sum += k.w; sum >= want {
			return kept[:i+1]
		}
	}
	return kept
}

// bestOf returns the n best tokens with their logits, in order.
func (s *Scratch) bestOf(logits []float32, high float64, n int) []weighed {
	counted := logits
	if n <= len(s.peaks) { // that many tokens at least are in the buckets of that many peaks
		counted = s.peaks
	}
	s.buckets = [bucketsMax]bucket{}
	for _, x := range counted {
		if b := bucketOf(x, high); b >= 0 {
			s.buckets[b].tokens++
		}
	}
	last, seen := 0, 0
	for ; last < bucketsMax-1; last++ {
		if seen += s.buckets[last].tokens; seen >= n {
			break
		}
	}
	s.kept = s.kept[:0]
	if s.surveyed() && last < bucketsMax-1 {
		s.kept = s.above(s.kept, logits, high-float64(last+1)/bucketsPerLogit)
	} else {
		for i, x := range logits {
			if b := bucketOf(x, high); b >= 0 && b <= last {
				s.kept = append(s.kept, weighed{int32(i), float64(x)})
			}
		}
	}
	slices.SortFunc(s.kept, compare)
	return s.kept[:min(n, len(s.kept))]
}

// shareOf returns the fewest best tokens whose weights reach the share top_p of all. Only those
// in the bucket where the cut falls are in order.
func (s *Scratch) shareOf(p *Params, logits []float32, high float64) []weighed {
	total := 0.0
	s.kept = s.kept[:0]
	if s.surveyed() {
		// Whatever weighs less than its part of what may be missing can be missing.
		total = s.exp(logits, high, p.Temperature)
		floor := floorOf(high, p.Temperature, (1-p.TopP)*total/float64(len(logits)))
		s.kept = s.above(s.kept, logits, s.shareFloor(logits, high, p.TopP*total, floor))
	} else {
		for i, x := range logits {
			if x >= -math.MaxFloat32 {
				s.kept = append(s.kept, weighed{int32(i), float64(x)})
				total += weight((float64(x) - high) / p.Temperature)
			}
		}
	}
	s.buckets = [bucketsMax]bucket{}
	s.weights = slices.Grow(s.weights[:0], len(s.kept))
	for _, k := range s.kept {
		w := weight((k.w - high) / p.Temperature)
		s.buckets[bucketOf(float32(k.w), high)].w += w
		s.weights = append(s.weights, w)
	}
	cut, sum := 0, 0.0
	for ; cut < bucketsMax-1 && sum+s.buckets[cut].w < p.TopP*total; cut++ {
		sum += s.buckets[cut].w
	}
	n := 0
	s.best = s.best[:0]
	for i, k := range s.kept {
		switch b := bucketOf(float32(k.w), high); {
		case b < cut:
			s.kept[n] = weighed{k.id, s.weights[i]}
			n++
		case b == cut: // in the order of logits: different logits may have equal weights
			s.best = append(s.best, k)
		}
	}
	slices.SortFunc(s.best, compare)
	for i := range s.best {
		s.best[i].w = weight((s.best[i].w - high) / p.Temperature)
	}
	s.kept = append(s.kept[:n], share(s.best, p.TopP*total-sum)...)
	return s.kept
}
