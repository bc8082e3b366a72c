package sample_test

import (
	"fmt"

	"baton/engine/recall"
	"baton/engine/sample"
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
	p := sample.Default()
	p.Temperature, p.Stop = 0, []string{"."}
	if param, message := p.Validate(tok.Vocab()); param != "" {
		panic(message)
	}
	script := tok.Encode("The code is amber falcon. And more", false) // stands for a model
	seq, scratch := sample.NewSequence(p, tok), new(sample.Scratch)
	for !seq.Finished() {
		logits := make([]float32, tok.Vocab())
		logits[script[seq.Len()]] = 10
		piece, _ := seq.Push(seq.Pick(logits, scratch))
		fmt.Printf("%q ", piece.Text)
		if piece.Finished {
			fmt.Printf("%s at %q\n", piece.Reason, piece.Matched)
		}
	}
	// Output: "The" " code" " is" " amber" " falcon" "" stop at "."
}
