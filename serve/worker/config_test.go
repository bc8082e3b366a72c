package worker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/grammar"
	"baton/engine/kernel"
	"baton/engine/sample"
	"baton/serve/leg"
)

func TestEveryLimitOfAConfigIsRefusedByName(t *testing.T) {
	for _, tt := range []struct {
		spoil func(*Config)
		want  string
	}{
		{func(c *Config) { c.Role = "router" }, "role"},
		{func(c *Config) { c.Secret = []byte("short") }, "secret"},
		{func(c *Config) { c.Grace = -1 }, "grace"},
		{func(c *Config) { c.Sizes.MaxRunning = -1 }, "max batch"},
		{func(c *Config) { c.Sizes.MaxQueued = QueuedMax + 1 }, "max queued"},
		{func(c *Config) { c.Sizes.ChunkTokens = 17 }, "chunk tokens"},
		{func(c *Config) { c.Sizes.ChunkTokens = 8 }, "chunk tokens"},
		{func(c *Config) { c.Sizes.KVTokens = 3 }, "kv tokens"},
		{func(c *Config) { c.Sizes.Threads = -1 }, "threads"},
		{func(c *Config) { c.Sizes.Threads = kernel.TeamMax + 1 }, "threads"},
		{func(c *Config) { c.Sizes.KV = "fp4" }, "kv"},
	} {
		c := Config{Role: Prefill, Secret: secret}
		tt.spoil(&c)
		if err := c.WithDefaults().Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one that names %s", err, tt.want)
		}
	}
	for _, role := range []string{Prefill, Decode, Unified} {
		if err := (Config{Role: role, Secret: secret}).WithDefaults().Check(); err != nil {
			t.Errorf("the defaults of a %s worker are refused: %v", role, err)
		}
	}
}

// A pool whose size nobody chose is bounded by memory, by use and by a constant.
func TestThePoolIsBounded(t *testing.T) {
	const plenty = 1 << 40
	c := Config{}.WithDefaults()
	if n, err := poolBlocks(c, 1<<10, 256, plenty); err != nil || n != 2*RunningDefault*room.BlocksFor(256) {
		t.Errorf("small model: %d blocks, %v; want two full contexts per running room", n, err)
	}
	if n, err := poolBlocks(c, 1<<20, 1<<20, plenty); err != nil || int64(n)<<20 > poolBytesMax {
		t.Errorf("large model: %d blocks of 1 MiB, %v; want at most %d bytes", n, err, int64(poolBytesMax))
	}
	if _, err := poolBlocks(c, 1<<50, 256, plenty); err == nil || !strings.Contains(err.Error(), "kv tokens") {
		t.Errorf("no block fits: %v, want an error that says what to do", err)
	}
	c.Canary = true
	if n, err := poolBlocks(c, 1<<20, 1<<20, plenty); err != nil || int64(n)<<20 > canaryBytesMax {
		t.Errorf("with canaries: %d blocks of 1 MiB, %v; want at most %d bytes", n, err, canaryBytesMax)
	}
	c.Sizes.KVTokens = 100
	for _, available := range []int64{plenty, 7 << 30, 0} { // 0: the system does not say
		if n, err := poolBlocks(c, 1<<30, 256, available); err != nil || n != 7 {
			t.Errorf("chosen, with %d bytes available: %d blocks, %v; want 7", available, n, err)
		}
	}
}

// A pool that memory does not hold is refused before it is allocated, in one line that says what
// is wanted, what is there and what would do.
func TestAPoolAboveMemoryIsRefused(t *testing.T) {
	c := Config{}.WithDefaults()
	c.Sizes.KVTokens = 100
	_, err := poolBlocks(c, 1<<30, 256, 7<<30-1)
	const want = "worker: --kv-tokens 100 needs 7.0 GiB, 7.0 GiB are available; lower it to 96 at most, or leave it out for a size that fits"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	c = Config{Role: Unified, Sizes: Sizes{Threads: 1, KVTokens: KVTokensMax}, Log: quiet()}
	if availableBytes() == 0 {
		t.Skip("this system does not say what memory is available")
	}
	err = Run(t.Context(), c)
	if _, ok := errors.AsType[*Refusal](err); !ok || !strings.Contains(err.Error(), "--kv-tokens 268435456 needs ") {
		t.Errorf("Run returned %v", err)
	}
}

// Pools of several workers on one machine are judged by their sum, and those of no chosen size
// share what is there.
func TestPoolsOfOneMachineAreJudgedTogether(t *testing.T) {
	s := Sizes{KVTokens: 100, KV: "bf16"} // 7 blocks
	for n, want := range map[int]string{
		1: "", 3: "", // 21 of 27
		4: "worker: --kv-tokens 100 for each of 4 workers needs 28.0 GiB, 27.0 GiB are available; lower it to 96 at most, or start fewer workers",
	} {
		if err := together(n, s, 1<<30, 27<<30); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d workers: %v, want %q", n, err, want)
		}
	}
	if err := together(4, s, 1<<30, 0); err != nil {
		t.Errorf("a system that does not say what is available: %v", err)
	}
	s.KVTokens = 0
	if err := together(99, s, 1<<30, 1); err != nil {
		t.Errorf("pools of no chosen size: %v", err)
	}
	c := Config{}.WithDefaults()
	for n := 1; n <= 64; n *= 2 {
		c.Sizes.Workers = n
		blocks, err := poolBlocks(c, 1<<20, 1<<20, 32<<30)
		if err != nil || int64(n)*int64(blocks)<<20 > 16<<30 {
			t.Errorf("%d workers take %d blocks of 1 MiB each: %v; want half of 32 GiB at most", n, blocks, err)
		}
	}
}

func TestSideDataFromALinkIsChecked(t *testing.T) {
	e := entryTo("")
	e.req.Tokens, e.req.Params.Seed = []int32{1, 2, 3}, 9
	e.digest = digest{Prompt: 6, Params: 7}
	good := `{"choices":[{"id":5,"logprob":-1}],"seed":9,"position":3,"cached":0,"prompt":6,"params":7}`
	if _, err := parseFirst([]byte(good), e, 10); err != nil {
		t.Fatal(err)
	}
	dead := strings.Replace(good, `"id":5`, `"id":-1`, 1)
	if f, err := parseFirst([]byte(dead), e, 10); err != nil || f.Choices[0].ID != sample.NoToken {
		t.Errorf("a dead end gives %+v, %v", f, err)
	}
	top := strings.TrimSuffix(strings.Repeat(`{"id":1},`, 30), ",")
	for old, bads := range map[string][]string{
		good:           {"", "{", "{}", good + strings.Repeat(" ", 70000), `{"position":3,"prompt":6,"params":7,"seed":9}`},
		`"id":5`:       {`"id":10`, `"id":-2`, `"top":[{"id":11}]`, `"top":[` + top + `]`},
		`[{`:           {`[{},{`},
		`"seed":9`:     {`"seed":8`, `"seed":-9`},
		`"position":3`: {`"position":4`, `"position":-1`},
		`"cached":0`:   {`"cached":4`, `"cached":-1`},
		`"prompt":6`:   {`"prompt":5`},
		`"params":7`:   {`"params":8`},
	} {
		for _, bad := range bads {
			b := strings.Replace(good, old, bad, 1)
			if f, err := parseFirst([]byte(b), e, 10); err == nil {
				t.Errorf("%.90s was taken as %+v", b, f)
			}
		}
	}
	e.req.N = 2
	if f, err := parseFirst([]byte(good), e, 10); err == nil {
		t.Errorf("one choice of two was taken as %+v", f)
	}
	if f, err := parseFirst([]byte(strings.Replace(good, `}],`, `},{"id":3}],`, 1)), e, 10); err != nil || f.Choices[1].ID != 3 {
		t.Errorf("two choices give %+v, %v", f, err)
	}
}

func FuzzSideData(f *testing.F) {
	f.Add([]byte(`{"choices":[{"id":5,"logprob":-1,"top":[{"id":1,"logprob":-1}]}],"seed":0,"position":3,"cached":0}`))
	f.Add([]byte(`{"choices":[{"id":-1}],"position":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := entryTo("")
		e.req.Tokens = []int32{1, 2, 3}
		x, err := parseFirst(b, e, 10)
		if err != nil {
			return
		}
		if c := x.Choices; len(c) != 1 || c[0].ID < -1 || c[0].ID >= 10 || len(c[0].Top) > 21 {
			t.Fatalf("taken: %+v", x)
		}
	})
}

func ExampleConfig_Check() {
	c := Config{Role: Decode, Secret: []byte("short")}.WithDefaults()
	fmt.Println(c.Check())
	// Output: worker: secret: 5 bytes; a decode worker needs at least 16, the same on every worker of the fleet
}

// Two legs are of one request only if everything is equal that prefill's first tokens come from: each
// field of the parameters, but for how many tokens decode may make, and how many choices there are.
func TestTheDigestIsOfEverythingAsked(t *testing.T) {
	base := func() *leg.Request {
		p := sample.Default()
		p.Seed, p.Grammar = 3, &grammar.Spec{Kind: grammar.KindObject}
		return &leg.Request{Tokens: []int32{1, 2, 3}, Params: p}
	}
	want := newDigest(base())
	if other := newDigest(base()); other != want {
		t.Fatalf("%v and %v of one request", want, other)
	}
	fields := reflect.TypeFor[sample.Params]()
	for i := range fields.NumField() {
		q := base()
		switch f := reflect.ValueOf(&q.Params).Elem().Field(i); f.Kind() {
		case reflect.Float64:
			f.SetFloat(f.Float() + 0.25)
		case reflect.Int, reflect.Int32, reflect.Int64:
			f.SetInt(f.Int() + 1)
		case reflect.Uint32, reflect.Uint64:
			f.SetUint(f.Uint() + 1)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Pointer:
			f.SetZero()
		default:
			t.Fatalf("%s is of a kind that this test does not know", fields.Field(i).Name)
		}
		name := fields.Field(i).Name
		if same := newDigest(q) == want; same != (name == "MaxTokens") {
			t.Errorf("with another %s the digest is the same: %v", name, same)
		}
	}
	for name, change := range map[string]func(*leg.Request){
		"n":         func(q *leg.Request) { q.N = 2 },
		"generated": func(q *leg.Request) { q.Generated = 1 },
		"tokens":    func(q *leg.Request) { q.Tokens[2] = 4 },
		"grammar":   func(q *leg.Request) { q.Params.Grammar.Kind = grammar.KindRegex },
	} {
		q := base()
		if change(q); newDigest(q) == want {
			t.Errorf("with another %s the digest is the same", name)
		}
	}
	q := base()
	if q.N = 1; newDigest(q) != want {
		t.Error("one choice is what no n means")
	}
}
