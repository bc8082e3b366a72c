package split

import "unicode/utf8"

// DeepSeek3 is the expressions of DeepSeek V3 in a row, each on what the ones before it left:
// numbers in threes (exprDeepSeek1), Chinese and kana (exprDeepSeek2), the rest (exprDeepSeek3).
func DeepSeek3(s string) int {
	c, n := next(s, 0)
	if c&Number != 0 {
		return some(s, n, 2)
	}
	if n > 1 && eastern(s) {
		for i := n; ; i += n {
			if i >= len(s) || s[i] < utf8.RuneSelf || !eastern(s[i:]) {
				return i
			}
			_, n = utf8.DecodeRuneInString(s[i:])
		}
	}
	after, m := inner(s, n)
	const word = Letter | Mark
	switch {
	case isPunct(s[0]) && n < len(s) && isLetter(s[n]):
		for n < len(s) && isLetter(s[n]) {
			n++
		}
		return n
	case c&word != 0:
		return runInner(s, n, word)
	case c&(Punct|Symbol) == 0 && after&word != 0 && !newline(s[0]):
		return runInner(s, n+m, word)
	case c&(Punct|Symbol) != 0:
		return lines(s, runInner(s, n, Punct|Symbol))
	case s[0] == ' ' && after&(Punct|Symbol) != 0:
		return lines(s, runInner(s, n+m, Punct|Symbol))
	case c&Space != 0:
		return breaksInner(s, n)
	}
	return nothing(s, n)
}

// nothing returns where a stretch ends that no expression matches: control characters and the
// like, up to the one that goes with the word behind it.
func nothing(s string, i int) int {
	for {
		c, n := inner(s, i)
		if n == 0 || c&(Letter|Mark|Punct|Symbol|Space) != 0 {
			return i
		}
		if after, _ := inner(s, i+n); after&(Letter|Mark) != 0 {
			return i
		}
		i += n
	}
}

// inner is next for the third expression: numbers, Chinese and kana are the end of its text.
func inner(s string, i int) (Class, int) {
	c, n := next(s, i)
	if c&Number != 0 || n > 1 && eastern(s[i:]) {
		return 0, 0
	}
	return c, n
}

// runInner returns where the run of characters with a class of want that begins at i ends.
func runInner(s string, i int, want Class) int {
	for {
		c, n := inner(s, i)
		if c&want == 0 {
			return i
		}
		i += n
	}
}

// breaksInner is breaks for the third expression.
func breaksInner(s string, n int) int {
	end := run(s, n, Space, Space)
	for i := end; i > 0; i-- {
		if newline(s[i-1]) {
			return i
		}
	}
	if _, m := inner(s, end); m == 0 || end == n {
		return end
	}
	_, w := utf8.DecodeLastRuneInString(s[:end])
	return end - w
}

func lines(s string, i int) int {
	for i < len(s) && newline(s[i]) {
		i++
	}
	return i
}

// eastern says whether s begins with a character of exprDeepSeek2: U+4E00 to U+9FA5, and U+3040
// to U+30FF.
func eastern(s string) bool {
	if len(s) < 3 || s[0] < 0xe3 || s[0] > 0xe9 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s)
	return 0x4e00 <= r && r <= 0x9fa5 || 0x3040 <= r && r <= 0x30ff
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// isPunct: all of ASCII that is neither a letter, a digit, a control character nor the space.
func isPunct(b byte) bool {
	return b > ' ' && b < 0x7f && !isLetter(b) && (b < '0' || b > '9')
}
