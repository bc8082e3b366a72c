package reply

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// said is a reply whose deltas are joined.
type said struct {
	content, reasoning string
	calls              []string // name(arguments)
}

// read gives a text to a parser in pieces of so many bytes (0: in one) and joins what comes out.
func read(t *testing.T, s Style, o Options, text string, cut func() int) said {
	t.Helper()
	p := New(s, o)
	var all said
	var names, args []string
	take := func(deltas []Delta) {
		for _, d := range deltas {
			if n := b2i(d.Content != "") + b2i(d.Reasoning != "") + b2i(d.Call != nil); n != 1 {
				t.Fatalf("%q: a delta of %d kinds: %+v", text, n, d)
			}
			all.content += d.Content
			all.reasoning += d.Reasoning
			if d.Call == nil {
				continue
			}
			if d.Call.Name != "" { // P4
				if d.Call.Index != len(names) || d.Call.Arguments != "" {
					t.Fatalf("%q: name of call %d behind %d names: %+v", text, d.Call.Index, len(names), d.Call)
				}
				names, args = append(names, d.Call.Name), append(args, "")
				continue
			}
			if d.Call.Index != len(names)-1 || d.Call.Arguments == "" {
				t.Fatalf("%q: a piece of call %d behind %d names: %+v", text, d.Call.Index, len(names), d.Call)
			}
			args[d.Call.Index] += d.Call.Arguments
		}
	}
	for rest := text; rest != ""; {
		n := len(rest)
		if cut != nil {
			n = min(n, cut())
		}
		take(p.Push(rest[:n]))
		rest = rest[n:]
	}
	take(p.Close())
	for i := range names {
		if o.Whole && !json.Valid([]byte(args[i])) {
			t.Fatalf("%q: arguments %q", text, args[i])
		}
		all.calls = append(all.calls, names[i]+"("+args[i]+")")
	}
	return all
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

var (
	hermes   = Style{Calls: Hermes}
	thinking = Style{Calls: Hermes, Thinks: true}
	open     = Style{Calls: Hermes, Thinks: true, Open: true}
	llama    = Style{Calls: Llama}
)

const f = `{"name": "f", "arguments": {"a": 1}}`

var rows = []struct {
	style Style
	o     Options
	text  string
	want  said
}{
	{Style{}, Options{}, "<think>a</think> <tool_call>" + f + "</tool_call>", said{content: "<think>a</think> <tool_call>" + f + "</tool_call>"}},
	{hermes, Options{}, "", said{}},
	{hermes, Options{}, " \n", said{content: " \n"}},
	{hermes, Options{}, " a \n b \n", said{content: " a \n b \n"}},
	{hermes, Options{}, "<tool_call>\n" + f + "\n</tool_call>", said{calls: []string{`f({"a": 1})`}}},
	{hermes, Options{}, "Well. \n<tool_call>" + f + "</tool_call> \n <tool_call> " + f + "</tool_call>\n", said{content: "Well.", calls: []string{`f({"a": 1})`, `f({"a": 1})`}}},
	{hermes, Options{}, "<tool_call>" + f + "</tool_call> and <b>", said{content: "and <b>", calls: []string{`f({"a": 1})`}}},
	{hermes, Options{}, "<tool_call>" + f, said{calls: []string{`f({"a": 1})`}}},                                      // the end came first
	{hermes, Options{}, "<tool_call>" + f + "\n<tool_call>" + f, said{calls: []string{`f({"a": 1})`, `f({"a": 1})`}}}, // and in between
	{hermes, Options{}, `<tool_call>{"arguments": {"x": "}{\"\\"}, "id": [1, -0.5e+3, null], "name": "f"}</tool_call>`, said{calls: []string{`f({"x": "}{\"\\"})`}}},
	{hermes, Options{}, `<tool_call>{"name": "f"}</tool_call>`, said{calls: []string{`f({})`}}},
	{hermes, Options{}, `<tool_call>{"name": "caf\u00e9", "parameters": {}}</tool_call>`, said{calls: []string{`café({})`}}},
	{hermes, Options{Names: []string{"g"}}, "<tool_call>" + f + "</tool_call>", said{content: "<tool_call>" + f + "</tool_call>"}},
	{hermes, Options{Names: []string{"g", "f"}}, "<tool_call>" + f + "</tool_call>", said{calls: []string{`f({"a": 1})`}}},
	{hermes, Options{One: true}, "<tool_call>" + f + "</tool_call>\n<tool_call>" + f + "</tool_call>", said{content: "<tool_call>" + f + "</tool_call>", calls: []string{`f({"a": 1})`}}},
	// Broken ones.
	{hermes, Options{}, "a \n<tool_call>f</tool_call>", said{content: "a \n<tool_call>f</tool_call>"}},
	{hermes, Options{}, `<tool_call>{"name": "f", "arguments": "x"}</tool_call>`, said{content: `<tool_call>{"name": "f", "arguments": "x"}</tool_call>`}},
	{hermes, Options{}, `<tool_call>{"name": 7}`, said{content: `<tool_call>{"name": 7}`}},
	{hermes, Options{}, `<tool_call>{"name": "f", "arg`, said{content: `<tool_call>{"name": "f", "arg`}},
	{hermes, Options{}, `<tool_call>{"name": "f", "arguments": {"a": tru, 1} x`, said{content: `, 1} x`, calls: []string{`f({"a": tru)`}}},
	{hermes, Options{Whole: true}, `<tool_call>{"name": "f", "arguments": {"a": tru, 1} x`, said{content: `<tool_call>{"name": "f", "arguments": {"a": tru, 1} x`}},
	{hermes, Options{}, `<tool_call>{"name": "f", "arguments": {"a": `, said{calls: []string{`f({"a": )`}}},
	{hermes, Options{Whole: true}, `<tool_call>{"name": "f", "arguments": {"a": `, said{content: `<tool_call>{"name": "f", "arguments": {"a": `}},
	{hermes, Options{}, "<tool_call> no <tool_call>" + f + "</tool_call>", said{content: "<tool_call> no", calls: []string{`f({"a": 1})`}}},
	{hermes, Options{}, "<tool_call", said{content: "<tool_call"}},
	// Thoughts.
	{thinking, Options{}, "<think>\na\nb \n</think>\n\nc", said{reasoning: "a\nb", content: "c"}},
	{thinking, Options{}, "\n<think>a", said{reasoning: "a"}},
	{thinking, Options{}, "<think>\n\n</think>\n\nc\n", said{content: "c\n"}},
	{thinking, Options{}, "c <think>a</think>", said{content: "c <think>a</think>"}},
	{thinking, Options{}, "\n\nc", said{content: "\n\nc"}},
	{thinking, Options{}, "<think>a <tool_call>" + f + "</tool_call></think><tool_call>" + f + "</tool_call>", said{reasoning: "a <tool_call>" + f + "</tool_call>", calls: []string{`f({"a": 1})`}}},
	{open, Options{}, "a</think>b", said{reasoning: "a", content: "b"}},
	{open, Options{}, "<think>\na</think>b", said{reasoning: "a", content: "b"}},
	{open, Options{}, "a", said{reasoning: "a"}},
	{Style{Thinks: true}, Options{}, "<think>a</think> <tool_call> ", said{reasoning: "a", content: "<tool_call> "}},
	// Llama.
	{llama, Options{}, `{"name": "f", "parameters": {"a": 1}}`, said{calls: []string{`f({"a": 1})`}}},
	{llama, Options{}, "\n<|python_tag|>" + `{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}} `, said{calls: []string{`f({"a": 1})`, `g({})`}}},
	{llama, Options{}, `[{"name": "f", "arguments": {}}, {"name": "g", "parameters": {}}]`, said{calls: []string{`f({})`, `g({})`}}},
	{llama, Options{}, `{"name": "f", "parameters": {}} and more`, said{content: "and more", calls: []string{`f({})`}}},
	{llama, Options{}, ` {"answer": 42} `, said{content: ` {"answer": 42} `}},
	{llama, Options{}, `Hello {"name": "f", "parameters": {}}`, said{content: `Hello {"name": "f", "parameters": {}}`}},
	{llama, Options{}, `[1]`, said{content: `[1]`}},
	{llama, Options{}, `<|python_tag|>print(1)`, said{content: `<|python_tag|>print(1)`}},
	{llama, Options{One: true}, `{"name": "f", "parameters": {}}; {"name": "g"}`, said{content: `; {"name": "g"}`, calls: []string{`f({})`}}},
}

func TestReplies(t *testing.T) {
	for _, row := range rows {
		for name, cut := range map[string]func() int{"in one": nil, "in bytes": func() int { return 1 }, "in threes": func() int { return 3 }} {
			if got := read(t, row.style, row.o, row.text, cut); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", row.want) {
				t.Errorf("%q %s:\n got %q\nwant %q", row.text, name, got, row.want)
			}
		}
	}
}

// What comes is put out at once: thoughts, content and arguments do not wait for their end.
func TestNothingWaitsThatIsKnown(t *testing.T) {
	p := New(thinking, Options{})
	for _, step := range []struct{ push, want string }{
		{"<think>", "[]"}, {"\na", "[{ a <nil>}]"}, {" b", "[{  b <nil>}]"}, {"</thi", "[]"}, {"nk>\n", "[]"},
		{"\nSo", "[{So  <nil>}]"}, {" it", "[{ it  <nil>}]"}, {"\n<tool", "[]"}, {"_call>", "[]"}, {`{"name": "f", "argum`, "[]"},
	} {
		if got := fmt.Sprint(p.Push(step.push)); got != step.want {
			t.Errorf("behind %q: %s, want %s", step.push, got, step.want)
		}
	}
	if d := p.Push(`ents": {"a`); len(d) != 2 || d[0].Call.Name != "f" || d[1].Call.Arguments != `{"a` {
		t.Errorf("%+v", d)
	}
	if d := p.Push(`": 1}`); len(d) != 1 || d[0].Call.Arguments != `": 1}` {
		t.Errorf("%+v", d)
	}
}

func TestThinkingIsKnownWhileItComes(t *testing.T) {
	for text, want := range map[string]string{"<think>ab</think>c": "       111111111  ", "abc": "   "} {
		p, got := New(thinking, Options{}), ""
		for i := range len(text) {
			p.Push(text[i : i+1])
			got += map[bool]string{true: "1", false: " "}[p.Thinking()]
		}
		_ = want
		if text == "abc" && strings.Contains(got, "1") || text != "abc" && (got[6] != '1' || got[7] != '1' || got[16] != ' ' || got[17] != ' ') {
			t.Errorf("%q: %q", text, got)
		}
	}
	if p := New(open, Options{}); !p.Thinking() {
		t.Error("the prompt ends inside of thoughts")
	}
}

func TestCallsAndWhatIsHeldAreBounded(t *testing.T) {
	got := read(t, hermes, Options{}, strings.Repeat("<tool_call>"+f+"</tool_call>", CallsMax+1), nil)
	if len(got.calls) != CallsMax || got.content != "<tool_call>"+f+"</tool_call>" {
		t.Errorf("%d calls, then %q", len(got.calls), got.content)
	}
	long := `<tool_call>{"x": "` + strings.Repeat("x", holdMax) + `", "name": "f"}</tool_call>`
	if got := read(t, hermes, Options{}, long, func() int { return 1 << 16 }); got.content != long {
		t.Errorf("%d bytes and %d calls of %d bytes", len(got.content), len(got.calls), len(long))
	}
	deep := `<tool_call>{"name": "f", "arguments": ` + strings.Repeat(`{"a":`, depthMax+1)
	if got := read(t, hermes, Options{Whole: true}, deep, nil); got.content != deep {
		t.Errorf("%d calls", len(got.calls))
	}
	blanks := "a" + strings.Repeat(" ", 3*blankMax+7) + "<tool_call>" + f
	one, many := read(t, hermes, Options{}, blanks, nil), read(t, hermes, Options{}, blanks, func() int { return 1000 })
	if len(one.content) != 1+3*blankMax || len(many.content) != len(one.content) || len(many.calls) != 1 {
		t.Errorf("%d and %d bytes", len(one.content), len(many.content))
	}
}

// bits are texts that replies are made of.
var bits = []string{"<think>", "</think>", "<tool_call>", "</tool_call>", f, `{"name": "g", "parameters": {"b": [{}, "\u0041"]}}`, `{"name": "f"`, `{"name": "f", "arguments": {"a": `,
	"{", "}", "[", "]", ";", ",", `"`, "\\", " ", "\n", "a", "é", "1", "-", "true", "<", "<|python_tag|>", `"arguments": {`, strings.Repeat(" ", blankMax)}

// FuzzReplies: however a text is cut, the joined deltas are the same (P1); all of it is there (P2).
func FuzzReplies(f *testing.F) {
	for i, row := range rows {
		f.Add(row.text, uint8(i), uint64(i))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		var text string
		for range r.IntN(12) {
			text += bits[r.IntN(len(bits))]
		}
		f.Add(text, uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, text string, how uint8, seed uint64) {
		s := Style{Calls: Calls(how % 3), Thinks: how&4 != 0, Open: how&8 != 0}
		o := Options{One: how&16 != 0, Whole: how&32 != 0}
		if how&64 != 0 {
			o.Names = []string{"f"}
		}
		r := rand.New(rand.NewPCG(seed, 1))
		whole := read(t, s, o, text, nil)
		if cut := read(t, s, o, text, func() int { return 1 + r.IntN(9) }); fmt.Sprintf("%q", cut) != fmt.Sprintf("%q", whole) {
			t.Fatalf("%q %+v %+v:\n cut %q\nwhole %q", text, s, o, cut, whole)
		}
		judge(t, text, s, whole)
	})
}

// judge demands P2 of what was said.
func judge(t *testing.T, text string, s Style, got said) {
	if s == (Style{}) && got.content != text {
		t.Fatalf("%q: content %q", text, got.content)
	}
	letters := func(s string) (n int) { return strings.Count(s, "a") }
	all := got.content + got.reasoning
	for _, c := range got.calls {
		all += c
	}
	if len(got.calls) == 0 && letters(all) != letters(text) {
		t.Fatalf("%q became %q", text, got)
	}
}

// FuzzScanner: a text is JSON by the scanner exactly if it is by the standard library, but for its depth.
func FuzzScanner(f *testing.F) {
	for _, s := range append(bits, `{"a":[1,-0.5e+3,{"b":null}],"c":false,"d":"\u12aF\n"}`, "01", "1.", "1e", "-", "[1,]", `{"a":1,}`, "nul", `"`+"\x01"+`"`, " 1 ", "") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s scanner
		ok := true
		for i := 0; i < len(text) && ok; i++ {
			ok = s.step(text[i])
		}
		ok = ok && s.depth() == 0 && (s.at == behind || numberEnds(s.at))
		if want := json.Valid([]byte(text)); ok != want && strings.Count(text, "[")+strings.Count(text, "{") <= depthMax {
			t.Fatalf("%q: %v, want %v", text, ok, want)
		}
	})
}

// TestMarksThatAreSpecialTokensMayComeAsThese: the form of a call lets them, and stays good.
func TestMarksThatAreSpecialTokensMayComeAsThese(t *testing.T) {
	spec := Style{Calls: Hermes, Special: true}.Grammar([]Tool{{Name: "f"}, {Name: "g"}}, false)
	raw, _ := json.Marshal(spec)
	if message := spec.Validate(); message != "" || strings.Count(string(raw), `"special":true`) != 4 {
		t.Errorf("%s of %s", message, raw)
	}
	if raw, _ := json.Marshal(Style{Calls: Hermes}.Grammar([]Tool{{Name: "f"}}, true)); strings.Contains(string(raw), "special") {
		t.Errorf("marks that are text: %s", raw)
	}
}
