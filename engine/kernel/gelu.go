package kernel

import (
	"fmt"
	"math"
)

// GeluMul writes gelu(gate[i]) * up[i] into gate, where gelu is the approximation by tanh (gelu_pytorch_tanh):
// x/2 * (1+tanh(c*(x+0.044715*x^3))) with c = sqrt(2/pi). That is x*sigmoid(2c*(x+0.044715*x^3)), so SiLU's kernel
// computes it: x*sigmoid(u) = silu(u)*x/u. up is destroyed.
func GeluMul(gate, up []float32) {
	sameLen("GeluMul", len(gate), len(up))
	const c2 = 1.5957691216057308 // 2*sqrt(2/pi)
	for i, x := range gate {
		by := c2 * (1 + 0.044715*float32(x*x)) // u/x, at least c2
		gate[i], up[i] = float32(x*by), up[i]/by
	}
	SiluMul(gate, gate, up)
}

// SoftCap turns every x into cap*tanh(x/cap).
func SoftCap(x []float32, cap float32) {
	if !(cap > 0) {
		panic(fmt.Sprintf("kernel: a soft cap of %g", cap))
	}
	for i, v := range x {
		x[i] = cap * float32(math.Tanh(float64(v/cap)))
	}
}
