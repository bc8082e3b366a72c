package scenario

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/grammar"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/serve/gateway"
	"baton/serve/observe"
	"baton/serve/worker"
)

// Given a panic in any long-lived goroutine, when it happens, then the process ends, and whoever
// supervises it starts another: nothing in the serving code recovers one. The places that do say so
// here: one passes every panic on that it did not cause, one asks a number for its name, and one fails the
// rendering of one request, whose values nobody else has, and says so in the log.
// LightLLM: PR #1474.
func TestF34NothingLivesOnWithoutItsThreads(t *testing.T) {
	var found []string
	for _, tree := range []string{"core", "transfer", "serve", "engine", "cmd"} {
		err := filepath.WalkDir("../../"+tree, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "recover" {
						found = append(found, filepath.ToSlash(strings.TrimPrefix(name, "../../")))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A run that is held up sends its workers home by a panic of its own; a number in a trace may
	// be in no table of names; a template's rendering is a call of its own, with no state behind it; a
	// handler that panics is told in the log and panics on.
	if want := []string{"engine/kernel/team.go", "serve/recorder/form.go", "engine/chat/jinja/run.go", "serve/door/server.go"}; !slices.Equal(sorted(found), sorted(want)) {
		t.Errorf("recover is called in %v, want %v", found, want)
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// Given a grammar that forces the first token, leaves it free, or ends the text behind it, and
// limits of one token and more, when a pair and one worker answer, then both say the same, and it
// is what the grammar allows: decode's automaton has taken prefill's token once.
// SGLang: issues #29110 and #7767, PR #21964.
func TestF132TheGrammarTakesEachTokenOnce(t *testing.T) {
	p, _ := startWorker(t, worker.Prefill, 64, "layout")
	d, _ := startWorker(t, worker.Decode, 64, "layout")
	u, _ := startWorker(t, worker.Unified, 64, "layout")
	for _, row := range []struct {
		name, regex string
		whole       bool // the text ends by itself within 40 tokens
	}{
		{"the first token is forced", `amber( [a-z]{2,6}){3}\.`, true},
		{"the first token is free", `[a-zA-Z .]{3,24}`, false},
		{"the text ends behind its first token", `[aq]`, true},
	} {
		for _, limit := range []int{1, 2, 40} {
			q := legOf(prompt(70), limit)
			q.Params.IgnoreEOS = false
			q.Params.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: row.regex}
			_, dec := both(t, p, d, q)
			dec.ended(room.NoCause)
			q.Room++
			rooms++
			alone := open(t, u, worker.Decode, q).ended(room.NoCause)
			if dec.text != alone.text || !slices.Equal(dec.ids, alone.ids) || dec.end.Finish != alone.end.Finish {
				t.Errorf("%s, %d tokens: the pair says %q %v, one worker %q %v", row.name, limit, dec.text, dec.end, alone.text, alone.end)
			}
			fits := regexp.MustCompile("^(" + row.regex + ")$").MatchString(dec.text)
			if dec.end.Finish == sample.ReasonStop && !fits || dec.end.Finish != sample.ReasonStop && row.whole && limit == 40 {
				t.Errorf("%s, %d tokens: %q ends in %q, against %s", row.name, limit, dec.text, dec.end.Finish, row.regex)
			}
		}
	}
	empty(t, p, d, u)
}

// Given two workers whose KV has different formats, when they meet, then the link is refused with
// both formats in the message before a byte moves, and decode serves with a prefill worker of
// its own format.
// SGLang: PR #19398.
func TestF58OtherNumbersAreRefusedAtPairing(t *testing.T) {
	p, _ := startWorker(t, worker.Prefill, 64, `{"dtype":"f32"}`)
	same, _ := startWorker(t, worker.Prefill, 64, `{"dtype":"bf16"}`)
	d, do := startWorker(t, worker.Decode, 64, `{"dtype":"bf16"}`)
	q := legOf(prompt(100), 3)
	pre, dec := both(t, p, d, q)
	dec.ended(room.Internal)
	if m := dec.end.Message; !strings.Contains(m, `{"dtype":"f32"}`) || !strings.Contains(m, `{"dtype":"bf16"}`) {
		t.Errorf("the refusal says %q, want both formats", m)
	}
	pre.cancel()
	<-pre.over
	empty(t, p, d)
	q = legOf(prompt(100), 3)
	_, dec = both(t, same, d, q)
	if got, want := dec.ended(room.NoCause).ids, follow(q.Tokens, 3, do.vocab); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	empty(t, same, d)
}

// Given two workers of which one has a cache group more, when prompts of one block, of sixteen
// and of sixty are tried, then all are refused alike, at pairing.
// vLLM: PR #49230.
func TestF60ShortPromptsAreRefusedLikeLongOnes(t *testing.T) {
	p, _ := startWorker(t, worker.Prefill, 64, `{"pools":["kv"]}`)
	d, do := startWorker(t, worker.Decode, 64, `{"pools":["kv","draft"]}`)
	for _, n := range []int{16, 256, 960} {
		pre, dec := both(t, p, d, legOf(prompt(n), 2))
		dec.ended(room.Internal)
		if len(dec.ids) > 0 || !strings.Contains(dec.end.Message, "draft") {
			t.Errorf("%d tokens: %+v", n, dec.end)
		}
		pre.cancel()
		<-pre.over
	}
	empty(t, p, d)
	if do.steps != 0 {
		t.Errorf("%d engine steps on KV of another layout", do.steps)
	}
}

// Given a decode worker with six transfers from a prefill worker that is frozen, when its health
// is asked and others are served, then it is healthy without a gap, and the others have their
// answers from the second prefill worker.
// SGLang: issue #12779.
func TestF80ADeadPrefillDoesNotMakeDecodeIll(t *testing.T) {
	p1, frozen := startWorker(t, worker.Prefill, 64, "layout")
	p2, _ := startWorker(t, worker.Prefill, 64, "layout")
	d, do := startWorker(t, worker.Decode, 128, "layout")
	held, release := frozen.hold()
	defer release()
	var pres, decs []*call
	for range 6 {
		pre, dec := both(t, p1, d, legOf(prompt(60), 2))
		pres, decs = append(pres, pre), append(decs, dec)
	}
	<-held
	until(t, "all six wait at decode", func() bool { return len(snapshot(t, d).Rooms) == 6 })
	for range 5 {
		q := legOf(prompt(100), 4)
		_, dec := both(t, p2, d, q)
		if got := dec.ended(room.NoCause).ids; !slices.Equal(got, follow(q.Tokens, 4, do.vocab)) {
			t.Errorf("%v", got)
		}
		status, h := healthOf(t, d)
		if status != http.StatusOK || !h.OK || h.Live < 6 {
			t.Errorf("decode's health: %d %+v", status, h)
		}
	}
	for _, dec := range decs {
		dec.cancel()
	}
	release()
	for i := range pres {
		<-pres[i].over
		<-decs[i].over
	}
	empty(t, p1, p2, d)
}

func healthOf(t *testing.T, w *worker.Worker) (status int, h observe.Health) {
	t.Helper()
	resp, err := plain.Get("http://" + w.HTTP() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, h
}

// Given a worker whose engine is inside a step, when it is asked who it is, what it holds and
// whether it is well, then it answers all the same.
// SGLang: PR #24115.
func TestF92ABusyWorkerSaysWhoItIs(t *testing.T) {
	p, o := startWorker(t, worker.Prefill, 64, "layout")
	d, _ := startWorker(t, worker.Decode, 64, "layout")
	held, release := o.hold()
	_, dec := both(t, p, d, legOf(prompt(60), 2))
	<-held
	for path, word := range map[string]string{"/server_info": p.Link(), "/debug/rooms": "computing", "/health": `"live":1`, "/metrics": "baton_"} {
		resp, err := plain.Get("http://" + p.HTTP() + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(b), word) {
			t.Errorf("%s: %d %s, want a word about %q", path, resp.StatusCode, b, word)
		}
	}
	release()
	dec.ended(room.NoCause)
	empty(t, p, d)
}

// Given a prompt, when its first token is the last one, by the limit, a stop token or a stop
// string, or the second one is, or what would end it is to be ignored, then the pair says what
// one worker says: same tokens, text, reason and counts.
// SGLang: issue #12151, PR #7147; TensorRT-LLM: PR #16691.
func TestF127TheFirstTokenMayBeTheLast(t *testing.T) {
	p, _ := startWorker(t, worker.Prefill, 64, "layout")
	d, do := startWorker(t, worker.Decode, 64, "layout")
	u, _ := startWorker(t, worker.Unified, 64, "layout")
	tok, err := recallTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 15, 16, 17, 40} {
		ids := prompt(n)
		first := follow(ids, 2, do.vocab)
		for name, row := range map[string]struct {
			max    int
			stop   []string
			ids    []int32
			finish string
			out    int
		}{
			"limit of one":  {max: 1, finish: "length", out: 1},
			"limit of two":  {max: 2, finish: "length", out: 2},
			"stop token":    {max: 9, ids: first[:1], finish: "stop", out: 1},
			"second token":  {max: 9, ids: first[1:], finish: "stop", out: 2},
			"stop string":   {max: 9, stop: []string{tok.Decode(first[:1], false)}, finish: "stop", out: 1},
			"nothing stops": {max: 5, finish: "length", out: 5},
		} {
			q := legOf(ids, row.max)
			q.Params.Stop, q.Params.StopIDs = row.stop, row.ids
			if len(row.stop) > 0 && row.stop[0] == "" {
				continue // a token without text
			}
			_, dec := both(t, p, d, q)
			solo := open(t, u, worker.Decode, q)
			a, b := dec.ended(room.NoCause), solo.ended(room.NoCause)
			a.end.Cached, b.end.Cached = 0, 0 // a row finds what the ones before left where it runs (F130)
			if !slices.Equal(a.ids, b.ids) || a.text != b.text || !reflect.DeepEqual(a.end, b.end) {
				t.Errorf("%d tokens, %s: the pair %v %q %+v, one worker %v %q %+v", n, name, a.ids, a.text, a.end, b.ids, b.text, b.end)
			}
			if first[0] != first[1] && (a.end.Finish != row.finish || a.end.OutputTokens != row.out) {
				t.Errorf("%d tokens, %s: %+v, want %s behind %d", n, name, a.end, row.finish, row.out)
			}
		}
	}
	empty(t, p, d, u)
}

// Given a house of a gateway and real workers, cold and with some or all of a prompt warm on
// prefill, when usage is asked for in one body and in a stream, and behind a retry, then the
// prompt counts once, cached is exactly what prefill did not compute, and the output is what was
// sent; and the sum over requests is what the engine did.
// vLLM: issue #43370, issue #47136; vllm-project/router issue #193; SGLang: PR #25290.
func TestF130UsageIsWhatWasComputed(t *testing.T) {
	file := recall.Open()
	text, err := gateway.NewText(file)
	if err != nil {
		t.Fatal(err)
	}
	r := newFront(t, 0, func(c *gateway.Config) { c.Text = text })
	p, po := startWorker(t, worker.Prefill, 64, "layout")
	d, do := startWorker(t, worker.Decode, 64, "layout")
	lost := r.join(gateway.RoleDecode, func(l *fakeLeg) { l.cut() }) // it is tried first
	r.decodes = append(r.decodes, lost)
	r.enlist(gateway.Worker{Name: "p", Role: gateway.RolePrefill, HTTP: p.HTTP(), Link: p.Link(), Boot: p.Boot().String(), ContextTokens: 1000})
	r.enlist(gateway.Worker{Name: "d", Role: gateway.RoleDecode, HTTP: d.HTTP(), Boot: d.Boot().String(), ContextTokens: 1000})
	all := prompt(110)
	for i, row := range []struct {
		tokens, cached int
		stream         bool
	}{{77, 0, false}, {77, 64, true}, {77, 64, false}, {17, 16, true}, {16, 0, false}, {110, 64, true}, {110, 96, false}} {
		ids, stream := all[:row.tokens], row.stream
		list, _ := json.Marshal(ids)
		before := po.computed()
		more := fmt.Sprintf(`,"stream":%v`, stream)
		if stream {
			more += `,"stream_options":{"include_usage":true}`
		}
		a := r.post("/v1/completions", `{"temperature":0,"ignore_eos":true,"max_tokens":5,"return_token_ids":true,"prompt":`+string(list)+more+`}`)
		var u struct {
			Prompt  int `json:"prompt_tokens"`
			Output  int `json:"completion_tokens"`
			Total   int `json:"total_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
		var out []int32
		for _, e := range append(a.events, a.body) {
			var c struct {
				Usage   *json.RawMessage
				Choices []struct {
					IDs []int32 `json:"token_ids"`
				}
			}
			if json.Unmarshal([]byte(e), &c) == nil && c.Usage != nil {
				json.Unmarshal(*c.Usage, &u)
			}
			for _, one := range c.Choices {
				out = append(out, one.IDs...)
			}
		}
		if u.Prompt != row.tokens || u.Output != 5 || u.Total != row.tokens+5 || u.Details.Cached != row.cached || !slices.Equal(out, follow(ids, 5, do.vocab)) {
			t.Errorf("%d, stream %v: %+v, want %d cached of %d; %v: %s %q", i, stream, u, row.cached, row.tokens, out, a.body, a.events)
		}
		if n := po.computed() - before; n != row.tokens-row.cached {
			t.Errorf("%d: prefill computed %d tokens, and %d of %d are said to be cached", i, n, u.Details.Cached, u.Prompt)
		}
	}
	if len(lost.legs()) != 1 {
		t.Errorf("the lost worker was tried %d times: no retry was counted", len(lost.legs()))
	}
	if m := r.get("/metrics"); !strings.Contains(m, `baton_gateway_tokens_total{kind="prompt"} 484`) || !strings.Contains(m, `baton_gateway_tokens_total{kind="output"} 35`) {
		t.Error("the sum over requests is not what the gateway counts")
	}
	r.quiet()
	empty(t, p, d)
}

// Given prompts of one token, of whole blocks and chunks, and one more or less, when each runs
// through a pair and on one worker, then the texts are the same, and those that the bytes of
// the whole prompt give.
// vLLM and LMCache: issue #52617.
func TestF62APairSaysWhatOneWorkerSays(t *testing.T) {
	p, _ := startWorker(t, worker.Prefill, 64, "layout")
	d, do := startWorker(t, worker.Decode, 64, "layout")
	u, _ := startWorker(t, worker.Unified, 64, "layout")
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 129, 500, 1000} {
		q := legOf(prompt(n), 6)
		_, dec := both(t, p, d, q)
		a, b := dec.ended(room.NoCause), open(t, u, worker.Decode, q).ended(room.NoCause)
		if want := follow(q.Tokens, 6, do.vocab); !slices.Equal(a.ids, want) || !slices.Equal(b.ids, want) || a.text != b.text {
			t.Errorf("%d tokens: the pair %v, one worker %v, want %v", n, a.ids, b.ids, want)
		}
	}
	empty(t, p, d, u)
}

// Given five lives of a prefill worker, each of which names blocks in a way of its own, when twenty
// prompts that begin alike go through each and one decode worker, then each life finds what it has
// computed itself and nothing else, decode takes what it is sent without a name, and nothing that
// was received is left over.
// LMCache: PR #1133, issue #1547.
func TestF61NamesOfBlocksStayInTheirProcess(t *testing.T) {
	d, do := startWorker(t, worker.Decode, 64, "layout")
	begin := prompt(70)
	for life := range 5 {
		p, po := startWorker(t, worker.Prefill, 64, "layout")
		for i := range 20 {
			before := po.computed()
			q := legOf(append(append([]int32(nil), begin...), prompt(3+i)...), 3)
			_, dec := both(t, p, d, q)
			if got, want := dec.ended(room.NoCause).ids, follow(q.Tokens, 3, do.vocab); !slices.Equal(got, want) {
				t.Errorf("life %d, prompt %d: %v, want %v", life, i, got, want)
			}
			cached := 64
			if i == 0 {
				cached = 0
			}
			if n := po.computed() - before; dec.end.Cached != cached || n != len(q.Tokens)-cached {
				t.Errorf("life %d, prompt %d: %d of %d tokens are called cached, %d were computed; want %d", life, i, dec.end.Cached, len(q.Tokens), n, cached)
			}
		}
		empty(t, p, d)
	}
	if b := snapshot(t, d).Worker.Blocks; b.Held != 0 || b.Free+b.Cached != b.Total {
		t.Errorf("decode has %+v when all is over", b)
	}
}
