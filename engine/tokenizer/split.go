package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// splitter returns the length of the first piece of a text that is not empty; merges never cross
// the border of a piece. It looks at the text up to its end and no further back than its start,
// so a text is split by calling it on what is left.
type splitter func(s string) int

// splitters are the pre-tokenizers by the name in tokenizer.ggml.pre. The regular expressions
// that they stand for are at each function; they were compared with the reference
// implementation on the texts in testdata. "default", or no name, is what old files say that
// were made of GPT-2's tokenizer.
var splitters = map[string]struct {
	split  splitter
	wholes bool // ignore_merges: a piece that is a token is taken whole
	addBOS bool // where the file does not say (add_bos_token)
}{
	"gpt-2":     {split: splitGPT2},
	"default":   {split: splitGPT2},
	"smollm":    {split: splitSmolLM},
	"qwen2":     {split: func(s string) int { return splitLlama3(s, 1) }},
	"llama-bpe": {split: func(s string) int { return splitLlama3(s, 3) }, wholes: true, addBOS: true},
	"llama3":    {split: func(s string) int { return splitLlama3(s, 3) }, wholes: true, addBOS: true},
	"llama-v3":  {split: func(s string) int { return splitLlama3(s, 3) }, wholes: true, addBOS: true},
}

// splitterNames returns the names for an error message.
func splitterNames() []string {
	names := []string{}
	for n := range splitters {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// class is what the regular expressions tell apart: \p{L}, \p{N}, \s and the rest. A byte that
// is not part of valid UTF-8 belongs to the rest.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

var ascii = func() (t [utf8.RuneSelf]class) {
	for r := range t {
		t[r] = classOf(rune(r))
	}
	return t
}()

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// next returns class and length of the first character of s[i:], or other, 0 at the end.
func next(s string, i int) (class, int) {
	if i >= len(s) {
		return other, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		return other, 1
	}
	return classOf(r), n
}

// run returns where the run of class c that begins at i ends.
func run(s string, i int, c class) int {
	for i < len(s) {
		k, n := next(s, i)
		if k != c {
			break
		}
		i += n
	}
	return i
}

// contraction returns the length of 's, 't, 'm, 'd, 're, 've or 'll at the start of s, or 0.
func contraction(s string, anyCase bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	low := func(b byte) byte {
		if anyCase && 'A' <= b && b <= 'Z' {
			return b + 'a' - 'A'
		}
		return b
	}
	switch low(s[1]) {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch [2]byte{low(s[1]), low(s[2])} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}

// splitGPT2 is
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	c, n := next(s, 0)
	if s[0] == ' ' {
		if after, m := next(s, 1); m > 0 && after != space {
			return run(s, 1, after)
		}
	}
	if c != space {
		return run(s, n, c)
	}
	return spaces(s, n)
}

// spaces is \s+(?!\S)|\s+ for a text that begins with white space of n bytes: a run gives its
// last character back if something follows and something is left.
func spaces(s string, n int) int {
	end := run(s, n, space)
	if end == len(s) || end == n {
		return end
	}
	_, w := utf8.DecodeLastRuneInString(s[:end])
	return end - w
}

// splitSmolLM takes each character of \p{N} as a piece and splits what is between them like
// GPT-2.
func splitSmolLM(s string) int {
	if c, n := next(s, 0); c == number {
		return n
	}
	// GPT-2's pieces depend on what follows only where white space does: it must take a digit
	// for the end of the text.
	end := splitGPT2(s)
	if c, _ := next(s, 0); c != space {
		return end
	}
	stop := run(s, 0, space)
	if c, n := next(s, stop); n > 0 && c == number {
		return stop
	}
	return end
}

// splitLlama3 is, with digits 3 (Llama 3) or 1 (Qwen 2),
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitLlama3(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, n := next(s, 0)
	switch c {
	case letter:
		return run(s, n, letter)
	case number:
		end := n
		for i := 1; i < digits; i++ {
			k, m := next(s, end)
			if k != number {
				break
			}
			end += m
		}
		return end
	}
	newline := s[0] == '\n' || s[0] == '\r'
	after, m := next(s, n)
	if m > 0 && after == letter && !newline {
		return run(s, n, letter)
	}
	if c == other || s[0] == ' ' && m > 0 && after == other {
		end := run(s, n, other)
		for end < len(s) && (s[end] == '\n' || s[end] == '\r') {
			end++
		}
		return end
	}
	end := run(s, n, space)
	for i := end; i > 0; i-- {
		if b := s[i-1]; b == '\n' || b == '\r' {
			return i
		}
	}
	return spaces(s, n)
}
