package model

import "math"

// Angles says how fast each pair of elements of a head turns with the position.
type Angles struct {
	Base   float64 // theta
	Scale  float64 // positions are divided by this
	YaRN   YaRN    // zero Factor: none
	Llama3 Llama3  // zero Factor: none, or as divisors in the file
}

// YaRN slows pairs that turn rarely within the original context by a factor, leaves those that
// turn often, and goes over from one to the other in between.
type YaRN struct {
	Factor     float64
	Original   int     // positions before scaling
	Fast, Slow float64 // turns within the original context from which on nothing is slowed, up to which all is
	Exact      bool    // borders between pairs are not rounded outwards
	Magnitude  float64 // of cosines and sines
}

// The defaults of YaRN's borders, in its paper and everywhere.
const (
	yarnFast = 32
	yarnSlow = 1
)

// yarnMagnitude is what attention needs by default to stay as sharp as it was.
func yarnMagnitude(factor float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*math.Log(factor) + 1
}

// Llama3 slows pairs with long waves by a factor, leaves those with short ones, and goes over
// smoothly in between.
type Llama3 struct {
	Factor    float64
	Low, High float64 // the original context divided by the length of the waves that are slowed, that are left
	Original  int     // positions before scaling
}

// frequencies returns the angle per position of each of dim/2 pairs, in float64 so that it is
// exact at every position of a long context. divisors is rope_freqs.weight, or nil.
func (a *Angles) frequencies(dim int, divisors []float32) []float64 {
	f := make([]float64, dim/2)
	for i := range f {
		f[i] = math.Pow(a.Base, -2*float64(i)/float64(dim)) / a.Scale
		if divisors != nil {
			f[i] /= float64(divisors[i])
		}
		switch {
		case a.YaRN.Factor > 0:
			part := a.YaRN.slowed(i, dim, a.Base)
			f[i] = f[i]/a.YaRN.Factor*part + f[i]*(1-part)
		case a.Llama3.Factor > 0:
			f[i] = a.Llama3.slow(f[i])
		}
	}
	return f
}

// magnitude is what cosines and sines are multiplied by.
func (a *Angles) magnitude() float64 {
	if a.YaRN.Factor > 0 {
		return a.YaRN.Magnitude
	}
	return 1
}

// slowed returns how much of pair i is slowed, from 0 to 1.
func (y *YaRN) slowed(i, dim int, base float64) float64 {
	border := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(y.Original)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	from, to := border(y.Fast), border(y.Slow)
	if !y.Exact {
		from, to = math.Floor(from), math.Ceil(to)
	}
	from, to = max(from, 0), min(to, float64(dim-1))
	if from == to {
		to += 0.001
	}
	return min(1, max(0, (float64(i)-from)/(to-from)))
}

func (l *Llama3) slow(f float64) float64 {
	wave := 2 * math.Pi / f
	turns := float64(l.Original) / wave
	switch {
	case turns > l.High:
		return f
	case turns < l.Low:
		return f / l.Factor
	}
	part := (turns - l.Low) / (l.High - l.Low)
	return (1-part)*f/l.Factor + part*f
}

// turn is how heads turn, ready to be computed with.
type turn struct {
	freq      []float64 // angle per position of each pair, [RopeDim/2]
	magnitude float64
}

func newTurn(c *Config, a *Angles, divisors []float32) turn {
	return turn{a.frequencies(c.RopeDim, divisors), a.magnitude()}
}

// fill writes cosines and sines of a position.
func (t *turn) fill(cos, sin []float32, pos int) {
	for j, f := range t.freq {
		s, c := math.Sincos(float64(pos) * f)
		cos[j], sin[j] = float32(c*t.magnitude), float32(s*t.magnitude)
	}
}
