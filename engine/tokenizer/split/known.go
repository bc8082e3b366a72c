package split

import "unicode/utf8"

// Func returns the length of the first piece of a text that is not empty; merges never cross the
// border of a piece. It looks at the text up to its end and no further back than its start, so a
// text is split by calling it on what is left.
type Func func(s string) int

// The regular expressions that are written out below.
const (
	exprGPT2      = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	exprLlama3    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	exprQwen2     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	exprDeepSeek1 = `\p{N}{1,3}`
	exprDeepSeek2 = `[一-龥぀-ゟ゠-ヿ]+`
	exprDeepSeek3 = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// basic are the classes that all but DeepSeek's expressions tell apart; what has none of them is
// "the rest".
const basic = Letter | Number | Space

func newline(b byte) bool { return b == '\n' || b == '\r' }

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

// GPT2 is exprGPT2.
func GPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	c, n := next(s, 0)
	if s[0] == ' ' {
		if after, m := next(s, 1); m > 0 && after&Space == 0 {
			return run(s, 1+m, basic, after&basic)
		}
	}
	if c&Space == 0 {
		return run(s, n, basic, c&basic)
	}
	return spaces(s, n)
}

// spaces is \s+(?!\S)|\s+ for a text that begins with white space of n bytes: a run gives its
// last character back if something follows and something is left.
func spaces(s string, n int) int {
	end := run(s, n, Space, Space)
	if end == len(s) || end == n {
		return end
	}
	_, w := utf8.DecodeLastRuneInString(s[:end])
	return end - w
}

// SmolLM takes each digit as a piece and splits what is between them like GPT2. A digit is what
// the pre-tokenizer Digits takes for one.
func SmolLM(s string) int { return digitsThenGPT2(s, Digit) }

// SmolLMExpr is SmolLM with \p{N} for digits, as llama.cpp has it.
func SmolLMExpr(s string) int { return digitsThenGPT2(s, Number) }

func digitsThenGPT2(s string, digit Class) int {
	c, n := next(s, 0)
	if c&digit != 0 {
		return n
	}
	// GPT2's pieces depend on what follows only where white space does, and on the end of the
	// rest, which has digits of a newer Unicode in it: both must take a digit for the end of the
	// text.
	if m := contraction(s, false); m > 0 {
		return m
	}
	mask := basic | digit
	if s[0] == ' ' {
		if after, m := next(s, 1); m > 0 && after&(Space|digit) == 0 {
			return run(s, 1+m, mask, after&mask)
		}
	}
	if c&Space == 0 {
		return run(s, n, mask, c&mask)
	}
	end := run(s, n, Space, Space)
	if after, m := next(s, end); m > 0 && after&digit != 0 {
		return end
	}
	return spaces(s, n)
}

// Llama3 is exprLlama3. Ignoring case, ſ (U+017F) is an s for the reference implementation.
func Llama3(s string) int {
	if n := longS(s); n > 0 {
		return n
	}
	return Llama3Expr(s)
}

// Llama3Expr is exprLlama3 with the contractions in ASCII alone, as llama.cpp has it.
func Llama3Expr(s string) int { return llama3(s, 3) }

// Qwen2 is exprQwen2; see Llama3 for ſ.
func Qwen2(s string) int {
	if n := longS(s); n > 0 {
		return n
	}
	return Qwen2Expr(s)
}

// Qwen2Expr is exprQwen2 with the contractions in ASCII alone, as llama.cpp has it.
func Qwen2Expr(s string) int { return llama3(s, 1) }

func longS(s string) int {
	const name = "'ſ"
	if len(s) >= len(name) && s[0] == '\'' && s[:len(name)] == name {
		return len(name)
	}
	return 0
}

func llama3(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, n := next(s, 0)
	switch {
	case c&Letter != 0:
		return run(s, n, Letter, Letter)
	case c&Number != 0:
		return some(s, n, digits-1)
	}
	after, m := next(s, n)
	if after&Letter != 0 && !newline(s[0]) {
		return run(s, n+m, Letter, Letter)
	}
	if c&Space == 0 || s[0] == ' ' && m > 0 && after&basic == 0 {
		end := run(s, n, basic, 0)
		for end < len(s) && newline(s[end]) {
			end++
		}
		return end
	}
	return breaks(s, n)
}

// some returns where at most most numbers from i on end.
func some(s string, i, most int) int {
	for ; most > 0; most-- {
		k, m := next(s, i)
		if k&Number == 0 {
			break
		}
		i += m
	}
	return i
}

// breaks is \s*[\r\n]+|\s+(?!\S)|\s+ for a text that begins with white space of n bytes.
func breaks(s string, n int) int {
	end := run(s, n, Space, Space)
	for i := end; i > 0; i-- {
		if newline(s[i-1]) {
			return i
		}
	}
	if end == len(s) || end == n {
		return end
	}
	_, w := utf8.DecodeLastRuneInString(s[:end])
	return end - w
}
