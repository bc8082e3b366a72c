package gateway

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"baton/engine/recall"
)

// choicesOf asks for an answer that is not streamed.
func (r *rig) choicesOf(t *testing.T, fields map[string]any) (texts []string, usage string) {
	t.Helper()
	b, _ := json.Marshal(fields)
	a := r.post("/v1/chat/completions", string(b))
	var got struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Usage json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Errorf("%.300s: %d %s", b, a.status, a.body)
		return nil, ""
	}
	for _, c := range got.Choices {
		text := c.Message.Content
		for _, call := range c.Message.Calls {
			text += " " + call.Function.Name + call.Function.Arguments
		}
		texts = append(texts, text+" "+c.Finish)
	}
	return texts, string(got.Usage)
}

// Every feature, through the template, both legs, the link and the engine: several choices are all
// right and counted with one prompt, forms hold, calls come where they must, biases forbid, and two
// workers say what one says.
func TestEveryFeatureThroughTheWholeHouse(t *testing.T) {
	answers := map[string][]string{} // of each way to serve
	for _, roles := range [][]string{{RolePrefill, RoleDecode}, {RoleUnified}} {
		r := newRecallRig(t, roles...)
		rnd := rand.New(rand.NewPCG(3, 3))
		p := recall.NewPrompt(rnd, 20)
		turn := p.AskOne(rnd)
		ask := func(more map[string]any) map[string]any {
			fields := map[string]any{"messages": p.Messages(turn.Question), "temperature": 0, "seed": 7, "max_tokens": 40}
			for k, v := range more {
				fields[k] = v
			}
			return fields
		}
		tool := map[string]any{"type": "function", "function": map[string]any{"name": "note", "parameters": map[string]any{"type": "object",
			"properties": map[string]any{"code": map[string]any{"enum": []string{"copper swan", "amber falcon"}}}, "required": []string{"code"}}}}
		for name, row := range map[string]struct {
			more map[string]any
			n    int
			want string // a regular expression for each choice
		}{
			"n":          {map[string]any{"n": 3}, 3, "^" + regexp.QuoteMeta(turn.Answer) + " stop$"},
			"n, drawn":   {map[string]any{"n": 8, "temperature": 2, "presence_penalty": 2, "max_tokens": 5}, 8, ` (stop|length)$`},
			"regex":      {map[string]any{"n": 2, "regex": `The code is (red|blue)\.`}, 2, `^The code is (red|blue)\. stop$`},
			"choice":     {map[string]any{"guided_choice": []string{"copper", "amber"}}, 1, `^(copper|amber) stop$`},
			"schema":     {map[string]any{"guided_json": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"enum": []int{1, 2}}}, "required": []string{"a"}, "additionalProperties": false}}, 1, `^\{\s*"a"\s*:\s*[12]\s*\} stop$`},
			"tool":       {map[string]any{"n": 2, "tools": []any{tool}, "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 300}, 2, `^ note\{\s*"code"\s*:\s*"(copper swan|amber falcon)"\s*\} tool_calls$`},
			"min_tokens": {map[string]any{"min_tokens": 40}, 1, ` length$`},
			"stop":       {map[string]any{"stop": []string{"code"}, "include_stop_str_in_output": true}, 1, `^The code stop$`},
			"bias":       {map[string]any{"bad_words": []string{"The"}}, 1, `^[^T]`},
		} {
			texts, usage := r.choicesOf(t, ask(row.more))
			if len(texts) != row.n {
				t.Errorf("%v %s: %d choices, want %d", roles, name, len(texts), row.n)
			}
			for _, text := range texts {
				if !regexp.MustCompile(row.want).MatchString(text) {
					t.Errorf("%v %s: %q, want %s", roles, name, text, row.want)
				}
			}
			if prompt := fmt.Sprintf(`"prompt_tokens":%d,`, len(mustPrompt(t, r, p.Messages(turn.Question)))); name != "tool" && !strings.Contains(usage, prompt) {
				t.Errorf("%s: %s, want %s", name, usage, prompt)
			}
			if before := answers[name]; before != nil && strings.Join(before, "|") != strings.Join(texts, "|") {
				t.Errorf("%s: two workers say %q, one says %q", name, before, texts)
			}
			answers[name] = texts
		}
		r.quiet()
		r.nothingHeld()
	}
}

func mustPrompt(t *testing.T, r *rig, messages any) []int32 {
	t.Helper()
	b, _ := json.Marshal(map[string]any{"messages": messages})
	var got struct{ Tokens []int32 }
	if a := r.post("/tokenize", string(b)); json.Unmarshal([]byte(a.body), &got) != nil || len(got.Tokens) == 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	return got.Tokens
}

// Clients that leave in the middle of several choices, forms and calls leave nothing behind.
func TestAStormOverAllFeaturesForgetsNothing(t *testing.T) {
	r := newRecallRig(t, RolePrefill, RoleDecode)
	var all sync.WaitGroup
	for i := range 6 {
		rnd := rand.New(rand.NewPCG(11, uint64(i)))
		all.Go(func() {
			for round := range 4 {
				p := recall.NewPrompt(rnd, 1+rnd.IntN(40))
				turn := p.AskOne(rnd)
				fields := map[string]any{"messages": p.Messages(turn.Question), "n": 1 + rnd.IntN(4), "temperature": 0, "max_tokens": 60}
				if round%2 == 1 {
					if texts, _ := r.choicesOf(t, fields); len(texts) != fields["n"] || texts[0] != turn.Answer+" stop" {
						t.Errorf("%q, want %q", texts, turn.Answer)
					}
					continue
				}
				fields["regex"], fields["stream"] = `[a-z ]{50,}`, true
				b, _ := json.Marshal(fields)
				r.leaveWithin(rnd.IntN(20_000), string(b))
			}
		})
	}
	all.Wait()
	r.quiet()
	r.nothingHeld()
}

// What the model's template refuses is named with its field.
func TestWhatTheTemplateRefusesIsNamed(t *testing.T) {
	r := newRecallRig(t, RoleUnified)
	const one = `{"messages":[{"role":"user","content":"x"}`
	for body, want := range map[string]string{
		one + `],"chat_template_kwargs":{"messages":[]}}`:                                                            "chat_template_kwargs",
		one + `],"documents":[{"text":"b"}]}`:                                                                        "documents",
		one + `,{"role":"assistant","content":""}],"continue_final_message":true}`:                                   "continue_final_message",
		`{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 4096) + `{"role":"user","content":"x"}]}`: "messages",
	} {
		for _, path := range []string{"/v1/chat/completions", "/tokenize"} {
			var e struct {
				Error struct{ Param, Message string }
			}
			if a := r.post(path, body); json.Unmarshal([]byte(a.body), &e) != nil || a.status != 400 || e.Error.Param != want ||
				!strings.HasPrefix(e.Error.Message, want+": ") || strings.Contains(e.Error.Message, "chat: ") {
				t.Errorf("%s %.120s: %d %s, want %s", path, body, a.status, a.body, want)
			}
		}
	}
}

// A request says for how long its beginning is evicted last, and both workers know it.
func TestCachePinReachesEveryWorker(t *testing.T) {
	for _, roles := range [][]string{{RolePrefill, RoleDecode}, {RoleUnified}} {
		r := newRecallRig(t, roles...)
		r.choicesOf(t, map[string]any{"messages": recall.NewPrompt(rand.New(rand.NewPCG(4, 4)), 20).Messages("hello"), "max_tokens": 2, "cache_pin": 60})
		r.quiet()
		seen := regexp.MustCompile(`"pinned":[1-9]`).FindAllString(r.get("/debug/requests").body, -1)
		if len(seen) != len(roles) {
			t.Errorf("%v: %d workers have pinned blocks", roles, len(seen))
		}
	}
}
