package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// greek turns every string of a JSON value into Greek letters, keys too where deep, so that what
// a client brought shows in a rendering by its letters.
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
		for k, x := range v {
			delete(v, k)
			if keys {
				k = letters(k)
			}
			v[k] = greek(x, keys)
		}
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
	letters := 0
	for _, r := range all {
		if r.Template != "" {
			src, err := os.ReadFile(filepath.Join("../testdata", r.Template+".jinja"))
			if err != nil {
				t.Fatal(err)
			}
			r.Source = string(src)
		}
		var vars map[string]any
		if err := json.Unmarshal(r.Vars, &vars); err != nil {
			t.Fatal(err)
		}
		for k, v := range vars { // names and roles are asked for by templates
			if k != "messages" && k != "tools" {
				vars[k] = greek(v, false)
			}
		}
		raw, _ := json.Marshal(vars)
		d := object(t, raw)
		for _, k := range []string{"messages", "tools"} {
			if l, ok := vars[k].([]any); ok {
				for _, m := range l {
					for key, v := range m.(map[string]any) {
						if key != "role" && key != "type" {
							m.(map[string]any)[key] = greek(v, false)
						}
					}
				}
				raw, _ := json.Marshal(l)
				v, err := FromJSON(raw)
				if err != nil {
					t.Fatal(err)
				}
				d.Set(k, v)
			}
		}
		tpl, err := Parse(r.Source)
		if err != nil {
			continue
		}
		out, err := tpl.Render(d, plenty, then)
		if err != nil {
			continue
		}
		if bad := unmarked(out); bad != "" {
			t.Errorf("%s%s %s: %q is not marked in %q", r.Template, r.Name, r.Source, bad, out)
		}
		letters += len(out.String()) - len(strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Greek, r) {
				return -1
			}
			return r
		}, out.String()))
	}
	if letters < 10_000 {
		t.Errorf("only %d bytes of letters came through: this test shows little", letters)
	}
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
		if up := text.mapped(strings.ToUpper); up.s != strings.ToUpper(text.s) {
			t.Fatalf("%q", up.s)
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
