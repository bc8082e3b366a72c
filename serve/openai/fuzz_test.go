package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine/chat/reply"
	"baton/engine/sample"
)

// events reads a stream as the standard for server-sent events says: lines end in CR, LF or
// both, "data" fields of one event are joined by line feeds, comments are skipped.
func events(stream string) (data []string) {
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	var field []string
	for line := range strings.SplitSeq(stream, "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			if field != nil {
				data = append(data, strings.Join(field, "\n"))
			}
			field = nil
		case name == "data":
			field = append(field, strings.TrimPrefix(value, " "))
		}
	}
	return data
}

// FuzzStream writes an answer of two pieces as a stream and reads it again: the client has
// every byte of the text in its place, one finish reason or one error, and nothing behind the
// end, whatever the text, the names and the messages hold.
func FuzzStream(f *testing.F) {
	f.Add(true, "Hel", "lo", "stop", "", "model", float32(-1))
	f.Add(false, "data: [DONE]\n\n", "\r\n\r\n: x", "length", "\u2028", "m\n\ndata: x", float32(math.Inf(-1)))
	f.Add(true, "\xff\xfe", "\x00\x1b[2J", "", "failed\n\ndata: [DONE]", "<&>", float32(math.NaN()))
	f.Fuzz(func(t *testing.T, chat bool, one, two, finish, matched, model string, logprob float32) {
		e := Completion
		if chat {
			e = Chat
		}
		a := answerOf(e, func(r *Request) { r.IncludeUsage, r.ReturnTokenIDs, r.Params.Logprobs = true, true, 1 })
		a.Model = model
		stream := Keepalive
		put := func(b []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
			stream += string(b)
		}
		put(a.Opening(0))
		top := []sample.TokenLogprob{{ID: 1, Bytes: []byte(one), Logprob: logprob, Top: []sample.TopLogprob{{ID: 1, Bytes: []byte(two), Logprob: logprob}}}}
		put(a.Chunk(&Piece{Text: one, IDs: []int32{1}, Logprobs: top}, true))
		stream += Keepalive
		put(a.Chunk(&Piece{Text: two, IDs: []int32{2}}, false))
		if finish != "" {
			put(a.Chunk(&Piece{Finish: finish, Matched: matched}, false))
			put(a.Closing(Count(2, 2, 0)))
		} else {
			stream += string(ErrorEvent(&Error{Message: matched, Type: TypeServer, Code: "internal"}))
		}
		judgeStream(t, events(stream), clean(one)+clean(two), clean(finish), clean(matched))
	})
}

// clean is what JSON makes of a string that is not UTF-8.
func clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out string
	b, _ := json.Marshal(s)
	_ = json.Unmarshal(b, &out)
	return out
}

func judgeStream(t *testing.T, data []string, text, finish, message string) {
	got, reasons, ends := "", 0, 0
	for i, d := range data {
		if d == "[DONE]" {
			if ends++; i != len(data)-1 {
				t.Fatalf("event %d of %d is the end", i+1, len(data))
			}
			continue
		}
		var v struct {
			Choices []struct {
				Text         string
				Delta        struct{ Content string }
				FinishReason *string `json:"finish_reason"`
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			t.Fatalf("event %q: %v", d, err)
		}
		if v.Error != nil {
			if ends++; v.Error.Message != message || i != len(data)-1 {
				t.Fatalf("event %d of %d is an error: %q, want %q", i+1, len(data), v.Error.Message, message)
			}
		}
		for _, c := range v.Choices {
			got += c.Text + c.Delta.Content
			if c.FinishReason != nil {
				if reasons++; *c.FinishReason != finish {
					t.Fatalf("finish reason %q, want %q", *c.FinishReason, finish)
				}
			}
		}
	}
	want := 1
	if finish == "" {
		want = 0
	}
	if got != text || ends != 1 || reasons != want {
		t.Fatalf("%q with %d ends and %d finish reasons, want %q", got, ends, reasons, text)
	}
}

// FuzzTokenRoutes is POST /tokenize and /detokenize: a refusal that names the field, or a
// request within its bounds.
func FuzzTokenRoutes(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"x","add_special_tokens":false,"return_token_strs":true}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
		`{"tokens":[1,2,3],"model":"m"}`, `{"tokens":[1e9]}`, `{"prompt":"x","messages":[]}`, `{"prompt":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		words, err := ParseTokenize(body)
		switch {
		case err != nil:
			if err.Status != 400 || err.Message == "" || err.Code == "" || words != nil {
				t.Fatalf("refusal %+v", err)
			}
		case words.Chat != nil && words.Prompt != "":
			t.Fatalf("prompt and messages: %+v", words)
		case words.Chat != nil && len(words.Chat.Messages) > MessagesMax:
			t.Fatalf("%d messages", len(words.Chat.Messages))
		}
		ids, err := ParseDetokenize(body, lim)
		if err != nil {
			if err.Status != 400 || err.Message == "" || err.Code == "" || ids != nil {
				t.Fatalf("refusal %+v", err)
			}
			return
		}
		for _, id := range ids.Tokens {
			if id < 0 || int(id) >= lim.Vocab || len(ids.Tokens) > TokensMax {
				t.Fatalf("token %d of %d", id, lim.Vocab)
			}
		}
	})
}

// FuzzParts writes an answer of thoughts, content and calls as a stream and as a whole: the client
// has the same message either way, with every byte in its place, whatever the parts hold.
func FuzzParts(f *testing.F) {
	f.Add("hm", "Hello", "f", `{"a":1}`, uint8(0b11100100))
	f.Add("data: x\n\n", "\r\n", "a b", "{\"a\":\"\\u2028\u2028<&>\"}", uint8(0b10110001))
	f.Add("", "", "", "", uint8(0))
	f.Fuzz(func(t *testing.T, thought, content, name, arguments string, order uint8) {
		if !utf8.ValidString(thought + "\x00" + content + "\x00" + name + "\x00" + arguments) {
			t.Skip() // pieces of text are valid, wherever they are cut (tokenizer T4)
		}
		var all []reply.Delta
		calls := -1
		for i := range 4 {
			switch kind := order >> (2 * i) & 3; {
			case kind == 0 && thought != "":
				all = append(all, reply.Delta{Reasoning: thought})
			case kind == 1 && content != "":
				all = append(all, reply.Delta{Content: content})
			case kind == 2 && name != "":
				calls++
				all = append(all, reply.Delta{Call: &reply.CallDelta{Index: calls, Name: name}})
			case kind == 3 && arguments != "" && calls >= 0:
				all = append(all, reply.Delta{Call: &reply.CallDelta{Index: calls, Arguments: arguments}})
			}
		}
		a := answerOf(Chat, func(r *Request) { r.ReturnTokenIDs = true })
		var stream []byte
		for i := range all {
			b, err := a.Chunk(&Piece{Deltas: all[i : i+1], IDs: []int32{1}}, false)
			if err != nil {
				t.Fatal(err)
			}
			stream = append(stream, b...)
		}
		type message struct {
			Content string
			Thought string `json:"reasoning_content"`
			Calls   []struct {
				Index    int
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		var joined message
		for _, e := range events(string(stream)) {
			var v struct{ Choices []struct{ Delta message } }
			if err := json.Unmarshal([]byte(e), &v); err != nil {
				t.Fatalf("event %q: %v", e, err)
			}
			d := v.Choices[0].Delta
			joined.Content += d.Content
			joined.Thought += d.Thought
			for _, c := range d.Calls {
				if c.ID != "" {
					if c.Index != len(joined.Calls) || c.Type != "function" {
						t.Fatalf("call %d of %d: %q", c.Index, len(joined.Calls), e)
					}
					joined.Calls = append(joined.Calls, c)
					continue
				}
				joined.Calls[c.Index].Function.Arguments += c.Function.Arguments
			}
		}
		b, err := a.Whole([]Piece{{Deltas: all, Finish: FinishStop}}, Usage{})
		var v struct{ Choices []struct{ Message message } }
		if err != nil || json.Unmarshal(b, &v) != nil {
			t.Fatalf("%v: %s", err, b)
		}
		whole := v.Choices[0].Message
		if whole.Content != joined.Content || whole.Thought != joined.Thought || len(whole.Calls) != len(joined.Calls) || len(whole.Calls) != calls+1 {
			t.Fatalf("whole %+v\nstream %+v", whole, joined)
		}
		for i := range whole.Calls {
			if w, j := whole.Calls[i], joined.Calls[i]; w.Function != j.Function || w.ID == "" || w.Function.Name != name {
				t.Fatalf("call %d: whole %+v, stream %+v", i, w, j)
			}
		}
	})
}
