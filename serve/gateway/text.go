package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/checkpoint"
	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
	"baton/serve/openai"
)

// Text turns words into token ids and back. It is safe for use by several goroutines.
type Text interface {
	// Chat returns a conversation as the model reads it, ready for an answer, and how this
	// will be written. An error that is a *chat.Refused is the client's.
	Chat(c chat.Conversation) (*chat.Prompt, error)
	// Prompt returns the tokens of a text that stands for itself, as of /v1/completions: names
	// of special tokens in it become these tokens. With addSpecial the model's first token is
	// in front, if it has one. An error that is tokenizer.ErrSlow is the text's.
	Prompt(text string, addSpecial bool) ([]int32, error)
	Decode(ids []int32) string
	Token(id int32) []byte
	Vocab() int
}

// ModelText is the Text of a model file.
type ModelText struct {
	tok  *tokenizer.Tokenizer
	chat *chat.Template // nil: the file has none
}

// NewText reads tokenizer and chat template from a model file.
func NewText(f *gguf.File) (*ModelText, error) {
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("gateway: the model's tokenizer: %w", err)
	}
	t := &ModelText{tok: tok}
	if src, ok := f.String("tokenizer.chat_template"); ok {
		if t.chat, err = chat.New(src, tok); err != nil {
			return nil, fmt.Errorf("gateway: the model's chat template: %w", err)
		}
	}
	return t, nil
}

// TextOf is the Text of a model wherever it lies. It keeps nothing of c open.
func TextOf(c *checkpoint.Checkpoint) *ModelText {
	return &ModelText{tok: c.Tokenizer, chat: c.Template}
}

var errNoTemplate = &chat.Refused{Reason: "this model has no chat template; use /v1/completions"}

// Chat implements Text.
func (t *ModelText) Chat(c chat.Conversation) (*chat.Prompt, error) {
	if t.chat == nil {
		return nil, errNoTemplate
	}
	if err := t.chat.CheckDocuments(c); err != nil {
		return nil, err
	}
	return t.chat.Prompt(c)
}

// Prompt implements Text.
func (t *ModelText) Prompt(text string, addSpecial bool) ([]int32, error) {
	ids, err := t.tok.EncodeParts([]tokenizer.Part{{Text: text, Special: true}})
	if err != nil {
		return nil, err
	}
	if addSpecial && t.tok.AddBOS() && (len(ids) == 0 || ids[0] != t.tok.BOS()) {
		ids = append([]int32{t.tok.BOS()}, ids...)
	}
	return ids, nil
}

// tokens returns those of a text that stands for itself, from that field of the client's.
func (g *Gateway) tokens(field, text string, addSpecial bool) ([]int32, *openai.Error) {
	ids, err := g.config.Text.Prompt(text, addSpecial)
	switch {
	case err == nil:
		return ids, nil
	case errors.Is(err, tokenizer.ErrSlow):
		return nil, refusal(field, openai.CodeValue, err.Error())
	}
	g.log.Error("tokenizer failed", "cause", room.Internal.String(), "detail", err.Error())
	return nil, openai.Failure(room.Fail(room.Internal), "", 0)
}

// Decode implements Text.
func (t *ModelText) Decode(ids []int32) string { return t.tok.Decode(ids, false) }

// Token implements Text.
func (t *ModelText) Token(id int32) []byte { return t.tok.Token(id) }

// Vocab implements Text.
func (t *ModelText) Vocab() int { return t.tok.Vocab() }

var _ Text = (*ModelText)(nil)

func (g *Gateway) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuse(w, err)
		return
	}
	defer body.Release()
	req, err := openai.ParseTokenize(body.Bytes)
	if err == nil {
		err = g.checkModel(req.Model)
	}
	if err != nil {
		g.refuse(w, err)
		return
	}
	text, context := g.config.Text, g.status.Load().capacity.Context
	field, bytes := "prompt", len(req.Prompt)
	if req.Chat != nil {
		field, bytes = openai.Words(req.Chat)
	}
	if err := g.checkText(field, bytes, context); err != nil {
		g.refuse(w, err)
		return
	}
	out := openai.Tokenized{MaxModelLen: context, Tokens: []int32{}}
	if req.Chat != nil {
		prompt, err := g.conversation(*req.Chat)
		if err != nil {
			g.refuse(w, err)
			return
		}
		out.Tokens = append(out.Tokens, prompt.IDs...)
	} else {
		ids, err := g.tokens("prompt", req.Prompt, req.AddSpecial)
		if err != nil {
			g.refuse(w, err)
			return
		}
		out.Tokens = append(out.Tokens, ids...)
	}
	out.Count = len(out.Tokens)
	if req.Strings {
		for _, id := range out.Tokens {
			out.TokenStrs = append(out.TokenStrs, string(text.Token(id)))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

func (g *Gateway) detokenize(w http.ResponseWriter, r *http.Request) {
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuse(w, err)
		return
	}
	defer body.Release()
	req, err := openai.ParseDetokenize(body.Bytes, openai.Limits{Vocab: g.config.Text.Vocab()})
	if err == nil {
		err = g.checkModel(req.Model)
	}
	if err != nil {
		g.refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, openai.Detokenized{Prompt: g.config.Text.Decode(req.Tokens)})
}
