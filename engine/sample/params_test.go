package sample

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"baton/engine/grammar"
)

func TestParametersOutOfRangeAreNamed(t *testing.T) {
	rows := []struct {
		change  func(*Params)
		param   string
		message string
	}{
		{func(p *Params) {}, "", ""},
		{func(p *Params) { p.Temperature = 2.5 }, "temperature", "temperature is 2.5, allowed are 0 to 2"},
		{func(p *Params) { p.Temperature = -0.1 }, "temperature", "temperature is -0.1, allowed are 0 to 2"},
		{func(p *Params) { p.Temperature = math.NaN() }, "temperature", "temperature is NaN, allowed are 0 to 2"},
		{func(p *Params) { p.Temperature = 2 }, "", ""},
		{func(p *Params) { p.TopK = -2 }, "top_k", "top_k is -2, allowed are -1 and 0 (all tokens) and 1 or more"},
		{func(p *Params) { p.TopK = -1 }, "", ""},
		{func(p *Params) { p.TopP = 0 }, "top_p", "top_p is 0, allowed is more than 0 up to 1"},
		{func(p *Params) { p.TopP = 1.01 }, "top_p", "top_p is 1.01, allowed is more than 0 up to 1"},
		{func(p *Params) { p.TopP = math.NaN() }, "top_p", "top_p is NaN, allowed is more than 0 up to 1"},
		{func(p *Params) { p.MinP = 1.5 }, "min_p", "min_p is 1.5, allowed are 0 to 1"},
		{func(p *Params) { p.MinP = -1 }, "min_p", "min_p is -1, allowed are 0 to 1"},
		{func(p *Params) { p.MaxTokens = 0 }, "max_tokens", "max_tokens is 0, allowed are 1 to 16777216"},
		{func(p *Params) { p.MaxTokens = MaxTokensMax + 1 }, "max_tokens", "max_tokens is 16777217, allowed are 1 to 16777216"},
		{func(p *Params) { p.Logprobs = 21 }, "logprobs", "21 log-probabilities per token are asked for, allowed are 0 to 20"},
		{func(p *Params) { p.Logprobs = -2 }, "logprobs", "-2 log-probabilities per token are asked for, allowed are 0 to 20"},
		{func(p *Params) { p.Stop = make([]string, 17) }, "stop", "stop has 17 strings, allowed are 16"},
		{func(p *Params) { p.Stop = []string{"a", ""} }, "stop", "stop string 2 has 0 bytes, allowed are 1 to 512"},
		{func(p *Params) { p.Stop = []string{strings.Repeat("a", 513)} }, "stop", "stop string 1 has 513 bytes, allowed are 1 to 512"},
		{func(p *Params) { p.StopIDs = make([]int32, 65) }, "stop_token_ids", "stop_token_ids has 65 tokens, allowed are 64"},
		{func(p *Params) { p.StopIDs = []int32{99, 100} }, "stop_token_ids", "stop_token_ids has the token 100, allowed are 0 to 99"},
		{func(p *Params) { p.StopIDs = []int32{-1} }, "stop_token_ids", "stop_token_ids has the token -1, allowed are 0 to 99"},
		{func(p *Params) { p.Stop = []string{"a"}; p.StopIDs = []int32{99} }, "", ""},
		{func(p *Params) { p.PresencePenalty = -2.5 }, "presence_penalty", "presence_penalty is -2.5, allowed are -2 to 2"},
		{func(p *Params) { p.FrequencyPenalty = math.NaN() }, "frequency_penalty", "frequency_penalty is NaN, allowed are -2 to 2"},
		{func(p *Params) { p.RepetitionPenalty = 0 }, "repetition_penalty", "repetition_penalty is 0, allowed are 0.01 to 2"},
		{func(p *Params) { p.RepetitionPenalty = math.Inf(1) }, "repetition_penalty", "repetition_penalty is +Inf, allowed are 0.01 to 2"},
		{func(p *Params) { p.MinTokens = 17 }, "min_tokens", "min_tokens is 17, allowed are 0 to max_tokens, which is 16"},
		{func(p *Params) { p.MinTokens = -1 }, "min_tokens", "min_tokens is -1, allowed are 0 to max_tokens, which is 16"},
		{func(p *Params) { p.LogitBias = make([]Bias, 1025) }, "logit_bias", "logit_bias has 1025 tokens, allowed are 1024"},
		{func(p *Params) { p.LogitBias = []Bias{{100, 1}} }, "logit_bias", "logit_bias has the token 100, allowed are 0 to 99"},
		{func(p *Params) { p.LogitBias = []Bias{{7, math.NaN()}} }, "logit_bias", "logit_bias of token 7 is NaN, allowed are -100 to 100"},
		{func(p *Params) { p.LogitBias = []Bias{{7, -100}, {7, 100}} }, "logit_bias", "logit_bias has the token 7 twice or out of order"},
		{func(p *Params) { p.AllowedIDs = make([]int32, 4097) }, "allowed_token_ids", "allowed_token_ids has 4097 tokens, allowed are 4096"},
		{func(p *Params) { p.AllowedIDs = []int32{-1} }, "allowed_token_ids", "allowed_token_ids has the token -1, allowed are 0 to 99"},
		{func(p *Params) { p.AllowedIDs = []int32{2, 1} }, "allowed_token_ids", "allowed_token_ids has the token 1 twice or out of order"},
		{func(p *Params) { p.Bad = make([][]int32, 129) }, "bad_words", "bad_words has 129 entries, allowed are 128"},
		{func(p *Params) { p.Bad = [][]int32{{1}, {}} }, "bad_words", "bad_words has 0 tokens in entry 2, allowed are 1 to 32"},
		{func(p *Params) { p.Bad = [][]int32{{1, 100}} }, "bad_words", "bad_words has the token 100, allowed are 0 to 99"},
		{func(p *Params) {
			p.PresencePenalty, p.FrequencyPenalty, p.RepetitionPenalty, p.MinTokens = 2, -2, 0.5, 16
			p.LogitBias, p.AllowedIDs, p.Bad = []Bias{{0, 100}, {99, -100}}, []int32{0, 99}, [][]int32{{0, 99}}
		}, "", ""},
	}
	for _, r := range rows {
		p := Default()
		r.change(&p)
		if param, message := p.Validate(100); param != r.param || message != r.message {
			t.Errorf("%q, %q; want %q, %q", param, message, r.param, r.message)
		}
	}
}

func TestParametersSurviveJSON(t *testing.T) {
	p := Params{Temperature: 0.7, TopK: 3, TopP: 0.9, MinP: 0.01, Seed: math.MaxUint64, Choice: 2, MaxTokens: 7, Stop: []string{"\n"}, StopIDs: []int32{5}, Logprobs: 4, IgnoreEOS: true,
		LogitBias: []Bias{{3, -1.5}}, AllowedIDs: []int32{1, 2}, Bad: [][]int32{{1, 2}}, MinTokens: 3, PresencePenalty: 0.5,
		FrequencyPenalty: -0.5, RepetitionPenalty: 1.25, IncludeStop: true, KeepSpecial: true,
		Grammar: &grammar.Spec{Kind: grammar.KindRegex, Regex: "a+"}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q Params
	if err := json.Unmarshal(b, &q); err != nil || !reflect.DeepEqual(p, q) {
		t.Errorf("%s comes back as %+v, %v", b, q, err)
	}
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("this test does not set %s", v.Type().Field(i).Name)
		}
	}
}

// TestEveryLogprobPrints: what JSON cannot carry becomes the least that it can.
func TestEveryLogprobPrints(t *testing.T) {
	inf := float32(math.Inf(1))
	for l, want := range map[float32]float32{-inf: LogprobMin, -1e30: LogprobMin, -2.5: -2.5, 0: 0, 1e-6: 0, inf: 0} {
		if got := Clamp(l); got != want {
			t.Errorf("%v becomes %v, want %v", l, got, want)
		}
	}
	if got := Clamp(float32(math.NaN())); got != LogprobMin {
		t.Errorf("no number becomes %v", got)
	}
}
