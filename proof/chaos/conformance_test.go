package chaos

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"baton/engine/chat"
	"baton/engine/recall"
)

// said is what a client made of an answer.
type said struct {
	text, finish      string
	fingerprint       string
	tokens, prompt    []int32 // of return_token_ids
	prompted, written int     // of usage
}

// speaker is a client that is not ours, with everything that this test asks of it.
type speaker interface {
	// models lists the ids of GET /v1/models and what GET /v1/models/recall answers with.
	models(t *testing.T) (all []string, one string)
	tokenize(t *testing.T, body any) []int32
	detokenize(t *testing.T, ids []int32) string
	chat(t *testing.T, messages []chat.Message, stream bool) said
	// complete takes a prompt that is a string or []int32.
	complete(t *testing.T, prompt any, stream bool) said
}

// answerTokensMax is far above a code's and below a repeat's.
const answerTokensMax = 64

// TestClientsOfOthersReadRightAnswers asks the real pair through OpenAI's own library and
// through curl: chats and raw prompts, as text and as token ids, streamed and not.
func TestClientsOfOthersReadRightAnswers(t *testing.T) {
	c := start(t, "--canary")
	for name, speaks := range map[string]func(*testing.T) speaker{
		"openai-go": func(*testing.T) speaker {
			hc, hangUp := client()
			t.Cleanup(hangUp)
			return newLibrary(c.URL, option.WithHTTPClient(hc))
		},
		"curl": func(t *testing.T) speaker {
			path, err := exec.LookPath("curl")
			if err != nil {
				t.Skipf("no curl on this machine: %v", err)
			}
			return curl{path, c.URL}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := speaks(t)
			if all, one := s.models(t); !slices.Equal(all, []string{"recall"}) || one != "recall" {
				t.Errorf("models %q and %q", all, one)
			}
			r := rand.New(rand.NewPCG(14, 14))
			for _, facts := range []int{1, 12, 60} {
				p := recall.NewPrompt(r, facts)
				for _, turn := range []recall.Turn{p.AskOne(r), p.AskAbsent(r)} {
					converse(t, s, p.Messages(turn.Question), turn.Answer)
				}
			}
		})
	}
	requireNoCanary(t, c)
}

// converse asks one question in every way that there is.
func converse(t *testing.T, s speaker, messages []chat.Message, want string) {
	t.Helper()
	ids := s.tokenize(t, map[string]any{"messages": messages})
	text := s.detokenize(t, ids)
	if again := s.tokenize(t, map[string]any{"prompt": text}); len(ids) == 0 || !slices.Equal(again, ids) {
		t.Errorf("a prompt of %d tokens, as text, has %d others: %q", len(ids), len(again), text)
	}
	for _, stream := range []bool{false, true} {
		for name, got := range map[string]said{"chat": s.chat(t, messages, stream), "text": s.complete(t, text, stream), "token ids": s.complete(t, ids, stream)} {
			if got.text != want || got.finish != "stop" {
				t.Errorf("%s, stream %v: %q, finish %q; want %q, stop", name, stream, got.text, got.finish, want)
			}
			if !slices.Equal(got.prompt, ids) || got.prompted != len(ids) {
				t.Errorf("%s, stream %v: prompt_token_ids are %d tokens and usage says %d, want %d", name, stream, len(got.prompt), got.prompted, len(ids))
			}
			if len(got.tokens) != got.written || !strings.HasPrefix(s.detokenize(t, got.tokens), want) {
				t.Errorf("%s, stream %v: token_ids %v are not the %d tokens of %q", name, stream, got.tokens, got.written, want)
			}
			if !strings.HasPrefix(got.fingerprint, "fp_") {
				t.Errorf("%s, stream %v: system_fingerprint %q", name, stream, got.fingerprint)
			}
		}
	}
}

// reply is an answer, or a chunk of one, of either endpoint, as JSON has it.
type reply struct {
	Fingerprint string `json:"system_fingerprint"`
	Choices     []struct {
		Text    string
		Message struct{ Content string }
		Delta   struct{ Content string }
		Finish  string  `json:"finish_reason"`
		Tokens  []int32 `json:"token_ids"`
		Prompt  []int32 `json:"prompt_token_ids"` // of completions
	}
	Prompt []int32 `json:"prompt_token_ids"` // of chats
	Usage  struct {
		Prompted int `json:"prompt_tokens"`
		Written  int `json:"completion_tokens"`
	}
}

// hear adds a reply to what was said. It leaves the text to the caller.
func (s *said) hear(t *testing.T, raw string) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	s.fingerprint = r.Fingerprint
	s.prompt = append(s.prompt, r.Prompt...)
	s.prompted, s.written = s.prompted+r.Usage.Prompted, s.written+r.Usage.Written
	for _, c := range r.Choices {
		s.prompt, s.tokens = append(s.prompt, c.Prompt...), append(s.tokens, c.Tokens...)
	}
	return r
}

// library is OpenAI's own for Go.
type library struct{ api, root openai.Client }

func newLibrary(url string, o ...option.RequestOption) library {
	o = append(o, option.WithAPIKey("none"), option.WithMaxRetries(0))
	return library{openai.NewClient(append(o, option.WithBaseURL(url+"/v1/"))...), openai.NewClient(append(o, option.WithBaseURL(url+"/"))...)}
}

func (l library) models(t *testing.T) (all []string, one string) {
	list, err := l.api.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Data {
		all = append(all, m.ID)
	}
	m, err := l.api.Models.Get(t.Context(), "recall")
	if err != nil {
		t.Fatal(err)
	}
	return all, m.ID
}

func (l library) tokenize(t *testing.T, body any) []int32 {
	t.Helper()
	var got struct {
		Count  int
		Tokens []int32
	}
	if err := l.root.Post(t.Context(), "tokenize", body, &got); err != nil || got.Count != len(got.Tokens) {
		t.Fatalf("%+v: %v", got, err)
	}
	return got.Tokens
}

func (l library) detokenize(t *testing.T, ids []int32) string {
	t.Helper()
	var got struct{ Prompt string }
	if err := l.root.Post(t.Context(), "detokenize", map[string]any{"tokens": ids}, &got); err != nil {
		t.Fatal(err)
	}
	return got.Prompt
}

var withTokenIDs = option.WithJSONSet("return_token_ids", true)

func (l library) chat(t *testing.T, messages []chat.Message, stream bool) (s said) {
	t.Helper()
	p := openai.ChatCompletionNewParams{Model: "recall", Temperature: openai.Float(0), MaxCompletionTokens: openai.Int(answerTokensMax)}
	for _, m := range messages {
		if m.Role == "system" {
			p.Messages = append(p.Messages, openai.SystemMessage(m.Content))
		} else {
			p.Messages = append(p.Messages, openai.UserMessage(m.Content))
		}
	}
	if !stream {
		got, err := l.api.Chat.Completions.New(t.Context(), p, withTokenIDs)
		if err != nil {
			t.Fatal(err)
		}
		s.hear(t, got.RawJSON())
		s.text, s.finish = got.Choices[0].Message.Content, string(got.Choices[0].FinishReason)
		return s
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	events := l.api.Chat.Completions.NewStreaming(t.Context(), p, withTokenIDs)
	var all openai.ChatCompletionAccumulator
	for events.Next() {
		if !all.AddChunk(events.Current()) {
			t.Fatalf("a chunk that does not fit: %s", events.Current().RawJSON())
		}
		s.hear(t, events.Current().RawJSON())
	}
	if err := events.Err(); err != nil || len(all.Choices) != 1 {
		t.Fatalf("%v: %+v", err, all)
	}
	s.text, s.finish = all.Choices[0].Message.Content, string(all.Choices[0].FinishReason)
	return s
}

func (l library) complete(t *testing.T, prompt any, stream bool) (s said) {
	t.Helper()
	p := openai.CompletionNewParams{Model: "recall", Temperature: openai.Float(0), MaxTokens: openai.Int(answerTokensMax)}
	switch v := prompt.(type) {
	case string:
		p.Prompt.OfString = openai.String(v)
	case []int32:
		for _, id := range v {
			p.Prompt.OfArrayOfTokens = append(p.Prompt.OfArrayOfTokens, int64(id))
		}
	}
	if !stream {
		got, err := l.api.Completions.New(t.Context(), p, withTokenIDs)
		if err != nil {
			t.Fatal(err)
		}
		s.hear(t, got.RawJSON())
		s.text, s.finish = got.Choices[0].Text, string(got.Choices[0].FinishReason)
		return s
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	events := l.api.Completions.NewStreaming(t.Context(), p, withTokenIDs)
	for events.Next() {
		now := events.Current()
		s.hear(t, now.RawJSON())
		for _, c := range now.Choices {
			s.text, s.finish = s.text+c.Text, s.finish+string(c.FinishReason)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// curl is the program, as people use it.
type curl struct{ path, url string }

// run returns the body of an answer; a body of its own makes it a POST. Options are those that
// every curl has.
func (c curl) run(t *testing.T, path string, body any) string {
	t.Helper()
	args := []string{"--silent", "--show-error", "--no-buffer", "--max-time", "60", c.url + path}
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, "--header", "Content-Type: application/json", "--data-binary", "@-")
		cmd.Stdin = bytes.NewReader(b)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %s: %v: %s %s", path, err, stderr.Bytes(), out)
	}
	return string(out)
}

func (c curl) read(t *testing.T, path string, body, into any) {
	t.Helper()
	if out := c.run(t, path, body); json.Unmarshal([]byte(out), into) != nil {
		t.Fatalf("curl %s: %q", path, out)
	}
}

func (c curl) models(t *testing.T) (all []string, one string) {
	var list struct{ Data []struct{ ID string } }
	c.read(t, "/v1/models", nil, &list)
	for _, m := range list.Data {
		all = append(all, m.ID)
	}
	var m struct{ ID string }
	c.read(t, "/v1/models/recall", nil, &m)
	return all, m.ID
}

func (c curl) tokenize(t *testing.T, body any) []int32 {
	t.Helper()
	var got struct{ Tokens []int32 }
	c.read(t, "/tokenize", body, &got)
	return got.Tokens
}

func (c curl) detokenize(t *testing.T, ids []int32) string {
	t.Helper()
	var got struct{ Prompt string }
	c.read(t, "/detokenize", map[string]any{"tokens": ids}, &got)
	return got.Prompt
}

func (c curl) chat(t *testing.T, messages []chat.Message, stream bool) said {
	t.Helper()
	return c.generate(t, "/v1/chat/completions", map[string]any{"messages": messages}, stream)
}

func (c curl) complete(t *testing.T, prompt any, stream bool) said {
	t.Helper()
	return c.generate(t, "/v1/completions", map[string]any{"prompt": prompt}, stream)
}

func (c curl) generate(t *testing.T, path string, body map[string]any, stream bool) (s said) {
	t.Helper()
	body["model"], body["temperature"], body["max_tokens"], body["return_token_ids"] = "recall", 0, answerTokensMax, true
	if stream {
		body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
	}
	out := c.run(t, path, body)
	events := []string{out}
	if stream {
		rest, done := strings.CutSuffix(out, "data: [DONE]\n\n")
		if !done {
			t.Fatalf("curl %s: a stream that does not end in [DONE]: %q", path, out)
		}
		events = strings.Split(strings.TrimSuffix(rest, "\n\n"), "\n\n")
	}
	for _, e := range events {
		for _, choice := range s.hear(t, strings.TrimPrefix(e, "data: ")).Choices {
			s.text += choice.Text + choice.Message.Content + choice.Delta.Content
			s.finish += choice.Finish
		}
	}
	return s
}
