package jinja

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// tight is what the tests of bounds may spend.
var tight = Budget{Steps: 1 << 18, Bytes: 4 << 20}

// double runs a statement 64 times.
func double(stmt string) string {
	return "{% set ns = namespace(s='xxxxxxxx', l=[1], d={}) %}{% for i in range(64) %}" + stmt + "{% endfor %}{{ ns.s | length }}"
}

// hostile are templates that want more than they get, in one way each.
var hostile = map[string]string{
	"times":           "{{ 'a' * 1000000000 }}",
	"times big":       "{{ 'ab' * 9000000000000000000 }}",
	"list":            "{{ ([1] * 1000000000) | length }}",
	"plus":            double("{% set ns.s = ns.s + ns.s %}"),
	"tilde":           double("{% set ns.s = ns.s ~ ns.s %}"),
	"lists":           double("{% set ns.l = ns.l + ns.l %}"),
	"join":            double("{% set ns.s = ns.s.join(['', ns.s, '']) %}"),
	"join all":        double("{% set ns.s = ns.s | join(ns.s) %}"),
	"replace":         double("{% set ns.s = ns.s | replace('x', 'xx') %}"),
	"between":         double("{% set ns.s = ns.s.replace('', ns.s[:99]) %}"),
	"format":          double("{% set ns.s = '%s%s' % (ns.s, ns.s) %}"),
	"format 2":        double("{% set ns.s = '{0}{0}'.format(ns.s) %}"),
	"width":           "{{ '%999999999d' % 1 }}",
	"precision":       "{{ '%.999999999f' % 1.5 }}",
	"json":            double("{% set ns.s = ns.s | tojson | tojson | tojson %}"),
	"indents":         double("{% set ns.s = [[[[ns.s]]]] | tojson(indent=60) %}"),
	"nested":          "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}",
	"nested ==":       "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(9999) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
	"repr":            double("{% set ns.s = [ns.s, ns.s] | string %}"),
	"self":            "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}",
	"upper":           double("{% set ns.s = ns.s + 'ß' | upper + ns.s %}"),
	"set":             double("{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}"),
	"filter":          double("{% set x %}{% filter indent(900, true) %}{{ ns.s }}{% endfilter %}{% endset %}{% set ns.s = x ~ x %}"),
	"macro":           "{% macro m(s) %}{{ s }}{{ s }}{{ m(s ~ s) }}{% endmacro %}{{ m('abc') }}",
	"call":            "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
	"loop":            "{% for a in range(9999) recursive %}{{ loop(range(9999)) }}{% endfor %}",
	"loops":           "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
	"if loops":        "{% for a in range(9999) if range(9999) | select('odd') | list | length > 99999 %}{% endfor %}",
	"sort":            "{% for a in range(9999) %}{{ range(9999) | sort | length }}{% endfor %}",
	"in":              "{% for a in range(99999) %}{{ 'x' in client }}{% endfor %}",
	"split":           "{% for a in range(99999) %}{% set x = client.split('a') %}{% endfor %}",
	"slice":           "{% for a in range(99999) %}{% set x = client[::-1] %}{% endfor %}",
	"length":          "{% for a in range(99999) %}{% set x = client | length %}{% endfor %}",
	"compare":         "{% for a in range(99999) %}{% set x = client == client %}{% endfor %}",
	"center":          "{{ 'x' | center(2000000000) }}",
	"rjust":           "{{ 'x'.rjust(2000000000) }}",
	"batch":           "{{ [1] | batch(2000000000, 0) | list }}",
	"slices":          "{{ [1] | slice(2000000000) | list }}",
	"power":           "{{ 9 ** 9 ** 9 }}",
	"dict":            double("{% set ns.d = dict(ns.d, **{ns.s: 1}) %}{% set ns.s = ns.s ~ ns.s %}"),
	"groups":          double("{% set ns.l = (ns.l + ns.l) | map('string') | groupby(0) | map('last') | sum(start=[]) %}{% set ns.l = ns.l * 2 %}"),
	"markup":          double("{% set ns.s = (ns.s | safe) + '&&&&&&' + ns.s %}"),
	"commas":          "{{ range(3000) | list | tojson(separators=('x' * 100000, ':')) }}",
	"colons":          "{{ dict(range(3000) | batch(2)) | tojson(separators=(',', 'x' * 100000)) }}",
	"client commas":   "{{ range(3000) | list | tojson(separators=(client, client)) }}",
	"wide indents":    "{{ range(3000) | list | tojson(indent='x' * 100000) }}",
	"client indents":  "{{ range(3000) | list | tojson(indent=client) }}",
	"fields":          "{{ ('%s' * 3000) % (('x' * 100000,) * 3000) }}",
	"wide fields":     "{{ ('%1000s' * 99999) % ((1,) * 99999) }}",
	"wide numbers":    "{{ ('%1000d' * 99999) % ((1,) * 99999) }}",
	"braces":          "{{ ('{0}' * 3000).format('x' * 100000) }}",
	"named braces":    "{{ ('{a}' * 3000).format(a='x' * 100000) }}",
	"reprs":           "{{ [['x' * 100000] * 3000] | string }}",
	"keys":            "{{ dict(range(3000) | map('string') | map('center', 100000) | batch(2)) }}",
	"escapes":         "{{ (['&' * 100000] * 300) | map('escape') | list | length }}",
	"unicode escapes": "{{ ('é' * 900000) | tojson(ensure_ascii=true) | length }}{{ 'x' * 900000 }}",
	"repr escapes":    `{{ ['\x01' * 900000] | string | length }}{{ 'x' * 900000 }}`,
	"line ends":       `{{ ('\n' * 2000000).splitlines() | length }}`,
	"splits":          "{{ ('a' * 2000000).split('a') | length }}",
	"words":           "{{ ('a ' * 1000000).split() | length }}",
	"letters":         "{{ ('a' * 2000000) | list | length }}",
	"indented lines":  `{{ ('\n' * 30000) | indent(900, true, true) | length }}`,
	"joined":          "{{ range(3000) | join('x' * 100000) | length }}",
	"method joined":   "{{ ('x' * 100000).join(['a'] * 3000) | length }}",
	"replaced":        "{{ ('a' * 3000) | replace('a', 'x' * 100000) | length }}",
	"printed":         "{% set x = 'x' * 100000 %}{% for i in range(3000) %}{{ x }}{% endfor %}",
	"captured":        "{% set x = 'x' * 100000 %}{% set y %}{% for i in range(3000) %}{{ x }}{% endfor %}{% endset %}",
	"ranges":          "{% for i in range(99999) %}{% set x = range(99999) %}{% endfor %}",
	"times list":      "{{ ([1, 2, 3] * 3000000) | length }}",
	"batches":         "{{ (range(9999) | batch(1, 0)) | map('batch', 30000, 0) | map('list') | list | length }}",
	"spread":          "{% macro m() %}{{ varargs | length }}{% endmacro %}{% for i in range(99) %}{{ m(*range(99999)) }}{% endfor %}",
	"spread names":    "{% set d = dict(range(9998) | map('string') | batch(2)) %}{% for i in range(99) %}{% set x = dict(**d) %}{% endfor %}",
	"dicts 2":         "{% set d = dict(range(9998) | batch(2)) %}{% for i in range(99) %}{% set x = dict(d) %}{% endfor %}",
	"pairs":           "{% set d = dict(range(9998) | batch(2)) %}{% for i in range(99) %}{% set x = d.items() %}{% endfor %}",
	"sorted pairs":    "{% set d = dict(range(9998) | batch(2)) %}{% for i in range(99) %}{% set x = d | dictsort %}{% endfor %}",
	"grouped":         "{% for i in range(99) %}{% set x = range(9999) | batch(1) | groupby(0) %}{% endfor %}",
	"sorted letters":  "{% for i in range(99) %}{% set x = (['x' * 100000] * 99) | sort %}{% endfor %}",
	"asked keys":      "{% set d = {} %}{% for i in range(99999) %}{% set x = d[client] %}{% set y = d.get(client) %}{% endfor %}",
	"times 2":         "{% set f = 'a%c' * 1000 %}{% for i in range(99999) %}{% set x = strftime_now(f) %}{% endfor %}",
	"stripped":        "{% for i in range(99999) %}{% set x = client.strip(client) %}{% endfor %}",
	"affixes":         "{% for i in range(99999) %}{% set x = client.startswith((client, client, client)) %}{% endfor %}",
	"cases":           "{% for i in range(99999) %}{% set x = client | title %}{% set y = client.isupper() %}{% endfor %}",
	"items":           double("{% for c in ns.s %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
}

// TestNoTemplateTakesMoreThanItsBudget holds J2: what doubles, multiplies, pads, joins or loops
// ends with ErrCostly, or with an error of its own, before it takes the memory.
func TestNoTemplateTakesMoreThanItsBudget(t *testing.T) {
	for name, src := range hostile {
		tpl, err := Parse(src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		vars := NewDict()
		vars.Set("client", Client(strings.Repeat("a ", 5000)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := tpl.Render(vars, tight, then)
		runtime.ReadMemStats(&after)
		var fault *Error
		if err == nil || !errors.Is(err, ErrCostly) && !errors.As(err, &fault) {
			t.Errorf("%s: %d bytes, %v", name, out.Len(), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s took %d MiB", name, took>>20)
		}
	}
}

// TestNoSourceOverflowsAStack holds J4.
func TestNoSourceOverflowsAStack(t *testing.T) {
	deep := func(open, middle, end string) string {
		return strings.Repeat(open, 100_000) + middle + strings.Repeat(end, 100_000)
	}
	for name, src := range map[string]string{
		"brackets": "{{ " + deep("(", "1", ")") + " }}",
		"lists":    "{{ " + deep("[", "1", "]") + " }}",
		"dicts":    "{{ " + deep("{1:", "1", "}") + " }}",
		"calls":    "{{ " + deep("a(", "1", ")") + " }}",
		"items":    "{{ " + deep("a[", "1", "]") + " }}",
		"signs":    "{{ " + deep("- ", "1", "") + " }}",
		"nots":     "{{ " + deep("not ", "1", "") + " }}",
		"elses":    "{{ " + deep("1 if 1 else ", "1", "") + " }}",
		"blocks":   strings.Repeat("{% if 1 %}", 3000) + strings.Repeat("{% endif %}", 3000),
		"fors":     strings.Repeat("{% for a in b %}", 3000) + strings.Repeat("{% endfor %}", 3000),
		"filters":  "{{ a" + strings.Repeat("|abs", 100_000) + " }}",
		"sums":     "{{ 1" + strings.Repeat("+1", 100_000) + " }}",
		"tests":    "{{ 1" + strings.Repeat(" is a", 100_000) + " }}",
		"tags":     strings.Repeat("{{ 1 }}", 100_000),
	} {
		var fault *Error
		if _, err := Parse(src); !errors.As(err, &fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide := "{{ 1" + strings.Repeat("+1", 8000) + " }}" // as long as a tag may be
	tpl, err := Parse(wide)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tpl.Render(NewDict(), plenty, then); err != nil || out.String() != "8001" {
		t.Errorf("%s, %v", out, err)
	}
}
