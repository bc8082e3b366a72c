package recall

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/engine/chat"
	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

// row is a line of testdata/expected.jsonl, written by the Python scripts in tools/recall.
type row struct {
	Name      string
	Prompt    string
	PromptIDs []int32 `json:"prompt_ids"`
	Answer    string
	Greedy    []int32
	Right     bool
}

func rows(t *testing.T) []row {
	f, err := os.Open("testdata/expected.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	var out []row
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if len(out) != 80 {
		t.Fatalf("%d rows, expected are 80", len(out))
	}
	return out
}

func model(t *testing.T) (*tokenizer.Tokenizer, *chat.Template) {
	f, err := gguf.Parse(GGUF())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := chat.FromGGUF(f, tok)
	if err != nil {
		t.Fatal(err)
	}
	return tok, tpl
}

var (
	factOf     = regexp.MustCompile(`The code of (\w+) is (\w+ \w+)\.`)
	questionOf = regexp.MustCompile(`([^>\n]*)<\|end\|><\|assistant\|>$`)
	nameOf     = regexp.MustCompile(`[A-Z][a-z]+`)
)

// turn asks r's question again in Go.
func turn(t *testing.T, p Prompt, r row, question string) Turn {
	switch kind, _, _ := strings.Cut(r.Name, "-"); kind {
	case "recite":
		return p.Repeat()
	case "ask", "absent":
		return p.Ask(strings.TrimSuffix(strings.TrimPrefix(question, "What is the code of "), "?"))
	case "askn":
		who := nameOf.FindAllString(strings.TrimPrefix(question, "What are the codes of "), -1)
		if len(who) == 1 {
			return p.Ask(who[0])
		}
		return p.AskSeveral(who...)
	case "other":
		return Turn{question, Other}
	}
	t.Fatalf("%s is of no kind that is known", r.Name)
	return Turn{}
}

// TestPromptsEqualThoseOfTheScripts takes the facts out of each prompt and makes prompt, tokens
// and answer again.
func TestPromptsEqualThoseOfTheScripts(t *testing.T) {
	tok, tpl := model(t)
	shapes := map[bool]int{}
	for _, r := range rows(t) {
		var p Prompt
		for _, m := range factOf.FindAllStringSubmatch(r.Prompt, -1) {
			p.Facts = append(p.Facts, Fact{m[1], m[2]})
		}
		question := questionOf.FindStringSubmatch(r.Prompt)[1]
		q := turn(t, p, r, question)
		if q.Question != question || q.Answer != r.Answer {
			t.Errorf("%s: %q answered by %q, want %q by %q", r.Name, q.Question, q.Answer, question, r.Answer)
		}
		system := strings.HasPrefix(r.Prompt, "<|system|>")
		shapes[system]++
		msgs := p.UserMessages(q.Question)
		if system {
			msgs = p.Messages(q.Question)
		}
		if got, err := tpl.Render(msgs); err != nil || got != r.Prompt {
			t.Errorf("%s: rendered %q, %v, want %q", r.Name, got, err, r.Prompt)
		}
		if got, err := tpl.Encode(msgs); err != nil || !slices.Equal(got, r.PromptIDs) {
			t.Errorf("%s: tokens %v, %v, want %v", r.Name, got, err, r.PromptIDs)
		}
		if got := tok.Decode(r.Greedy, true); (got == r.Answer) != r.Right {
			t.Errorf("%s: the recorded answer %q against %q, but right is %v", r.Name, got, r.Answer, r.Right)
		}
	}
	if shapes[true] == 0 || shapes[false] == 0 {
		t.Errorf("system messages %d, user messages %d: both are needed", shapes[true], shapes[false])
	}
}

// TestWordsEqualThoseOfTheScripts compares with tools/recall/words.py.
func TestWordsEqualThoseOfTheScripts(t *testing.T) {
	b, err := os.ReadFile("../../tools/recall/words.py")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?s)(NAMES|WORDS) = """(.*?)"""`).FindAllStringSubmatch(string(b), -1)
	if len(lists) != 2 || !slices.Equal(strings.Fields(lists[0][2]), Names()) || !slices.Equal(strings.Fields(lists[1][2]), Words()) {
		t.Error("the lists differ")
	}
	if len(Names()) != 255 || len(Words()) != 175 {
		t.Errorf("%d names and %d words", len(Names()), len(Words()))
	}
}

func TestEveryNameAndWordIsOneToken(t *testing.T) {
	tok, _ := model(t)
	for _, w := range append(slices.Clone(Names()), Words()...) {
		if ids := tok.Encode(" "+w, false); len(ids) != 1 {
			t.Errorf("%q is %d tokens", w, len(ids))
		}
	}
}

func TestFactsHaveDifferentNamesAndSecondWords(t *testing.T) {
	for _, n := range []int{1, 2, 50, MostFacts} {
		p := NewPrompt(rand.New(rand.NewPCG(1, uint64(n))), n)
		names, seconds := map[string]bool{}, map[string]bool{}
		for _, f := range p.Facts {
			_, second, _ := strings.Cut(f.Code, " ")
			names[f.Name], seconds[second] = true, true
		}
		if len(names) != n || len(seconds) != n {
			t.Errorf("%d facts have %d names and %d second words", n, len(names), len(seconds))
		}
	}
}

func TestTheLargestPromptFitsTheContext(t *testing.T) {
	tok, tpl := model(t)
	p := NewPrompt(rand.New(rand.NewPCG(3, 4)), MostFacts)
	ids, err := tpl.Encode(p.Messages(p.AskAbsent(rand.New(rand.NewPCG(1, 1))).Question))
	if err != nil || len(ids) > 2048-64 {
		t.Errorf("%d tokens, %v", len(ids), err)
	}
	if tok.IsSpecial(ids[1]) {
		t.Error("a fact is special")
	}
}

func TestAbsentNamesHaveNoFact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := NewPrompt(r, MostFacts)
	for range 100 {
		q := p.AskAbsent(r)
		if !strings.HasSuffix(q.Answer, " is unknown.") || strings.Contains(p.Statement(), strings.TrimSuffix(q.Answer, "unknown.")) {
			t.Fatalf("%q has the answer %q", q.Question, q.Answer)
		}
		if q := p.AskOne(r); !strings.Contains(p.Statement(), q.Answer) {
			t.Fatalf("%q has the answer %q", q.Question, q.Answer)
		}
	}
}

func TestTheSameSeedGivesTheSamePrompt(t *testing.T) {
	a := NewPrompt(rand.New(rand.NewPCG(9, 9)), 20).Statement()
	b := NewPrompt(rand.New(rand.NewPCG(9, 9)), 20).Statement()
	c := NewPrompt(rand.New(rand.NewPCG(9, 8)), 20).Statement()
	if a != b || a == c {
		t.Error("prompts do not follow the seed")
	}
}

func TestNumbersOutOfRangeArePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"0 facts":   func() { NewPrompt(rand.New(rand.NewPCG(0, 0)), 0) },
		"171 facts": func() { NewPrompt(rand.New(rand.NewPCG(0, 0)), MostFacts+1) },
		"1 name":    func() { Prompt{}.AskSeveral("Maria") },
		"7 names":   func() { Prompt{}.AskSeveral(Names()[:7]...) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s do not panic", name)
				}
			}()
			f()
		}()
	}
}

// TestTheQuantisedFileIsTheSameModel compares the Q8_0 file of the scripts with the embedded one:
// the same tokenizer, and every number within half a step of its block (0.62 steps, since step
// and original are rounded to half precision).
func TestTheQuantisedFileIsTheSameModel(t *testing.T) {
	q, err := gguf.Open("../../tools/recall/recall-q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	f, _ := gguf.Parse(GGUF())
	tokF, _ := tokenizer.FromGGUF(f)
	tokQ, err := tokenizer.FromGGUF(q)
	if err != nil || tokF.Digest() != tokQ.Digest() {
		t.Errorf("tokenizers differ: %v", err)
	}
	quantised := 0
	for _, a := range f.Tensors() {
		b, ok := q.Tensor(a.Name)
		if !ok || !slices.Equal(a.Dims, b.Dims) {
			t.Fatalf("%v against %v", a, b)
		}
		x, y := make([]float32, a.Rows()*a.Cols()), make([]float32, a.Rows()*a.Cols())
		if err := errors.Join(gguf.Dequant(x, a.Type, a.Data), gguf.Dequant(y, b.Type, b.Data)); err != nil {
			t.Fatal(err)
		}
		if b.Type == gguf.Q8_0 {
			quantised++
		}
		for i := range x {
			step := float32(0)
			if b.Type == gguf.Q8_0 {
				for _, v := range x[i/32*32 : i/32*32+32] {
					step = max(step, max(v, -v)/127)
				}
			}
			if d := max(x[i]-y[i], y[i]-x[i]); d > step*0.62+1e-7 {
				t.Fatalf("%s number %d is %v and %v, a step is %v", a.Name, i, x[i], y[i], step)
			}
		}
	}
	if quantised != 29 {
		t.Errorf("%d tensors are Q8_0, expected are the 29 matrices", quantised)
	}
}
