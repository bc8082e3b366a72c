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

// piece is what deltas of one kind in a row say together, or a call.
type piece struct {
	kind byte // content, reasoning, call: c, r, f
	text string
	name string
}

// pieces gives a text to a parser, cut (nil: in one), and joins what comes out.
func pieces(t *testing.T, s Style, o Options, text string, cut func() int) []piece {
	t.Helper()
	p := New(s, o)
	var all []piece
	calls := 0
	take := func(deltas []Delta) {
		for _, d := range deltas {
			if n := b2i(d.Content != "") + b2i(d.Reasoning != "") + b2i(d.Call != nil); n != 1 {
				t.Fatalf("%q: a delta of %d kinds: %+v", text, n, d)
			}
			next := piece{kind: 'c', text: d.Content + d.Reasoning}
			switch {
			case d.Reasoning != "":
				next.kind = 'r'
			case d.Call != nil && d.Call.Name != "": // P4
				if d.Call.Index != calls || d.Call.Arguments != "" {
					t.Fatalf("%q: name of call %d behind %d names: %+v", text, d.Call.Index, calls, d.Call)
				}
				calls++
				all = append(all, piece{kind: 'f', name: d.Call.Name})
				continue
			case d.Call != nil:
				if d.Call.Index != calls-1 || d.Call.Arguments == "" || all[len(all)-1].kind != 'f' {
					t.Fatalf("%q: a piece of call %d behind %d names: %+v", text, d.Call.Index, calls, d.Call)
				}
				next = piece{kind: 'f', text: d.Call.Arguments}
			}
			if n := len(all); n > 0 && all[n-1].kind == next.kind {
				all[n-1].text += next.text
				continue
			}
			all = append(all, next)
		}
	}
	for rest := text; rest != ""; {
		n := len(rest)
		if cut != nil {
			n = min(n, cut())
		}
		take(p.Push(rest[:n]))
		rest = rest[n:]
		// P3: what waits is bounded whatever comes.
		if held := len(p.in) + len(p.blank) + len(p.call.raw) + len(p.call.arguments); held > 3*holdMax {
			t.Fatalf("%d bytes are held", held)
		}
	}
	take(p.Close())
	return all
}

// read joins pieces by their kind.
func read(t *testing.T, s Style, o Options, text string, cut func() int) said {
	t.Helper()
	return join(t, o, text, pieces(t, s, o, text, cut))
}

func join(t *testing.T, o Options, text string, parts []piece) (all said) {
	for _, p := range parts {
		switch p.kind {
		case 'c':
			all.content += p.text
		case 'r':
			all.reasoning += p.text
		default:
			if o.Whole && !json.Valid([]byte(p.text)) {
				t.Fatalf("%q: arguments %q", text, p.text)
			}
			all.calls = append(all.calls, p.name+"("+p.text+")")
		}
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
	// Behind arguments that are out.
	{hermes, Options{}, `<tool_call>{"name":"f","arguments":{"a":1}, "note": "secret" @x}`, said{content: `, "note": "secret" @x}`, calls: []string{`f({"a":1})`}}},
	{hermes, Options{}, `<tool_call>{"arguments":{"a":1}, "id": 7, "name":"f" , "note": 1 @x}`, said{content: `, "note": 1 @x}`, calls: []string{`f({"a":1})`}}},
	{hermes, Options{}, `<tool_call>{"name":"f","arguments":{"a":1}, "note": "sec`, said{content: `, "note": "sec`, calls: []string{`f({"a":1})`}}},
	{hermes, Options{}, `<tool_call>{"name":"f","arguments":{"a":1} ` + "\n", said{calls: []string{`f({"a":1})`}}},
	{hermes, Options{}, `<tool_call>{"name":"f","arguments":{}, "arguments":{"b":2}}</tool_call>`, said{content: `, "arguments":{"b":2}}</tool_call>`, calls: []string{`f({})`}}},
	{hermes, Options{}, `<tool_call>{"name":"f","arguments":{}, ` + "<tool_call>" + f + "</tool_call>", said{content: `,`, calls: []string{`f({})`, `f({"a": 1})`}}},
	{hermes, Options{Whole: true}, `<tool_call>{"name":"f","arguments":{"a":1}, "note": "secret" @x}`, said{content: `<tool_call>{"name":"f","arguments":{"a":1}, "note": "secret" @x}`}},
	{llama, Options{}, `{"name":"f","parameters":{"a":1}, "note": "secret" @x}`, said{content: `, "note": "secret" @x}`, calls: []string{`f({"a":1})`}}},
	{llama, Options{}, `{"name":"f","parameters":{"a":1}, "note": "sec`, said{content: `, "note": "sec`, calls: []string{`f({"a":1})`}}},
	{llama, Options{}, `{"name":"f","parameters":{}}; {"x": 1}`, said{content: `; {"x": 1}`, calls: []string{`f({})`}}},
	{llama, Options{}, `[{"name":"f","parameters":{}} , {"name": 7`, said{content: `, {"name": 7`, calls: []string{`f({})`}}},
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

// P3.
func TestCallsAndWhatIsHeldAreBounded(t *testing.T) {
	got := read(t, hermes, Options{}, strings.Repeat("<tool_call>"+f+"</tool_call>", CallsMax+1), nil)
	if len(got.calls) != CallsMax || got.content != "<tool_call>"+f+"</tool_call>" {
		t.Errorf("%d calls, then %q", len(got.calls), got.content)
	}
	long := `<tool_call>{"x": "` + strings.Repeat("x", holdMax) + `", "name": "f"}</tool_call>`
	if got := read(t, hermes, Options{}, long, func() int { return 1 << 16 }); got.content != long {
		t.Errorf("%d bytes and %d calls of %d bytes", len(got.content), len(got.calls), len(long))
	}
	broken := strings.Repeat("<tool_call>x", brokenMax) + "<tool_call>" + f
	if got := read(t, hermes, Options{}, broken, nil); got.content != broken {
		t.Errorf("behind %d broken calls: %d calls", brokenMax, len(got.calls))
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
		parts := pieces(t, s, o, text, nil)
		whole := join(t, o, text, parts)
		if cut := read(t, s, o, text, func() int { return 1 + r.IntN(9) }); fmt.Sprintf("%q", cut) != fmt.Sprintf("%q", whole) {
			t.Fatalf("%q %+v %+v:\n cut %q\nwhole %q", text, s, o, cut, whole)
		}
		if !(&judge{text: text, style: s, parts: parts}).all() {
			t.Fatalf("%q %+v %+v: not all of it is in %q", text, s, o, parts)
		}
	})
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
