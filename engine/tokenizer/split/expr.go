package split

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// What an expression that is not known may cost: the model file is trusted, the text is not.
const (
	exprBytesMost = 16 << 10        // the longest in use has less than 2,000
	matchMost     = time.Second     // for one match; usual ones take a microsecond, but a process may be stopped meanwhile
	textMost      = 2 * time.Second // for all of a text, and as much for each MiB
)

// ErrSlow says that a text takes too long to be cut.
var ErrSlow = errors.New("the model's expression that cuts texts takes too long on this one, as expressions with repetitions in repetitions may; a shorter text, or without long runs of one kind, may do")

// Limit is what all expressions that are not known may take together for one text, whatever they
// cut and replace of it. The engine for expressions counts no steps, so it is time, and who goes
// beyond it gets an error, never other pieces. Not safe for use by several goroutines.
type Limit struct {
	Err   error // nil or ErrSlow
	bytes int
	end   time.Time // zero until an expression runs
}

// NewLimit returns the limit of a text of so many bytes.
func NewLimit(bytes int) Limit { return Limit{bytes: bytes} }

// over says that the limit has failed.
func (l *Limit) over() bool {
	if l.Err == nil {
		now := time.Now()
		if l.end.IsZero() {
			l.end = now.Add(textMost * time.Duration(1+l.bytes>>20))
		}
		if now.After(l.end) {
			l.Err = ErrSlow
		}
	}
	return l.Err != nil
}

// known are expressions that are written out, and cover every text.
var known = map[string]Func{exprGPT2: GPT2, exprLlama3: Llama3, exprQwen2: Qwen2}

// Expression cuts at the matches of a regular expression. A text on which it takes too long
// (nested repetitions go back and forth) fails the limit. Letters and numbers of expressions that
// are not known are those of the Go release.
func Expression(expr string, b Behavior, invert bool) (Stage, error) {
	if f, ok := known[expr]; ok && (b == Isolated && !invert || b == Removed && invert) {
		return f.Stage(), nil
	}
	find, err := compile(expr)
	if err != nil {
		return nil, err
	}
	return func(s string, l *Limit, yield func(string)) { cut(s, find(s, l, invert), b, yield) }, nil
}

// compile returns a function that finds the matches in a text; none once the limit has failed.
func compile(expr string) (func(s string, l *Limit, invert bool) []span, error) {
	if len(expr) > exprBytesMost {
		return nil, fmt.Errorf("an expression has %d bytes, allowed are %d", len(expr), exprBytesMost)
	}
	re, err := regexp2.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("the expression %.200q cannot be read: %w", expr, err)
	}
	re.MatchTimeout = matchMost
	return func(s string, l *Limit, invert bool) []span {
		if l.over() {
			return nil
		}
		runes, at := decode(s)
		done := 0 // in runes, as lo and hi below
		var all []span
		for from := 0; from < len(runes); {
			m, err := re.FindRunesMatchStartingAt(runes, from)
			if err != nil { // it knows no other
				l.Err = ErrSlow
			}
			if l.over() {
				return nil
			}
			if m == nil {
				break
			}
			lo, hi := m.RuneIndex, m.RuneIndex+m.RuneLength
			if hi == lo { // of nothing
				from = hi + 1
				continue
			}
			if lo > done {
				all = append(all, span{at[done], at[lo], invert})
			}
			all = append(all, span{at[lo], at[hi], !invert})
			done, from = hi, hi
		}
		if done < len(runes) {
			all = append(all, span{at[done], len(s), invert})
		}
		return all
	}, nil
}

// decode returns the characters of s and where each begins, and at the end the length of s. A
// byte that is no part of a character is a character of no class.
func decode(s string) (runes []rune, at []int) {
	const nothing = 0xfdd0 // never to be assigned
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			r = nothing
		}
		runes, at = append(runes, r), append(at, i)
		i += n
	}
	return runes, append(at, len(s))
}

// Fuse returns one Func for a row of expressions, each isolated, that is known as a whole.
func Fuse(exprs []string) (Func, bool) {
	if len(exprs) == 1 {
		f, ok := known[exprs[0]]
		return f, ok
	}
	return DeepSeek3, slices.Equal(exprs, []string{exprDeepSeek1, exprDeepSeek2, exprDeepSeek3})
}

// Pre is a pre-tokenizer that model files have by name.
type Pre struct {
	Func   Func
	Wholes bool // ignore_merges: a piece that is a token is taken whole
	AddBOS bool // where the file does not say (add_bos_token)
}

// pres are those that were compared with llama.cpp. "default", or no name, is what old files say
// that were made of GPT-2's tokenizer.
var pres = map[string]Pre{
	"gpt-2":            {Func: GPT2},
	"default":          {Func: GPT2},
	"smollm":           {Func: SmolLMExpr},
	"starcoder":        {Func: SmolLMExpr},
	"refact":           {Func: SmolLMExpr},
	"command-r":        {Func: SmolLMExpr},
	"qwen2":            {Func: Qwen2Expr},
	"deepseek-r1-qwen": {Func: Qwen2Expr},
	"llama-bpe":        {Func: Llama3Expr, Wholes: true, AddBOS: true},
	"llama3":           {Func: Llama3Expr, Wholes: true, AddBOS: true},
	"llama-v3":         {Func: Llama3Expr, Wholes: true, AddBOS: true},
	"falcon3":          {Func: Llama3Expr, Wholes: true, AddBOS: true},
	"deepseek-v3":      {Func: DeepSeek3},
}

// ByName returns the pre-tokenizer that llama.cpp calls so in tokenizer.ggml.pre.
func ByName(name string) (Pre, bool) {
	p, ok := pres[name]
	return p, ok
}

// Names returns the names that ByName knows, for an error message.
func Names() []string { return slices.Sorted(maps.Keys(pres)) }

// Replace returns a function that puts text where an expression matches.
func Replace(expr, text string) (func(string, *Limit) string, error) {
	find, err := compile(expr)
	if err != nil {
		return nil, err
	}
	return func(s string, l *Limit) string {
		var b strings.Builder
		for _, m := range find(s, l, false) {
			if m.match {
				b.WriteString(text)
			} else {
				b.WriteString(s[m.lo:m.hi])
			}
		}
		return b.String()
	}, nil
}
