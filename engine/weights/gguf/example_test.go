package gguf_test

import (
	"fmt"

	"baton/engine/weights/gguf"
)

func Example() {
	var w gguf.Writer // or gguf.Open(path)
	w.Set("general.architecture", "llama")
	w.Add("token_embd.weight", gguf.F16, []uint64{2, 1}, []byte{0x00, 0x3c, 0x00, 0xc0})
	b, err := w.Bytes()
	if err != nil {
		panic(err)
	}
	f, err := gguf.Parse(b)
	if err != nil {
		panic(err)
	}
	arch, _ := f.String("general.architecture")
	t, _ := f.Tensor("token_embd.weight")
	row := make([]float32, t.Cols())
	if err := gguf.Dequant(row, t.Type, t.Row(0)); err != nil {
		panic(err)
	}
	fmt.Println(arch, t, row)
	// Output: llama token_embd.weight F16 [2 1] [1 -2]
}
