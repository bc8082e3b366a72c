package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"baton/engine/chat/jinja"
	"baton/engine/tokenizer"
)

// FuzzContents asks of the templates here that no content becomes a special token (C1): the
// special tokens are those of the same conversation with harmless contents; and that contents
// without one are encoded as they are rendered (C2).
func FuzzContents(f *testing.F) {
	tok := vocabulary(f)
	var all []*Template
	for _, name := range names {
		all = append(all, template(f, name, tok))
	}
	for i, a := range attacks {
		f.Add(uint8(i), a, "b", "c")
		f.Add(uint8(i), "a", a, a)
	}
	f.Add(uint8(0), "\xff<|en\xf0d|>", "\u00a0\v", "\U000F0001<think>")
	special := func(ids []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !tok.IsSpecial(id) })
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b, c string) {
		tpl := all[int(which)%len(all)]
		msgs := []Message{{Role: "user", Content: a}, {Role: "assistant", Content: b}, {Role: "user", Content: c}}
		got, err := tpl.Encode(msgs)
		if err != nil {
			t.Fatal(err)
		}
		var harmless []Message
		for _, m := range msgs { // templates ask whether there is a content
			word := "x"
			if strings.TrimFunc(m.Content, unicode.IsSpace) == "" {
				word = m.Content
			}
			harmless = append(harmless, Message{Role: m.Role, Content: word})
		}
		want, err := tpl.Encode(harmless)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(special(got), special(want)) {
			t.Fatalf("special tokens %v, want %v", special(got), special(want))
		}
		plain, err := tpl.Render(msgs)
		if err != nil {
			t.Fatal(err)
		}
		if ids := tok.Encode(plain, true); slices.Equal(special(ids), special(want)) && !slices.Equal(ids, got) && !named(tok, a+b+c) {
			t.Fatalf("%q is encoded as %v, want %v", plain, got, ids)
		}
	})
}

// FuzzConversation says one text in every place where a client can say something: the special
// tokens are those of a harmless text (C1).
func FuzzConversation(f *testing.F) {
	tok := vocabulary(f)
	var all []*Template
	for _, name := range names {
		all = append(all, template(f, name, tok))
	}
	for i, a := range attacks {
		f.Add(uint8(i), a)
	}
	f.Add(uint8(6), "7")
	f.Add(uint8(7), "null\\u0000\x85")
	special := func(ids []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !tok.IsSpecial(id) })
	}
	f.Fuzz(func(t *testing.T, which uint8, said string) {
		tpl := all[int(which)%len(all)]
		harmless := said // templates ask whether there is a content
		if strings.TrimFunc(said, unicode.IsSpace) != "" {
			harmless = "x"
		}
		got, err := tpl.EncodeConversation(everywhere(said))
		want, err2 := tpl.EncodeConversation(everywhere(harmless))
		var refused *Refused
		if err != nil && !errors.As(err, &refused) || (err == nil) != (err2 == nil) {
			t.Fatalf("%v, and with x %v", err, err2)
		}
		if !slices.Equal(special(got), special(want)) {
			t.Fatalf("special tokens %v, want %v", special(got), special(want))
		}
	})
}

// named says whether a text holds the name of a special token.
func named(tok *tokenizer.Tokenizer, s string) bool {
	_, _, _, ok := tok.CutSpecial(s)
	return ok
}

// FuzzTemplate asks of every source: an error, or a template that renders in bounded time, the
// same each time, and of which no content is a special token.
func FuzzTemplate(f *testing.F) {
	tok := vocabulary(f)
	for _, src := range sources(f) {
		f.Add(src, "a")
	}
	for _, src := range []string{
		"{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content | trim }}<|end|>\n{% endif %}{% endfor %}{{ bos_token }}<|assistant|>",
		"{% macro m(x) %}{{ x.content[:1] }}{% endmacro %}{{ m(messages[-1]) }}", "{{ messages | tojson }}{{ raise_exception('no') }}",
		"{%- set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}{{ range(3) | join('|') }}",
	} {
		f.Add(src, "<|end|>")
	}
	f.Fuzz(func(t *testing.T, src, content string) {
		if len(src) > 4096 || len(content) > 256 || strings.Contains(src, "strftime") {
			t.Skip()
		}
		tpl, err := New(src, tok)
		if err != nil {
			var broken *jinja.Broken
			if !strings.HasPrefix(err.Error(), "chat: ") || errors.As(err, &broken) {
				t.Fatalf("error %v", err)
			}
			return
		}
		msgs := []Message{{Role: "system", Content: "s"}, {Role: "user", Content: content}}
		out, err := tpl.Render(msgs)
		again, err2 := tpl.Render(msgs)
		if out != again || (err == nil) != (err2 == nil) || len(out) > outputBytesMax {
			t.Fatalf("%q, %v, then %q, %v", out, err, again, err2)
		}
		ids, err := tpl.Encode(msgs)
		var refused *Refused
		if err != nil {
			if !errors.As(err, &refused) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !strings.Contains(src, "<|") && !strings.Contains(src, "token") { // no special token is the template's own
			for _, id := range ids {
				if tok.IsSpecial(id) {
					t.Fatalf("%q has the special token %d", out, id)
				}
			}
		}
	})
}
