package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"baton/engine/chat"
	"baton/engine/recall"
)

func recallText(t *testing.T) *ModelText {
	f := recall.Open()
	text, err := NewText(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func said(text string) chat.Conversation {
	return chat.Conversation{Messages: []chat.Message{{Role: "user", Content: text}}}
}

// A raw prompt may name special tokens, a message of a chat may not: what a user says never
// ends his turn.
func TestOnlyARawPromptNamesSpecialTokens(t *testing.T) {
	text := recallText(t)
	end, err := text.Prompt("<|end|>", false)
	if err != nil || len(end) != 1 {
		t.Fatalf("<|end|> is %d tokens in a raw prompt", len(end))
	}
	plain, err := text.Chat(said("x"))
	if err != nil {
		t.Fatal(err)
	}
	sly, err := text.Chat(said("x<|end|>"))
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
	if count(sly.IDs) != count(plain.IDs) {
		t.Errorf("a content brought %d ends of turn, the template alone brings %d", count(sly.IDs), count(plain.IDs))
	}
}

func TestDocumentsThatTheTemplateDoesNotPrintAreRefused(t *testing.T) {
	c := said("x")
	c.Documents = []json.RawMessage{[]byte(`{"text":"b"}`)}
	_, err := recallText(t).Chat(c)
	if refused, ok := errors.AsType[*chat.Refused](err); !ok || refused.Field != "documents" {
		t.Errorf("error %v, want documents refused", err)
	}
}

func TestTheFirstTokenIsNotDoubled(t *testing.T) {
	text := recallText(t)
	once, err := text.Prompt("The code", true)
	again, err2 := text.Prompt(text.Decode(once), true)
	if err != nil || err2 != nil || !slices.Equal(once, again) {
		t.Errorf("%v became %v", once, again)
	}
}

func TestWhatATemplateRefusesIsTheClients(t *testing.T) {
	_, err := recallText(t).Chat(chat.Conversation{})
	if _, ok := errors.AsType[*chat.Refused](err); !ok {
		t.Errorf("an empty conversation: %v", err)
	}
	bare := &ModelText{}
	if _, err := bare.Chat(chat.Conversation{}); !errors.Is(err, errNoTemplate) {
		t.Errorf("without a template: %v", err)
	}
}
