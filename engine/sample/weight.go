package sample

import "math"

const (
	// weightless is where weight ends: with u of 53 bits, a token of exp(-60), less than 2^-86,
	// is never drawn.
	weightless   = -60
	weightSteps  = 64 // steps per factor of two in the table
	weightPerLn  = weightSteps / math.Ln2
	weightLnStep = math.Ln2 / weightSteps
)

// weightTable holds 2^(i/64).
var weightTable = func() (t [weightSteps]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / weightSteps)
	}
	return t
}()

// weight returns exp(x) for x at most 0 with a relative error below 1e-11, and 0 below
// weightless and for NaN. It is four times as fast as math.Exp, of which a vocabulary of tokens
// needs one each per step, and made of single roundings, so the same on all machines.
func weight(x float64) float64 {
	if !(x >= weightless) {
		return 0
	}
	i := int(float64(x*weightPerLn) - 0.5)    // the nearest, since x is not positive
	r := x - float64(float64(i)*weightLnStep) // at most half a step: 0.0054
	poly := 1 + float64(r*(1+float64(r*(0.5+float64(r*(1.0/6+float64(r*(1.0/24))))))))
	scale := math.Float64frombits(uint64(1023+i>>6) << 52)
	return weightTable[i&(weightSteps-1)] * poly * scale
}
