package grammar_test

import (
	"encoding/json"
	"fmt"

	"baton/engine/grammar"
	"baton/engine/recall"
	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

func Example() {
	file, err := gguf.Parse(recall.GGUF())
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.FromGGUF(file)
	if err != nil {
		panic(err)
	}
	spec := &grammar.Spec{Kind: grammar.KindSchema, Schema: json.RawMessage(
		`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)}
	if message := spec.Validate(); message != "" {
		panic(message)
	}
	g, err := grammar.Compile(spec, tok, tok.Vocab())
	if err != nil {
		panic(err)
	}

	s := g.Start()
	for _, id := range tok.Encode(`{"ok": tr`, false) {
		s.Push(id)
	}
	mask := make([]uint64, g.Words())
	s.Allowed(mask)
	for id := range int32(tok.Vocab()) {
		if mask[id/64]>>(id%64)&1 == 1 {
			fmt.Printf("%q\n", tok.Text(id))
		}
	}

	bad := grammar.Spec{Kind: grammar.KindSchema, Schema: json.RawMessage(`{"items": {"not": {}}}`)}
	fmt.Println(bad.Validate())
	// Output:
	// "u"
	// json_schema: the keyword "not" at "#/items/not" is not supported
}
