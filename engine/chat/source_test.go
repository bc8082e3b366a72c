package chat

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// sources are the small templates of testdata/texts.jsonl.
func sources(t testing.TB) (out []string) {
	t.Helper()
	f, err := os.Open("testdata/texts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r struct{ Source string }
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Source)
	}
	return out
}

// TestErrorsNameTheLine: the source is rewritten, and its lines keep their numbers.
func TestErrorsNameTheLine(t *testing.T) {
	for _, src := range []string{
		"a\n{# b\n c #}\n{{ 'x\ny' }}\n {%- if true -%}\n{% endif %}{% what %}", "\n{% raw %}\n\n{% endraw %}\n\n\n{%- what %}", "{%- set a = 1 -%}\n\n\n\n\n\n{% what %}",
	} {
		if _, err := New(src, nil); err == nil || !strings.Contains(err.Error(), `line 7: unknown statement "what"`) {
			t.Errorf("%q: error %v, want line 7", src, err)
		}
	}
}

// TestNoTemplateRunsForEver holds C3: these would loop for days, or end the process by its stack.
func TestNoTemplateRunsForEver(t *testing.T) {
	deep := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for name, r := range map[string]struct{ src, want string }{
		"loops":         {"{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}", "does not end on a single message"},
		"itself":        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "does not end on a single message"},
		"each other":    {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}", "does not end on a single message"},
		"by its caller": {"{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}", "does not end on a single message"},
		"brackets":      {"{{ " + deep(100_000, "(", "1", ")") + " }}", "brackets are nested more than 100 deep"},
		"blocks":        {deep(300, "{% if true %}", "x", "{% endif %}"), "blocks are nested more than 200 deep"},
		"signs":         {"{{ " + strings.Repeat("- ", 100_000) + "1 }}", "a tag has more than 16384 bytes of code"},
		"tags":          {strings.Repeat("{{ 1 }}", 8193), "more than 8192 tags"},
	} {
		var refused *Refused
		if _, err := New(r.src, nil); err == nil || !strings.Contains(err.Error(), r.want) || errors.As(err, &refused) {
			t.Errorf("%s: error %v, want %s", name, err, r.want)
		}
	}
}

// TestCostlyConversationsAreRefused: a template that is cheap on a short conversation may be
// too expensive on a long one, which then is the client's to shorten.
func TestCostlyConversationsAreRefused(t *testing.T) {
	tpl, err := New("{% for a in messages %}{% for b in messages %}{% for c in messages %}.{% endfor %}{% endfor %}{% endfor %}", nil)
	if err != nil {
		t.Fatal(err)
	}
	msgs := make([]Message, MessagesMax)
	for i := range msgs {
		msgs[i] = Message{Role: "user", Content: "a"}
	}
	var refused *Refused
	if _, err := tpl.Render(msgs); !errors.As(err, &refused) || refused.Reason != costly {
		t.Errorf("error %v, want %s", err, costly)
	}
	if out, err := tpl.Render(msgs[:40]); err != nil || len(out) != 64_000 {
		t.Errorf("%d bytes, %v, want 64000", len(out), err)
	}
}
