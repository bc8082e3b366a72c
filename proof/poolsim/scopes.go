package poolsim

import "baton/proof/explore"

// Named is a scope of one of the worlds, with its question and what it has to have shown.
type Named struct {
	Name    string
	Nightly bool // too large for every change
	Options explore.Options
	Rooms   *Scope // around core/prefill, or
	House   *House // around core/decode, or
	Pair    *Pair  // around both, or
	Crowd   *Crowd // around the pool alone
}

// Run explores it.
func (n Named) Run() explore.Report {
	switch {
	case n.Crowd != nil:
		return explore.Run(NewHolders(*n.Crowd), n.Options)
	case n.Pair != nil:
		return explore.Run(NewPairs(*n.Pair), n.Options)
	case n.House != nil:
		return explore.Run(NewLocals(*n.House), n.Options)
	}
	return explore.Run(NewRooms(*n.Rooms), n.Options)
}

// Scopes lists every scope. Names are stable: mutants say which scope must kill them.
func Scopes() []Named {
	ask := func(q explore.Question, must ...string) explore.Options { return explore.Options{Ask: q, Must: must} }
	rooms := func(prompts ...string) Scope {
		return Scope{Prompts: prompts, Tail: 1, Blocks: 5, Running: 3, Chunk: 1, Abort: true, StepFails: true}
	}
	with := func(sc Scope, f func(*Scope)) *Scope { f(&sc); return &sc }
	found := []string{"success", "hit", "success after a hit", "failed step", "abort in mid-prefill"}
	and := func(more ...string) []string { return append(found[:len(found):len(found)], more...) }
	holders := []string{"success", "hit", "shared by two", "evicted", "private copy", "abort in mid-prefill", "quarantined while shared", "cleared"}
	pair := []string{"success", "hit", "shared by two", "private copy", "quarantined while shared", "cleared"}
	locals := func(tail, output, blocks, ahead int, prompts ...string) *House {
		return &House{Prompts: prompts, Tail: tail, Output: output, Blocks: blocks, Running: len(prompts), Chunk: 1, Ahead: ahead, Abort: true, StepFails: true}
	}
	kept := []string{"success", "hit", "shared by two", "evicted", "private copy", "abort in mid-prefill", "failed step"}
	again := append(kept[:len(kept):len(kept)], "retracted", "found after a retraction", "success after a retraction")
	return []Named{
		// One room fits at a time, so that each takes what another left.
		{Name: "pool PROMPT tight", Options: ask(explore.PROMPT, and("evicted")...),
			Rooms: with(rooms("ab", "ac", "x"), func(sc *Scope) { sc.Blocks, sc.WriteFails, sc.AnyOrder = 3, true, true })},
		// Two fit if they share.
		{Name: "pool PROMPT shared", Options: ask(explore.PROMPT, and("shared by two", "evicted")...), Rooms: with(rooms("ab", "ac", "x"), func(*Scope) {})},
		// Full blocks to the end: the last one is computed although it may be found.
		{Name: "pool PROMPT copies", Options: ask(explore.PROMPT, and("shared by two", "private copy")...),
			Rooms: with(rooms("ab", "ab", "ac"), func(sc *Scope) { sc.Tail, sc.Blocks = 0, 4 })},
		// Two prompts in one step.
		{Name: "pool PROMPT steps of two", Options: ask(explore.PROMPT, and("shared by two", "evicted")...),
			Rooms: with(rooms("ab", "ab", "xy"), func(sc *Scope) { sc.Blocks, sc.Chunk = 6, 2 })},
		// A Prealloc that is lost leaves a room to its deadline.
		{Name: "pool TERM lost", Options: ask(explore.TERM, and("evicted", "deadline")...),
			Rooms: with(rooms("ab", "ac", "x"), func(sc *Scope) { sc.Blocks, sc.WriteFails, sc.Lose = 4, true, true })},
		{Name: "holders PROMPT pair", Options: ask(explore.PROMPT, pair...),
			Crowd: &Crowd{Prompts: []string{"ab", "abc"}, Lives: 2, Blocks: 5, Quarantine: true}},
		{Name: "holders PROMPT crowd", Options: ask(explore.PROMPT, holders...),
			Crowd: &Crowd{Prompts: []string{"ab", "abc", "x"}, Lives: 2, Blocks: 5, Quarantine: true}},
		// Rooms that prefill where they generate.
		{Name: "local PROMPT three", Options: ask(explore.PROMPT, kept...), House: locals(0, 2, 5, 0, "ab", "ab", "x")},
		// An older one needs the blocks of a younger, which finds what is left of its prompt.
		{Name: "local PROMPT retraction", Options: ask(explore.PROMPT, again...), House: locals(15, 3, 5, 1, "a", "ab", "x")},

		// Two caches and a link: what decode has found is not sent.
		{Name: "pair PROMPT two", Options: ask(explore.PROMPT, "success", "hit", "shared by two", "sent in part", "failed step"), Pair: &Pair{Source: 5, Slots: 2,
			House: House{Prompts: []string{"a", "ab"}, Tail: 1, Output: 2, Blocks: 5, Running: 2, Chunk: 1, Abort: true, StepFails: true}}},
		// A gateway gives the legs of one room two prompts: decode must not find what it was sent.
		{Name: "pair PROMPT legs differ", Options: ask(explore.PROMPT, "success", "hit", "legs differ"), Pair: &Pair{Source: 5, Slots: 2, Other: []string{"z", "a", "ab"},
			House: House{Prompts: []string{"a", "a", "ab"}, Tail: 1, Output: 1, Blocks: 5, Running: 3, Chunk: 1}}},
		{Name: "pair PROMPT three", Options: ask(explore.PROMPT, "success", "hit", "evicted", "sent in part"), Pair: &Pair{Source: 5, Slots: 2,
			House: House{Prompts: []string{"a", "ab", "x"}, Tail: 1, Output: 1, Blocks: 5, Running: 3, Chunk: 1}}},

		{Name: "local PROMPT four", Nightly: true, Options: ask(explore.PROMPT, again...), House: locals(15, 3, 6, 1, "a", "ab", "x", "ab")},
		{Name: "pool PROMPT four rooms", Nightly: true, Options: ask(explore.PROMPT, and("shared by two", "evicted")...),
			Rooms: with(rooms("ab", "ac", "x", "ab"), func(sc *Scope) { sc.WriteFails = true })},
		{Name: "pool TERM four rooms", Nightly: true, Options: ask(explore.TERM, and("shared by two", "evicted", "deadline")...),
			Rooms: with(rooms("ab", "ac", "x", "ab"), func(sc *Scope) { sc.Lose = true })},
		{Name: "holders PROMPT four", Nightly: true, Options: ask(explore.PROMPT, holders...),
			Crowd: &Crowd{Prompts: []string{"ab", "abc", "ac", "x"}, Lives: 2, Blocks: 5, Quarantine: true}},
	}
}
