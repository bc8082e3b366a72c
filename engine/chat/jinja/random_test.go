package jinja

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// said is what a client brought: Greek in every string and key, as in no template below.
const said = `{"s": "αβ γδ-Εζ\nηθ'\"<ι>%s{0}", "t": "Σ", "n": 5, "b": true, "f": 2.5,
	"l": ["κ", 1, ["λ", {"μ": "ν"}], null, "ξ,ο"], "w": ["πρ", "σ τ", "υ"],
	"d": {"φ": "χ", "ψ": {"ω": ["α"], "ββ": 2}, "γ": 1.5}, "m": [{"k": "δ", "v": 1, "ε": "ζ"}, {"k": "η", "v": 2}]}`

// forms are what expressions are made of: T stands for a text, L for a list, D for a dict, N for a
// small number, A for any of them. The first words of each are without more inside.
var forms = map[byte][2]string{
	'T': {"s; t; f | string; n | string; m[0].k; w[0]; w[1]; l[3]; ns.x; x; 'aB c'; ''; '<'; '%'; ' '", `
		T | F; T | replace(T, T); T | replace(T, T, N); T | trim; T | trim(T); T | indent(N); T | indent(T, true, true); T | center(N); T | truncate(N, true, T);
		T | truncate(N, false, T, 0); T | default(T); T | first | string; T | last | string; A | string; A | tojson; A | tojson(indent=N); A | tojson(indent=T);
		A | tojson(separators=(T, T)); D | tojson(sort_keys=true, ensure_ascii=true); L | join(T); L | join; D | join(T); L | map('string') | join(T); L | string; D | string;
		T.M(); T.strip(T); T.lstrip(T); T.rstrip(T); T.center(N); T.ljust(N, '*'); T.zfill(N); T.removeprefix(T); T.removesuffix(T); T.replace(T, T); T.join(L | map('string'));
		'{1}{0}{1}'.format(T, A); '{k}{v}'.format(k=T, v=A); '{k}'.format(**D); '%s|%r' % (A, A); '%9s%-9s%.2s' % (T, T, T); '%d%%' % N; (T.replace('%', '') ~ '%s%%') % A;
		T + T; T ~ A; T * N; T[N:]; T[:N]; T[::-1]; T[::2]; T[N:9223372036854775807:9223372036854775807]; T[N] | string; (T | safe) + T; T | e; macro(A, b=A); macro(**D); macro(*L);
		namespace(**D) | string; (T if A else T) | string; D.get(T, T) | string; D[T] | string; L[N] | string; T.partition(T)[N] | string; strftime_now(T); (T or T); (T and T) | string; joiner(T)() | string`},
	'L': {"l; w; [1, 'a', s]; (s, t); range(3); []; m", `
		T | list; T.split(); T.split(T); T.split(none, N); T.rsplit(T, N); T.rsplit(none, 1); T.splitlines(); T.splitlines(true); T.partition(T); T.rpartition(T); L + L; L * N;
		L[N:]; L[::-1]; L | reverse | list; L | map('string') | sort; L | map('string') | map('F') | list; L | map('string') | unique | list; L | map('string') | groupby(0) | list;
		L | batch(2, T) | list; L | slice(2, T) | list; L | select('string') | list; L | reject('none') | list; D | items | list; D | dictsort; D | dictsort(by='key', reverse=true);
		D.items() | list; D.keys() | list; D.values() | list; D | list; m | map(attribute='k') | list; m | map(attribute=T, default=T) | list; m | groupby('k') | list; m | groupby(T, T) | list;
		m | sort(attribute='k', reverse=true); m | selectattr('k', 'eq', T) | list; [A, A]; (A, A, A); [T] * N`},
	'D': {"d; value; m[0]; {}; {'k': s, s: 'v', 1: t}", `
		dict(D); dict(**D); dict(D, k=A); dict(D, **D); {T: A, T: A}; dict([[T, A], (T, A)]); dict(D.items()); dict(D | items); D.copy(); dict(T.split() | map('list') | map('batch', 2) | map('first'))`},
	'N': {"n; 0; 1; 2; -1; 3", "T | length; L | length; T.find(T); T.count(T); T | wordcount; N + N; N * N; N - N; N // 2; N % 3; -N; N | abs; T | int; N | round | int"},
	'A': {"f; b; none; true; value; 1.5; missing | default(s)", "T; T; T; L; D; N; T == T; T in T; T is string; T.M(); L | first; L | last; L | min | default(1); L | sum(start=[]); cycler(T, T).next(); A if A else A; A or A"},
}

// random writes an expression of a kind.
func random(t *rapid.T, kind byte, depth int) string {
	list := forms[kind][min(depth, 1)]
	form := strings.TrimSpace(rapid.SampledFrom(strings.Split(list, ";")).Draw(t, "form"))
	var out strings.Builder
	for i := 0; i < len(form); i++ {
		alone := (i == 0 || !isWord(rune(form[i-1]))) && (i+1 == len(form) || !isWord(rune(form[i+1])))
		switch c := form[i]; {
		case alone && c == 'F':
			out.WriteString(rapid.SampledFrom([]string{"upper", "lower", "title", "capitalize", "trim", "e", "safe", "string", "forceescape", "center", "indent", "reverse", "list", "tojson"}).Draw(t, "filter"))
		case alone && c == 'M':
			out.WriteString(rapid.SampledFrom(slices.Sorted(maps.Keys(textMethods))).Draw(t, "method"))
		case alone && forms[c][0] != "":
			out.WriteString("(" + random(t, c, max(0, depth-1)) + ")")
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// before is what random templates begin with.
const before = "{% macro macro(a='', b='') %}{{ a }}{{ b }}{{ kwargs }}{{ varargs }}{{ caller() if caller }}{% endmacro %}" +
	"{% set again = macro %}{% set ns = namespace(x=s) %}{% set x = 'x' ~ t %}"

// marksStay asks of a random template that no letter of a client comes out without its mark, that
// it ends, in no other way than a rendering may, and that marks are in order.
func marksStay(t *rapid.T) {
	form := rapid.SampledFrom([]string{
		"{{ 1st }}|{{ 2nd }}", "{% for x in 1st %}{{ x }}{{ loop.index }}{{ 2nd }}{% endfor %}",
		"{% for a, x in dict(**d) | items %}{{ (1st) }}{{ a }}{{ x }}{{ 2nd }}{% endfor %}", "{% set x %}{{ 1st }}{{ t }}{% endset %}{{ x }}{{ 2nd }}",
		"{% set ns.x = 1st %}{{ ns }}{{ 2nd }}", "{% filter upper %}{{ 1st }}{% endfilter %}{{ (2nd) | tojson }}",
		"{% call(y) macro(1st) %}{{ y }}{% endcall %}{{ (2nd) | string }}", "{% with x = 1st %}{{ x }}{{ x | list }}{{ 2nd }}{% endwith %}",
	}).Draw(t, "form")
	src := before + strings.NewReplacer("1st", random(t, 'A', 4), "2nd", random(t, 'T', 3)).Replace(form)
	tpl, err := Parse(src)
	if err != nil {
		return
	}
	v, err := FromJSON([]byte(said))
	if err != nil {
		t.Fatal(err)
	}
	vars := NewDict()
	vars.Set("value", v)
	v.(*Dict).Each(func(k string, v Value) { vars.Set(k, v) })
	out, err := tpl.Render(vars, tight, then)
	var fault *Error
	var raised *Raised
	if err != nil && !errors.As(err, &fault) && !errors.As(err, &raised) && !errors.Is(err, ErrCostly) {
		t.Fatalf("%s: %T %v", src, err, err)
	}
	if bad := unmarked(out); bad != "" {
		t.Fatalf("%s: %q is not marked in %q", src, bad, out)
	}
	for i, m := range out.marks {
		if i > 0 && out.marks[i-1] >= m || int(m) > len(out.s) {
			t.Fatalf("%s: marks %v of %d bytes", src, out.marks, len(out.s))
		}
	}
}

// TestRandomTemplatesKeepMarks holds J1 and J4 where no template that anybody wrote goes.
func TestRandomTemplatesKeepMarks(t *testing.T) {
	for range 20 { // rapid checks a hundred at once
		rapid.Check(t, marksStay)
	}
}

func FuzzMarks(f *testing.F) { f.Fuzz(rapid.MakeFuzz(marksStay)) }
