package gateway

import (
	"errors"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"baton/core/room"
	"baton/engine/sample"
	"baton/serve/leg"
)

// OpenAI's own client, against fake legs.
func client(r *rig) openai.Client {
	return openai.NewClient(option.WithBaseURL(r.url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0),
		option.WithHTTPClient(r.server.Client()))
}

func chatParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "fake", MaxCompletionTokens: openai.Int(8), Seed: openai.Int(7),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be kind"), openai.UserMessage("hi")}}
}

func TestOpenAIsClientReadsAChat(t *testing.T) {
	r := newRig(t, 1, nil)
	c := client(r)
	got, err := c.Chat.Completions.New(t.Context(), chatParams())
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Message.Content != "hello" || got.Choices[0].FinishReason != "stop" || got.Usage.CompletionTokens != 5 || got.Object != "chat.completion" {
		t.Errorf("%s", got.RawJSON())
	}
	if r.decodes[0].last.Params.Seed != 7 || r.decodes[0].last.Params.MaxTokens != 8 {
		t.Errorf("%+v", r.decodes[0].last.Params)
	}
}

func TestOpenAIsClientReadsAStream(t *testing.T) {
	r := newRig(t, 1, nil)
	c := client(r)
	p := chatParams()
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	all := openai.ChatCompletionAccumulator{}
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Fatalf("a chunk that does not fit: %s", s.Current().RawJSON())
		}
	}
	if s.Err() != nil || all.Choices[0].Message.Content != "hello" || all.Choices[0].FinishReason != "stop" || all.Usage.TotalTokens == 0 {
		t.Errorf("%v: %+v", s.Err(), all)
	}
}

func TestOpenAIsClientSeesAFailureOfAStream(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece("hel"); l.fail(room.Internal) })
	c := client(r)
	s := c.Chat.Completions.NewStreaming(t.Context(), chatParams())
	text := ""
	for s.Next() {
		text += s.Current().Choices[0].Delta.Content
	}
	if s.Err() == nil || text != "hel" {
		t.Errorf("text %q, error %v", text, s.Err())
	}
}

func TestOpenAIsClientReadsErrors(t *testing.T) {
	r := newRig(t, 1, nil)
	c := client(r)
	p := chatParams()
	p.Temperature = openai.Float(3)
	_, err := c.Chat.Completions.New(t.Context(), p)
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != http.StatusBadRequest || e.Param != "temperature" || e.Type != "invalid_request_error" || e.Code != "invalid_value" {
		t.Errorf("%v", err)
	}
}

func TestOpenAIsClientReadsLogprobs(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		l.line(leg.Line{Text: "h", IDs: []int32{'h'}, Logprobs: []sample.TokenLogprob{{ID: 'h', Bytes: []byte("h"), Logprob: -0.5,
			Top: []sample.TopLogprob{{ID: 'h', Bytes: []byte("h"), Logprob: -0.5}, {ID: 'i', Bytes: []byte("i"), Logprob: -1.5}}}}})
		l.done(1)
	})
	c := client(r)
	p := chatParams()
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(2)
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	l := got.Choices[0].Logprobs.Content
	if len(l) != 1 || l[0].Token != "h" || l[0].Logprob != -0.5 || len(l[0].TopLogprobs) != 2 || l[0].TopLogprobs[1].Token != "i" || l[0].Bytes[0] != 'h' {
		t.Errorf("%s", got.RawJSON())
	}
	old, err := c.Completions.New(t.Context(), openai.CompletionNewParams{Model: "fake", Logprobs: openai.Int(2),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("x")}})
	if err != nil {
		t.Fatal(err)
	}
	if o := old.Choices[0].Logprobs; len(o.Tokens) != 1 || o.Tokens[0] != "h" || o.TopLogprobs[0]["i"] != -1.5 || o.TextOffset[0] != 0 {
		t.Errorf("%s", old.RawJSON())
	}
}

func TestOpenAIsClientListsModels(t *testing.T) {
	r := newRig(t, 1, nil)
	c := client(r)
	list, err := c.Models.List(t.Context())
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != "fake" {
		t.Errorf("%v %+v", err, list)
	}
	var e *openai.Error
	if _, err := c.Models.Get(t.Context(), "other"); !errors.As(err, &e) || e.StatusCode != 404 || e.Code != "model_not_found" {
		t.Errorf("%v: %+v", err, e)
	}
}
