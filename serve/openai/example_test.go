package openai_test

import (
	"fmt"

	"baton/serve/openai"
)

func ExampleParse() {
	body := []byte(`{"messages":[{"role":"user","content":"Hello"}],"max_tokens":20,"temperature":0}`)
	r, err := openai.Parse(openai.Chat, body, openai.Limits{Vocab: 32000})
	if err != nil {
		fmt.Println(err.Status, err.Param)
		return
	}
	fmt.Println(r.Chat.Messages[0].Content, r.Params.MaxTokens)

	_, err = openai.Parse(openai.Chat, []byte(`{"messages":[{"role":"user","content":"Hello"}],"n":0}`), openai.Limits{Vocab: 32000})
	fmt.Println(err.Status, err.Param)
	// Output:
	// Hello 20
	// 400 n
}
