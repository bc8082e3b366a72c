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
	lossy := with(data, func(sc *Scope) { sc.Lose = true })
	twice := with(one, func(sc *Scope) { sc.Twice = true })
	gateway := with(data, func(sc *Scope) { sc.Gateway, sc.Tied, sc.MaxNew, sc.BlocksD = true, true, 2, 3 })
	silent := func(sc *Scope) { sc.Silent = true }
	crashP := func(sc *Scope) { sc.CrashP, sc.Recut = 1, true }
	crashD := func(sc *Scope) { sc.CrashD = 1 }
	once := func(sc *Scope) { sc.Twice, sc.Once = true, true }
	// Two rooms share what holds one: a block, a slot, a step, a connection.
	two := Scope{Rooms: 2, Tokens: 15, MaxNew: 1, BlocksP: 1, BlocksD: 1, Slots: 1, ChunkTokens: 16, Alike: true}
	both := func(sc *Scope) { sc.BlocksP, sc.BlocksD, sc.Slots = 2, 2, 2 } // both at once
	// Both at once, but when the older grows, the younger has to yield.
	retract := func(sc *Scope) { sc.BlocksP, sc.BlocksD, sc.Slots, sc.MaxNew, sc.Ahead = 2, 2, 2, 3, 1 }
	three := func(sc *Scope) { sc.Tokens, sc.BlocksP, sc.BlocksD = 47, 3, 3 } // chunks
	local := Scope{Rooms: 2, Local: true, Tokens: 31, MaxNew: 2, BlocksP: 1, BlocksD: 3, Slots: 1, ChunkTokens: 16, Abort: true, StepFails: true}
	// The same with prefix caches: decode's has the first block of the prompt, so that it asks for
	// the rest alone. Long prompts have a second block that prefill's has too.
	kept := with(one, func(sc *Scope) { sc.Keys, sc.KnownD = true, 1 })
	keptData := with(kept, func(sc *Scope) {
		sc.Abort, sc.GiveUp, sc.Breaks, sc.Refuse, sc.WriteFails, sc.WriteLate, sc.StepFails = true, true, 1, true, true, true, true
	})
	keptAll := with(keptData, func(sc *Scope) { sc.Twice, sc.Lose, sc.Resend = true, true, true })
	keptGateway := with(keptData, func(sc *Scope) { sc.Gateway, sc.Tied = true, true })
	keptLong := func(sc *Scope) { sc.Tokens, sc.BlocksP, sc.BlocksD, sc.KnownP = 47, 3, 3, 2 }
	// Two rooms read the block that is there; or the second finds what the first was sent.
	keptTwo := with(two, func(sc *Scope) {
		sc.Keys, sc.KnownD, sc.Tokens, sc.BlocksP, sc.BlocksD, sc.Slots = true, 1, 31, 3, 3, 2
	})
	keptTurns := with(two, func(sc *Scope) { sc.Keys, sc.Tokens, sc.BlocksP, sc.BlocksD = true, 31, 2, 2 })
	const gate, night = true, false
	return []Named{
		{"PROMPT quiet", gate, quiet, prompt(ends)},
		{"PROMPT twice", gate, with(quiet, once), prompt(ends)},
		{"PROMPT prefill gives up", gate, with(one, func(sc *Scope) { sc.GiveUpP, sc.StepFails = true, true }), prompt(gaveUp)},
		{"PROMPT chunks again", gate, with(quiet, func(sc *Scope) { sc.Again, sc.Refuse = true, true }), prompt(turned)},
		{"PROMPT twice crash decode", gate, with(with(one, crashD), func(sc *Scope) { sc.Twice, sc.Gateway = true, true }), prompt(and(gaveUp, "restart"))},
		{"PROMPT data", gate, data, prompt(and(ends, "connection ends"))},
		{"PROMPT data twice", gate, with(data, once), prompt(turned)},
		{"PROMPT three chunks", gate, with(data, three), prompt(ends)},
		{"PROMPT gateway", gate, gateway, prompt(ends)},
		{"PROMPT gateway crash prefill", gate, with(gateway, crashP), prompt(and(ends, "restart"))},
		{"PROMPT gateway crash decode", gate, with(gateway, crashD), prompt(and(ends, "restart"))},
		{"PROMPT gateway drain", gate, with(gateway, func(sc *Scope) { sc.Drain = true }), prompt(ends)},
		{"PROMPT two rooms", gate, with(two, func(sc *Scope) { sc.GiveUp = true }), prompt(ends[:1])},
		{"PROMPT two rooms abort", gate, with(two, func(sc *Scope) { sc.Abort, sc.GiveUp = true, true }), prompt(ends[:3])},
		{"PROMPT two rooms, two slots", gate, with(with(two, both), func(sc *Scope) { sc.GiveUp = true }), prompt(ends[:1])},
		{"PROMPT two rooms retract", gate, with(with(two, retract), func(sc *Scope) { sc.GiveUp = true }), prompt(and(ends[:1], "retracted"))},
		{"PROMPT two rooms retract abort", night, with(with(two, retract), func(sc *Scope) { sc.Abort, sc.StepFails = true, true }), prompt(and(ends, "retracted"))},
		{"PROMPT two rooms gateway", night, with(two, func(sc *Scope) {
			sc.Abort, sc.GiveUp, sc.Gateway, sc.Tied, sc.Breaks, sc.StepFails = true, true, true, true, 1, true
		}), prompt(ends)},
		{"PROMPT two rooms, two slots gateway", night, with(with(two, both), func(sc *Scope) {
			sc.Abort, sc.GiveUp, sc.Gateway, sc.Tied = true, true, true, true
		}), prompt(ends[:3])},
		{"PROMPT unified", gate, with(local, func(sc *Scope) { sc.BlocksD, sc.Slots = 6, 2 }), explore.Options{Ask: explore.PROMPT, Must: unified}},
		{"PROMPT found", gate, with(kept, func(sc *Scope) { sc.Abort, sc.GiveUp, sc.Twice = true, true, true }), prompt(and(ends, found))},
		{"PROMPT found data", gate, with(keptData, keptLong), prompt(and(ends, found, foundBreak))},
		{"PROMPT found gateway crash prefill", gate, with(keptGateway, crashP), prompt(and(ends, found, foundBreak, "restart"))},
		{"PROMPT found gateway crash decode", gate, with(keptGateway, crashD), prompt(and(ends, found, foundBreak, foundCrash, "restart"))},
		{"PROMPT found two rooms", gate, with(keptTwo, func(sc *Scope) { sc.Breaks = 1 }), prompt(and(gaveUp, found, foundShared, foundBreak))},
		{"PROMPT found in turns", gate, with(keptTurns, func(sc *Scope) { sc.StepFails = true }), prompt(and(gaveUp, found))},
		{"PROMPT found two rooms retract", gate, with(keptTwo, func(sc *Scope) { sc.MaxNew, sc.Ahead, sc.GiveUp = 3, 1, true }), prompt(and(gaveUp, found, foundShared, "retracted"))},
		{"PROMPT found two rooms abort", night, with(keptTwo, func(sc *Scope) { sc.Abort, sc.GiveUp = true, true }), prompt(and(ends, found, foundShared))},

		{"TERM quiet", gate, quiet, term(late)},
		{"TERM data", gate, with(data, func(sc *Scope) { sc.MaxNew, sc.BlocksD = 2, 3 }), term(and(late, "connection ends"))},
		{"TERM all", gate, with(all, func(sc *Scope) { sc.Resend = true }), term(turned)},
		{"TERM crash prefill", gate, with(lossy, crashP), term(and(ends, "restart"))},
		{"TERM crash decode", gate, with(lossy, crashD), term(and(ends, "restart"))},
		{"TERM twice crash prefill", gate, with(twice, crashP), term(and(ends[:1], "restart"))},
		{"TERM twice crash decode", gate, with(twice, crashD), term(and(ends[:1], "restart"))},
		{"TERM tombstone", gate, with(twice, func(sc *Scope) { sc.Forget = 1 }), term(and(turned[:1], "tombstone expires"))},
		{"TERM two rooms", gate, with(two, func(sc *Scope) { sc.Breaks = 1 }), term(and(ends[:1], "connection ends"))},
		{"TERM unified", gate, with(local, func(sc *Scope) { sc.Twice, sc.Lose = true, true }), explore.Options{Ask: explore.TERM, Must: unified}},
		{"TERM three chunks", night, with(all, three), term(turned)},
		{"TERM all crash prefill", gate, with(all, crashP), term(and(turned, "restart"))},
		{"TERM all crash decode", night, with(all, crashD), term(and(turned, "restart"))},
		{"TERM all tombstone", night, with(all, func(sc *Scope) { sc.Forget = 1 }), term(and(turned, "tombstone expires"))},
		{"TERM two tombstones", night, with(twice, func(sc *Scope) { sc.GiveUp, sc.Forget = true, 2 }), term(and(revoked, "tombstone expires"))},
		{"TERM both crash", night, with(twice, func(sc *Scope) { crashP(sc); crashD(sc) }), term(and(revoked, "restart"))},
		{"TERM two rooms abort", night, with(two, func(sc *Scope) { sc.Abort = true }), term(ends[:3])},
		{"TERM two rooms crash prefill", gate, with(two, func(sc *Scope) { sc.GiveUp = true; crashP(sc) }), term(and(ends[:1], "restart"))},
		{"TERM two rooms crash decode", gate, with(two, func(sc *Scope) { sc.GiveUp = true; crashD(sc) }), term(and(ends[:1], "restart"))},
		{"TERM two rooms, two slots", night, with(with(two, both), func(sc *Scope) { sc.Abort, sc.WriteFails = true, true }), term(ends[:3])},
		{"TERM tombstone crash prefill write fails", night, with(twice, func(sc *Scope) {
			sc.Abort, sc.Lose, sc.WriteFails, sc.WriteLate, sc.Forget = true, true, true, true, 1
			crashP(sc)
		}), term(turned)},
		{"TERM tombstone crash decode write fails", night, with(twice, func(sc *Scope) {
			sc.Lose, sc.WriteFails, sc.WriteLate, sc.Forget = true, true, true, 1
			crashD(sc)
		}), term(and(revoked, "restart", "tombstone expires"))},
		// Here a message comes again only when its sender repeats it. Where it may come any number of
		// times there are more than 12 million states, and none of the first 12 is wrong.
		{"TERM tombstone both crash", night, with(lossy, func(sc *Scope) {
			sc.Forget, sc.Resend = 1, true
			crashP(sc)
			crashD(sc)
		}), term(and(revoked, "restart", "tombstone expires"))},

		{"TERM found", gate, keptAll, term(and(turned, found, foundBreak))},
		{"TERM found twice crash prefill", gate, with(kept, func(sc *Scope) {
			sc.Twice, sc.Resend = true, true
			crashP(sc)
		}), term(and(gaveUp, found, foundBreak, "restart"))},
		{"TERM found twice crash decode", night, with(kept, func(sc *Scope) {
			sc.Twice, sc.Resend = true, true
			crashD(sc)
		}), term(and(gaveUp, found, foundCrash, "restart"))},
		{"TERM found data", night, with(keptAll, keptLong), term(and(turned, found, foundBreak))},
		{"TERM found two rooms", night, with(keptTwo, func(sc *Scope) { sc.Breaks = 1 }), term(and(gaveUp, found, foundShared, foundBreak))},
		{"TERM found two rooms crash decode", night, with(keptTwo, crashD), term(and(gaveUp, found, foundShared, foundCrash, "restart"))},
		{"TERM found in turns", night, with(keptTurns, func(sc *Scope) { sc.Breaks = 1 }), term(and(gaveUp, found, foundShared, foundBreak))},
		{"TERM found in turns crash prefill", night, with(keptTurns, crashP), term(and(gaveUp, found, foundShared, foundBreak, "restart"))},
		{"TERM found in turns crash decode", night, with(keptTurns, crashD), term(and(gaveUp, found, foundShared, foundCrash, "restart"))},

		{"ALONE found crash decode", gate, with(with(keptData, silent), crashD), alone(and(late, found, foundBreak, foundCrash, "restart"))},
		{"ALONE found", night, with(keptAll, silent), alone(and(late, found, foundBreak))},
		{"ALONE quiet", gate, with(quiet, silent), alone(late)},
		{"ALONE data", gate, with(data, func(sc *Scope) { sc.Silent, sc.MaxNew, sc.BlocksD = true, 2, 3 }), alone(late)},
		{"ALONE crash prefill", gate, with(with(data, silent), crashP), alone(and(late, "restart"))},
		{"ALONE crash decode", gate, with(with(data, silent), crashD), alone(and(late, "restart"))},
		{"ALONE all", night, with(all, silent), alone(late)},
		{"ALONE all crash decode", night, with(with(all, silent), crashD), alone(and(late, "restart"))},
		{"ALONE all crash prefill", gate, with(with(all, silent), crashP), alone(and(late, "restart"))},
		{"ALONE both crash", night, with(with(twice, silent), func(sc *Scope) { crashP(sc); crashD(sc) }), alone(revoked)},
	}
}

// Crowd is a world too large to explore: four rooms on pools that hold two, shared steps that
// cut prompts anew in every pass, and everything that may break. Seeds walk through it.
func Crowd() Scope {
	return Scope{
		Rooms: 4, Tokens: 31, MaxNew: 3, BlocksP: 4, BlocksD: 6, Slots: 2, ChunkTokens: 48, Ahead: 1,
		Twice: true, Lose: true, Abort: true, GiveUp: true, Gateway: true, WriteFails: true, WriteLate: true, Refuse: true,
		StepFails: true, Silent: true, Resend: true, Recut: true, Drain: true, GiveUpP: true, Again: true, Leases: leasesMax, Conns: connsMax,
		Breaks: 3, CrashP: 1, CrashD: 1, Forget: 4,
	}
}

func and(must []string, more ...string) []string { return append(must[:len(must):len(must)], more...) }

// What every scope of a pair has to reach, on both sides: an end that waits for what is under way.
var drains = []string{"prefill drains", "decode drains"}

func prompt(must []string) explore.Options { return ask(explore.PROMPT, must) }
func term(must []string) explore.Options   { return ask(explore.TERM, must) }
func alone(must []string) explore.Options  { return ask(explore.TERM|explore.ALONE, must) }

func ask(q explore.Question, must []string) explore.Options {
	return explore.Options{Ask: q, Must: and(must, drains...), StatesMax: statesMax}
}

// statesMax is beyond the largest scope and still within a nightly run's memory: 2 GiB.
const statesMax = 12_000_000

// What a world with Keys shows of them.
const (
	found       = "success with found blocks"
	foundShared = "found block shared as one ends"
	foundBreak  = "link ends with blocks found"
	foundCrash  = "decode crashes with blocks found"
)

var (
	ends    = []string{"success", "prefill aborted", "decode aborted", "failed"}
	turned  = append(ends[:4:4], "chunk turned away")
	gaveUp  = []string{"success", "failed"}
	revoked = []string{"success", "failed", "chunk turned away"}
	late    = append(ends[:4:4], "deadline")
	unified = []string{"success", "decode aborted", "failed", "decode drains"}
)
