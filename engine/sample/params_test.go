package sample

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
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
	p := Params{Temperature: 0.7, TopK: 3, TopP: 0.9, MinP: 0.01, Seed: math.MaxUint64, Choice: 2, MaxTokens: 7, Stop: []string{"\n"}, StopIDs: []int32{5}, Logprobs: 4, IgnoreEOS: true}
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
