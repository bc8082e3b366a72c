package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsNotSupportedIsNamed(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"x":{"type":"integer","multipleOf":7}}}`: `"multipleOf" at "#/properties/x/multipleOf" is "7", supported are 1, 0.1`,
		`{"type":"array","uniqueItems":true}`:                                    `the keyword "uniqueItems" at "#/uniqueItems" is supported with false only`,
		`{"properties":{"a/b":{"not":{}}}}`:                                      `the keyword "not" at "#/properties/a~1b/not" is not supported`,
		`{"patternProperties":{}}`:                                               `the keyword "patternProperties" at "#/patternProperties" is not supported`,
		`{"$ref":"#/$defs/x"}`:                                                   `"#/$ref": "#/$defs/x" points to nothing: there is no "$defs" in "#"`,
		`{"$ref":"http://x/y"}`:                                                  `"http://x/y" is no reference inside the schema`,
		`{"type":"strin"}`:                                                       `"#/type" must be one or a list of object`,
		`{"type":"string","format":"postcode"}`:                                  `the format "postcode" at "#/format" is not supported: supported are`,
		`{"type":"string","pattern":"("}`:                                        `"#/pattern": the expression "(" is none that is supported`,
		`{"type":"string","pattern":"(?=a)"}`:                                    `"#/pattern": the expression "(?=a)" is none that is supported`,
		`{"type":"string","pattern":"\\ba"}`:                                     `"#/pattern": the expression "\\ba": \b, \B and ^ and $ at lines`,
		`{"type":"string","pattern":"a","format":"date"}`:                        `"#/pattern" and "#/format" hold together`,
		`{"type":"string","minLength":-1}`:                                       `"#/minLength" must be a whole number from 0`,
		`{"type":"string","maxLength":1e9}`:                                      `"#/maxLength" must be a whole number from 0`,
		`{"type":"number","minimum":1e9999}`:                                     `"#/minimum" must be a number of at most`,
		`{"type":"number","minimum":1e300}`:                                      `"#/minimum" is beyond the numbers that are written`,
		`{"enum":[]}`:                                                            `"#/enum" must be a list of values`,
		`{"anyOf":[]}`:                                                           `"#/anyOf" must be a list of schemas`,
		`{"properties":[]}`:                                                      `"#/properties" must be an object`,
		`{"required":["a"],"properties":{},"additionalProperties":false}`:        `"#" requires "a", which its properties lack and additionalProperties forbids`,
		`{"items":3}`:                                                            `"#/items" is no schema`,
		`3`:                                                                      `"#" is no schema`,
		``:                                                                       `json_schema: it is no JSON`,
		`{"a":1,"a":2}`:                                                          `"#" has the name "a" twice`,
		`{"type":"string"} x`:                                                    `there is text after its end`,
		`{"type":"string","const":3}`:                                            `no text fits`,
		`{"allOf":[{"const":1},{"const":2}]}`:                                    `no text fits`,
		`{"$ref":"#"}`:                                                           `refers to itself with nothing in between`,
		`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`:                               `refers to itself with nothing in between`,
		`{"type":"null","anyOf":[{"$ref":"#"},true]}`:                            `refer to themselves with nothing in between`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`: `no text fits`,
	} {
		msg := schemaSpec(schema).Validate()
		if !strings.Contains(msg, want) {
			t.Errorf("%s\n  %s\n  wanted %s", schema, msg, want)
		}
		if _, err := compile(schemaSpec(schema), recallVocabulary()); err == nil || err.Error() != "grammar: "+msg {
			t.Errorf("%s: Compile says %v, Validate %s", schema, err, msg)
		}
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	deep := []Part{{Text: "x"}}
	for range PartsDepthMax + 2 {
		deep = []Part{{Any: [][]Part{deep}}}
	}
	many := make([][]Part, ChoiceMax+1)
	for i := range many {
		many[i] = []Part{{Text: "x"}}
	}
	for want, s := range map[string]*Spec{
		`the kind of a grammar is "xml", allowed are`:                                    {Kind: "xml"},
		`choice: it has 0 texts`:                                                         {Kind: KindChoice},
		`choice: text 0 is not valid UTF-8`:                                              {Kind: KindChoice, Choice: []string{"\xff"}},
		`sequence: it has no parts`:                                                      {Kind: KindSequence},
		`sequence: part 0: choice: it has 4097 texts`:                                    {Kind: KindSequence, Parts: []Part{{Any: many}}},
		`part 0: 0 of text, schema`:                                                      {Kind: KindSequence, Parts: []Part{{}}},
		`part 0: 2 of text, schema`:                                                      {Kind: KindSequence, Parts: []Part{{Text: "a", Until: "b"}}},
		`stands 3 to 2 times`:                                                            {Kind: KindSequence, Parts: []Part{{Text: "a", Min: 3, Max: 2}}},
		`is repeated and may be empty`:                                                   {Kind: KindSequence, Parts: []Part{{Regex: "a*", Min: 1, Max: 2}}},
		`alternatives nest deeper than 8 levels`:                                         {Kind: KindSequence, Parts: deep},
		`part 0: schema: the keyword "not" at "#/not"`:                                   {Kind: KindSequence, Parts: []Part{{Schema: json.RawMessage(`{"not":1}`)}}},
		`regex: the expression "a{1000}{1000}" is none`:                                  {Kind: KindRegex, Regex: "a{1000}{1000}"},
		`the expression "((a|bc){30}){33}((a|bc){30}){33}((a|bc){30}){33}" is too large`: {Kind: KindRegex, Regex: "((a|bc){30}){33}((a|bc){30}){33}((a|bc){30}){33}"},
	} {
		if msg := s.Validate(); !strings.Contains(msg, want) {
			t.Errorf("%v: %q, wanted %q", s, msg, want)
		}
	}
}

// hostile are schemas and expressions that are small and ask for much.
func hostile() map[string]*Spec {
	list := map[string]*Spec{}
	add := func(name, schema string) { list[name] = schemaSpec(schema) }
	doubling := func(inner, last string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"a%d":%s,`, i, strings.ReplaceAll(inner, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)))
		}
		return b.String() + `"a60":` + last + `}}`
	}
	add("anyOf doubles", doubling(`{"anyOf":[NEXT,NEXT]}`, `{"type":"null"}`))
	add("anyOf doubles beside a type", doubling(`{"type":"array","anyOf":[NEXT,NEXT]}`, `{"type":"array"}`))
	add("anyOf doubles to nothing", doubling(`{"type":"array","anyOf":[NEXT,NEXT]}`, `false`))
	add("allOf doubles", doubling(`{"allOf":[NEXT,NEXT]}`, `{"minLength":3}`))
	add("allOf of anyOf", doubling(`{"allOf":[{"anyOf":[NEXT,{"minimum":3}]},{"anyOf":[NEXT,{"maximum":4}]}]}`, `{"type":"integer"}`))
	add("properties double", doubling(`{"properties":{"a":NEXT,"b":NEXT}}`, `{"type":"string"}`))
	add("arrays double", doubling(`{"type":"array","items":{"anyOf":[NEXT,NEXT]},"minItems":1048576}`, `true`))
	add("deep", strings.Repeat(`{"items":`, 120)+"true"+strings.Repeat("}", 120))
	add("deeper", strings.Repeat(`{"items":`, 100_00)+"true"+strings.Repeat("}", 100_00))
	add("deep brackets", strings.Repeat(`[`, schemaBytesMost))
	add("counts", `{"type":"array","minItems":1048576,"maxItems":1048576,"items":{"type":"string","minLength":1048576}}`)
	add("counted pattern", `{"type":"string","pattern":"(a|b|[^x]){0,900}","maxLength":1048576}`)
	add("pattern of classes", `{"type":"string","pattern":"`+strings.Repeat(`\\pL\\PN`, 500)+`"}`)
	add("long required", `{"required":["`+strings.Repeat(`x","`, 60_000)+`y"]}`)
	names, enum := make([]string, 8000), make([]string, 20000)
	for i := range names {
		names[i] = fmt.Sprintf(`"p%d":{"$ref":"#"}`, i)
	}
	for i := range enum {
		enum[i] = fmt.Sprintf(`"v%d"`, i)
	}
	add("many properties", `{"properties":{`+strings.Join(names, ",")+`}}`)
	add("properties that recur", `{"properties":{`+strings.Join(names[:1000], ",")+`}}`)
	add("large enum", `{"enum":[`+strings.Join(enum, ",")+`]}`)
	add("enums that are compared", `{"allOf":[{"enum":[`+strings.Join(enum[:6000], ",")+`]},{"enum":[`+strings.Join(enum[:6000], ",")+`]}]}`)
	add("long names in depth", strings.Repeat(`{"properties":{"`+strings.Repeat("n", 1500)+`":`, 60)+"true"+strings.Repeat("}}", 60))
	add("alike", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"}},{"type":"array","minItems":0,"items":{"$ref":"#/$defs/a"}},{"type":"array","maxItems":9,"items":{"$ref":"#/$defs/a"}},{"type":"string"}]}}}`)
	add("digits", `{"type":"number","minimum":`+strings.Repeat("9", 300)+`}`)
	add("precise", `{"type":"number","minimum":0.`+strings.Repeat("9", 300)+`,"maximum":1}`)
	list["schemas that hold together in many places"] = schemaSpec(`{"allOf":[` + times(`{"items":{}}`, 200) + `],"prefixItems":[` + times(`{}`, 2000) + `]}`)
	for _, n := range []int{1000, 4000} {
		add(fmt.Sprintf("%d that hold together in as many places", n), `{"allOf":[`+times(`{"items":{}}`, n)+`],"prefixItems":[`+times(`{}`, n)+`]}`)
	}
	add("references that hold together", `{"allOf":[`+times(`{"$ref":"#/$defs/a"}`, 10_000)+`],"$defs":{"a":{}}}`)
	var refs, defs []string
	for i := range 5000 {
		refs, defs = append(refs, fmt.Sprintf(`{"$ref":"#/$defs/%d"}`, i)), append(defs, fmt.Sprintf(`"%d":{"minLength":1}`, i))
	}
	add("references to others", `{"allOf":[`+strings.Join(refs, ",")+`],"$defs":{`+strings.Join(defs, ",")+`}}`)
	add("references to one of many", `{"anyOf":[`+strings.Join(refs[:512], ",")+`],"prefixItems":[`+strings.Join(refs, ",")+`],"$defs":{`+strings.Join(defs, ",")+`}}`)
	add("alternatives of arrays", `{"type":"array","prefixItems":[`+times(`{}`, 2000)+`],"anyOf":[`+times(`{"minItems":1}`, 512)+`],"allOf":[`+times(`{"anyOf":[{"items":{}}]}`, 60)+`]}`)
	add("alternatives of required", `{"required":["`+strings.Join(strings.Split(times("a", 2000), ","), `","`)+`"],"anyOf":[`+times(`{"minProperties":1}`, 1)+`]}`)
	add("alternatives of enums", `{"enum":[`+times(`"x"`, 5000)+`],"anyOf":[`+times(`{"type":"string"}`, 512)+`]}`)
	add("alternatives of objects", `{"properties":{`+strings.Join(names[:1000], ",")+`},"anyOf":[`+times(`{"properties":{"x":{}}}`, 512)+`]}`)
	add("numbers with exponents", `{"maximum":1e319,"enum":[`+times(`1e-319`, 20_000)+`]}`)
	add("bounds", `{"prefixItems":[`+times(`{"minimum":1e-19,"maximum":1e19}`, 3000)+`]}`)
	add("a long path", strings.Repeat(`{"properties":{"`+strings.Repeat("n", 1500)+`":`, 60)+`{"prefixItems":[`+times(`{"type":["null"]}`, 5000)+`]}`+strings.Repeat("}}", 60))
	add("counted classes", `{"type":"string","pattern":"^(\\p{L}|\\p{N})*$","maxLength":100000}`)
	add("many patterns of classes", `{"prefixItems":[`+times(`{"pattern":"`+strings.Repeat(`\\pL\\PN`, 500)+`"}`, 60)+`]}`)
	add("many formats", `{"prefixItems":[`+times(`{"type":"string","format":"uri"}`, 4000)+`]}`)
	add("many words", `{"enum":[`+times(`"`+strings.Repeat("w", 40)+`"`, 5000)+`]}`)
	add("one long word and a longer one", `{"enum":["`+strings.Repeat("w", 100_000)+`","`+strings.Repeat("w", 100_001)+`"]}`)
	add("long names", `{"additionalProperties":true,"properties":{"`+strings.Repeat("w", 100_000)+`":{},"`+strings.Repeat("w", 100_001)+`":{}}}`)
	list["ranges whose case does not count"] = &Spec{Kind: KindRegex, Regex: `(?i)` + strings.Repeat(`[B-\x{1e940}]`, 300)}
	list["many tools"] = manyTools(128)
	list["ends that recur"] = &Spec{Kind: KindSequence, Parts: slices.Repeat([]Part{{Until: strings.Repeat("ab", 127) + "c"}}, 2000)}
	list["stars"] = &Spec{Kind: KindRegex, Regex: strings.Repeat("(", 400) + "a" + strings.Repeat("*)", 400) + "b"}
	list["alternatives of stars"] = &Spec{Kind: KindRegex, Regex: `(` + strings.Repeat(`.*a|`, 1000) + `b)*`}
	list["windows"] = &Spec{Kind: KindRegex, Regex: `(?:a|b)*a(?:a|b){500}`}
	list["classes"] = &Spec{Kind: KindRegex, Regex: strings.Repeat(`[\pL\pN]{40}.`, 190)}
	list["large classes that differ"] = &Spec{Kind: KindRegex, Regex: func() string {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, `[\pL\x{%x}]`, 0x10f000+2*i)
		}
		return b.String()
	}()}
	list["many ways"] = &Spec{Kind: KindRegex, Regex: `.` + strings.Repeat(`(.*x?)`, 300)}
	list["histories"] = &Spec{Kind: KindRegex, Regex: `.*([a-e].{9}|[d-k].{10}|[i-q].{11}|[st ].{12})`}
	list["many histories"] = &Spec{Kind: KindRegex, Regex: `.*([a-e].{9}|[d-k].{10}|[i-q].{11}|[st ].{12}|[aeiou].{14}|[A-Za-k].{15}|[0-9a-f].{16}|[g-z].{17})`}
	list["choices"] = &Spec{Kind: KindChoice, Choice: strings.Split(strings.Repeat(strings.Repeat("a", 30)+" ", 4000), " ")}
	return list
}

// times returns s n times, with commas.
func times(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }

// manyTools is what n tools with two dozen parameters each become.
func manyTools(n int) *Spec {
	var ways [][]Part
	for i := range n {
		var props []string
		for k := range 24 {
			props = append(props, fmt.Sprintf(`"parameter_%d":{"type":"string","format":"%s","description":"what it is for"}`, k, []string{"date-time", "uri", "email", "uuid"}[k%4]))
		}
		ways = append(ways, []Part{{Text: fmt.Sprintf(`{"name":"tool_%d","arguments":`, i)}, {Schema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(props, ",") + `}}`)}, {Text: "}"}})
	}
	return &Spec{Kind: KindSequence, Parts: []Part{{Any: ways, Min: 1, Max: 16}}}
}

// TestHostileSpecsTakeBoundedWork: what one takes that is not refused, and one that is. The counts are
// those of doc.go; time depends on the machine (BenchmarkHostile).
func TestHostileSpecsTakeBoundedWork(t *testing.T) {
	for name, s := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := newNet()
		err := s.build(n)
		if err == nil {
			_, err = n.settle(allBytes())
		}
		runtime.ReadMemStats(&after)
		bytes := after.TotalAlloc - before.TotalAlloc
		if testing.Verbose() {
			t.Logf("%-45s %8d units %6.1f MB %v", name, n.work, float64(bytes)/1e6, err != nil)
		}
		if n.work > workMost || n.work < int(bytes/64)-10_000 && !raceDetector {
			t.Errorf("%s: %d units of work (at most %d) for %d bytes", name, n.work, workMost, bytes)
		}
		if bytes > 32<<20 && !raceDetector {
			t.Errorf("%s: %d bytes", name, bytes)
		}
	}
}

// TestHostileSpecsAreRefusedOrWork walks through those that are not refused. What they cost is
// bounded by counts, so the test is about its end; BenchmarkHostile has the times.
func TestHostileSpecsAreRefusedOrWork(t *testing.T) {
	for name, s := range hostile() {
		msg := s.Validate()
		g, err := compile(s, recallVocabulary())
		if (msg == "") != (err == nil) {
			t.Errorf("%s: Validate says %q, Compile %v", name, msg, err)
		}
		if err != nil {
			continue
		}
		r := rand.New(rand.NewPCG(1, 8))
		st, mask := g.Start(), make([]uint64, g.Words())
		for range 12 {
			st.Allowed(mask)
			all := members(mask)
			if len(all) == 0 {
				t.Errorf("%s: a dead end", name)
				break
			}
			if !st.Push(all[r.IntN(len(all))]) {
				t.Errorf("%s: an allowed token is refused", name)
			}
			if st.ended {
				break
			}
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, s := range hostile() {
		b.Run(name, func(b *testing.B) {
			refused := 0.0
			for b.Loop() {
				if s.Validate() != "" {
					refused = 1
				}
			}
			b.ReportMetric(refused, "refused")
		})
	}
}

func TestWhatTheVocabularyCannotWriteIsRefused(t *testing.T) {
	texts := []string{"<end>", "{", "}", `"`, "a", "1", ":", ` "`}
	v := vocabularyOf(texts, []int32{0})
	for s, want := range map[*Spec]string{
		{Kind: KindChoice, Choice: []string{"b"}}:                           "choice: every text that fits needs bytes for which the vocabulary has no tokens",
		schemaSpec(`{"type":"array"}`):                                      "json_schema: every text that fits needs bytes",
		schemaSpec(`{"type":"null"}`):                                       "json_schema: every text that fits needs bytes",
		schemaSpec(`{"properties":{"a":{"type":"null"}},"required":["a"]}`): "json_schema: every text",
	} {
		if _, err := compile(s, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", s, err)
		}
	}
	// What it can write of the rest is what is left.
	g := compiled(t, schemaSpec(`{"properties":{"a":{"type":["null","integer"]},"b":{"type":"null"}}}`), v)
	for seed := range uint64(50) {
		got := g.textOf(walk(t, g, rand.New(rand.NewPCG(seed, 9)), 9, nil))
		if got != "{}" && !strings.HasPrefix(got, `{"a":1`) && !strings.HasPrefix(got, `{ "a":1`) && !strings.HasPrefix(got, `{"a": 1`) && !strings.HasPrefix(got, `{ }`) {
			t.Fatal(got)
		}
	}
	if _, err := compile(&Spec{Kind: KindChoice, Choice: []string{"a"}}, vocabularyOf([]string{"a"}, nil)); err == nil {
		t.Error("a vocabulary without an end is taken")
	}
}
