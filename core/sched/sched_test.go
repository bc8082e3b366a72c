package sched

import (
	"slices"
	"testing"

	"baton/core/room"
)

// TestNobodyOvertakes is S1: after the first no, everybody gets a no.
func TestNobodyOvertakes(t *testing.T) {
	l := NewLine(10)
	for i, want := range []struct {
		n  int
		ok bool
	}{{6, true}, {4, true}, {1, false}, {0, false}} {
		if l.Take(want.n) != want.ok {
			t.Errorf("request %d for %d: want %v", i, want.n, want.ok)
		}
	}
	l = NewLine(10)
	if l.Take(11) || l.Take(1) || !l.Closed() {
		t.Error("a small one overtakes a large one")
	}
}

// step divides one step of budget tokens, of which rooms generate, among prompts that need as
// much; those without a part get 0.
func step(budget, rooms int, needs []int32) []int32 {
	b := NewBudget(budget)
	for range rooms {
		b.Decode()
	}
	for i, n := range needs {
		if b.Fits(n) {
			b.Add(int32(i), n)
		}
	}
	got := make([]int32, len(needs))
	for _, p := range b.Parts() {
		got[p.Slot] = p.Tokens
	}
	return got
}

// TestPromptsShareByHalves is S4 by example, in a step of 512 tokens.
func TestPromptsShareByHalves(t *testing.T) {
	for _, c := range []struct {
		rooms       int
		needs, want []int32
	}{
		{0, []int32{8000}, []int32{512}},
		{0, []int32{8000, 1}, []int32{496, 1}},
		{0, []int32{8000, 40}, []int32{464, 40}},
		{0, []int32{8000, 8000}, []int32{256, 256}},
		{0, []int32{8000, 8000, 8000}, []int32{256, 128, 128}},
		{0, []int32{8000, 30, 8000}, []int32{256, 30, 224}},
		{0, []int32{8000, 8000, 8000, 8000, 1}, []int32{272, 128, 64, 32, 1}},
		{0, []int32{30, 8000, 20}, []int32{30, 448, 20}},
		{0, []int32{8000, 8000, 8000, 8000, 8000, 8000, 8000}, []int32{256, 128, 64, 32, 16, 16, 0}},
		{100, []int32{8000, 1}, []int32{400, 1}},
		{600, []int32{8000, 1}, []int32{16, 0}},
	} {
		if got := step(512, c.rooms, c.needs); !slices.Equal(got, c.want) {
			t.Errorf("%d generate, prompts need %v: they get %v, want %v", c.rooms, c.needs, got, c.want)
		}
	}
}

// TestEveryDivisionIsFair is S2, S4 and S5 for every budget and every three prompts in a small
// range, beside any number of generating rooms.
func TestEveryDivisionIsFair(t *testing.T) {
	const block = room.BlockTokens
	check := func(budget, rooms int, needs []int32) {
		got := step(budget, rooms, needs)
		left, hungry := int32(budget-rooms), false
		for i, n := range got {
			left -= n
			hungry = hungry || n > 0 && n < needs[i]
			switch {
			case n < 0 || n > needs[i] || n != needs[i] && n%block != 0:
				t.Fatalf("budget %d-%d, %v: %v is not whole blocks (S2)", budget, rooms, needs, got)
			case i > 0 && got[i-1] < needs[i-1] && got[i-1] < n && got[i-1] > 0:
				t.Fatalf("budget %d-%d, %v: %v gives a later one more (S4)", budget, rooms, needs, got)
			}
		}
		switch spent := int32(budget-rooms) - left; {
		case got[0] < min(needs[0], block) || got[0] < needs[0] && got[0] < spent/2/block*block:
			t.Fatalf("budget %d-%d, %v: the first gets %v (S5)", budget, rooms, needs, got)
		case left >= block && hungry:
			t.Fatalf("budget %d-%d, %v: %v spares %d tokens (S4)", budget, rooms, needs, got, left)
		case left < 0 && spent != min(needs[0], block):
			t.Fatalf("budget %d-%d, %v: %v is over the budget", budget, rooms, needs, got)
		}
	}
	lengths := []int32{1, 5, 15, 16, 17, 31, 32, 33, 48, 64, 100, 130}
	for budget := block; budget <= 9*block; budget += block {
		for rooms := range 40 {
			for _, a := range lengths {
				for _, b := range lengths {
					for _, c := range lengths {
						check(budget, rooms, []int32{a, b, c})
					}
				}
			}
		}
	}
}

// TestAShortPromptOvertakes is S4 over time: a prompt of one token that comes behind four long
// ones is through in its first step, and the long ones end in order of arrival, in as many
// steps as if it had been all of their tokens in one prompt.
func TestAShortPromptOvertakes(t *testing.T) {
	needs := []int32{4096, 4096, 4096, 4096, 1}
	var ended []int
	steps := 0
	for len(ended) < len(needs) {
		steps++
		for i, n := range step(512, 0, needs) {
			if needs[i] -= n; n > 0 && needs[i] == 0 {
				ended = append(ended, i)
			}
		}
	}
	if want := []int{4, 0, 1, 2, 3}; !slices.Equal(ended, want) {
		t.Errorf("prompts end in the order %v, want %v", ended, want)
	}
	if want := 4*4096/512 + 1; steps != want { // the last block of a step may not divide
		t.Errorf("%d steps, want %d", steps, want)
	}
}

// TestNobodyStarves is S5: a long prompt beside an endless stream of short ones still gets half
// of every step.
func TestNobodyStarves(t *testing.T) {
	need, steps := int32(4096), 0
	for need > 0 {
		steps++
		need -= step(512, 0, []int32{need, 256, 256, 256})[0]
	}
	if want := 4096 / 256; steps != want {
		t.Errorf("%d steps, want %d", steps, want)
	}
}

// TestAFullStepIsFull: Full says so exactly when Fits refuses everybody.
func TestAFullStepIsFull(t *testing.T) {
	b := NewBudget(32)
	for i, want := range []bool{false, false, true} {
		if b.Full() != want || b.Fits(1) == want {
			t.Fatalf("with %d long prompts: full is %v, one token fits: %v", i, b.Full(), b.Fits(1))
		}
		if !want {
			b.Add(int32(i), 100)
		}
	}
}
