package tokenizer

import (
	"slices"
	"testing"

	"baton/engine/weights/gguf"
)

// FuzzFromGGUF is a model file with a tokenizer that nobody made on purpose: an error, or a
// tokenizer whose ids are its own, whose streams say what its Decode says without special tokens, and that makes
// nothing special of a text by itself (T2).
func FuzzFromGGUF(f *testing.F) {
	file := func(set func(w *gguf.Writer)) []byte {
		var w gguf.Writer
		w.Set("tokenizer.ggml.model", "gpt2")
		w.Set("tokenizer.ggml.tokens", []string{"a", "b", "ab", "Ġ", "<s>", "</s>", "Ċ"})
		w.Set("tokenizer.ggml.token_type", []int32{1, 1, 1, 1, 3, 3, 4})
		w.Set("tokenizer.ggml.merges", []string{"a b"})
		set(&w)
		b, err := w.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(file(func(*gguf.Writer) {}), "ab <s>ab")
	f.Add(file(func(w *gguf.Writer) {
		w.Set("tokenizer.ggml.pre", "smollm")
		w.Set("tokenizer.ggml.bos_token_id", uint32(4))
		w.Set("tokenizer.ggml.eos_token_id", uint32(5))
		w.Set("tokenizer.ggml.add_bos_token", true)
	}), "a\n\xffb")
	f.Add(file(func(w *gguf.Writer) { w.Set("tokenizer.ggml.eos_token_id", uint32(700)) }), "")
	scores := func(set func(w *gguf.Writer)) []byte {
		var w gguf.Writer
		w.Set("tokenizer.ggml.model", "llama")
		w.Set("tokenizer.ggml.tokens", []string{"a", "b", "ab", "▁", "<s>", "</s>", "<0x0A>"})
		w.Set("tokenizer.ggml.token_type", []int32{1, 1, 1, 1, 3, 2, 6})
		w.Set("tokenizer.ggml.scores", []float32{-1, -2, -3, -4, 0, 0, 0})
		set(&w)
		b, err := w.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		if parsed, err := gguf.Parse(b); err != nil {
			f.Fatal(err)
		} else if _, err := FromGGUF(parsed); err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(scores(func(*gguf.Writer) {}), "ab <s>ab")
	f.Add(scores(func(w *gguf.Writer) {
		w.Set("tokenizer.ggml.add_space_prefix", false)
		w.Set("tokenizer.ggml.unknown_token_id", uint32(5))
	}), "▁a\n\xffb é")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		parsed, err := gguf.Parse(b)
		if err != nil {
			return
		}
		tok, err := FromGGUF(parsed)
		if err != nil {
			return
		}
		speaks(t, tok, text)
		for _, id := range append(tok.EOS(), tok.BOS(), tok.MainEOS()) {
			if id >= int32(tok.Vocab()) {
				t.Fatalf("token %d of %d", id, tok.Vocab())
			}
		}
	})
}

// speaks holds of any tokenizer and text: ids are its own, none is special that was not asked for
// (T2), a stream says what Decode says (T4), and a text is encoded as the one part of it.
func speaks(t *testing.T, tok *Tokenizer, text string) {
	t.Helper()
	for _, special := range []bool{false, true} {
		ids, err := tok.EncodeParts([]Part{{text, special}})
		if err == ErrSlow {
			return
		}
		s, streamed := tok.Stream(), ""
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Vocab() || !special && tok.Kind(id) == Control {
				t.Fatalf("%q has the token %d of %d, kind %d", text, id, tok.Vocab(), tok.Kind(id))
			}
			streamed += s.Push(id)
		}
		if streamed += s.Flush(); streamed != tok.Decode(ids, true) {
			t.Fatalf("%v is %q, streamed %q", ids, tok.Decode(ids, true), streamed)
		}
		if again := tok.Encode(text, special); !slices.Equal(again, ids) {
			t.Fatalf("%q as a part is %v, else %v", text, ids, again)
		}
	}
}
