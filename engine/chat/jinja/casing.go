package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// recase appends what becomes of the character c, which stands at a place of a whole text, as in
// Python, where the s at the end of a Greek word and the begin of a word depend on what is around it.
// It appends, for a string for each character would be memory that nobody pays for.
type recase func(b []byte, whole string, at int, c rune) []byte

// filter makes a filter of recase.
func (f recase) filter() filter {
	return func(r *run, v Value, _ arguments) (Value, error) {
		t, err := r.str(v)
		if err != nil {
			return nil, err
		}
		return f.of(r, t)
	}
}

// method makes a method of texts of recase.
func (f recase) method() textMethod {
	return func(r *run, t Text, _ arguments) (Value, error) { return f.of(r, t) }
}

// of applies f to each character, whoever brought it and what is around it.
func (f recase) of(r *run, t Text) (Value, error) {
	at := 0
	return r.mapped(t, func(piece string) string {
		b := make([]byte, 0, len(piece))
		for i := 0; i < len(piece); {
			c, n := utf8.DecodeRuneInString(piece[i:])
			if c == utf8.RuneError && n == 1 {
				b = append(b, piece[i])
			} else {
				b = f(b, t.s, at, c)
			}
			i, at = i+n, at+n
		}
		return string(b)
	})
}

func lowered(b []byte, whole string, at int, c rune) []byte {
	switch {
	case c == 'Σ' && endsWord(whole, at):
		return append(b, "ς"...)
	case c == 'İ':
		return append(b, "i\u0307"...)
	}
	return utf8.AppendRune(b, unicode.ToLower(c))
}

func raised(b []byte, _ string, _ int, c rune) []byte {
	if s, ok := upperMany[c]; ok {
		return append(b, s...)
	}
	return utf8.AppendRune(b, unicode.ToUpper(c))
}

func titled(b []byte, c rune) []byte {
	if s, ok := titleMany[c]; ok {
		return append(b, s...)
	}
	return utf8.AppendRune(b, unicode.ToTitle(c))
}

// unfolded is casefold.
func unfolded(b []byte, _ string, _ int, c rune) []byte {
	if s, ok := upperMany[c]; ok {
		return append(b, strings.ToLower(s)...)
	}
	return utf8.AppendRune(b, unicode.ToLower(unicode.ToUpper(c)))
}

func capitalize(b []byte, whole string, at int, c rune) []byte {
	if at == 0 {
		return titled(b, c)
	}
	return lowered(b, whole, at, c)
}

// title is Jinja2's filter: words part at white space and -([{<.
func title(b []byte, whole string, at int, c rune) []byte {
	before, n := utf8.DecodeLastRuneInString(whole[:at])
	if n == 0 || IsSpace(before) || strings.ContainsRune("-([{<", before) {
		return raised(b, whole, at, c)
	}
	return lowered(b, whole, at, c)
}

// pythonTitle is the method: a word begins behind whatever is no letter of two cases.
func pythonTitle(b []byte, whole string, at int, c rune) []byte {
	if before, n := utf8.DecodeLastRuneInString(whole[:at]); n > 0 && hasCase(before) {
		return lowered(b, whole, at, c)
	}
	return titled(b, c)
}

func swapcase(b []byte, whole string, at int, c rune) []byte {
	switch {
	case unicode.IsUpper(c):
		return lowered(b, whole, at, c)
	case unicode.IsLower(c):
		return raised(b, whole, at, c)
	}
	return utf8.AppendRune(b, c)
}

func hasCase(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) }

// betweenLetters are the characters that neither end nor begin a word.
func betweenLetters(c rune) bool {
	return strings.ContainsRune("'.:·’^`", c) || unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// endsWord says whether the sigma at a place ends a word.
func endsWord(whole string, at int) bool {
	before := strings.TrimRightFunc(whole[:at], betweenLetters)
	behind := strings.TrimLeftFunc(whole[at+len("Σ"):], betweenLetters)
	c, _ := utf8.DecodeLastRuneInString(before)
	d, _ := utf8.DecodeRuneInString(behind)
	return before != "" && hasCase(c) && (behind == "" || !hasCase(d))
}

// cased is islower and isupper: all that have a case have this one, and one has.
func cased(r *run, v Value, low bool) (bool, error) {
	t, err := r.str(v)
	if err != nil {
		return false, err
	}
	some := false
	for _, c := range t.s {
		if low && (unicode.IsUpper(c) || unicode.IsTitle(c)) || !low && (unicode.IsLower(c) || unicode.IsTitle(c)) {
			return false, r.pay(len(t.s))
		}
		some = some || hasCase(c)
	}
	return some, r.pay(len(t.s))
}

// isTitle says whether each word begins with an upper letter and goes on in lower ones.
func isTitle(t Text) bool {
	inside, some := false, false
	for _, c := range t.s {
		if (unicode.IsUpper(c) || unicode.IsTitle(c)) && inside || unicode.IsLower(c) && !inside {
			return false
		}
		inside = hasCase(c)
		some = some || inside
	}
	return some
}

// upperMany and titleMany are what Unicode's SpecialCasing makes several characters of.
var upperMany, titleMany = many("ßSS ŉʼN ǰJ\u030c ΐΙ\u0308\u0301 ΰΥ\u0308\u0301 ևԵՒ ẖH\u0331 ẗT\u0308 ẘW\u030a ẙY\u030a ẚAʾ ὐΥ\u0313 " +
	"ὒΥ\u0313\u0300 ὔΥ\u0313\u0301 ὖΥ\u0313\u0342 ᾀἈΙ ᾁἉΙ ᾂἊΙ ᾃἋΙ ᾄἌΙ ᾅἍΙ ᾆἎΙ ᾇἏΙ ᾈἈΙ ᾉἉΙ ᾊἊΙ ᾋἋΙ ᾌἌΙ ᾍἍΙ " +
	"ᾎἎΙ ᾏἏΙ ᾐἨΙ ᾑἩΙ ᾒἪΙ ᾓἫΙ ᾔἬΙ ᾕἭΙ ᾖἮΙ ᾗἯΙ ᾘἨΙ ᾙἩΙ ᾚἪΙ ᾛἫΙ ᾜἬΙ ᾝἭΙ ᾞἮΙ ᾟἯΙ ᾠὨΙ ᾡὩΙ ᾢὪΙ ᾣὫΙ ᾤὬΙ ᾥὭΙ ᾦὮΙ " +
	"ᾧὯΙ ᾨὨΙ ᾩὩΙ ᾪὪΙ ᾫὫΙ ᾬὬΙ ᾭὭΙ ᾮὮΙ ᾯὯΙ ᾲᾺΙ ᾳΑΙ ᾴΆΙ ᾶΑ\u0342 ᾷΑ\u0342Ι ᾼΑΙ ῂῊΙ ῃΗΙ ῄΉΙ ῆΗ\u0342 " +
	"ῇΗ\u0342Ι ῌΗΙ ῒΙ\u0308\u0300 ΐΙ\u0308\u0301 ῖΙ\u0342 ῗΙ\u0308\u0342 ῢΥ\u0308\u0300 ΰΥ\u0308\u0301 " +
	"ῤΡ\u0313 ῦΥ\u0342 ῧΥ\u0308\u0342 ῲῺΙ ῳΩΙ ῴΏΙ ῶΩ\u0342 ῷΩ\u0342Ι ῼΩΙ \ufb00FF \ufb01FI \ufb02FL " +
	"\ufb03FFI \ufb04FFL \ufb05ST \ufb06ST \ufb13ՄՆ \ufb14ՄԵ \ufb15ՄԻ \ufb16ՎՆ \ufb17ՄԽ"),
	many("ßSs ŉʼN ǰJ\u030c ΐΙ\u0308\u0301 ΰΥ\u0308\u0301 ևԵւ ẖH\u0331 ẗT\u0308 ẘW\u030a ẙY\u030a ẚAʾ ὐΥ\u0313 " +
		"ὒΥ\u0313\u0300 ὔΥ\u0313\u0301 ὖΥ\u0313\u0342 ᾲᾺ\u0345 ᾴΆ\u0345 ᾶΑ\u0342 ᾷΑ\u0342\u0345 ῂῊ\u0345 " +
		"ῄΉ\u0345 ῆΗ\u0342 ῇΗ\u0342\u0345 ῒΙ\u0308\u0300 ΐΙ\u0308\u0301 ῖΙ\u0342 ῗΙ\u0308\u0342 " +
		"ῢΥ\u0308\u0300 ΰΥ\u0308\u0301 ῤΡ\u0313 ῦΥ\u0342 ῧΥ\u0308\u0342 ῲῺ\u0345 ῴΏ\u0345 ῶΩ\u0342 " +
		"ῷΩ\u0342\u0345 \ufb00Ff \ufb01Fi \ufb02Fl \ufb03Ffi \ufb04Ffl \ufb05St \ufb06St \ufb13Մն \ufb14Մե " +
		"\ufb15Մի \ufb16Վն \ufb17Մխ")

// many reads words of a character and what becomes of it.
func many(list string) map[rune]string {
	out := map[rune]string{}
	for word := range strings.FieldsSeq(list) {
		c, n := utf8.DecodeRuneInString(word)
		out[c] = word[n:]
	}
	return out
}
