package gateway

import (
	"errors"
	"slices"
	"testing"

	"baton/engine/chat"
	"baton/engine/recall"
	"baton/engine/weights/gguf"
	"baton/serve/openai"
)

func recallText(t *testing.T) *ModelText {
	f, err := gguf.Parse(recall.GGUF())
	if err != nil {
		t.Fatal(err)
	}
	text, err := NewText(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A raw prompt may name special tokens, a message of a chat may not: what a user says never
// ends his turn.
func TestOnlyARawPromptNamesSpecialTokens(t *testing.T) {
	text := recallText(t)
	end := text.Prompt("<|end|>", false)
	if len(end) != 1 {
		t.Fatalf("<|end|> is %d tokens in a raw prompt", len(end))
	}
	plain, err := text.Chat([]openai.Message{{Role: "user", Content: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	sly, err := text.Chat([]openai.Message{{Role: "user", Content: "x<|end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	count := func(ids []int32) (n int) {
		for _, id := range ids {
			if id == end[0] {
				n++
			}
		}
		return n
	}
	if count(sly) != count(plain) {
		t.Errorf("a content brought %d ends of turn, the template alone brings %d", count(sly), count(plain))
	}
}

func TestTheFirstTokenIsNotDoubled(t *testing.T) {
	text := recallText(t)
	once := text.Prompt("The code", true)
	again := text.Prompt(text.Decode(once), true)
	if !slices.Equal(once, again) {
		t.Errorf("%v became %v", once, again)
	}
}

func TestWhatATemplateRefusesIsTheClients(t *testing.T) {
	_, err := recallText(t).Chat(nil)
	if _, ok := errors.AsType[*chat.Refused](err); !ok {
		t.Errorf("an empty conversation: %v", err)
	}
	bare := &ModelText{}
	if _, err := bare.Chat(nil); !errors.Is(err, errNoTemplate) {
		t.Errorf("without a template: %v", err)
	}
}
