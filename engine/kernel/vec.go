package kernel

import (
	"fmt"
	"math"
)

func sameLen(op string, a, b int) {
	if a != b {
		panic(fmt.Sprintf("kernel: %s of slices of length %d and %d", op, a, b))
	}
}

// RMSNorm writes x[i] / sqrt(mean(x^2)+eps) * w[i] into dst, which may be x.
func RMSNorm(dst, x, w []float32, eps float32) {
	sameLen("RMSNorm", len(dst), len(x))
	sameLen("RMSNorm", len(w), len(x))
	if len(x) > 0 {
		active.rmsNorm(dst, x, w, eps)
	}
}

// RopeHalf rotates the pairs (x[i], x[i+h]) with h = len(x)/2 by the angles whose cosines and sines are cos[i] and
// sin[i] (the style of GPT-NeoX). x is one head.
func RopeHalf(x, cos, sin []float32) {
	sameLen("RopeHalf", len(x), 2*len(cos))
	sameLen("RopeHalf", len(x), 2*len(sin))
	if len(x) > 0 {
		active.ropeHalf(x, cos, sin)
	}
}

// RopeInterleaved rotates the pairs (x[2i], x[2i+1]) by the angles whose cosines and sines are cos[i] and sin[i]
// (the style of Llama in GGUF files). x is one head.
func RopeInterleaved(x, cos, sin []float32) {
	sameLen("RopeInterleaved", len(x), 2*len(cos))
	sameLen("RopeInterleaved", len(x), 2*len(sin))
	if len(x) > 0 {
		active.ropePairs(x, cos, sin)
	}
}

// SiluMul writes gate[i]/(1+exp(-gate[i])) * up[i] into dst, which may be either.
func SiluMul(dst, gate, up []float32) {
	sameLen("SiluMul", len(dst), len(gate))
	sameLen("SiluMul", len(up), len(gate))
	if len(dst) > 0 {
		active.siluMul(dst, gate, up)
	}
}

// Add adds x to dst.
func Add(dst, x []float32) {
	sameLen("Add", len(dst), len(x))
	if len(x) > 0 {
		active.add(dst, x)
	}
}

// Scale multiplies x by a number.
func Scale(x []float32, by float32) {
	if len(x) > 0 {
		active.scale(x, by)
	}
}

// Dot returns the sum of a[i]*b[i].
func Dot(a, b []float32) float32 {
	sameLen("Dot", len(a), len(b))
	if len(a) == 0 {
		return 0
	}
	return active.dot(a, b)
}

// Max returns the largest element; of an empty slice, minus infinity. NaN elements may be passed over.
func Max(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	return active.maxOf(x)
}

// ArgMax returns the index of the largest element, the first of several; of an empty slice, -1.
func ArgMax(x []float32) int {
	peak := Max(x)
	for i, v := range x {
		if v == peak {
			return i
		}
	}
	return len(x) - 1 // only NaN
}

// Softmax replaces x by exp(x[i]) / sum of exp(x[j]), computed against the largest element.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	sum := active.expSum(x, x, active.maxOf(x))
	active.scale(x, 1/sum)
}

// LogSumExp returns log(sum of exp(x[i])). scratch must be as long as x; its content is destroyed.
func LogSumExp(x, scratch []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	peak := active.maxOf(x)
	return peak + float32(math.Log(float64(active.expSum(scratch[:len(x)], x, peak))))
}

func rmsNormGo(dst, x, w []float32, eps float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	k := float32(1 / math.Sqrt(sum/float64(len(x))+float64(eps)))
	for i, v := range x {
		dst[i] = v * k * w[i]
	}
}

func ropeHalfGo(x, cos, sin []float32) {
	a, b := x[:len(x)/2], x[len(x)/2:]
	for i := range a {
		p, q := a[i], b[i]
		a[i], b[i] = p*cos[i]-q*sin[i], q*cos[i]+p*sin[i]
	}
}

func ropePairsGo(x, cos, sin []float32) {
	for i := range cos {
		p, q := x[2*i], x[2*i+1]
		x[2*i], x[2*i+1] = p*cos[i]-q*sin[i], q*cos[i]+p*sin[i]
	}
}

func siluMulGo(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = g / (1 + float32(math.Exp(float64(-g)))) * up[i]
	}
}

func addGo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

func scaleGo(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

func maxOfGo(x []float32) float32 {
	peak := float32(math.Inf(-1))
	for _, v := range x {
		if v > peak {
			peak = v
		}
	}
	return peak
}

// expSumGo writes exp(x[i]-peak) and returns the sum.
func expSumGo(dst, x []float32, peak float32) float32 {
	sum := 0.0
	for i, v := range x {
		e := math.Exp(float64(v - peak))
		dst[i] = float32(e)
		sum += e
	}
	return float32(sum)
}

func dotGo(a, b []float32) float32 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return float32(sum)
}
