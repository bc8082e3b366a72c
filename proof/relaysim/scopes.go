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
}

// Run explores it.
func (n Named) Run() explore.Report { return explore.Run(New(n.Scope), n.Options) }

// Scopes of the gate. TERM has every fault; PROMPT has those that a gateway can notice by
// itself, which is all but silence.
func Scopes() []Named {
	one := Scope{Requests: 1, Limits: relay.Limits{MaxRunning: 1, MaxQueued: 1, MaxTries: 2, RetryBurst: 2}, Prefills: 2, Decodes: 2, Tokens: 1}
	with := func(sc Scope, f func(*Scope)) Scope { f(&sc); return sc }
	all := with(one, func(sc *Scope) {
		sc.Causes = []room.Cause{room.ClientError, room.Overload, room.WorkerLost, room.TransferFailed, room.Deadline}
		sc.Gone, sc.NoPair = true, true
	})
	few := with(all, func(sc *Scope) { sc.Causes = []room.Cause{room.WorkerLost} })
	retried := []string{"success", "cancelled", "retry", "second attempt succeeds", "failed while streaming", "crossed close", "late close"}
	return []Named{
		{"relay PROMPT one", all, explore.Options{Ask: explore.PROMPT, Must: retried}},
		{"relay TERM one", with(all, func(sc *Scope) { sc.Silent = true }),
			explore.Options{Ask: explore.TERM, Must: append(retried, "deadline", "overload")}},
		{"relay TERM unified", with(all, func(sc *Scope) { sc.Silent, sc.Prefills, sc.Tokens = true, 0, 2 }),
			explore.Options{Ask: explore.TERM, Must: retried}},
		{"relay PROMPT two queued", with(few, func(sc *Scope) { sc.Requests, sc.NoPair, sc.Limits.MaxTries, sc.Limits.RetryBurst = 2, false, 2, 1 }),
			explore.Options{Ask: explore.PROMPT, Must: []string{"success", "cancelled", "retry", "second attempt succeeds"}}},
		{"relay TERM drain", with(one, func(sc *Scope) { sc.Requests, sc.Drain, sc.Gone, sc.Prefills, sc.Limits.MaxTries = 2, true, true, 0, 1 }),
			explore.Options{Ask: explore.TERM, Must: []string{"success", "overload", "cancelled"}}},
	}
}
