package tokenizer_test

import (
	"fmt"

	"baton/engine/recall"
	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

func Example() {
	f, err := gguf.Parse(recall.GGUF())
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		panic(err)
	}
	text := "The code of Maria<|end|>"
	fmt.Println(tok.Encode(text, true))  // the end token is 4
	fmt.Println(tok.Encode(text, false)) // here it is text
	fmt.Println(tok.Decode(tok.Encode(text, false), true))
	// Output:
	// [270 267 268 1137 4]
	// [270 267 268 1137 32 96 296 72 96 34]
	// The code of Maria<|end|>
}
