package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// structural are the keys that templates look for: of conversations, tools and schemas, and of the
// values of the small sources.
var structural = []string{"messages", "tools", "documents", "role", "content", "name", "tool_calls", "tool_call_id", "id", "type",
	"function", "arguments", "reasoning_content", "thinking", "text", "title", "parameters", "properties", "description",
	"required", "items", "enum", "anyOf", "default", "s", "l", "d", "bos_token", "eos_token", "enable_thinking",
	"reasoning_effort", "date_string", "add_generation_prompt", "tools_in_user_message"}

// greek turns every string of a JSON value into Greek letters, with keys those of objects, too,
// but for structural ones, so that what a client brought shows in a rendering by its letters.
func greek(v any, keys bool) any {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return 'α' + r%17
			}
			return r
		}, s)
	}
	switch v := v.(type) {
	case string:
		return letters(v)
	case []any:
		for i := range v {
			v[i] = greek(v[i], keys)
		}
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if x = greek(x, keys); keys && !slices.Contains(structural, k) {
				k = letters(k)
			}
			out[k] = x
		}
		return out
	}
	return v
}

// unmarked returns the Greek letters of a text that are not marked as a client's.
func unmarked(t Text) (out string) {
	for s, client := range t.Parts() {
		if !client {
			out += strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Greek, r) {
					return r
				}
				return -1
			}, s)
		}
	}
	return out
}

// TestWhatAClientBroughtIsMarked holds J1 for the templates and small sources here: all values are
// the client's and Greek, all sources are not.
func TestWhatAClientBroughtIsMarked(t *testing.T) {
	all := rows(t, "../testdata/renders.jsonl.gz")
	small := rows(t, "../testdata/texts.jsonl")
	for _, r := range small[1:] {
		all = append(all, row{Source: r.Source, Vars: small[0].Vars})
	}
	for _, keys := range []bool{false, true} {
		letters := 0
		for _, r := range all {
			if r.Template != "" {
				src, err := os.ReadFile(filepath.Join("../testdata", r.Template+".jinja"))
				if err != nil {
					t.Fatal(err)
				}
				r.Source = string(src)
			}
			tpl, err := Parse(r.Source)
			if err != nil || unmarked(Literal(r.Source)) != "" {
				continue
			}
			out, err := tpl.Render(inGreek(t, r.Vars, keys), plenty, then)
			if err != nil {
				continue
			}
			if bad := unmarked(out); bad != "" {
				t.Errorf("%s%s %s: %q is not marked in %q", r.Template, r.Name, r.Source, bad, out)
			}
			for _, c := range out.String() {
				if unicode.Is(unicode.Greek, c) {
					letters++
				}
			}
		}
		if letters < 5_000 {
			t.Errorf("only %d letters came through: this test shows little", letters)
		}
	}
}

// inGreek returns the variables of a row with what a client says in Greek, but for roles and types
// of messages, which templates ask for.
func inGreek(t *testing.T, raw []byte, keys bool) *Dict {
	t.Helper()
	var vars map[string]any
	if err := json.Unmarshal(raw, &vars); err != nil {
		t.Fatal(err)
	}
	for k, v := range vars {
		list, ok := v.([]any)
		if !ok || k != "messages" && k != "tools" {
			vars[k] = greek(v, keys)
			continue
		}
		for _, m := range list {
			m := m.(map[string]any)
			for key, v := range m {
				if key != "role" && key != "type" {
					m[key] = greek(v, keys)
				}
			}
		}
	}
	raw, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, raw)
}

// TestTextsKeepTheirOrigin: whatever is cut and joined, the marks are those of the pieces.
func TestTextsKeepTheirOrigin(t *testing.T) {
	type piece struct {
		s      string
		client bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var want []byte // 'c' for each client's byte
		var b builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			p := piece{rapid.StringOfN(rapid.RuneFrom([]rune("abé😀 ")), 0, 5, -1).Draw(t, "s"), rapid.Bool().Draw(t, "client")}
			b.put(p.s, p.client)
			want = append(want, strings.Repeat(map[bool]string{true: "c", false: "-"}[p.client], len(p.s))...)
		}
		text := b.text()
		origin := func(x Text) (out string) {
			for s, client := range x.Parts() {
				out += strings.Repeat(map[bool]string{true: "c", false: "-"}[client], len(s))
			}
			return out
		}
		if origin(text) != string(want) {
			t.Fatalf("%q, want %q", origin(text), want)
		}
		for k := 1; k < len(text.marks); k++ {
			if text.marks[k-1] >= text.marks[k] || len(text.marks)%2 != 0 {
				t.Fatalf("marks %v", text.marks)
			}
		}
		i := rapid.IntRange(0, len(text.s)).Draw(t, "i")
		j := rapid.IntRange(i, len(text.s)).Draw(t, "j")
		cut := text.Slice(i, j)
		if cut.s != text.s[i:j] || origin(cut) != string(want[i:j]) {
			t.Fatalf("slice %d:%d is %q %q, want %q", i, j, cut.s, origin(cut), want[i:j])
		}
		whole := concat(concat(text.Slice(0, i), cut), text.Slice(j, len(text.s)))
		if whole.s != text.s || origin(whole) != string(want) {
			t.Fatalf("%q %q", whole.s, origin(whole))
		}
		if up, err := (&run{left: plenty}).mapped(text, strings.ToUpper); err != nil || up.s != strings.ToUpper(text.s) || len(up.marks) != len(text.marks) {
			t.Fatalf("%q, %v", up.s, err)
		}
	})
}

// FuzzTemplate asks of every source and every client's value: an error, or a rendering within the
// budget, the same each time, in which what the client brought is marked.
func FuzzTemplate(f *testing.F) {
	for _, r := range rows(f, "../testdata/texts.jsonl")[1:] {
		f.Add(r.Source, `{"s": "αβγ", "n": 5, "l": ["δ", {"ε": [1.5, null]}]}`)
	}
	for _, name := range []string{"qwen3", "deepseek-v3", "calls", "opening", "blocks"} {
		src, err := os.ReadFile("../testdata/" + name + ".jinja")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src), `{"messages": [{"role": "user", "content": "ω"}], "tools": [{"function": {"name": "φ"}}]}`)
	}
	f.Fuzz(func(t *testing.T, src, value string) {
		if len(src) > 8192 || len(value) > 1024 || strings.ContainsFunc(src, func(r rune) bool { return r > 0x7f }) || strings.Contains(src, `\`) || strings.Contains(src, "%c") {
			t.Skip() // the template itself has no Greek, not even by escape or by number
		}
		tpl, err := Parse(src)
		var fault *Error
		if err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		v, err := FromJSON([]byte(value))
		if err != nil {
			return
		}
		vars := NewDict()
		vars.Set("value", v)
		if d, ok := v.(*Dict); ok {
			d.Each(func(k string, v Value) { vars.Set(k, v) })
		}
		out, err := tpl.Render(vars, tight, then)
		again, err2 := tpl.Render(vars, tight, then)
		if out.String() != again.String() || (err == nil) != (err2 == nil) {
			t.Fatalf("%q, %v, then %q, %v", out, err, again, err2)
		}
		var raised *Raised
		if err != nil && !errors.As(err, &fault) && !errors.As(err, &raised) && !errors.Is(err, ErrCostly) {
			t.Fatalf("%T %v", err, err)
		}
		if bad := unmarked(out); bad != "" {
			t.Fatalf("%q is not marked in %q", bad, out)
		}
		if out.Len() > int(tight.Bytes) {
			t.Fatalf("%d bytes", out.Len())
		}
	})
}

// TestWhatMixesOriginsIsMarkedToTheByte: what a client's format, separator or number gives is the
// client's, what is around it is not.
func TestWhatMixesOriginsIsMarkedToTheByte(t *testing.T) {
	d := object(t, []byte(`{"f": "a%3d%%", "n": 7, "s": "x", "k": {"y": 1}, "yes": true}`))
	for src, want := range map[string]string{ // client's bytes as c, others as -
		"{{ f % 7 }}": "ccccc", "{{ 'a%3d%%' % n }}": "-ccc-", "{{ '%3s|' % s }}": "--c-", "{{ [1, 2] | tojson(separators=(s, ':')) }}": "--c--",
		"{{ [1] | tojson(indent=s) }}": "--c---", "{{ dict(a=1, **k) | tojson }}": "---------ccc--c-", "{{ yes | abs }}{{ +yes }}{{ -yes }}": "cccc",
		"{{ ('b' ~ s) | capitalize }}": "-c", "{{ ('%' ~ s).zfill(4) }}": "---c", "{{ (s ~ 'b') | center(6) }}": "--c---", "{{ n ** 2 }}{{ 2 ** n }}{{ n // 2 }}": "cccccc",
	} {
		tpl, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		out, err := tpl.Render(d, plenty, then)
		got := ""
		for s, client := range out.Parts() {
			got += strings.Repeat(map[bool]string{true: "c", false: "-"}[client], len(s))
		}
		if err != nil || got != want {
			t.Errorf("%s: %q is %s, want %s, %v", src, out, got, want, err)
		}
	}
}
