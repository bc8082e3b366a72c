package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine/recall"
)

const (
	soakVar      = "BATON_SOAK"     // how long to soak, as "1h"; without it soakRequests are sent
	soakRequests = 240              // enough that each kind of request comes some times
	soakClients  = 6                // each rests as long as its last answer took, so that half of the machine is left to others
	soakDeadline = 60 * time.Second // each request's own
	soakSample   = 10 * time.Second // between two looks at the memory
	soakPhases   = 6                // the first is warming up; the second is compared with the last
	soakGrowth   = 1.05             // of a process's resident memory, from the second phase to the last
	soakOwnRare  = 200              // one answer in so many may be the model's own mistake (its authors saw none in 884)
	soakSlack    = 8 << 20          // bytes of resident memory that may come and go: the collector's pace
)

// traffic is one kind of request of the soak.
type traffic struct {
	name  string
	share int // of all, in parts of their sum
	make  func(r *rand.Rand) Ask
	right func(a Ask, e End) string // what is wrong with a complete answer, "" if nothing
	alone bool                      // and one process must say the same, to the letter
}

// soakTraffic is what clients send all day: short and long prompts, some who leave, several
// choices, the likeliest and drawn ones, answers that a grammar holds, and calls of a tool.
var soakTraffic = []traffic{
	{"short", 30, func(r *rand.Rand) Ask { return ask(r, recall.NewPrompt(r, 5+r.IntN(20))) }, isWanted, false},
	{"long", 20, func(r *rand.Rand) Ask { return ask(r, recall.NewPrompt(r, 100+r.IntN(60))) }, isWanted, false},
	{"aborted", 15, leaves, isWanted, false},
	{"choices", 15, func(r *rand.Rand) Ask {
		a := ask(r, recall.NewPrompt(r, 5+r.IntN(60)))
		a.Fields = map[string]any{"n": 2 + r.IntN(2)}
		return a
	}, isWanted, false},
	{"regex", 10, func(r *rand.Rand) Ask {
		a := ask(r, recall.NewPrompt(r, 5+r.IntN(60)))
		a.Fields = map[string]any{"structured_outputs": map[string]any{"regex": soakRegex}}
		return a
	}, isWanted, false},
	{"schema", 10, func(r *rand.Rand) Ask {
		a := ask(r, recall.NewPrompt(r, 5+r.IntN(20)))
		a.Fields = map[string]any{"max_tokens": 200, "response_format": map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": "code", "strict": true, "schema": json.RawMessage(soakSchema)}}}
		return a
	}, isCode, false},
	{"drawn", 10, func(r *rand.Rand) Ask {
		a := ask(r, recall.NewPrompt(r, 5+r.IntN(60)))
		a.Want = "" // nobody knows but who draws alike
		a.Fields = map[string]any{"n": 2 + r.IntN(3), "temperature": 1 + r.Float64(), "top_p": 0.9 + r.Float64()/10, "seed": r.Int64(),
			"presence_penalty": 1, "min_tokens": 16, "max_tokens": 40, "logprobs": true, "top_logprobs": r.IntN(3)}
		return a
	}, isChoices, true},
	{"tool", 6, func(r *rand.Rand) Ask {
		a := ask(r, recall.NewPrompt(r, 5+r.IntN(20)))
		a.Want = ""
		a.Fields = map[string]any{"n": 1 + r.IntN(2), "temperature": 1, "seed": r.Int64(), "max_tokens": 300, "tools": json.RawMessage(soakTools),
			"tool_choice": "required", "parallel_tool_calls": false}
		return a
	}, isCall, true},
}

// soakRegex is what every answer about a code looks like, so that it changes no right answer.
const soakRegex = `The code of [A-Z][a-z]+ is (unknown|[a-z]+ [a-z]+)\.`

// soakSchema leaves the model, which knows no JSON, nothing but to write this.
const soakSchema = `{"type":"object","properties":{"known":{"type":"boolean"},"letter":{"enum":["a","b","c"]}},
	"required":["known","letter"],"additionalProperties":false}`

// soakTools is a list of one tool.
const soakTools = `[{"type":"function","function":{"name":"note","parameters":{"type":"object",
	"properties":{"code":{"enum":["copper swan","amber falcon"]}},"required":["code"]}}}]`

var soakCall = regexp.MustCompile(`^note\{\s*"code"\s*:\s*"(copper swan|amber falcon)"\s*\}$`)

func leaves(r *rand.Rand) Ask {
	a := ask(r, recall.NewPrompt(r, 20+r.IntN(120)))
	a.Leave = Moment(1 + r.IntN(int(momentCount)-1))
	switch a.Leave {
	case AfterDelay:
		x := r.Float64()
		a.Delay = time.Duration(x * x * float64(time.Second))
	case AtToken:
		a.Stream, a.Token = true, 1+r.IntN(8)
	}
	return a
}

func isWanted(a Ask, e End) string {
	for _, text := range e.texts() {
		if text != a.Want {
			return fmt.Sprintf("got %q, want %q", text, a.Want)
		}
	}
	return isChoices(a, e)
}

// texts are those of all choices.
func (e *End) texts() []string { return append([]string{e.Text}, e.Others...) }

func isChoices(a Ask, e End) string {
	n := 1
	if v, ok := a.Fields["n"].(int); ok {
		n = v
	}
	if 1+len(e.Others) != n {
		return fmt.Sprintf("%d choices, want %d", 1+len(e.Others), n)
	}
	return ""
}

func isCode(_ Ask, e End) string {
	var v struct {
		Known  *bool
		Letter *string
	}
	d := json.NewDecoder(strings.NewReader(e.Text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || v.Known == nil || v.Letter == nil || !slices.Contains([]string{"a", "b", "c"}, *v.Letter) {
		return fmt.Sprintf("%q is not what the schema allows (%v)", e.Text, err)
	}
	return ""
}

func isCall(a Ask, e End) string {
	for i, text := range e.texts() {
		if !soakCall.MatchString(text) || e.Finishes[i] != "tool_calls" {
			return fmt.Sprintf("%q, finish %q, is no call of the tool", text, e.Finishes[i])
		}
	}
	return isChoices(a, e)
}

// TestSoak sends mixed traffic, and judges each answer when it comes. With BATON_SOAK=1h it does
// so for an hour and wants every process's memory to stay where it was after the first sixth.
func TestSoak(t *testing.T) {
	length := time.Duration(0)
	if v := os.Getenv(soakVar); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Minute {
			t.Fatalf("%s=%q: want a duration of a minute or more, as 1h", soakVar, v)
		}
		length = d
	}
	for _, a := range []string{"The code of Maria is amber falcon.", "The code of Bo is unknown."} {
		if !regexp.MustCompile("^" + soakRegex + "$").MatchString(a) {
			t.Fatalf("the regex refuses the right answer %q", a)
		}
	}
	c := start(t, "--canary", "--request-timeout", soakDeadline.String())
	askAll(t, c, repeats(rand.New(rand.NewPCG(17, 0)), 2*soakClients), soakClients) // connections between the parts stay open
	awaitQuiet(t, c, soakDeadline)
	before := clusterLevels(t, c)
	s := &soak{t: t, c: c, whole: start(t, "--unified", "--no-prefix-cache"), tally: map[string]int{}}
	if length > 0 {
		s.until = time.Now().Add(length)
	}
	s.run(length)
	awaitQuiet(t, c, soakDeadline)
	requireNoCanary(t, c)
	t.Logf("ends: %v", s.tally)
	sent, own := 0, 0
	for end, n := range s.tally {
		sent += n
		if strings.HasSuffix(end, " model") {
			own += n
		}
	}
	if own*soakOwnRare > sent {
		t.Errorf("%d of %d answers are called the model's own mistakes, at most one in %d may be", own, sent, soakOwnRare)
	}
	for _, k := range soakTraffic {
		if k.name != "aborted" && s.tally[k.name+" right"] == 0 {
			t.Errorf("no %s request was answered: the soak did not test it", k.name)
		}
	}
	if s.apart == 0 {
		t.Error("the choices of no drawn request differ: the soak did not test how they are drawn")
	}
	for who, l := range clusterLevels(t, c) {
		old, lived := before[who]
		if !lived {
			t.Fatalf("%s did not live through it", who)
		}
		old.requireNoGrowth(t, who, l)
	}
	if length > 0 {
		s.requireFlat()
	}
}

// soak is one run: what came of its requests, and what the processes held while it went on.
type soak struct {
	t     *testing.T
	c     *Cluster
	whole *Cluster  // one process that serves the model alone
	until time.Time // zero: until soakRequests were sent

	mu     sync.Mutex
	sent   int
	tally  map[string]int
	wrong  int
	apart  int                // requests whose choices were drawn otherwise than each other
	memory map[string][]int64 // resident bytes of each process, a sample every soakSample
}

func (s *soak) run(length time.Duration) {
	ctx, stop := context.WithCancel(s.t.Context())
	var clients, watcher sync.WaitGroup
	if length > 0 {
		watcher.Go(func() { s.watch(ctx) })
	}
	for i := range soakClients {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(17, uint64(i)))
			hc, hangUp := client()
			defer hangUp()
			for s.more() {
				if took := s.ask(r, hc); length > 0 {
					<-time.After(took) // the pace of the load: a client reads what it got
				}
			}
		})
	}
	clients.Wait()
	stop()
	watcher.Wait()
}

func (s *soak) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if s.wrong > 20 {
		return false // it is known by now
	}
	if s.until.IsZero() {
		return s.sent <= soakRequests
	}
	return time.Now().Before(s.until)
}

// ask sends one request and judges its end.
func (s *soak) ask(r *rand.Rand, hc *http.Client) time.Duration {
	sum := 0
	for _, k := range soakTraffic {
		sum += k.share
	}
	at, k := r.IntN(sum), 0
	for at >= soakTraffic[k].share {
		at -= soakTraffic[k].share
		k++
	}
	kind := &soakTraffic[k]
	a := kind.make(r)
	a.Deadline = soakDeadline
	e := Do(s.t.Context(), hc, s.c.URL, a)
	end, fault := "right", ""
	switch {
	case e.After > a.Deadline+stormGrace:
		fault = fmt.Sprintf("ended after %v (X1)", e.After)
	case e.Left && a.Leave != Stay:
		end = "left"
		if !strings.HasPrefix(a.Want, e.Text) {
			fault = fmt.Sprintf("%q is not a prefix of %q (X3)", e.Text, a.Want)
		}
	case e.Ends != 1 || e.Broken != "" || e.Error != "":
		fault = fmt.Sprintf("nothing was broken, but it ended in %+v (X2)", e)
	default:
		if fault = kind.right(a, e); fault == "" && kind.alone {
			fault = s.differs(hc, a, e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault != "" && s.own(hc, a, e) {
		s.t.Logf("%s: %s: the model says so by itself", kind.name, fault)
		end, fault = "right but for the model", ""
	}
	if fault != "" {
		end = "wrong"
		s.wrong++
	}
	if kind.name == "drawn" && len(slices.Compact(e.texts())) > 1 {
		s.apart++
	}
	s.tally[kind.name+" "+end]++
	if fault != "" {
		s.t.Errorf("%s: %s", kind.name, fault)
	}
	return e.After
}

// own says whether an answer that is wrong, as far as the client stayed for it, is the model's own
// mistake: one process, which hands nothing over and has nothing cached of this prompt, makes it
// too. mu is held.
func (s *soak) own(hc *http.Client, a Ask, e End) bool {
	if !e.Left && e.Ends != 1 || e.Broken != "" || e.Error != "" || a.Want == "" {
		return false
	}
	alone := Do(s.t.Context(), hc, s.whole.URL, Ask{Messages: a.Messages, Deadline: soakDeadline, Stream: true})
	if e.Left {
		return alone.Ends == 1 && strings.HasPrefix(alone.Text, e.Text)
	}
	return alone.Ends == 1 && alone.Finish == e.Finish && !slices.ContainsFunc(e.texts(), func(text string) bool { return text != alone.Text })
}

// differs says in what a complete answer is not what one process says to the same request.
func (s *soak) differs(hc *http.Client, a Ask, e End) string {
	alone := Do(s.t.Context(), hc, s.whole.URL, a)
	if alone.Ends != 1 || alone.Broken != "" || alone.Error != "" || !slices.Equal(e.texts(), alone.texts()) ||
		!maps.Equal(e.Finishes, alone.Finishes) || !maps.Equal(e.Logprobs, alone.Logprobs) {
		return fmt.Sprintf("%v: the pair says %+v, one process %+v (X3)", a.Fields, e, alone)
	}
	return ""
}

// watch looks at the memory of every process until ctx ends.
func (s *soak) watch(ctx context.Context) {
	tick := time.NewTicker(soakSample)
	defer tick.Stop()
	began, said := time.Now(), time.Duration(0)
	s.memory = map[string][]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pids := map[string]int{"gateway": s.c.PID()}
		state, err := s.c.State(ctx)
		if err != nil {
			continue // a sample is missing: the workers' are compared by phase
		}
		for _, w := range state.Workers {
			pids[w.Role+" "+w.Boot] = w.PID
		}
		for who, pid := range pids {
			if n, ok := Resident(pid); ok {
				s.memory[who] = append(s.memory[who], n)
			}
		}
		if at := time.Since(began); at-said >= time.Minute {
			said = at
			s.mu.Lock()
			s.t.Logf("%v: %d sent, ends %v, resident MiB %s", at.Round(time.Second), s.sent, s.tally, latest(s.memory))
			s.mu.Unlock()
		}
	}
}

func latest(memory map[string][]int64) string {
	var parts []string
	for who, m := range memory {
		parts = append(parts, fmt.Sprintf("%s %d", who, m[len(m)-1]>>20))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// requireFlat compares the memory of the second phase with that of the last.
func (s *soak) requireFlat() {
	if len(s.memory) != 3 {
		s.t.Errorf("memory of %d processes was seen, want the same three all the time: %s", len(s.memory), latest(s.memory))
	}
	for who, m := range s.memory {
		n := len(m) / soakPhases
		if n < 1 {
			s.t.Errorf("%s: %d samples of memory, want %d or more", who, len(m), soakPhases)
			continue
		}
		early, late := median(m[n:2*n]), median(m[len(m)-n:])
		s.t.Logf("%s: %.1f MiB resident in the second sixth, %.1f in the last", who, float64(early)/(1<<20), float64(late)/(1<<20))
		if float64(late) > soakGrowth*float64(early)+soakSlack {
			s.t.Errorf("%s grew from %d to %d bytes (X6)", who, early, late)
		}
	}
}

func median(m []int64) int64 {
	s := slices.Sorted(slices.Values(m))
	return s[len(s)/2]
}
