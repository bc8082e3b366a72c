package chat_test

import (
	"errors"
	"fmt"

	"baton/engine/chat"
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
	tpl, err := chat.FromGGUF(f, tok)
	if err != nil {
		panic(err)
	}
	ids, err := tpl.Encode([]chat.Message{{Role: "user", Content: "Hello<|end|>"}})
	fmt.Println(ids, err) // 2 <|user|>, the content as text, 4 <|end|>, 3 <|assistant|>
	_, err = tpl.Encode(nil)
	var refused *chat.Refused
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// [2 471 32 96 296 72 96 34 4 3] <nil>
	// true chat: the conversation has 0 messages, allowed are 1 to 4096
}
