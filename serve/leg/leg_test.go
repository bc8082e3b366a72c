package leg

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/sample"
)

func valid() Request {
	return Request{RID: "r", Room: 7, Tokens: []int32{1, 2}, Params: sample.Params{MaxTokens: 3, Logprobs: -1}, LeftMS: 1000}
}

func TestEveryLimitOfARequestIsRefusedByName(t *testing.T) {
	tests := []struct {
		spoil func(*Request)
		want  string
	}{
		{func(r *Request) { r.Room = 0 }, "room"},
		{func(r *Request) { r.Room = 1 << 63 }, "room"},
		{func(r *Request) { r.RID = strings.Repeat("x", RIDBytesMax+1) }, "rid"},
		{func(r *Request) { r.Salt = strings.Repeat("x", SaltBytesMax+1) }, "salt"},
		{func(r *Request) { r.RID = "a\nb" }, "rid"},
		{func(r *Request) { r.Tokens = nil }, "tokens"},
		{func(r *Request) { r.Tokens = []int32{1, -1} }, "tokens[1]"},
		{func(r *Request) { r.Tokens = make([]int32, TokensMax+1) }, "tokens"},
		{func(r *Request) { r.LeftMS = -1 }, "left_ms"},
		{func(r *Request) { r.LeftMS = LeftMax.Milliseconds() + 1 }, "left_ms"},
		{func(r *Request) { r.PinMS = -1 }, "pin_ms: -1"},
		{func(r *Request) { r.PinMS = room.PinMax.Milliseconds() + 1 }, "pin_ms: 3600001"},
		{func(r *Request) { r.Link = "nohost" }, "link"},
		{func(r *Request) { r.Link = ":80" }, "link"},
		{func(r *Request) { r.Link = "h:0" }, "link"},
		{func(r *Request) { r.Link = "h:65536" }, "link"},
		{func(r *Request) { r.Link = strings.Repeat("h", LinkBytesMax) + ":80" }, "link"},
		{func(r *Request) { r.Params.MaxTokens = 0 }, "max_tokens"},
		{func(r *Request) { r.Params.MaxTokens = MaxTokensMax + 1 }, "max_tokens"},
		{func(r *Request) { r.Params.Stop = make([]string, StopsMax+1) }, "stop"},
		{func(r *Request) { r.Params.Stop = []string{""} }, "stop[0]"},
		{func(r *Request) { r.Params.StopIDs = make([]int32, StopIDsMax+1) }, "stop_ids"},
		{func(r *Request) { r.Params.Logprobs = TopLogprobsMax + 1 }, "logprobs"},
		{func(r *Request) { r.Params.LogitBias = make([]sample.Bias, sample.BiasesMax+1) }, "logit_bias"},
		{func(r *Request) { r.Params.AllowedIDs = make([]int32, sample.AllowedMax+1) }, "allowed_token_ids"},
		{func(r *Request) { r.Params.Bad = make([][]int32, sample.BadMax+1) }, "bad_words"},
		{func(r *Request) { r.N = -1 }, "n: -1"},
		{func(r *Request) { r.N = ChoicesMax + 1 }, "n: 9"},
		{func(r *Request) { r.Generated = -1 }, "generated"},
		{func(r *Request) { r.Generated = 2 }, "generated"},
		{func(r *Request) { r.Generated, r.N = 1, 2 }, "generated"},
		{func(r *Request) { r.Generated, r.Params.MaxTokens = 1, 1 }, "generated"},
	}
	ok := valid()
	if err := ok.Validate(); err != nil {
		t.Fatal("the valid request is refused:", err)
	}
	for _, tt := range tests {
		r := valid()
		tt.spoil(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one that names %s", err, tt.want)
		}
	}
}

func TestChoicesAndPromptAreCounted(t *testing.T) {
	r := valid()
	if r.Choices() != 1 || r.Prompt() != 2 {
		t.Errorf("%d choices of %d tokens, want 1 of 2", r.Choices(), r.Prompt())
	}
	r.Generated = 1
	if err := r.Validate(); err != nil || r.Prompt() != 1 {
		t.Errorf("a prompt of %d, want 1: %v", r.Prompt(), err)
	}
	r.Generated, r.N = 0, ChoicesMax
	if err := r.Validate(); err != nil || r.Choices() != ChoicesMax {
		t.Errorf("%d choices: %v", r.Choices(), err)
	}
}

func TestARequestIsOneObject(t *testing.T) {
	for _, body := range []string{"", "[]", "{}", `{"room":"x"}`, `{"room":7}`,
		`{"room":"0000000000000007","tokens":[1],"params":{"max_tokens":1}} {}`,
		`{"room":"0000000000000007","tokens":[99999999999],"params":{"max_tokens":1}}`} {
		if r, err := ParseRequest([]byte(body)); err == nil {
			t.Errorf("%s was taken as %+v", body, r)
		}
	}
	good := `{"room":"0000000000000007","tokens":[1],"params":{"max_tokens":1},"left_ms":5,"from_the_future":{}}`
	if _, err := ReadRequest(strings.NewReader(good)); err != nil {
		t.Errorf("%s is refused: %v", good, err)
	}
	if _, err := ReadRequest(io.LimitReader(endless{}, BodyBytesMax*2)); err == nil {
		t.Error("a body over the limit is taken")
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func stream(t *testing.T, lines ...Line) []byte {
	t.Helper()
	var b []byte
	for i := range lines {
		var err error
		if b, err = AppendLine(b, &lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestLinesComeBackAsTheyWere(t *testing.T) {
	want := []Line{
		{Accepted: true},
		{Text: "ab\ncd €", IDs: []int32{5, 6}, Logprobs: []sample.TokenLogprob{
			{ID: 5, Logprob: -1.5, Bytes: []byte{0xff}, Top: []sample.TopLogprob{{ID: 5, Logprob: -1.5}}},
			{ID: 6, Logprob: sample.Clamp(float32(math.Inf(-1)))}}},
		{IDs: []int32{0}},
		{IDs: []int32{0}, Choice: 3},
		{Text: strings.Repeat("long ", 5000), IDs: []int32{1}},
		{IDs: []int32{2}, Choice: 1, Finish: "stop", Matched: "x"},
		{Waits: true},
		{IDs: []int32{2}, Finish: "length"},
		{End: &End{Outcome: room.Success, PromptTokens: 4, OutputTokens: 3, Cached: 1, Choices: []Choice{{"length", "", 1}, {"stop", "x", 2}}}},
	}
	lastWord := Line{End: &End{Outcome: room.Fail(room.ClientError).Kind, Cause: room.ClientError, Param: "stop"}}
	if got, err := ParseLine(bytes.TrimSpace(stream(t, lastWord))); err != nil || !reflect.DeepEqual(got, lastWord) {
		t.Errorf("%+v, %v", got, err)
	}
	r := NewReader(bytes.NewReader(stream(t, want...)))
	for i := range want {
		got, err := r.Next()
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Fatalf("line %d: %+v, %v, want %+v", i, got, err, want[i])
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("behind the end: %v, want io.EOF", err)
	}
}

// A success may only be read from an end line: every shorter prefix of a stream is ErrNoEnd.
func TestAStreamCutAnywhereHasNoEnd(t *testing.T) {
	b := stream(t, Line{Accepted: true}, Line{Text: "x", IDs: []int32{1}}, Line{End: &End{Outcome: room.Success}})
	for n := range len(b) {
		r := NewReader(bytes.NewReader(b[:n]))
		for {
			l, err := r.Next()
			if err == nil {
				if l.End != nil {
					t.Fatalf("an end from %d of %d bytes", n, len(b))
				}
				continue
			}
			if !errors.Is(err, ErrNoEnd) {
				t.Fatalf("%d bytes: %v, want ErrNoEnd", n, err)
			}
			break
		}
	}
}

func TestLinesOutOfOrderOrShapeAreErrors(t *testing.T) {
	for _, s := range []string{
		"{}\n", "{\"text\":\"x\"}\n", "{\"accepted\":true}\n{\"accepted\":true}\n", "x\n",
		"{\"accepted\":true}\n{\"text\":\"x\",\"end\":{\"outcome\":\"success\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"success\",\"cause\":\"internal\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"open\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"failed\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"failed\",\"cause\":\"cancelled\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"success\",\"cached\":2,\"prompt_tokens\":1}}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"logprobs\":[{\"id\":2}]}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"choice\":-1}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"choice\":16}\n",
		"{\"accepted\":true}\n{\"waits\":true,\"choice\":1}\n",
		"{\"accepted\":true}\n{\"waits\":true,\"finish\":\"stop\"}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"finish\":\"x\"}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"matched\":\"x\"}\n",
		"{\"accepted\":true}\n{\"finish\":\"stop\"}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"choice\":2,\"finish\":\"stop\"}\n{\"ids\":[1],\"choice\":2}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"finish\":\"stop\"}\n{\"end\":{\"outcome\":\"success\",\"choices\":[{\"finish\":\"length\"}]}}\n",
		"{\"accepted\":true}\n{\"ids\":[1],\"finish\":\"stop\"}\n{\"end\":{\"outcome\":\"success\",\"finish\":\"stop\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"success\",\"choices\":[{\"output_tokens\":-1}]}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"success\",\"choices\":[" + strings.Repeat("{},", ChoicesMax) + "{}]}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"success\",\"param\":\"x\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"failed\",\"cause\":\"client_error\",\"param\":\"a\\nb\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"failed\",\"cause\":\"client_error\",\"param\":\"" + strings.Repeat("x", ParamBytesMax+1) + "\"}}\n",
		"{\"accepted\":true}\n{\"ids\":[1,2],\"logprobs\":[{\"id\":1}]}\n",
		"{\"accepted\":true}\n" + strings.Repeat(" ", LineBytesMax+1) + "\n",
	} {
		r := NewReader(strings.NewReader(s))
		var err error
		for range 3 {
			if _, err = r.Next(); err != nil {
				break
			}
		}
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrNoEnd) {
			t.Errorf("%.80q: %v, want an error of its shape", s, err)
		}
	}
}

func TestARefusalSaysItsStatus(t *testing.T) {
	for _, c := range room.Causes() {
		if c == room.NoCause {
			continue
		}
		e := Refusal(c, strings.Repeat("é", MessageBytesMax))
		if err := e.validate(); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		want := map[room.Cause]int{room.ClientError: 400, room.Overload: 429}[c]
		if want == 0 {
			want = 503
		}
		if e.Status() != want {
			t.Errorf("%s: status %d, want %d", c, e.Status(), want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"rid":"r","room":"0000000000000007","tokens":[1,2],"params":{"max_tokens":3},"left_ms":5,"link":"h:1"}`))
	f.Add([]byte(`{"room":"ffffffffffffffff"}`))
	f.Add([]byte(`{"room":"0000000000000007","tokens":[1,2],"n":2,"params":{"max_tokens":3,"grammar":{"kind":"json_schema","schema":{"type" : "object"}},"logit_bias":[{"id":3,"add":-1}],"bad_words":[[1,2]],"stop":[]},"left_ms":5}`))
	f.Add([]byte(`{"room":"0000000000000007","tokens":[1,2,3],"generated":2,"params":{"max_tokens":3,"min_tokens":1,"repetition_penalty":1.5}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRequest(b)
		if err != nil {
			return
		}
		if r.Room == 0 || len(r.Tokens) == 0 || len(r.Tokens) > TokensMax || r.LeftMS < 0 {
			t.Fatalf("taken: %+v", r)
		}
		printed, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRequest(printed)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(again); err != nil || !bytes.Equal(b, printed) { // but for spaces, and lists of nothing
			t.Fatalf("%s comes back as %s, %v", printed, b, err)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"accepted\":true}\n{\"text\":\"x\",\"ids\":[1]}\n{\"end\":{\"outcome\":\"success\"}}\n"))
	f.Add([]byte("{\"accepted\":true}\n{\"ids\":[1],\"choice\":1,\"finish\":\"stop\",\"matched\":\"x\"}\n{\"waits\":true}\n{\"ids\":[1],\"finish\":\"length\"}\n{\"end\":{\"outcome\":\"success\",\"choices\":[{\"finish\":\"length\"},{\"finish\":\"stop\",\"matched\":\"x\"}]}}\n"))
	f.Add([]byte("{\"accepted\":true}\n{\"ids\":[1],\"choice\":1}\n{\"end\":{\"outcome\":\"success\",\"choices\":[{\"finish\":\"stop\",\"output_tokens\":0},{\"finish\":\"length\",\"output_tokens\":1}]}}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for range len(b) + 2 {
			l, err := r.Next()
			if err != nil {
				return
			}
			printed, err := AppendLine(nil, &l)
			if err != nil {
				t.Fatalf("a line that was read cannot be printed: %v", err)
			}
			if _, err := ParseLine(printed[:len(printed)-1]); err != nil && len(printed) <= LineBytesMax {
				t.Fatalf("a line that was printed cannot be read: %v", err)
			}
		}
		t.Fatal("a stream has more lines than bytes")
	})
}
