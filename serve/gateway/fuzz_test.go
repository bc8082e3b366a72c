package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"baton/engine/recall"
	"baton/serve/observe/logrules"
	"baton/serve/openai"
)

// alone is a gateway of the embedded model that no worker has joined.
func alone(f *testing.F) (*Gateway, *ModelText) {
	file := recall.Open()
	text, err := NewText(file)
	if err != nil {
		f.Fatal(err)
	}
	c := Config{Model: "recall", Text: text, Log: logrules.New(f)}
	c.Budgets.Place = time.Millisecond
	g, err := New(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { g.Close() })
	return g, text
}

// FuzzRoutes asks anything at any path: no request takes the gateway with it, each has one
// answer in the shape that clients parse, and none says more of us than its message.
func FuzzRoutes(f *testing.F) {
	g, _ := alone(f)
	for at := range g.routes() {
		f.Add(at.method, strings.TrimSuffix(at.path, "{$}"), `{"prompt":"x","messages":[{"role":"user","content":"x"}],"tokens":[1]}`, "1")
		f.Add("PUT", at.path+"/", `{"prompt":"x"}`, "-1")
	}
	f.Add("POST", "/v1/completions", `{"prompt":["<|end|>",[1,2]],"stream":true,"logprobs":2,"return_token_ids":true}`, "1e300")
	f.Add("POST", "/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}],"n":8,"tools":[{"function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"required","logit_bias":{"1":1}}`, "1")
	f.Add("POST", "/v1/completions", `{"prompt":"x","structured_outputs":{"json":"{\"type\":\"string\"}"},"n":2,"echo":true,"bad_words":["a"]}`, "1")
	f.Add("POST", "/tokenize", `{"messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"f"}}],"chat_template_kwargs":{"a":[{}]},"continue_final_message":false}`, "1")
	f.Add("POST", "/tokenize", `{"messages":[{"role":"user","content":"<|end|>"}],"return_token_strs":true}`, "\n")
	f.Add("GET", "//x/../%2e", "", "0x")
	f.Fuzz(func(t *testing.T, method, path, body, header string) {
		at, err := url.ParseRequestURI(path)
		if err != nil || at.Host != "" || !strings.HasPrefix(path, "/") || strings.ContainsAny(method, " \t\r\n") || method == "" {
			t.Skip() // the server of the standard library refuses these
		}
		r := &http.Request{Method: method, URL: at, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "h",
			Header: http.Header{"X-Request-Timeout": {header}, "X-Request-Id": {header}}, Body: http.NoBody, ContentLength: int64(len(body))}
		if body != "" {
			r.Body = closing{bytes.NewReader([]byte(body))}
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r.WithContext(t.Context()))
		id := w.Header().Get("X-Request-Id")
		if !printable(id) || id == "" || w.Code < 200 || w.Code == 500 || w.Code == 502 {
			t.Fatalf("%s %q: status %d, id %q: %s", method, path, w.Code, id, w.Body)
		}
		if w.Header().Get("Content-Type") != "application/json" {
			if at.Path != "/metrics" {
				t.Fatalf("%s %q: %q: %s", method, path, w.Header().Get("Content-Type"), w.Body)
			}
			return
		}
		if w.Code < 400 {
			if !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s %q: %s", method, path, w.Body)
			}
			return
		}
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || at.Path != "/health" && (e.Error.Message == "" || e.Error.Type == "") {
			t.Fatalf("%s %q: status %d: %s, %v", method, path, w.Code, w.Body, err)
		}
	})
}

type closing struct{ *bytes.Reader }

func (closing) Close() error { return nil }

// FuzzTokenize sends a text to POST /tokenize and its tokens to POST /detokenize: they are ids
// of the model, as many as counted, and the text comes back.
func FuzzTokenize(f *testing.F) {
	g, text := alone(f)
	post := func(t *testing.T, path string, body, answer any) int {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, httptest.NewRequest("POST", path, bytes.NewReader(b)))
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return w.Code
	}
	f.Add("The code of Frank is cedar robin.", false)
	f.Add("<|end|>\u00a0\x00\u2028é", true)
	f.Add("", true)
	f.Fuzz(func(t *testing.T, prompt string, strs bool) {
		if !utf8.ValidString(prompt) {
			t.Skip() // JSON has no other text
		}
		var out openai.Tokenized
		status := post(t, "/tokenize", map[string]any{"prompt": prompt, "return_token_strs": strs, "add_special_tokens": false}, &out)
		if status == 400 { // no context is known without a worker, so only what no context holds
			return
		}
		if status != 200 || out.Count != len(out.Tokens) || strs && len(out.TokenStrs) != out.Count {
			t.Fatalf("status %d: %+v", status, out)
		}
		for _, id := range out.Tokens {
			if id < 0 || int(id) >= text.Vocab() {
				t.Fatalf("token %d of %d", id, text.Vocab())
			}
		}
		if len(out.Tokens) == 0 {
			if prompt != "" {
				t.Fatalf("%q has no tokens", prompt)
			}
			return
		}
		var back openai.Detokenized
		if status := post(t, "/detokenize", map[string]any{"tokens": out.Tokens}, &back); status != 200 || back.Prompt != prompt {
			t.Fatalf("status %d: %q comes back as %q", status, prompt, back.Prompt)
		}
	})
}
