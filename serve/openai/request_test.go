package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

var lim = Limits{Vocab: 1000}

// chatBody and textBody are bodies that are fine, with more fields.
func chatBody(extra string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + extra + `}`
}

func textBody(extra string) string { return `{"model":"m","prompt":"hi"` + extra + `}` }

// Every value that a client can get wrong is refused with 400 and the name of the field.
func TestEveryBadValueIsRefusedWithItsName(t *testing.T) {
	rows := []struct {
		e     Endpoint
		body  string
		param string
		code  string
	}{
		{Chat, ``, "", CodeJSON},
		{Chat, `[]`, "", CodeJSON},
		{Chat, `null`, "", CodeJSON},
		{Chat, `{"messages":`, "", CodeJSON},
		{Chat, `{} trailing`, "", CodeJSON},
		{Chat, "{\"model\":\"\xff\"}", "", CodeJSON},
		{Chat, `{}`, "messages", CodeMissing},
		{Chat, `{"messages":null}`, "messages", CodeMissing},
		{Chat, `{"messages":"hi"}`, "messages", CodeType},
		{Chat, `{"messages":[]}`, "messages", CodeValue},
		{Chat, `{"messages":["hi"]}`, "messages[0]", CodeType},
		{Chat, `{"messages":[null]}`, "messages[0]", CodeType},
		{Chat, `{"messages":[{"content":"hi"}]}`, "messages[0].role", CodeMissing},
		{Chat, `{"messages":[{"role":1,"content":"hi"}]}`, "messages[0].role", CodeType},
		{Chat, `{"messages":[{"role":"user"}]}`, "messages[0].content", CodeMissing},
		{Chat, `{"messages":[{"role":"user","content":null}]}`, "messages[0].content", CodeMissing},
		{Chat, `{"messages":[{"role":"user","content":7}]}`, "messages[0].content", CodeType},
		{Chat, `{"messages":[{"role":"user","content":["x"]}]}`, "messages[0].content[0]", CodeType},
		{Chat, `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, "messages[0].content[0]", CodeType},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text", CodeMissing},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "messages[0].content[0].type", CodeUnsupported},
		{Chat, chatBody(`,"model":7`), "model", CodeType},
		{Chat, chatBody(`,"stream":"yes"`), "stream", CodeType},
		{Chat, chatBody(`,"stream":1`), "stream", CodeType},
		{Chat, chatBody(`,"stream_options":{"include_usage":true}`), "stream_options", CodeValue},
		{Chat, chatBody(`,"stream":true,"stream_options":[]`), "stream_options", CodeType},
		{Chat, chatBody(`,"stream":true,"stream_options":{"include_usage":"x"}`), "stream_options.include_usage", CodeType},
		{Chat, chatBody(`,"stream":true,"stream_options":{"continuous_usage_stats":true}`), "stream_options.continuous_usage_stats", CodeUnsupported},
		{Chat, chatBody(`,"max_tokens":0`), "max_tokens", CodeValue},
		{Chat, chatBody(`,"max_tokens":-1`), "max_tokens", CodeValue},
		{Chat, chatBody(`,"max_tokens":1.5`), "max_tokens", CodeType},
		{Chat, chatBody(`,"max_tokens":"5"`), "max_tokens", CodeType},
		{Chat, chatBody(`,"max_tokens":true`), "max_tokens", CodeType},
		{Chat, chatBody(`,"max_tokens":99999999999999999999`), "max_tokens", CodeType},
		{Chat, chatBody(`,"max_completion_tokens":0`), "max_completion_tokens", CodeValue},
		{Completion, textBody(`,"max_completion_tokens":5`), "max_completion_tokens", CodeUnsupported},
		{Chat, chatBody(`,"temperature":-0.1`), "temperature", CodeValue},
		{Chat, chatBody(`,"temperature":2.1`), "temperature", CodeValue},
		{Chat, chatBody(`,"temperature":"hot"`), "temperature", CodeType},
		{Chat, chatBody(`,"temperature":1e999`), "temperature", CodeType},
		{Chat, chatBody(`,"top_p":0`), "top_p", CodeValue},
		{Chat, chatBody(`,"top_p":1.01`), "top_p", CodeValue},
		{Chat, chatBody(`,"top_p":{}`), "top_p", CodeType},
		{Chat, chatBody(`,"top_k":-2`), "top_k", CodeValue},
		{Chat, chatBody(`,"top_k":0.5`), "top_k", CodeType},
		{Chat, chatBody(`,"min_p":-0.1`), "min_p", CodeValue},
		{Chat, chatBody(`,"min_p":1.1`), "min_p", CodeValue},
		{Chat, chatBody(`,"repetition_penalty":0.001`), "repetition_penalty", CodeValue},
		{Chat, chatBody(`,"seed":"a"`), "seed", CodeType},
		{Chat, chatBody(`,"seed":9223372036854775808`), "seed", CodeType},
		{Chat, chatBody(`,"stop":7`), "stop", CodeType},
		{Chat, chatBody(`,"stop":[7]`), "stop", CodeType},
		{Chat, chatBody(`,"stop":""`), "stop", CodeValue},
		{Chat, chatBody(`,"stop":["a",""]`), "stop", CodeValue},
		{Chat, chatBody(`,"stop":"` + strings.Repeat("a", StopBytesMax+1) + `"`), "stop", CodeValue},
		{Chat, chatBody(`,"stop":[` + strings.Repeat(`"a",`, StopMax) + `"a"]`), "stop", CodeValue},
		{Chat, chatBody(`,"stop_token_ids":[1000]`), "stop_token_ids", CodeValue},
		{Chat, chatBody(`,"stop_token_ids":[-1]`), "stop_token_ids", CodeValue},
		{Chat, chatBody(`,"stop_token_ids":["a"]`), "stop_token_ids", CodeType},
		{Chat, chatBody(`,"stop_token_ids":7`), "stop_token_ids", CodeType},
		{Chat, chatBody(`,"ignore_eos":"x"`), "ignore_eos", CodeType},
		{Chat, chatBody(`,"logprobs":3`), "logprobs", CodeType},
		{Chat, chatBody(`,"top_logprobs":3`), "top_logprobs", CodeValue},
		{Chat, chatBody(`,"logprobs":true,"top_logprobs":21`), "top_logprobs", CodeValue},
		{Chat, chatBody(`,"logprobs":true,"top_logprobs":-1`), "top_logprobs", CodeValue},
		{Chat, chatBody(`,"return_token_ids":"x"`), "return_token_ids", CodeType},
		{Completion, textBody(`,"logprobs":6`), "logprobs", CodeValue},
		{Completion, textBody(`,"logprobs":true`), "logprobs", CodeType},
		{Completion, textBody(`,"top_logprobs":3`), "top_logprobs", CodeUnsupported},
		{Completion, `{}`, "prompt", CodeMissing},
		{Completion, `{"prompt":7}`, "prompt", CodeType},
		{Completion, `{"prompt":{}}`, "prompt", CodeType},
		{Completion, `{"prompt":[]}`, "prompt", CodeValue},
		{Completion, `{"prompt":[1,"a"]}`, "prompt", CodeType},
		{Completion, `{"prompt":["a",1]}`, "prompt", CodeType},
		{Completion, `{"prompt":["a",[1]]}`, "prompt", CodeType},
		{Completion, `{"prompt":[[1],"a"]}`, "prompt", CodeType},
		{Completion, `{"prompt":[[1],[]]}`, "prompt", CodeValue},
		{Completion, `{"prompt":[1000]}`, "prompt", CodeValue},
		{Completion, `{"prompt":[1.5]}`, "prompt", CodeType},
		{Completion, `{"prompt":[true]}`, "prompt", CodeType},
		{Completion, `{"prompt":[` + strings.Repeat(`"a",`, PromptsMax) + `"a"]}`, "prompt", CodeValue},
		{Completion, textBody(`,"suffix":"x"`), "suffix", CodeUnsupported},
		{Completion, `{"prompt":[1,null]}`, "prompt", CodeType},
		{Completion, `{"prompt":[[1,null]]}`, "prompt", CodeType},
		{Completion, `{"prompt":[null]}`, "prompt", CodeType},
		{Chat, chatBody(`,"stop_token_ids":[null]`), "stop_token_ids", CodeType},
		{Chat, chatBody(`,"allowed_token_ids":[1,null]`), "allowed_token_ids", CodeType},
		{Completion, textBody(`,"messages":[{"role":"user","content":"x"}]`), "messages", CodeUnsupported},
		{Chat, chatBody(`,"prompt":"x"`), "prompt", CodeUnsupported},
		{Completion, textBody(`,"tools":[` + function + `]`), "tools", CodeUnsupported},
		{Completion, textBody(`,"chat_template_kwargs":{"enable_thinking":false}`), "chat_template_kwargs", CodeUnsupported},
		{Completion, textBody(`,"continue_final_message":true`), "continue_final_message", CodeUnsupported},
		{Chat, chatBody(`,"temperature":NaN`), "temperature", CodeJSON},
		{Chat, chatBody(`,"logit_bias":{"5":-Infinity},"top_p":NaN`), "logit_bias", CodeJSON},
		{Chat, `{"top_p":Infinity}`, "top_p", CodeJSON},
		{Chat, `{"messages":"NaN",}`, "", CodeJSON},
		{Chat, `{"messages":NaN`, "", CodeJSON},
		{Chat, chatBody(`,"response_format":{"type":"json_object"},"tools":[` + function + `],"tool_choice":"required"`), "response_format", CodeValue},
		{Chat, chatBody(`,"regex":"a","tools":[` + function + `],"tool_choice":{"type":"function","function":{"name":"f"}}`), "regex", CodeValue},
		{Chat, chatBody(`,"cache_salt":7`), "cache_salt", CodeType},
		{Chat, chatBody(`,"cache_pin":"60"`), "cache_pin", CodeType},
		{Chat, chatBody(`,"cache_pin":-1`), "cache_pin", CodeValue},
		{Completion, textBody(`,"cache_pin":3600.5`), "cache_pin", CodeValue},
		{Chat, chatBody(`,"cache_salt":"` + strings.Repeat("x", CacheSaltMax+1) + `"`), "cache_salt", CodeValue},
	}
	for _, row := range rows {
		r, err := Parse(row.e, []byte(row.body), lim)
		if err == nil {
			t.Errorf("%s: accepted as %+v", row.body, r)
			continue
		}
		if err.Status != 400 || err.Param != row.param || err.Code != row.code || err.Message == "" {
			t.Errorf("%.200s:\n got %d %q %q (%s)\nwant 400 %q %q", row.body, err.Status, err.Param, err.Code, err.Message, row.param, row.code)
		}
	}
	for _, f := range unsupported { // each listed field is refused where it counts, and null is not
		e, make := Chat, chatBody
		if f.only == "completion" {
			e, make = Completion, textBody
		}
		if _, err := Parse(e, []byte(make(`,"`+f.name+`":"no such value"`)), lim); err == nil || err.Param != f.name {
			t.Errorf("%s: want a refusal, got %v", f.name, err)
		}
		for _, fine := range append(f.fine, "null") {
			if _, err := Parse(e, []byte(make(`,"`+f.name+`":`+fine)), lim); err != nil {
				t.Errorf("%s: %s asks for nothing, got %v", f.name, fine, err)
			}
		}
	}
}

// What a client asks for arrives as it was written; unknown fields are ignored.
func TestARequestIsReadAsItWasWritten(t *testing.T) {
	r, err := Parse(Chat, []byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true},
		"messages":[{"role":"developer","content":"be kind"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
		"max_tokens":5,"max_completion_tokens":7,"temperature":0,"top_p":0.5,"top_k":3,"min_p":0.1,"seed":9007199254740993,
		"stop":["x","y"],"stop_token_ids":[1,2.0],"ignore_eos":true,"logprobs":true,"top_logprobs":2,"return_token_ids":true,
		"n":1.0,"presence_penalty":0.0,"user":"me","metadata":{"a":"b"},"no_such_field":[1,{"x":2}],"bootstrap_room":5,"rid":"x","cache_pin":1.5}`), lim)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Params
	switch {
	case r.Model != "m" || !r.Stream || !r.IncludeUsage || !r.ReturnTokenIDs:
		t.Errorf("flags: %+v", r)
	case r.CachePin != 1500*time.Millisecond:
		t.Errorf("cache_pin: %v", r.CachePin)
	case len(r.Chat.Messages) != 2 || r.Chat.Messages[0].Role != "system" || r.Chat.Messages[0].Content != "be kind" || r.Chat.Messages[1].Content != "ab":
		t.Errorf("messages: %+v", r.Chat.Messages)
	case p.MaxTokens != 7 || r.MaxTokensParam != "max_completion_tokens":
		t.Errorf("the newer name must win: %d of %s", p.MaxTokens, r.MaxTokensParam)
	case p.Seed != 9007199254740993:
		t.Errorf("seed: %d (O3)", p.Seed)
	case p.Temperature != 0 || p.TopP != 0.5 || p.TopK != 3 || p.MinP != 0.1 || !p.IgnoreEOS || p.Logprobs != 2:
		t.Errorf("params: %+v", p)
	case len(p.Stop) != 2 || len(p.StopIDs) != 2 || p.StopIDs[1] != 2:
		t.Errorf("stops: %+v", p)
	}
}

func TestDefaultsAreOpenAIs(t *testing.T) {
	r, err := Parse(Completion, []byte(`{"prompt":"x"}`), lim)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Params
	if p.Temperature != 1 || p.TopP != 1 || p.MinP != 0 || p.TopK != 0 || p.MaxTokens != 16 || p.Logprobs != -1 {
		t.Errorf("completion: %+v", p)
	}
	again, _ := Parse(Completion, []byte(`{"prompt":"x"}`), lim)
	if again.Params.Seed == p.Seed {
		t.Error("two requests without a seed got the same one")
	}
	c, err := Parse(Chat, []byte(`{"messages":[{"role":"user","content":"x"}]}`), lim)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckContext(60, Capacity{Context: 100}); err != nil || c.Params.MaxTokens != 40 {
		t.Errorf("chat: max tokens %d, %v; want the rest of the context", c.Params.MaxTokens, err)
	}
}

func TestPromptsOfEveryKind(t *testing.T) {
	for body, want := range map[string]int{`"a"`: 1, `["a","b"]`: 2, `[1,2,3]`: 1, `[[1,2],[3]]`: 2, `""`: 1} {
		r, err := Parse(Completion, []byte(`{"prompt":`+body+`}`), lim)
		if err != nil || len(r.Prompts) != want {
			t.Errorf("%s: %v, %+v", body, err, r)
		}
	}
}

func TestThePromptAndTheAnswerFitIntoTheContext(t *testing.T) {
	rows := []struct {
		body   string
		prompt int
		param  string
	}{
		{`"max_tokens":40`, 60, ""},
		{`"max_tokens":41`, 60, "max_tokens"},
		{`"max_completion_tokens":41`, 60, "max_completion_tokens"},
		{`"n":1`, 99, ""},
		{`"n":1`, 100, "messages"},
		{`"n":1`, 0, "messages"},
	}
	for _, row := range rows {
		r, err := Parse(Chat, []byte(`{"messages":[{"role":"user","content":"x"}],`+row.body+`}`), lim)
		if err != nil {
			t.Fatal(err)
		}
		err = r.CheckContext(row.prompt, Capacity{Context: 100})
		if got := param(err); got != row.param {
			t.Errorf("%s with a prompt of %d: param %q, want %q", row.body, row.prompt, got, row.param)
		}
	}
	r, _ := Parse(Completion, []byte(`{"prompt":"x"}`), lim)
	if err := r.CheckContext(95, Capacity{Context: 100}); err != nil || r.Params.MaxTokens != 5 {
		t.Errorf("a default is shortened, not refused: %d, %v", r.Params.MaxTokens, err)
	}
}

// What is most of a text that is too long is blamed for it, and not what stands beside.
func TestTheLongestPartOfAConversationIsNamed(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for more, want := range map[string]string{
		``: "messages",
		`,"tools":[{"type":"function","function":{"name":"f","description":"` + long + `"}}]`: "tools",
		`,"documents":[{"text":"` + long + `"}]`:                                              "documents",
		`,"chat_template_kwargs":{"a":"` + long + `"}`:                                        "chat_template_kwargs",
	} {
		r, err := Parse(Chat, []byte(chatBody(more)), lim)
		if err != nil {
			t.Fatal(err)
		}
		field, n := Words(&r.Chat)
		if field != want || (n > 1000) != (want != "messages") || n > 1200 {
			t.Errorf("%.40s: %d bytes, most of %s", more, n, field)
		}
		if err := r.CheckContext(100, Capacity{Context: 100}); param(err) != want {
			t.Errorf("%.40s: blames %q", more, param(err))
		}
	}
	for v, want := range map[string]int{`{ "a" : "b c" ,` + "\n" + ` "d":[1, 2]}`: len(`{"a":"b c","d":[1,2]}`), `"\u0041\n\"x"`: len(`"AnXx"`)} {
		if got := printed([]byte(v)); got != want {
			t.Errorf("%s: %d bytes as it is printed, want %d", v, got, want)
		}
	}
}

func param(e *Error) string {
	if e == nil {
		return ""
	}
	return e.Param
}

func TestHandOffFieldsOfAClientAreNamed(t *testing.T) {
	r, err := Parse(Completion, []byte(`{"prompt":"x","bootstrap_room":1,"x":2,"kv_transfer_params":{}}`), lim)
	if err != nil || len(r.Stripped) != 2 || r.Stripped[0] != "bootstrap_room" || r.Stripped[1] != "kv_transfer_params" {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestTokenizeRequests(t *testing.T) {
	for body, want := range map[string]string{
		`{"prompt":"x"}`: "", `{"messages":[{"role":"user","content":"x"}]}`: "", `{}`: "prompt", `{"prompt":1}`: "prompt",
		`{"prompt":"x","messages":[]}`: "messages", `{"prompt":"x","add_special_tokens":1}`: "add_special_tokens",
	} {
		if _, err := ParseTokenize([]byte(body)); param(err) != want {
			t.Errorf("tokenize %s: %v, want param %q", body, err, want)
		}
	}
	for body, want := range map[string]string{`{"tokens":[1,2]}`: "", `{"tokens":[]}`: "", `{}`: "tokens", `{"tokens":[1000]}`: "tokens", `{"tokens":"x"}`: "tokens", `{"tokens":[1,null]}`: "tokens"} {
		if _, err := ParseDetokenize([]byte(body), lim); param(err) != want {
			t.Errorf("detokenize %s: %v, want param %q", body, err, want)
		}
	}
}

// TestTokenizeRefusesWhatItsEndpointRefuses: with the same words, so that a count of tokens is never
// that of another prompt than the one that was asked about.
func TestTokenizeRefusesWhatItsEndpointRefuses(t *testing.T) {
	for _, x := range []struct {
		e    Endpoint
		only string
		make func(more string) string
	}{{Chat, "chat", chatBody}, {Completion, "completion", textBody}} {
		for _, f := range unsupported {
			bad := []byte(x.make(`,"` + f.name + `":"no such value"`))
			_, want := Parse(x.e, bad, lim)
			_, got := ParseTokenize(bad)
			switch counts := f.only == "" || f.only == x.only; {
			case counts && (got == nil || got.Param != f.name || got.Status != 400):
				t.Errorf("%s: want a refusal of %s, got %v", bad, f.name, got)
			case counts && want.Code == CodeUnsupported && *got != *want:
				t.Errorf("%s:\n got %+v\nwant %+v", bad, got, want)
			}
			for _, fine := range append(f.fine, "null") {
				body := []byte(x.make(`,"` + f.name + `":` + fine))
				if _, err := ParseTokenize(body); (f.only == "" || f.only == x.only) && err != nil {
					t.Errorf("%s: asks for nothing, got %v", body, err)
				}
			}
		}
	}
	for body, want := range map[string]string{
		chatBody(`,"chat_template":"x"`): "chat_template", chatBody(`,"add_special_tokens":true`): "add_special_tokens", chatBody(`,"echo":true`): "echo",
		chatBody(`,"add_generation_prompt":false`): "", chatBody(`,"chat_template_kwargs":{"a":1}`): "", chatBody(`,"tools":[{"type":"function","function":{"name":"f"}}]`): "",
		chatBody(`,"add_special_tokens":false`): "", textBody(`,"add_special_tokens":false`): "", textBody(`,"add_special_tokens":true`): "",
		chatBody(`,"temperature":0,"max_tokens":5,"stream":true`): "", // they change no token of the prompt
	} {
		_, err := ParseTokenize([]byte(body))
		if param(err) != want || err != nil && (err.Status != 400 || err.Code != CodeUnsupported) {
			t.Errorf("%s: %+v, want param %q", body, err, want)
		}
	}
}

// Whatever comes in, a request is refused with a status and a message or is within its bounds.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi"}],"stop":["a"],"n":1}`), true)
	f.Add([]byte(`{"prompt":[[1,2],[3]],"logprobs":3,"seed":-1}`), false)
	for _, x := range fieldsOfRequests { // every field, right and wrong
		make := chatBody
		if x.e == Completion {
			make = textBody
		}
		for _, v := range append(x.good[:1:1], x.values...) {
			f.Add([]byte(make(x.with+`,"`+x.name+`":`+v)), x.e == Chat)
		}
	}
	f.Add([]byte(`{"messages":[{"role":"assistant","reasoning_content":"r","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`), true)
	f.Add([]byte(`{"prompt":"x","stream":true,"stream_options":{"include_usage":true},"top_k":1e2}`), false)
	f.Fuzz(func(t *testing.T, body []byte, isChat bool) {
		e := Completion
		if isChat {
			e = Chat
		}
		r, err := Parse(e, body, lim)
		ParseTokenize(body)
		ParseDetokenize(body, lim)
		if err != nil {
			if err.Status != 400 || err.Message == "" || err.Code == "" {
				t.Fatalf("refusal %+v", err)
			}
			if _, merr := json.Marshal(err); merr != nil {
				t.Fatal(merr)
			}
			return
		}
		if r.N < 1 || r.N > ChoicesMax || len(r.Tools) > ToolsMax || len(r.Chat.Tools) > len(r.Tools) || len(r.BadWords) > BadWordsMax || (r.FormatParam != "") != (r.Params.Grammar != nil) {
			t.Fatalf("out of bounds: %+v", r)
		}
		if r.ToolUse == ToolNamed && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == r.ToolName }) || r.ToolUse == ToolRequired && len(r.Tools) == 0 {
			t.Fatalf("a call of no tool: %+v", r)
		}
		if r.CheckContext(10, Capacity{Context: TokensMax, Pool: TokensMax}) == nil {
			if param, message := r.Params.Validate(lim.Vocab); param != "" {
				t.Fatalf("the engine refuses %s: %s", param, message)
			}
		}
		p := r.Params
		if !(p.Temperature >= 0 && p.Temperature <= 2 && p.TopP > 0 && p.TopP <= 1 && p.MinP >= 0 && p.MinP <= 1) ||
			p.MaxTokens < 1 && e == Completion || p.TopK < 0 || p.Logprobs < -1 || p.Logprobs > 20 || len(p.Stop) > StopMax || len(p.StopIDs) > StopIDsMax {
			t.Fatalf("out of bounds: %+v", p)
		}
		if e == Chat && len(r.Chat.Messages) == 0 || e == Completion && len(r.Prompts) == 0 {
			t.Fatal("a request without a prompt")
		}
		for _, s := range p.Stop {
			if s == "" {
				t.Fatal("an empty stop string")
			}
		}
	})
}
