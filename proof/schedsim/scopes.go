package schedsim

import (
	"slices"

	"baton/proof/explore"
)

// Named is a scope with its name, its question and what it has to have shown.
type Named struct {
	Name    string
	Nightly bool // too large for every change
	Scope   Scope
	Options explore.Options
}

// Scopes lists every scope. A block has 16 tokens, and a room outgrows its first within its first
// few tokens of output.
func Scopes() []Named {
	with := func(sc Scope, f func(*Scope)) Scope { f(&sc); return sc }
	local := func(tokens, most int) Room { return Room{Tokens: tokens, MaxNew: most} }
	pair := func(tokens, most int) Room { return Room{Tokens: tokens, MaxNew: most, Pair: true} }
	endless := func(tokens, most int) Room { return Room{Tokens: tokens, MaxNew: most, Endless: true} }
	all := func(sc *Scope) { sc.Abort, sc.StepFails, sc.BegunFails, sc.Early = true, true, true, true }

	two := with(Scope{Rooms: []Room{local(15, 4), local(14, 5)}, Blocks: 3, Slots: 2, Chunk: 16, Ahead: 1}, all)
	three := with(Scope{Rooms: []Room{local(15, 3), local(14, 4), local(15, 2)}, Blocks: 3, Slots: 2, Chunk: 16, Ahead: 1}, all)
	slot := with(three, func(sc *Scope) { sc.Slots = 1 })
	// Blocks for more than a token ahead, and rooms that grow more than once.
	far := Scope{Rooms: []Room{local(13, 21), local(13, 6), local(20, 5)}, Blocks: 4, Slots: 3, Chunk: 32, Ahead: 3, Early: true}
	// One whose KV comes over the link waits for a slot, or is promised its blocks, while another grows.
	pairs := with(Scope{Rooms: []Room{local(15, 3), pair(15, 3), pair(15, 2)}, Blocks: 3, Slots: 1, Chunk: 16, Ahead: 1, Breaks: 1}, func(sc *Scope) { sc.Abort, sc.Early = true, true })
	// Others come for ever: a large room, and one that is retracted, have their turn all the same.
	large := Scope{Rooms: []Room{local(40, 3), endless(15, 2), endless(15, 2)}, Blocks: 3, Slots: 2, Chunk: 16, Ahead: 1}
	back := Scope{Rooms: []Room{local(15, 4), local(14, 6), endless(15, 2), endless(15, 2)}, Blocks: 3, Slots: 2, Chunk: 16, Ahead: 1}
	// The same where computing again takes longer than others need to want more: whoever yields to
	// those that came later is never done.
	slow := Scope{Rooms: []Room{local(46, 3), endless(15, 3), endless(15, 3)}, Blocks: 5, Slots: 3, Chunk: 32, Ahead: 1}

	// Several outputs of one prompt: they wait for as many slots at once, and hold all the memory that
	// they may need; beside them somebody grows, and somebody waits.
	many := func(tokens, most, n int) Room { return Room{Tokens: tokens, MaxNew: most, Branches: n} }
	both := with(Scope{Rooms: []Room{many(18, 3, 2), local(15, 4)}, Blocks: 4, Slots: 2, Chunk: 32, Ahead: 1}, all)
	room3 := with(Scope{Rooms: []Room{many(18, 3, 2), local(15, 3), local(15, 2)}, Blocks: 5, Slots: 3, Chunk: 32, Ahead: 1}, func(sc *Scope) { sc.Early = true })
	wait := Scope{Rooms: []Room{many(18, 2, 2), many(15, 2, 2), local(15, 2)}, Blocks: 8, Slots: 2, Chunk: 32, Early: true}
	sent := with(Scope{Rooms: []Room{{Tokens: 18, MaxNew: 3, Branches: 2, Pair: true}, local(15, 4)}, Blocks: 4, Slots: 2, Chunk: 32, Ahead: 1, Breaks: 1}, func(sc *Scope) { sc.Abort, sc.Early = true, true })

	ends := []string{"success", "aborted", "failed", "retracted", "computed again", "success after retraction", "oldest kept", "ended while retracted", "ended early"}
	first := append(ends[:len(ends):len(ends)], "retracted before its first token")
	link := append(first[:len(first):len(first)], "sat out", "pair computed again")
	twice := []string{"success", "retracted", "retracted twice", "computed again", "success after retraction", "oldest kept"}
	several := []string{"success", "several outputs", "block copied", "one output over before another", "ended early",
		"several outputs retracted", "retracted", "computed again", "success after retraction", "retracted before its first token"}
	prompt := func(base []string, must ...string) explore.Options {
		return explore.Options{Ask: explore.PROMPT, Must: append(base[:len(base):len(base)], must...)}
	}
	term := func(base []string) explore.Options {
		return explore.Options{Ask: explore.TERM, Must: append(base[:len(base):len(base)], "deadline")}
	}
	return []Named{
		{Name: "sched PROMPT two", Scope: two, Options: prompt(ends)},
		{Name: "sched TERM two", Scope: two, Options: term(ends)},
		{Name: "sched PROMPT three", Scope: three, Options: prompt(first)},
		{Name: "sched TERM three", Scope: three, Options: term(first)},
		{Name: "sched PROMPT one slot", Scope: slot, Options: prompt(first)},
		{Name: "sched PROMPT far", Scope: far, Options: prompt(twice, "sat out", "ended early")},
		{Name: "sched PROMPT far abort", Scope: with(far, func(sc *Scope) { sc.Abort = true }),
			Options: prompt(twice, "sat out", "ended early", "aborted", "ended while retracted"), Nightly: true},
		{Name: "sched PROMPT pairs", Scope: pairs, Options: prompt(link, "retracted twice")},
		{Name: "sched TERM pairs", Scope: pairs, Options: term(append(link, "retracted twice")), Nightly: true},
		{Name: "sched TERM pair", Scope: with(pairs, func(sc *Scope) { sc.Rooms, sc.Blocks = []Room{local(15, 3), pair(15, 3)}, 2 }), Options: term(link)},
		{Name: "sched TERM four", Scope: with(three, func(sc *Scope) { sc.Rooms, sc.Breaks = append(sc.Rooms[:3:3], pair(15, 3)), 1 }),
			Options: term(append(link, "retracted twice")), Nightly: true},
		{Name: "sched PROMPT whole", Scope: with(three, func(sc *Scope) { sc.Ahead, sc.Blocks = 0, 5 }), Options: prompt(nil, "success", "aborted", "failed", "ended early")},
		{Name: "sched PROMPT large", Scope: large, Options: prompt(nil, "success", "a successor")},
		{Name: "sched PROMPT slow", Scope: slow, Options: prompt(twice, "retracted before its first token", "a successor")},
		{Name: "sched PROMPT several", Scope: both, Options: prompt(several, "aborted", "failed", "ended while retracted")},
		{Name: "sched TERM several", Scope: both, Options: term(append(several[:len(several):len(several)], "aborted", "failed", "ended while retracted"))},
		{Name: "sched PROMPT several three", Scope: room3, Options: prompt(several)},
		{Name: "sched TERM several, three each", Scope: with(both, func(sc *Scope) {
			sc.Rooms, sc.Blocks, sc.Slots, sc.Breaks = []Room{many(18, 3, 3), {Tokens: 15, MaxNew: 3, Branches: 2, Pair: true}, local(15, 4)}, 5, 4, 1
		}), Options: term(append(several[:len(several):len(several)], "aborted", "failed", "ended while retracted", "pair computed again")), Nightly: true},
		{Name: "sched PROMPT several wait", Scope: wait, Options: prompt(nil, "success", "several outputs", "block copied", "one output over before another")},
		{Name: "sched PROMPT several sent", Scope: sent, Options: prompt(several, "aborted", "pair computed again", "ended while retracted")},
		{Name: "sched PROMPT back", Scope: back, Options: prompt(slices.DeleteFunc(slices.Clone(twice), func(w string) bool { return w == "retracted twice" }), "retracted before its first token", "a successor")},
	}
}

// Crowd is a world too large to explore: every kind of room, and everything that may break. Seeds
// walk through it.
func Crowd() Scope {
	return Scope{
		Rooms:  []Room{{Tokens: 30, MaxNew: 20}, {Tokens: 15, MaxNew: 12, Pair: true}, {Tokens: 9, MaxNew: 30, Endless: true}, {Tokens: 18, MaxNew: 9, Branches: 2, Pair: true}},
		Blocks: 5, Slots: 3, Chunk: 32, Ahead: 2, Abort: true, StepFails: true, BegunFails: true, Early: true, Breaks: 2,
	}
}
