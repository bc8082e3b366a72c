package reply

import (
	"encoding/json"
	"iter"
	"strings"
)

// judge demands P2: the pieces stand in the text one behind another, and between them is only what
// the package's doc lets go. It knows JSON by the standard library alone.
type judge struct {
	text  string
	style Style
	parts []piece
	seen  map[state]bool
}

// state is how far a judge is.
type state struct {
	at, part int
	marked   bool // markup is just behind
}

func (j *judge) all() bool {
	j.seen = map[state]bool{}
	return j.from(state{marked: j.style.Open})
}

// from says whether the text from s on is the pieces that are left.
func (j *judge) from(s state) bool {
	if j.seen[s] {
		return false
	}
	j.seen[s] = true
	rest := j.text[s.at:]
	if rest == "" && s.part == len(j.parts) {
		return true
	}
	next := byte(0)
	if s.part < len(j.parts) {
		p := j.parts[s.part]
		if next = p.kind; next != 'f' && strings.HasPrefix(rest, p.text) && j.from(state{s.at + len(p.text), s.part + 1, false}) {
			return true
		}
		if next == 'f' {
			for n, ends := range callAt(rest, p) {
				if j.from(state{s.at + n, s.part + 1, ends}) {
					return true
				}
			}
		}
	}
	last := byte(0)
	if s.part > 0 {
		last = j.parts[s.part-1].kind
	}
	for _, mark := range j.marks(last, next) {
		if strings.HasPrefix(rest, mark) && j.from(state{s.at + len(mark), s.part, true}) {
			return true
		}
	}
	// White space: next to markup alone.
	n := len(rest) - len(strings.TrimLeft(rest, blanks))
	if n == 0 {
		return false
	}
	before := s.marked || next == 'f' && strings.HasPrefix(rest[n:], "{")
	for _, mark := range j.marks(last, next) {
		before = before || strings.HasPrefix(rest[n:], mark)
	}
	return before && j.from(state{s.at + n, s.part, s.marked})
}

// marks are those that may stand between pieces of these kinds.
func (j *judge) marks(last, next byte) (all []string) {
	if j.style.Thinks || j.style.Open {
		all = append(all, thinkClose)
		if last == 0 {
			all = append(all, thinkOpen)
		}
	}
	switch {
	case j.style.Calls == Hermes:
		if next == 'f' {
			all = append(all, callOpen)
		}
		if last == 'f' {
			all = append(all, callClose)
		}
	case j.style.Calls == Llama && last == 'f':
		all = append(all, "]")
		if next == 'f' {
			all = append(all, ";", ",")
		}
	case j.style.Calls == Llama && next == 'f':
		all = append(all, pythonTag, "[")
	}
	return all
}

// callAt yields how much of the text may be this call, and whether that ends behind its arguments:
// all of a whole one, or a broken one until name and arguments are there.
func callAt(text string, call piece) iter.Seq2[int, bool] {
	is := func(raw, arguments string) bool {
		var o map[string]json.RawMessage
		var name string
		if json.Unmarshal([]byte(raw), &o) != nil || json.Unmarshal(o["name"], &name) != nil || name != call.name {
			return false
		}
		a, p := string(o["arguments"]), string(o["parameters"])
		return (a == "" || p == "") && (a+p == arguments || a+p == "" && arguments == "{}")
	}
	return func(yield func(int, bool) bool) {
		var whole json.RawMessage
		if json.NewDecoder(strings.NewReader(text)).Decode(&whole) == nil && is(string(whole), call.text) && !yield(len(whole), true) {
			return
		}
		good := json.Valid([]byte(call.text))
		for at := 1; at <= len(text) && text[0] == '{'; at++ {
			switch last := text[at-1]; {
			case good && (last == '"' || last == '}') && strings.Contains(text[:at], call.text) && is(text[:at]+"}", call.text):
				yield(at, true)
				return
			case !good && strings.HasPrefix(text[at:], call.text) && is(text[:at]+"{}}", "{}"):
				yield(at+len(call.text), false)
				return
			}
		}
	}
}
