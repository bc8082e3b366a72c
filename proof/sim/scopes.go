package sim

import "baton/proof/explore"

// Named is a scope with its name, its question and what it has to have shown.
type Named struct {
	Name    string
	Gate    bool // small enough for every run of the tests
	Scope   Scope
	Options explore.Options
}

// Run explores it.
func (n Named) Run() explore.Report { return explore.Run(New(n.Scope), n.Options) }

// Scopes lists every scope. Names are stable: mutants say which scope must kill them.
func Scopes() []Named {
	// One room whose prompt fills two blocks, so that it travels in two chunks; pools that
	// hold exactly this room, and one token of output.
	one := Scope{Rooms: 1, Tokens: 31, MaxNew: 1, BlocksP: 2, BlocksD: 2, Slots: 1, ChunkTokens: 16}
	with := func(sc Scope, f func(*Scope)) Scope { f(&sc); return sc }
	quiet := with(one, func(sc *Scope) { sc.Abort, sc.GiveUp = true, true })
	data := with(quiet, func(sc *Scope) {
		sc.Breaks, sc.Refuse, sc.WriteFails, sc.WriteLate, sc.StepFails = 1, true, true, true, true
	})
	all := with(data, func(sc *Scope) { sc.Twice, sc.Lose = true, true })
	const both = explore.TERM | explore.ALONE
	ends := []string{"success", "prefill aborted", "decode aborted", "failed"}
	gateway := func(sc *Scope) { sc.Gateway, sc.Tied = true, true }
	turned := append(ends, "chunk turned away")
	two := Scope{Rooms: 2, Tokens: 15, MaxNew: 1, BlocksP: 1, BlocksD: 1, Slots: 1, ChunkTokens: 16}
	return []Named{
		{"PROMPT quiet", true, quiet, explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"PROMPT twice", true, with(quiet, func(sc *Scope) { sc.Twice, sc.Once = true, true }), explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"PROMPT data", true, data, explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"PROMPT data twice", true, with(data, func(sc *Scope) { sc.Twice, sc.Once = true, true }), explore.Options{Ask: explore.PROMPT, Must: turned}},
		{"PROMPT gateway", true, with(data, gateway), explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"PROMPT gateway, prefill crash", true, with(data, func(sc *Scope) { gateway(sc); sc.CrashP = 1 }), explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"PROMPT gateway, decode crash", true, with(data, func(sc *Scope) { gateway(sc); sc.CrashD = 1 }), explore.Options{Ask: explore.PROMPT, Must: ends}},
		{"TERM quiet", true, quiet, explore.Options{Ask: explore.TERM, Must: append(ends, "deadline")}},
		{"TERM all", true, all, explore.Options{Ask: explore.TERM, Must: turned}},
		{"TERM resend", true, with(all, func(sc *Scope) { sc.Resend = true }), explore.Options{Ask: explore.TERM, Must: turned}},
		{"TERM prefill crash", true, with(all, func(sc *Scope) { sc.CrashP, sc.Recut = 1, true }), explore.Options{Ask: explore.TERM, Must: turned}},
		{"TERM decode crash", true, with(all, func(sc *Scope) { sc.CrashD = 1 }), explore.Options{Ask: explore.TERM, Must: turned}},
		{"TERM forget", true, with(all, func(sc *Scope) { sc.Forget = 1 }), explore.Options{Ask: explore.TERM, Must: turned}},
		{"ALONE quiet", true, with(quiet, func(sc *Scope) { sc.Silent = true }), explore.Options{Ask: both, Must: ends}},
		{"ALONE all", true, with(all, func(sc *Scope) { sc.Silent = true }), explore.Options{Ask: both, Must: ends}},
		{"ALONE prefill crash", true, with(all, func(sc *Scope) { sc.Silent, sc.CrashP = true, 1 }), explore.Options{Ask: both, Must: ends}},
		{"ALONE decode crash", true, with(data, func(sc *Scope) { sc.Silent, sc.CrashD = true, 1 }), explore.Options{Ask: both, Must: ends}},
		{"TERM two rooms", true, with(two, func(sc *Scope) { sc.Abort = true }), explore.Options{Ask: explore.TERM, Must: ends[:3]}},
		{"TERM two rooms, breaks", true, with(two, func(sc *Scope) { sc.Breaks = 1 }), explore.Options{Ask: explore.TERM, Must: ends[:1]}},
		{"PROMPT two rooms", true, with(two, func(sc *Scope) { sc.Abort, sc.GiveUp = true, true }), explore.Options{Ask: explore.PROMPT, Must: ends[:3]}},
		{"TERM unified", true, Scope{Rooms: 2, Local: true, Tokens: 31, MaxNew: 2, BlocksP: 1, BlocksD: 3, Slots: 1, ChunkTokens: 16, Abort: true, Twice: true, Lose: true, StepFails: true}, explore.Options{Ask: explore.TERM}},
		{"PROMPT unified", true, Scope{Rooms: 2, Local: true, Tokens: 31, MaxNew: 2, BlocksP: 1, BlocksD: 6, Slots: 2, ChunkTokens: 16, Abort: true, StepFails: true}, explore.Options{Ask: explore.PROMPT}},
	}
}
