package poolsim

import (
	"slices"

	"baton/proof/explore"
)

// Named is a scope of one of the worlds, with its question and what it has to have shown.
type Named struct {
	Name    string
	Nightly bool // too large for every change
	Options explore.Options
	Prefill *PrefillScope // around core/prefill, or
	Local   *LocalScope   // around core/decode, or
	Pair    *PairScope    // around both, or
	Holder  *HolderScope  // around the pool alone
}

// Scopes lists every scope. Names are stable: mutants say which scope must kill them.
func Scopes() []Named {
	ask := func(q explore.Question, must ...string) explore.Options { return explore.Options{Ask: q, Must: must} }
	prefills := func(prompts ...string) PrefillScope {
		return PrefillScope{Prompts: prompts, Tail: 1, Blocks: 5, Running: 3, Chunk: 1, Abort: true, StepFails: true}
	}
	with := func(sc PrefillScope, f func(*PrefillScope)) *PrefillScope { f(&sc); return &sc }
	found := []string{"success", "hit", "success after a hit", "failed step", "abort in mid-prefill"}
	and := func(more ...string) []string { return append(found[:len(found):len(found)], more...) }
	three := []string{"success", "hit", "shared by two", "evicted", "private copy", "abort in mid-prefill", "quarantined while shared", "cleared"}
	two := []string{"success", "hit", "shared by two", "private copy", "quarantined while shared", "cleared"}
	locals := func(tail, output, blocks, ahead int, prompts ...string) *LocalScope {
		return &LocalScope{Prompts: prompts, Tail: tail, Output: output, Blocks: blocks, Running: len(prompts), Chunk: 1, Ahead: ahead, Abort: true, StepFails: true}
	}
	says := func(sc *LocalScope, says ...string) *LocalScope { sc.Says = says; return sc }
	several := func(sc *LocalScope, outputs ...[]int) *LocalScope {
		sc.Outputs, sc.Running = outputs, 3
		return sc
	}
	kept := []string{"success", "hit", "shared by two", "evicted", "private copy", "abort in mid-prefill", "failed step"}
	again := append(slices.DeleteFunc(slices.Clone(kept), func(w string) bool { return w == "private copy" }), "waited for another's prefix", "retracted", "found after a retraction", "success after a retraction")
	return []Named{
		// One room fits at a time, so that each takes what another left.
		{Name: "prefill PROMPT tight", Options: ask(explore.PROMPT, and("evicted")...),
			Prefill: with(prefills("ab", "ac", "x"), func(sc *PrefillScope) { sc.Blocks, sc.WriteFails, sc.AnyOrder = 3, true, true })},
		// Two fit if they share.
		{Name: "prefill PROMPT shared", Options: ask(explore.PROMPT, and("shared by two", "evicted")...), Prefill: with(prefills("ab", "ac", "x"), func(*PrefillScope) {})},
		// Full blocks to the end: the last one is computed although it may be found.
		{Name: "prefill PROMPT copies", Options: ask(explore.PROMPT, and("shared by two", "private copy")...),
			Prefill: with(prefills("ab", "ab", "ac"), func(sc *PrefillScope) { sc.Tail, sc.Blocks = 0, 4 })},
		// Two prompts in one step.
		{Name: "prefill PROMPT steps of two", Options: ask(explore.PROMPT, and("shared by two", "evicted", "waited for another's prefix")...),
			Prefill: with(prefills("ab", "ab", "xy"), func(sc *PrefillScope) { sc.Blocks, sc.Chunk = 6, 2 })},
		// What the second lacks does not fit into a step behind the first, what the third lacks would.
		{Name: "prefill PROMPT in turn", Options: ask(explore.PROMPT, "success", "hit", "shared by two", "success after a hit"),
			Prefill: &PrefillScope{Prompts: []string{"a", "x", "a"}, Tail: 1, Blocks: 5, Running: 3, Chunk: 1}},
		// What a room leaves pinned stays longer than what others leave.
		{Name: "prefill PROMPT pins", Options: ask(explore.PROMPT, "success", "hit", "success after a hit", "evicted", "pinned", "a pin is over"),
			Prefill: &PrefillScope{Prompts: []string{"ab", "ac", "x"}, Tail: 1, Blocks: 4, Running: 2, Chunk: 1, Pin: []uint8{1, 2, 0}, PinnedMax: 2}},
		// A Prealloc that is lost leaves a room to its deadline.
		{Name: "prefill TERM lost", Options: ask(explore.TERM, and("evicted", "deadline")...),
			Prefill: with(prefills("ab", "ac", "x"), func(sc *PrefillScope) { sc.Blocks, sc.WriteFails, sc.Lose = 4, true, true })},
		{Name: "holder PROMPT two", Options: ask(explore.PROMPT, two...),
			Holder: &HolderScope{Prompts: []string{"ab", "abc"}, Lives: 2, Blocks: 5, Quarantine: true}},
		{Name: "holder PROMPT three", Options: ask(explore.PROMPT, three...),
			Holder: &HolderScope{Prompts: []string{"ab", "abc", "x"}, Lives: 2, Blocks: 5, Quarantine: true}},
		// Who leaves keeps what it had in the cache for a while, up to a bound.
		{Name: "holder PROMPT pins", Options: ask(explore.PROMPT, "success", "hit", "shared by two", "evicted", "private copy", "pinned", "pinned for a copy", "abort in mid-prefill"),
			Holder: &HolderScope{Prompts: []string{"ab", "abc", "x"}, Lives: 2, Blocks: 4, Pins: 2}},
		// Rooms that prefill where they generate.
		{Name: "local PROMPT three", Options: ask(explore.PROMPT, append(kept[:len(kept):len(kept)], "waited for another's prefix")...), Local: locals(0, 2, 5, 0, "ab", "ab", "x")},
		// An older one needs the blocks of a younger, which finds what is left of its prompt.
		{Name: "local PROMPT retraction", Options: ask(explore.PROMPT, again...), Local: locals(15, 3, 5, 1, "a", "ab", "x")},

		// The next turn of a conversation finds what was said before it, and who is retracted what it
		// said itself; two say the same.
		{Name: "local PROMPT said", Options: ask(explore.PROMPT, append(again[:len(again):len(again)], "output found")...), Local: says(locals(15, 3, 6, 1, "a", "a", "ap"), "p", "p", "q")},
		// Several outputs of one prompt, of which the first alone is found.
		{Name: "local PROMPT several", Options: ask(explore.PROMPT, "success", "hit", "shared by two", "evicted", "failed step", "success of several outputs", "output found"),
			Local: several(says(locals(15, 3, 6, 0, "a", "ap"), "p", "q"), []int{2, 3}, []int{2})},
		{Name: "local PROMPT several, retracted", Options: ask(explore.PROMPT, "success", "hit", "failed step", "success of several outputs", "retracted", "found after a retraction", "success after a retraction"),
			Local: several(says(locals(15, 3, 8, 1, "x", "ab"), "y", "p"), []int{3}, []int{3, 1})},
		{Name: "local PROMPT pins", Options: ask(explore.PROMPT, "success", "hit", "evicted", "success of several outputs", "pinned", "a pin is over"),
			Local: several(&LocalScope{Prompts: []string{"a", "ap", "x"}, Says: []string{"p", "q", "y"}, Tail: 15, Output: 3, Blocks: 6, Chunk: 1, Pin: []uint8{1, 2, 0}, PinnedMax: 3}, []int{2, 3}, []int{2}, []int{1})},

		// Two caches and a link: what decode has found is not sent.
		{Name: "pair PROMPT two", Options: ask(explore.PROMPT, "success", "hit", "shared by two", "sent in part", "failed step"), Pair: &PairScope{Source: 5, Slots: 2,
			LocalScope: LocalScope{Prompts: []string{"a", "ab"}, Tail: 1, Output: 2, Blocks: 5, Running: 2, Chunk: 1, Abort: true, StepFails: true}}},
		// A gateway gives the legs of one room two prompts: decode must not find what it was sent.
		{Name: "pair PROMPT legs differ", Options: ask(explore.PROMPT, "success", "hit", "legs differ"), Pair: &PairScope{Source: 5, Slots: 2, Other: []string{"z", "a", "ab"},
			LocalScope: LocalScope{Prompts: []string{"a", "a", "ab"}, Tail: 1, Output: 1, Blocks: 5, Running: 3, Chunk: 1}}},
		{Name: "pair PROMPT three", Options: ask(explore.PROMPT, "success", "hit", "evicted", "sent in part"), Pair: &PairScope{Source: 5, Slots: 2,
			LocalScope: LocalScope{Prompts: []string{"a", "ab", "x"}, Tail: 1, Output: 1, Blocks: 5, Running: 3, Chunk: 1}}},
		// Two copies of one prompt came over the link: whoever asks pins the one that is found.
		{Name: "pair PROMPT pins", Options: ask(explore.PROMPT, "success", "hit", "pinned", "pinned for a copy", "a pin is over"), Pair: &PairScope{Source: 5, Slots: 2,
			LocalScope: LocalScope{Prompts: []string{"a", "a", "x"}, Tail: 1, Output: 1, Blocks: 4, Running: 2, Chunk: 1, Pin: []uint8{0, 2, 1}, PinnedMax: 2}}},
		{Name: "pair PROMPT said", Options: ask(explore.PROMPT, "success", "hit", "sent in part", "output found"), Pair: &PairScope{Source: 5, Slots: 2,
			LocalScope: *says(&LocalScope{Prompts: []string{"a", "ap"}, Tail: 15, Output: 3, Blocks: 6, Running: 2, Chunk: 2}, "p", "q")}},
		{Name: "pair PROMPT several", Options: ask(explore.PROMPT, "success", "hit", "sent in part", "failed step", "output found", "success of several outputs"), Pair: &PairScope{Source: 5, Slots: 2,
			LocalScope: *several(says(&LocalScope{Prompts: []string{"a", "ap"}, Tail: 15, Blocks: 8, Running: 3, Chunk: 2, Abort: true, StepFails: true}, "p", "q"), []int{2, 2}, []int{1})}},

		{Name: "local PROMPT four", Nightly: true, Options: ask(explore.PROMPT, again...), Local: locals(15, 3, 6, 1, "a", "ab", "x", "ab")},
		{Name: "prefill PROMPT four rooms", Nightly: true, Options: ask(explore.PROMPT, and("shared by two", "evicted")...),
			Prefill: with(prefills("ab", "ac", "x", "ab"), func(sc *PrefillScope) { sc.WriteFails = true })},
		{Name: "prefill TERM four rooms", Nightly: true, Options: ask(explore.TERM, and("shared by two", "evicted", "deadline")...),
			Prefill: with(prefills("ab", "ac", "x", "ab"), func(sc *PrefillScope) { sc.Lose = true })},
		{Name: "holder PROMPT four", Nightly: true, Options: ask(explore.PROMPT, three...),
			Holder: &HolderScope{Prompts: []string{"ab", "abc", "ac", "x"}, Lives: 2, Blocks: 5, Quarantine: true}},
	}
}
