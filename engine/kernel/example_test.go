package kernel_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"baton/engine/kernel"
)

// A product of a 3x32 matrix with two tokens, divided among the threads of a team.
func Example() {
	row := func(r int) []byte { // row r holds the number r+1
		b := make([]byte, 4*32)
		for k := range 32 {
			binary.LittleEndian.PutUint32(b[4*k:], math.Float32bits(float32(r+1)))
		}
		return b
	}
	w, err := kernel.Pack(kernel.F32, 3, 32, row, kernel.Alloc)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := make([]float32, 2*32) // token 0 is all ones, token 1 all eighths
	for k := range 32 {
		x[k], x[32+k] = 1, 0.125
	}
	var in kernel.Input
	in.Set(x, 2, 32, w.Format.Form())

	y := make([]float32, 2*w.PaddedRows())
	team := kernel.NewTeam(2)
	defer team.Close()
	team.Run(func(t *kernel.Worker) {
		t.Split(w.Panels(), 1, func(lo, hi int) { kernel.MatMul(y, w.PaddedRows(), w, &in, lo, hi) })
	})
	fmt.Println(y[:3], y[w.PaddedRows():][:3])
	// Output: [32 64 96] [4 8 12]
}
