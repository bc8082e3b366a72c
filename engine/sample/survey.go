package sample

import (
	"math"

	"baton/engine/kernel"
)

// A survey is what is known of logits before any of them is looked at: the largest of each few. A
// vocabulary is large and most of it is out of the question, so whoever looks for tokens above some
// logit passes over whatever cannot hold one.

const (
	// surveyTokens are surveyed together: a cache line of peaks for a thousand tokens, and few
	// enough that looking at one of them costs little.
	surveyTokens = 64
	// surveyMin is the smallest vocabulary for which a survey pays.
	surveyMin = 1024
)

// survey fills in the peaks of logits and says whether they are to be used. They are not for small
// vocabularies, where no kernel is faster than plain code, and where something is no number: kernels
// may pass over what stands beside it.
func (s *Scratch) survey(logits []float32) bool {
	s.peaks = s.peaks[:0]
	if len(logits) < surveyMin || kernel.Active() == kernel.Generic {
		return false
	}
	if d := kernel.Dot(logits, logits); d != d {
		return false
	}
	for at := 0; at < len(logits); at += surveyTokens {
		s.peaks = append(s.peaks, kernel.Max(logits[at:min(at+surveyTokens, len(logits))]))
	}
	return true
}

// surveyed says whether there are peaks of the logits that are being looked at.
func (s *Scratch) surveyed() bool { return len(s.peaks) > 0 }

// part returns the logits of one peak.
func part[T any](of []T, i int) []T {
	return of[i*surveyTokens : min((i+1)*surveyTokens, len(of))]
}

// bestToken returns the lowest id of the highest logit, by the survey if there is one.
func (s *Scratch) bestToken(logits []float32) int32 {
	if !s.surveyed() {
		return argMax(logits)
	}
	peak := kernel.Max(s.peaks)
	for i, p := range s.peaks {
		if p != peak {
			continue
		}
		for k, x := range part(logits, i) {
			if x == peak {
				return int32(i*surveyTokens + k)
			}
		}
	}
	return argMax(logits) // not reached: the peak is one of them
}

// above appends to dst the tokens whose logit is at least floor and not minus infinity, with their
// logits, in the order of ids.
func (s *Scratch) above(dst []weighed, logits []float32, floor float64) []weighed {
	least := single(floor)
	for i, p := range s.peaks {
		if p < least {
			continue
		}
		for k, x := range part(logits, i) {
			if x >= least {
				dst = append(dst, weighed{int32(i*surveyTokens + k), float64(x)})
			}
		}
	}
	return dst
}

// single returns a float that is not above floor, and not infinite.
func single(floor float64) float32 {
	return max(math.Nextafter32(float32(floor), never), -math.MaxFloat32)
}

// shareFloor returns a logit, floor or a higher one, above which there is at least the weight want of
// what exp filled in.
func (s *Scratch) shareFloor(logits []float32, high, want, floor float64) float64 {
	least := single(floor)
	s.buckets = [bucketsMax]bucket{}
	for i, p := range s.peaks {
		if p < least {
			continue
		}
		light := part(s.light, i)
		for k, x := range part(logits, i) {
			if x >= least {
				s.buckets[bucketOf(x, high)].w += float64(light[k])
			}
		}
	}
	for b, sum := 0, 0.0; b < bucketsMax-1; b++ {
		if sum += s.buckets[b].w; sum > want*(1+1e-5) { // kernels weigh a little wrong
			return high - float64(b+1)/bucketsPerLogit
		}
	}
	return floor
}

// exp fills in the weights exp((logit-high)/temperature) of all tokens and their sums by part, and
// returns the total.
func (s *Scratch) exp(logits []float32, high, temperature float64) (total float64) {
	s.light = append(s.light[:0], logits...)
	for len(s.light)%surveyTokens != 0 { // kernels take whole vectors
		s.light = append(s.light, never)
	}
	s.sums = s.sums[:0]
	inverse := float32(1 / temperature)
	for i, p := range s.peaks {
		w := part(s.light, i)
		sum := 0.0
		switch {
		case (float64(p)-high)/temperature < weightless:
			clear(w)
		case temperature == 1:
			sum = float64(kernel.ExpSum(w, w, float32(high)))
		default:
			for k, x := range w {
				w[k] = (x - float32(high)) * inverse
			}
			sum = float64(kernel.ExpSum(w, w, 0))
		}
		s.sums = append(s.sums, sum)
		total += sum
	}
	return total
}

// drawLight draws from what exp filled in.
func (s *Scratch) drawLight(at float64) int32 {
	last := 0
	for i, sum := range s.sums {
		if sum > 0 {
			last = i
		}
		if at -= sum; at < 0 {
			at += sum
			last = i
			break
		}
	}
	w := part(s.light, last)
	id := 0
	for k, x := range w {
		if x > 0 {
			id = k
		}
		if at -= float64(x); at < 0 {
			return int32(last*surveyTokens + k)
		}
	}
	return int32(last*surveyTokens + id) // rounding left a crumb
}

// floorOf is the logit that has the weight w, a little lowered: what is above is weighed exactly.
func floorOf(high, temperature, w float64) float64 {
	return high + temperature*math.Log(w) - 1e-3*temperature - 1e-6*math.Abs(high)
}
