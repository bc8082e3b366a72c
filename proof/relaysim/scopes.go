package relaysim

import (
	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

// Named is a scope with a name, a question and what it has to have shown.
type Named struct {
	Name    string
	Scope   Scope
	Options explore.Options
	Nightly bool // too large for every change
}

// Run explores it.
func (n Named) Run() explore.Report { return explore.Run(New(n.Scope), n.Options) }

// Scopes of the gate. TERM has every fault; PROMPT has those that a gateway can notice by
// itself, which is all but silence and placement that says "nobody" on a whim. In the roster
// scopes workers come and go: with a pair back no timer is needed (PROMPT), and the place
// budget alone is the exit when none comes (TERM).
func Scopes() []Named {
	one := Scope{Requests: 1, Limits: relay.Limits{MaxRunning: 1, MaxQueued: 1, MaxTries: 2, RetryBurst: 2}, Prefills: 2, Decodes: 2, Tokens: 1}
	with := func(sc Scope, f func(*Scope)) Scope { f(&sc); return sc }
	all := with(one, func(sc *Scope) {
		sc.Causes = []room.Cause{room.ClientError, room.Overload, room.WorkerLost, room.TransferFailed, room.Deadline}
		sc.Gone, sc.NoPair = true, true
	})
	retried := []string{"success", "cancelled", "retry", "second attempt succeeds", "failed while streaming", "crossed close"}
	two := with(all, func(sc *Scope) { // they share one right to run, and the credit for retries
		sc.Requests, sc.NoPair, sc.Limits.RetryBurst = 2, false, 1
		sc.Causes = []room.Cause{room.WorkerLost}
	})
	noQueue := relay.Budgets{Place: 1, Connect: 1, FirstToken: 1, Gap: 1, Total: 1}
	shared := []string{"success", "cancelled", "retry", "second attempt succeeds"}
	away := with(one, func(sc *Scope) { // one pair whose workers come and go
		sc.Prefills, sc.Decodes, sc.Limits.MaxTries, sc.Limits.RetryBurst = 1, 1, 3, 3
		sc.Causes, sc.Gone, sc.Away, sc.Back = []room.Cause{room.WorkerLost, room.TransferFailed}, true, 1, true
	})
	back := []string{"success", "cancelled", "retry", "waits for a worker", "served after waiting", "second attempt succeeds", "served by a next life"}
	buffered := with(one, func(sc *Scope) { // nobody has a byte of what is taken back
		sc.Buffered, sc.Gone, sc.Tokens = true, true, 2
		sc.Causes = []room.Cause{room.WorkerLost}
	})
	anew := append(shared[:len(shared):len(shared)], "started anew")
	return []Named{
		{Name: "relay PROMPT roster", Scope: away, Options: explore.Options{Ask: explore.PROMPT, Must: back}},
		{Name: "relay TERM roster", Scope: with(away, func(sc *Scope) {
			sc.Away, sc.Back, sc.NoTotal, sc.Prefills, sc.Budgets = 2, false, true, 0, noQueue
		}),
			Options: explore.Options{Ask: explore.TERM, Must: append(back[:len(back):len(back)], "nobody came")}},
		{Name: "relay PROMPT roster, two", Scope: with(away, func(sc *Scope) {
			sc.Requests, sc.Limits.MaxRunning, sc.Prefills, sc.Tokens, sc.Causes = 2, 2, 0, 0, nil
		}),
			Options: explore.Options{Ask: explore.PROMPT, Must: back}},
		{Name: "relay PROMPT one", Scope: with(all, func(sc *Scope) { sc.Echo, sc.NoPair = true, false }),
			Options: explore.Options{Ask: explore.PROMPT, Must: append(retried[:len(retried):len(retried)], "late close")}},
		{Name: "relay TERM one", Scope: with(all, func(sc *Scope) { sc.Silent = true }),
			Options: explore.Options{Ask: explore.TERM, Must: append(retried[:len(retried):len(retried)], "deadline", "overload")}},
		{Name: "relay TERM unified", Scope: with(all, func(sc *Scope) { sc.Silent, sc.Waits, sc.Prefills, sc.Tokens = true, true, 0, 2 }),
			Options: explore.Options{Ask: explore.TERM, Must: retried}},
		{Name: "relay PROMPT two queued", Scope: with(two, func(sc *Scope) { sc.Prefills = 0 }),
			Options: explore.Options{Ask: explore.PROMPT, Must: shared}},
		{Name: "relay PROMPT two pairs, lean", Scope: with(two, func(sc *Scope) { sc.Tokens = 0 }),
			Options: explore.Options{Ask: explore.PROMPT, Must: shared}},
		{Name: "relay PROMPT many rights", Scope: with(one, func(sc *Scope) { // of three one takes both rights, and the others one each
			sc.Requests, sc.Many, sc.Gone, sc.Prefills, sc.Decodes, sc.Tokens = 3, 2, true, 0, 1, 0
			sc.Limits.MaxRunning, sc.Limits.MaxQueued, sc.Limits.MaxTries = 2, 2, 1
		}), Options: explore.Options{Ask: explore.PROMPT, Must: []string{"success", "cancelled"}}},
		{Name: "relay TERM drain", Scope: with(one, func(sc *Scope) { sc.Requests, sc.Drain, sc.Gone, sc.Prefills, sc.Limits.MaxTries = 2, true, true, 0, 1 }),
			Options: explore.Options{Ask: explore.TERM, Must: []string{"success", "overload", "cancelled"}}},
		{Name: "relay PROMPT buffered", Scope: with(buffered, func(sc *Scope) { sc.Echo = true }),
			Options: explore.Options{Ask: explore.PROMPT, Must: anew}},
		{Name: "relay TERM buffered", Scope: with(buffered, func(sc *Scope) {
			sc.Silent, sc.Prefills, sc.Decodes, sc.Limits.MaxTries, sc.Limits.RetryBurst = true, 0, 3, 3, 3
		}),
			Options: explore.Options{Ask: explore.TERM, Must: anew}},
		{Name: "relay PROMPT roster, twice", Scope: with(away, func(sc *Scope) { sc.Away = 2 }),
			Options: explore.Options{Ask: explore.PROMPT, Must: back}, Nightly: true},
		{Name: "relay PROMPT two pairs", Scope: two, Options: explore.Options{Ask: explore.PROMPT, Must: shared}, Nightly: true},
	}
}
