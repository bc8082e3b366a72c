package openai

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/chat/reply"
	"baton/engine/sample"
)

func answerOf(e Endpoint, change func(*Request)) *Answer {
	r := &Request{Endpoint: e}
	r.Params.Logprobs = -1
	if change != nil {
		change(r)
	}
	return &Answer{ID: "id", Model: "m", Fingerprint: "fp_1", Created: 1, Request: r, Prompts: [][]int32{{1, 2}, {3}}}
}

// callIDs are drawn, each once.
var callIDs = regexp.MustCompile(`call_[0-9a-f]{24}`)

func echoing(a *Answer) *Answer {
	a.Request.N, a.Echoes = 2, []string{"one ", "two "}
	return a
}

func bare(a *Answer) *Answer {
	a.Fingerprint = ""
	return a
}

// The exact texts that clients get, so that a change of a shape is seen.
func TestShapes(t *testing.T) {
	ids := func(r *Request) { r.ReturnTokenIDs = true }
	usage := func(r *Request) { r.IncludeUsage = true }
	text := func(b []byte, err error) string {
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	p := Piece{Text: "a<b", IDs: []int32{7}}
	talk := []reply.Delta{{Reasoning: "hm"}, {Reasoning: "m"}, {Call: &reply.CallDelta{Name: "f"}}, {Call: &reply.CallDelta{Arguments: `{"a":`}},
		{Call: &reply.CallDelta{Arguments: `1}`}}, {Call: &reply.CallDelta{Index: 1, Name: "g"}}, {Call: &reply.CallDelta{Index: 1, Arguments: "{}"}}}
	rows := []struct{ name, got, want string }{
		{"chat", text(answerOf(Chat, nil).Whole([]Piece{{Text: "a<b", Finish: "stop"}}, Count(2, 1, 0))),
			`{"id":"id","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":"a<b"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n"},
		{"completion", text(answerOf(Completion, ids).Whole([]Piece{{Text: "x", IDs: []int32{7}, Finish: "stop", Matched: "END"}, {Choice: 1, Text: "y", IDs: []int32{8}, Finish: "length"}}, Count(3, 2, 1))),
			`{"id":"id","object":"text_completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"text":"x","logprobs":null,"finish_reason":"stop","stop_reason":"END","token_ids":[7],"prompt_token_ids":[1,2]},{"index":1,"text":"y","logprobs":null,"finish_reason":"length","token_ids":[8],"prompt_token_ids":[3]}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n"},
		{"opening", text(answerOf(Chat, ids).Opening(0)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2]}` + "\n\n"},
		{"no opening", text(answerOf(Completion, nil).Opening(0)), ""},
		{"chat chunk", text(answerOf(Chat, usage).Chunk(&p, false)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"a<b"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"},
		{"chat finish", text(answerOf(Chat, nil).Chunk(&Piece{Finish: "length"}, false)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}` + "\n\n"},
		{"completion chunk", text(answerOf(Completion, ids).Chunk(&p, true)),
			`data: {"id":"id","object":"text_completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"text":"a<b","logprobs":null,"finish_reason":null,"token_ids":[7],"prompt_token_ids":[1,2]}]}` + "\n\n"},
		{"fingerprint unknown", text(bare(answerOf(Chat, nil)).Opening(0)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n"},
		{"held back", text(answerOf(Completion, nil).Chunk(&Piece{IDs: []int32{7}}, true)), ""},
		{"tool call", text(answerOf(Chat, nil).Whole([]Piece{{Deltas: talk, Finish: FinishCalls}}, Count(2, 1, 0))),
			`{"id":"id","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hmm","tool_calls":[{"id":"call_X","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"call_X","type":"function","function":{"name":"g","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n"},
		{"call beside content", text(answerOf(Chat, nil).Whole([]Piece{{Deltas: append([]reply.Delta{{Content: "a"}}, talk[2]), Finish: FinishCalls}}, Count(2, 1, 0))),
			`{"id":"id","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"call_X","type":"function","function":{"name":"f","arguments":""}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n"},
		{"streamed parts", text(answerOf(Chat, ids).Chunk(&Piece{Deltas: talk[1:4], IDs: []int32{7}}, false)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"reasoning_content":"m"},"logprobs":null,"finish_reason":null,"token_ids":[7]}]}` + "\n\n" +
				`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_X","type":"function","function":{"name":"f","arguments":""}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n"},
		{"stop token", text(answerOf(Chat, nil).Chunk(&Piece{Finish: "stop", Matched: "x", MatchedToken: new(int32(0))}, false)),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":0}]}` + "\n\n"},
		{"echo", text(echoing(answerOf(Completion, nil)).Chunk(&Piece{Choice: 3, IDs: []int32{7}}, true)),
			`data: {"id":"id","object":"text_completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":3,"text":"two ","logprobs":null,"finish_reason":null}]}` + "\n\n"},
		{"closing", text(answerOf(Chat, nil).Closing(Count(2, 1, 0))), "data: [DONE]\n\n"},
		{"closing with usage", text(answerOf(Chat, usage).Closing(Count(2, 1, 0))),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\ndata: [DONE]\n\n"},
		{"error event", string(ErrorEvent(&Error{Message: "m", Type: TypeServer, Code: "internal", RequestID: "r"})),
			`data: {"error":{"message":"m","type":"server_error","param":null,"code":"internal","request_id":"r"}}` + "\n\n"},
	}
	for _, row := range rows {
		if got := callIDs.ReplaceAllString(row.got, "call_X"); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, row.got, row.want)
		}
	}
}

func TestLogprobsThatJSONCannotCarryAreReplaced(t *testing.T) {
	for _, e := range []Endpoint{Chat, Completion} {
		a := answerOf(e, func(r *Request) { r.Params.Logprobs = 1 })
		b, err := a.Whole([]Piece{{Text: "x", Finish: "stop", Logprobs: []sample.TokenLogprob{{ID: 1, Bytes: []byte("é"), Logprob: float32(math.Inf(-1)),
			Top: []sample.TopLogprob{{ID: 1, Bytes: []byte("é"), Logprob: float32(math.NaN())}}}}}}, Count(1, 1, 0))
		if err != nil || !strings.Contains(string(b), "-9999") || !strings.Contains(string(b), "é") {
			t.Errorf("%v %s", err, b)
		}
	}
}

// A completion's offsets count characters over all of its chunks.
func TestTextOffsetsGoOnFromChunkToChunk(t *testing.T) {
	a := answerOf(Completion, func(r *Request) { r.Params.Logprobs = 0 })
	one := func() string {
		b, err := a.Chunk(&Piece{Text: "é!", Logprobs: []sample.TokenLogprob{{Bytes: []byte("é!")}}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first, second := one(), one(); !strings.Contains(first, `"text_offset":[0]`) || !strings.Contains(second, `"text_offset":[2]`) {
		t.Errorf("%s%s", first, second)
	}
}

// Each cause has a status and a type of its own, and what may be tried again says when.
func TestEveryCauseIsAnError(t *testing.T) {
	statuses := map[room.Cause]int{room.ClientError: 400, room.Cancelled: 499, room.Overload: 429, room.Deadline: 504,
		room.WorkerLost: 502, room.TransferFailed: 502, room.Internal: 500}
	for _, c := range room.Causes()[1:] {
		e := Failure(room.Fail(c), "why", 1)
		if e.Status != statuses[c] || e.Code != c.String() || !strings.Contains(e.Message, "why") || e.Type == "" {
			t.Errorf("%v: %+v", c, e)
		}
		var back struct {
			Error struct {
				Param *string
				Code  string
			}
		}
		b, err := json.Marshal(e)
		if err != nil || json.Unmarshal(b, &back) != nil || back.Error.Code != c.String() || back.Error.Param != nil {
			t.Errorf("%v: %s %v", c, b, err)
		}
	}
}
