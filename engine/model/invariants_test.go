package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"baton/engine/kernel"
	"baton/engine/weights/gguf"
)

// sequence is one of the sequences of a random schedule.
type sequence struct {
	ids   []int32
	begin int // how many of ids are the prompt
	done  int
	table []int32
	got   map[int][]float32 // logits by position, those that were asked for
}

// schedule runs all sequences to their ends in random chunks and batches and notes every logit.
func schedule(t *testing.T, r *Runner, rng *rand.Rand, seqs []*sequence, budget int) {
	t.Helper()
	vocab := r.m.config.Vocab
	for {
		var items []Item
		var of []*sequence
		left := budget
		for _, i := range rng.Perm(len(seqs)) {
			s := seqs[i]
			end := s.begin
			if s.done >= end {
				end = len(s.ids)
			}
			n := min(end-s.done, left)
			if n == 0 || len(items) > 0 && rng.IntN(3) == 0 {
				continue
			}
			if rng.IntN(2) == 0 {
				n = 1
			} else {
				n = 1 + rng.IntN(n)
			}
			ask := rng.IntN(3) // for none, for the last, for all
			items = append(items, Item{Tokens: s.ids[s.done : s.done+n], Pos: s.done, Table: s.table, Prompt: s.done < s.begin, Want: ask == 1, All: ask == 2})
			of = append(of, s)
			left -= n
		}
		if len(items) == 0 {
			return
		}
		if err := r.Step(items); err != nil {
			t.Fatal(err)
		}
		for i, it := range items {
			s := of[i]
			switch {
			case it.All:
				for p := range it.Tokens {
					s.got[s.done+p] = it.Logits[p*vocab:][:vocab]
				}
			case it.Want:
				s.got[s.done+len(it.Tokens)-1] = slices.Clone(it.Logits)
			case it.Logits != nil:
				t.Fatal("logits that nobody wanted")
			}
			s.done += len(it.Tokens)
		}
	}
}

// TestRowsDoNotDependOnTheirCompany (M1): six sequences in random batches, chunks, block tables
// and thread counts give the bits that each gives alone in one chunk, at every kernel level.
func TestRowsDoNotDependOnTheirCompany(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		for name, s := range map[string]shape{
			"f32": odd, "bf16": shapes["bf16"], "q8_0": shapes["q8_0"], "k_m": shapes["k_m"], "q4_0": shapes["q4_0"], "mixed": shapes["mixed"],
			"pairs": shapes["pairs"], "whole": shapes["whole"],
		} {
			for _, kvType := range []DType{BF16, F32} {
				t.Run(name+"/"+kvType.String(), func(t *testing.T) { testCompany(t, s, kvType, kernel.Active() == kernel.Generic) })
			}
		}
	})
	t.Run("tiles", func(t *testing.T) {
		before := kernel.Active()
		defer kernel.Use(before)
		kernel.UseEmulatedTiles()
		for _, name := range []string{"bf16", "q8_0", "mixed", "whole"} {
			t.Run(name, func(t *testing.T) { testCompany(t, shapes[name], BF16, true) })
		}
	})
}

// A deterministic model computes prompts as everything else, and calls its family by the level that does so.
func TestDeterministicModelsHaveNoTiles(t *testing.T) {
	before := kernel.Active()
	defer kernel.Use(before)
	s := shapes["q8_0"]
	f := s.build(t, 3, nil)
	ids := tokens(rand.New(rand.NewPCG(7, 7)), 20, s.vocab)
	logits := func(deterministic, prompt bool) []float32 {
		m := open(t, f, Options{Threads: 1, Deterministic: deterministic})
		if deterministic && m.Manifest().Kernels != before.String() {
			t.Errorf("the family is called %q, want %q", m.Manifest().Kernels, before)
		}
		items := []Item{{Tokens: ids, Table: table(0, 2), Prompt: prompt, All: true}}
		if err := m.NewRunner(pool(t, m, 2)).Step(items); err != nil {
			t.Fatal(err)
		}
		return items[0].Logits
	}
	want := logits(false, true)
	kernel.UseEmulatedTiles()
	if at := differs(logits(true, true), want); at >= 0 {
		t.Errorf("logit %d of a prompt differs in deterministic mode", at)
	}
	if at := differs(logits(false, false), want); at >= 0 {
		t.Errorf("logit %d of tokens that are no prompt differs", at)
	}
	if differs(logits(false, true), want) < 0 {
		t.Error("a prompt was not computed in tiles, so that this test shows nothing")
	}
}

// testCompany holds M1 for a shape; slow: with the least number of schedules.
func testCompany(t *testing.T, s shape, kvType DType, slow bool) {
	const blocks = 64
	rng := rand.New(rand.NewPCG(11, 5))
	f := s.build(t, 3, nil)
	var ids [][]int32
	for _, n := range []int{1, 15, 16, 17, 40, 75} {
		ids = append(ids, tokens(rng, n, s.vocab))
	}
	alone := open(t, f, Options{KV: kvType, Threads: 1})
	kv := pool(t, alone, blocks)
	r := alone.NewRunner(kv)
	var want [][]float32
	for _, x := range ids {
		var all []float32
		for _, part := range [][2]int{{0, promptOf(x)}, {promptOf(x), len(x)}} {
			if part[0] == part[1] {
				continue
			}
			items := []Item{{Tokens: x[part[0]:part[1]], Pos: part[0], Table: table(0, 5), Prompt: part[0] == 0, All: true}}
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
			all = append(all, items[0].Logits...)
		}
		want = append(want, all)
	}
	compared := 0
	for threads := 1; threads <= 3; threads++ {
		m := open(t, f, Options{KV: kvType, Threads: threads, ChunkTokensMax: 96})
		kv := pool(t, m, blocks)
		for i := range kv.area { // a former owner's bytes must not matter
			kv.area[i] = 0xff
		}
		r := m.NewRunner(kv)
		rounds := 3
		if slow {
			rounds = 1 // of each number of threads
		}
		for range rounds {
			free := rng.Perm(blocks)
			var seqs []*sequence
			for _, x := range ids {
				q := &sequence{ids: x, begin: promptOf(x), got: map[int][]float32{}}
				for range (len(x) + BlockTokens - 1) / BlockTokens {
					q.table = append(q.table, int32(free[0]))
					free = free[1:]
				}
				seqs = append(seqs, q)
			}
			schedule(t, r, rng, seqs, 2+rng.IntN(95))
			for i, q := range seqs {
				compared += len(q.got)
				for p, got := range q.got {
					if at := differs(got, want[i][p*s.vocab:][:s.vocab]); at >= 0 {
						t.Fatalf("%d threads: sequence %d position %d logit %d: %v, alone %v", threads, i, p, at, got[at], want[i][p*s.vocab+at])
					}
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d rows were compared", compared)
	}
}

// TestALongStepIsARunPerLayer: the threads of a long step may be more or fewer in each of its layers, and its logits
// have the bits that a single thread gives token by token. A short step is one run.
func TestALongStepIsARunPerLayer(t *testing.T) {
	f := odd.build(t, 3, nil)
	ids := tokens(rand.New(rand.NewPCG(3, 14)), longRows+17, odd.vocab)
	alone := open(t, f, Options{Threads: 1})
	one := alone.NewRunner(pool(t, alone, 4))
	var want []float32
	for i := range ids {
		items := []Item{{Tokens: ids[i : i+1], Pos: i, Table: table(0, 4), Want: true}}
		if err := one.Step(items); err != nil {
			t.Fatal(err)
		}
		want = append(want, items[0].Logits...)
	}
	m := open(t, f, Options{Threads: 3})
	teams := []*kernel.Team{m.team}
	for n := 1; n <= 2; n++ {
		team := kernel.NewTeam(n)
		defer team.Close()
		teams = append(teams, team)
	}
	for _, c := range []struct {
		tokens, runs int
		all          bool
	}{{longRows, odd.layers, true}, {len(ids), odd.layers, true}, {len(ids), odd.layers, false}, {longRows - 1, 1, true}} {
		for first := range teams {
			r := m.NewRunner(pool(t, m, 4))
			runs := 0
			r.team = teams[first]
			r.step = func(w *kernel.Worker) {
				r.forward(w)
				if w.Index == 0 {
					runs++
					r.team = teams[(first+runs)%len(teams)]
				}
			}
			items := []Item{{Tokens: ids[:c.tokens], Table: table(0, 4), Want: true, All: c.all}}
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
			if runs != c.runs {
				t.Errorf("a step of %d rows was %d runs of a team, want %d", c.tokens, runs, c.runs)
			}
			got := items[0].Logits
			if at := differs(got, want[c.tokens*odd.vocab-len(got):]); at >= 0 {
				t.Errorf("%d tokens, all %v, beginning with %d threads: logit %d differs", c.tokens, c.all, teams[first].Size(), at)
			}
			r.Close()
		}
	}
}

// TestFeedForwardInPartsIsTheSame: a step whose gate and up are more than gateBytes computes them part by part, with
// the bits of shorter steps, which need no parts.
func TestFeedForwardInPartsIsTheSame(t *testing.T) {
	s := shape{layers: 2, width: 32, ffn: 2048, heads: 2, kvHeads: 2, headDim: 16, vocab: 40, tied: true}
	const rows, short = 200, 25
	if all := 2 * 4 * s.ffn; all*rows < gateBytes*3/2 || all*short > gateBytes {
		t.Fatalf("rows of %d bytes show nothing about parts of %d", all, gateBytes)
	}
	f := s.build(t, 6, func(d *draft) {
		for l := range s.layers {
			for i, n := range []int{s.ffn, s.ffn, s.width} {
				name := layerName(l) + []string{"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}[i]
				d.tensors = append(d.tensors, part{name, gguf.F32, []uint64{uint64(n)}, encode(d.r, gguf.F32, n, 1)})
			}
		}
	})
	m := open(t, f, Options{Threads: 1})
	if !m.config.MLPBias {
		t.Fatal("the biases were not found")
	}
	ids := tokens(rand.New(rand.NewPCG(6, 6)), rows, s.vocab)
	logits := func(chunk int) []float32 {
		r := m.NewRunner(pool(t, m, rows/BlockTokens+1))
		var all []float32
		for at := 0; at < rows; at += chunk {
			items := []Item{{Tokens: ids[at : at+chunk], Pos: at, Table: table(0, rows/BlockTokens+1), All: true}}
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
			all = append(all, items[0].Logits...)
		}
		return all
	}
	if at := differs(logits(rows), logits(short)); at >= 0 {
		t.Errorf("logit %d of position %d differs", at%s.vocab, at/s.vocab)
	}
}

// promptOf returns how many tokens of a sequence are its prompt: two thirds.
func promptOf(ids []int32) int { return (2*len(ids) + 2) / 3 }

// differs returns the first index at which the bits differ, or -1.
func differs(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// TestBlocksAreAFunctionOfTheirTokens (M2): the bytes of every block, the last and partly filled
// one included, are the same whatever was there before and however the tokens came.
func TestBlocksAreAFunctionOfTheirTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	f := odd.build(t, 4, nil)
	ids := tokens(rng, 41, odd.vocab)
	m := open(t, f, Options{Threads: 2})
	var want [][]byte
	for try := range 6 {
		kv := pool(t, m, 3)
		for i := range kv.area {
			kv.area[i] = byte(rng.Uint32())
		}
		r := m.NewRunner(kv)
		for at := 0; at < len(ids); {
			n := 1 + rng.IntN(len(ids)-at)
			if try == 0 {
				n = len(ids)
			}
			if err := r.Step([]Item{{Tokens: ids[at : at+n], Pos: at, Table: table(0, 3)}}); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		for b := range int32(3) {
			if try == 0 {
				want = append(want, slices.Clone(kv.Block(b)))
			} else if !slices.Equal(want[b], kv.Block(b)) {
				t.Fatalf("try %d: block %d differs", try, b)
			}
		}
	}
	k, v := make([]float32, m.config.KVWidth()), make([]float32, m.config.KVWidth())
	for l := range odd.layers {
		for row := 41 % BlockTokens; row < BlockTokens; row++ {
			m.layout.LoadKV(want[2], l, row, k, v)
			if slices.IndexFunc(append(k, v...), func(x float32) bool { return x != 0 }) >= 0 {
				t.Fatalf("row %d of layer %d, which no token has filled, is not zero", row, l)
			}
		}
	}
}

// TestMovedBlocksContinueTheSame: a prefill's blocks copied into another pool of another model
// instance, to other places, decode to the same bits as if nothing had moved.
func TestMovedBlocksContinueTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	f := shapes["q8_0"].build(t, 4, nil)
	vocab := shapes["q8_0"].vocab
	ids := tokens(rng, 50, vocab)
	a, b := open(t, f, Options{Threads: 1}), open(t, f, Options{Threads: 2})
	if d := a.Manifest().Diff(b.Manifest()); d != "" {
		t.Fatal(d)
	}
	from, to := pool(t, a, 8), pool(t, b, 8)
	ra, rb := a.NewRunner(from), b.NewRunner(to)
	if err := ra.Step([]Item{{Tokens: ids[:40], Table: []int32{6, 1, 3, 0}}}); err != nil {
		t.Fatal(err)
	}
	there := []int32{2, 7, 0, 5}
	for i, blk := range []int32{6, 1, 3} {
		copy(to.Block(there[i]), from.Block(blk))
	}
	for i := 40; i < 50; i++ {
		x := []Item{{Tokens: ids[i : i+1], Pos: i, Table: []int32{6, 1, 3, 0}, Want: true}}
		y := []Item{{Tokens: ids[i : i+1], Pos: i, Table: there, Want: true}}
		if err := ra.Step(x); err != nil {
			t.Fatal(err)
		}
		if err := rb.Step(y); err != nil {
			t.Fatal(err)
		}
		if at := differs(x[0].Logits, y[0].Logits); at >= 0 {
			t.Fatalf("position %d differs at logit %d", i, at)
		}
	}
}

// TestStepsAllocateNothing (M3), at every level, with tiles, and with every type of cache.
func TestStepsAllocateNothing(t *testing.T) {
	test := func(t *testing.T) {
		for _, kvType := range []DType{BF16, F32, Q8_0} {
			for threads := 1; threads <= 2; threads++ {
				testStepsAllocateNothing(t, Options{Threads: threads, KV: kvType})
			}
		}
	}
	atEachLevel(t, test)
	before := kernel.Active()
	defer kernel.Use(before)
	kernel.UseEmulatedTiles()
	t.Run("tiles", test)
}

func testStepsAllocateNothing(t *testing.T, o Options) {
	s := shapes["q8_0"]
	m := open(t, s.build(t, 4, nil), o)
	r := m.NewRunner(pool(t, m, 16))
	ids := tokens(rand.New(rand.NewPCG(1, 1)), 100, s.vocab)
	chunk := []Item{{Tokens: ids[:60], Table: table(0, 4), Prompt: true, Want: true}, {Tokens: ids[:1], Pos: 5, Table: table(8, 1), Want: true}}
	one := []Item{{Tokens: ids[:1], Pos: 60, Table: table(0, 4), Want: true}}
	step := func() {
		for _, items := range [][]Item{chunk, one} {
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
		}
	}
	step()
	// A thread that is sent home because the machine is loaded allocates; what steps do, they do every time.
	least := math.Inf(1)
	for try := 0; try < 5 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(2, step))
	}
	if least != 0 {
		t.Errorf("%+v: %v allocations in a step", o, least)
	}
}

// TestWrongItemsAreRefused: each row is one wrong number; nothing may be stored.
func TestWrongItemsAreRefused(t *testing.T) {
	m := open(t, odd.build(t, 4, nil), Options{Threads: 1, ChunkTokensMax: 32})
	kv := pool(t, m, 4)
	r := m.NewRunner(kv)
	some := func(n int) []int32 { return make([]int32, n) }
	for name, it := range map[string]Item{
		"no tokens":           {Table: table(0, 1)},
		"negative position":   {Tokens: some(1), Pos: -1, Table: table(0, 1)},
		"beyond the context":  {Tokens: some(2), Pos: 511, Table: make([]int32, 40)},
		"overflowing":         {Tokens: some(2), Pos: math.MaxInt, Table: table(0, 1)},
		"table too short":     {Tokens: some(17), Table: table(0, 1)},
		"block of no pool":    {Tokens: some(1), Table: []int32{4}},
		"negative block":      {Tokens: some(1), Table: []int32{-1}},
		"token of no word":    {Tokens: []int32{203}, Table: table(0, 1)},
		"negative token":      {Tokens: []int32{-1}, Table: table(0, 1)},
		"more than one chunk": {Tokens: some(33), Table: table(0, 4)},
	} {
		if err := r.Step([]Item{{Tokens: some(3), Table: table(3, 1)}, it}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for i, b := range kv.area {
		if b != 0 {
			t.Fatalf("a refused step wrote byte %d of the pool", i)
		}
	}
	for _, n := range []int{0, -1, math.MaxInt} {
		if _, err := m.NewKV(n); err == nil {
			t.Errorf("a pool of %d blocks was made", n)
		}
	}
	m.Close()
	if err := r.Step([]Item{{Tokens: some(1), Table: table(0, 1)}}); err == nil {
		t.Error("a closed model ran a step")
	}
	if err := kernel.Check(); err != nil {
		t.Error(err)
	}
	for _, o := range []Options{{Threads: -1}, {Threads: 1 << 20}, {ChunkTokensMax: 1}, {ChunkTokensMax: 1 << 30}, {KV: 9}} {
		if _, err := Open(odd.build(t, 4, nil), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestManifestNamesTheFile: another file or another KV type is another manifest.
func TestManifestNamesTheFile(t *testing.T) {
	a := open(t, odd.build(t, 4, nil), Options{Threads: 1})
	b := open(t, odd.build(t, 5, nil), Options{Threads: 1})
	c := open(t, odd.build(t, 4, nil), Options{Threads: 2, KV: F32})
	if a.Manifest().Equal(b.Manifest()) || a.Manifest().Equal(c.Manifest()) {
		t.Error("manifests of different files or types are equal")
	}
	if got, want := a.Manifest().BlockBytes, 2*3*2*32*16*2; got != want {
		t.Errorf("a block has %d bytes, want %d", got, want)
	}
	if !a.Manifest().Equal(open(t, odd.build(t, 4, nil), Options{Threads: 2}).Manifest()) {
		t.Error("threads changed the manifest")
	}
}
