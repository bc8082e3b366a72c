package model_test

import (
	"fmt"

	"baton/engine/chat"
	"baton/engine/kernel"
	"baton/engine/model"
	"baton/engine/recall"
	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

// A prompt in one step, then one token after another: the whole life of a sequence.
func Example() {
	f, err := gguf.Parse(recall.GGUF())
	if err != nil {
		panic(err)
	}
	m, err := model.Open(f, model.Options{Threads: 1})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		panic(err)
	}
	template, err := chat.FromGGUF(f, tok)
	if err != nil {
		panic(err)
	}
	ids, err := template.Encode([]chat.Message{{Role: "user", Content: "The code of Maria is amber falcon. The code of Tobias is copper swan. " +
		"The code of all others is unknown.\nWhat is the code of Tobias?"}})
	if err != nil {
		panic(err)
	}
	kv, err := m.NewKV(8)
	if err != nil {
		panic(err)
	}
	defer kv.Close()
	r := m.NewRunner(kv)
	item := []model.Item{{Tokens: ids, Table: []int32{5, 2, 7, 0, 1}, Want: true}} // blocks in any order
	var answer []int32
	for range 20 {
		if err := r.Step(item); err != nil {
			panic(err)
		}
		next := int32(kernel.ArgMax(item[0].Logits))
		if tok.IsEOS(next) {
			break
		}
		answer = append(answer, next)
		item[0].Pos += len(item[0].Tokens)
		item[0].Tokens = answer[len(answer)-1:]
	}
	fmt.Println(tok.Decode(answer, true))
	// Output: The code of Tobias is copper swan.
}
