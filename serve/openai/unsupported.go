package openai

import (
	"bytes"
	"encoding/json"
)

// unsupported lists the fields that we know and cannot honour yet (O1), each with the values
// that ask for nothing and are therefore fine. null and a missing field are always fine.
var unsupported = []struct {
	name string
	fine []string
	only string // "chat", "completion" or "" for both: elsewhere the field is unknown and ignored
}{
	{"use_beam_search", []string{"false"}, ""},
	{"length_penalty", []string{"1"}, ""},
	{"spaces_between_special_tokens", []string{"true"}, ""},
	{"prompt_logprobs", []string{}, ""},
	{"echo", []string{"false"}, "chat"},
	{"suffix", []string{`""`}, "completion"},
	{"ebnf", []string{}, ""},
	{"structural_tag", []string{}, ""},
	{"guided_grammar", []string{}, ""},
	{"guided_whitespace_pattern", []string{}, ""},
	{"functions", []string{"[]"}, "chat"},
	{"function_call", []string{`"none"`, `"auto"`}, "chat"},
	{"modalities", []string{`["text"]`}, "chat"},
	{"audio", []string{}, "chat"},
	{"web_search_options", []string{}, "chat"},
	{"thinking_token_budget", []string{}, "chat"},
	{"chat_template", []string{}, "chat"},
	{"add_special_tokens", []string{"false"}, "chat"}, // the template alone says which come
	{"store", []string{"false"}, "chat"},
	{"logits_processors", []string{"[]"}, ""},
	{"lora_path", []string{`""`}, ""},
	{"session_params", []string{"{}"}, ""},
	{"return_hidden_states", []string{"false"}, ""},
	{"priority", []string{"0"}, ""},
	{"max_completion_tokens", []string{}, "completion"},
	{"top_logprobs", []string{"0"}, "completion"},
	{"truncate_prompt_tokens", []string{}, ""},
	{"return_tokens_as_token_ids", []string{"false"}, ""},
	{"stop_regex", []string{`""`, "[]"}, ""},
	{"custom_logit_processor", []string{`""`}, ""},
	{"verbosity", []string{`"medium"`}, ""},
	{"repetition_detection", []string{}, ""},
	// Of a conversation, which a completion is none: its text is all there is, and thoughts are in it.
	{"tools", []string{"[]"}, "completion"},
	{"tool_choice", []string{`"none"`, `"auto"`}, "completion"},
	{"parallel_tool_calls", []string{"true", "false"}, "completion"},
	{"reasoning_effort", []string{}, "completion"},
	{"chat_template_kwargs", []string{"{}"}, "completion"},
	{"include_reasoning", []string{"true"}, "completion"},
	{"separate_reasoning", []string{"false", "true"}, "completion"},
	{"add_generation_prompt", []string{"false", "true"}, "completion"},
	{"continue_final_message", []string{"false"}, "completion"},
	{"documents", []string{"[]"}, "completion"},
}

// handOffFields are the fields that pass between a gateway and its workers. From a client they
// are an attack: with them it could read another request's KV. They are dropped (O4).
var handOffFields = []string{
	"bootstrap_host", "bootstrap_port", "bootstrap_room", "kv_transfer_params", "rid",
	"routed_dp_rank", "disagg_prefill_dp_rank", "data_parallel_rank", "room", "link",
}

// handOff returns the names of the hand-off fields that a request carries.
func (o *object) handOff() (found []string) {
	for _, name := range handOffFields {
		if _, ok := o.fields[name]; ok {
			found = append(found, name)
		}
	}
	return found
}

func refuseUnsupported(o *object, e Endpoint) {
	where := "chat"
	if e == Completion {
		where = "completion"
	}
	for _, f := range unsupported {
		if f.only != "" && f.only != where {
			continue
		}
		v, ok := o.raw(f.name)
		if !ok || asksForNothing(v, f.fine) {
			continue
		}
		o.fail(invalid(f.name, CodeUnsupported, "%s: %s is not supported by this server%s", f.name, shown(v), remedy(f.fine)))
	}
}

func remedy(fine []string) string {
	if len(fine) == 0 {
		return "; leave it out"
	}
	return "; leave it out or send " + fine[0]
}

// asksForNothing compares numbers by value and everything else by its compact text.
func asksForNothing(v []byte, fine []string) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, v) != nil {
		return false
	}
	var number float64
	isNumber := json.Unmarshal(v, &number) == nil
	for _, want := range fine {
		if compact.String() == want {
			return true
		}
		var w float64
		if isNumber && json.Unmarshal([]byte(want), &w) == nil && w == number {
			return true
		}
	}
	return false
}

func isEmpty(v []byte) bool {
	var compact bytes.Buffer
	return json.Compact(&compact, v) == nil && (compact.String() == "[]" || compact.String() == "{}")
}
