package fleetsim

import (
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// sight is something that a sweep of seeds has to meet.
type sight uint8

const (
	retried sight = iota
	crashes       // of a gateway; then of a prefill, a decode, a unified worker
	_
	_
	_
	frozenNode
	linkEnds
	linkSilent
	neverHeals
	drained
	stepFailed
	chunkRefused
	slowClient
	slowGateway
	waitsForWorker
	workerRefuses
	tooLarge
	blamed
	poolFull
	noSlot
	writeFails
	gatewayMute
	deadLink
	oneWayDead
	messageLost
	messageTwice
	messageLate
	sideWrong
	replaced
	drainCut
	gatewayDrains
	gatewayFull
	noCredit
	discarded
	unifiedServes
	workerDown
	prefixHit
	prefixHitD
	prefixShared
	prefixEvicted
	retracted
	grows
	several
	outputOver
	turnFound
	pins
	plain // how many there are of one kind each
)

// Sights of many kinds each.
const (
	outcomes  = plain                                  // by cause
	leftIn    = outcomes + sight(room.Internal) + 1    // a client leaves, by phase of relay
	abortedP  = leftIn + sight(relay.Closing)          // an Abort of the gateway, by phase of prefill
	abortedD  = abortedP + sight(prefill.Draining) + 1 // by phase of decode
	budgets   = abortedD + sight(decode.Draining) + 1  // of a request that ran out, by relay.TimerName
	timers    = budgets + sight(relay.TotalTimer) + 1  // of a worker that fired, by room.TimerKind, without the first
	sightsMax = timers + sight(room.TombstoneTimer)
)

// sights counts, for all seeds of a sweep.
type sights [sightsMax]int

func (s *sights) see(x sight) { s[x]++ }

func (s *sights) timer(k room.TimerKind)   { s.see(timers + sight(k) - 1) }
func (s *sights) budget(n relay.TimerName) { s.see(budgets + sight(n)) }

// left notes in which phase a client leaves.
func (s *sights) left(n *node, req uint64) {
	for v := range n.g.core.Rooms {
		if v.Req == req && v.Phase < relay.Closing {
			s.see(leftIn + sight(v.Phase))
		}
	}
}

// abort notes in which phase the gateway's Abort finds a room.
func (s *sights) abort(n *node, id room.ID) {
	for v := range n.rooms() {
		if v.Room != id {
			continue
		}
		if n.p != nil {
			for p := prefill.NeedsPrealloc; p <= prefill.Draining; p++ {
				if p.String() == v.Phase {
					s.see(abortedP + sight(p))
				}
			}
			return
		}
		for p := decode.NeedsLink; p <= decode.Draining; p++ {
			if p.String() == v.Phase {
				s.see(abortedD + sight(p))
			}
		}
		return
	}
}

// phase notes rooms that wait for memory or a right to run.
func (s *sights) phase(n *node, phase string) {
	switch {
	case n.d != nil && phase == "needs_blocks", n.p != nil && phase == "queued":
		s.see(poolFull)
	case phase == "ready":
		s.see(noSlot)
	}
}

// Sight is how often a sweep met something.
type Sight struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// needsUnified says that a sight needs a unified worker: one is there to crash or to serve, and no
// other computes a prompt at decode for want of a prefill worker. All others need no more than one
// node of each role, which every fleet has.
func (x sight) needsUnified() bool {
	switch x {
	case crashes + sight(unifiedRole), unifiedServes, abortedD + sight(decode.Unfilled), abortedD + sight(decode.Prefilling):
		return true
	}
	return false
}

// list names what a fleet of these sizes can meet. Left out is what cannot be: what needs a worker
// that it lacks; an Abort of a room for which no leg was accepted, or between two events of one
// step; and an Abort where hardly any room is ever found, because who has its blocks back has a
// slot as well, as a rule.
func (s *sights) list(of Sizes) []Sight {
	var all []Sight
	add := func(x sight, name string) {
		if of.Unified > 0 || !x.needsUnified() {
			all = append(all, Sight{name, s[x]})
		}
	}
	for i, name := range []string{"a retry", "a gateway crashes", "a prefill worker crashes", "a decode worker crashes", "a unified worker crashes", "a node freezes",
		"a link ends", "a link ends by silence", "a link never heals", "a worker drains", "an engine step fails", "a chunk is refused",
		"a client does not read", "a gateway does not read", "nobody is there to serve", "a worker refuses for overload",
		"a request that fits nowhere", "a worker is blamed for being lost", "a pool is full", "no slot is free", "a write fails", "a worker does not see a hang-up", "a direction is dead",
		"one direction is dead and the other is not", "a message between workers is lost", "a message between workers comes twice",
		"a message between workers is overtaken", "side data makes no sense", "a worker is replaced beside its successor",
		"a drain is cut", "a gateway drains", "a gateway is full", "no credit is left for a retry", "an answer is taken back", "a unified worker serves",
		"a worker's health does not answer", "a prefix is found", "a prefix is found at decode", "a prefix is shared by rooms that are live", "a cached block is evicted",
		"a room is retracted", "a room gets another block", "a request gets several outputs", "an output ends before another of its room", "an answer is found by the next turn", "blocks are pinned"} {
		add(sight(i), name)
	}
	for _, c := range room.Causes() {
		o := room.Fail(c)
		if c == room.NoCause {
			o = room.Done()
		}
		add(outcomes+sight(c), "outcome "+o.String())
	}
	for p := relay.Queued; p < relay.Closing; p++ {
		add(leftIn+sight(p), "a client leaves in "+p.String())
	}
	for p := prefill.NeedsPrealloc; p <= prefill.Draining; p++ {
		if p != prefill.NeedsRequest {
			add(abortedP+sight(p), "prefill aborts in "+p.String())
		}
	}
	for p := decode.NeedsLink; p <= decode.Draining; p++ {
		if p != decode.Beginning && p != decode.Regranted {
			add(abortedD+sight(p), "decode aborts in "+p.String())
		}
	}
	for t := relay.QueueTimer; t <= relay.TotalTimer; t++ {
		add(budgets+sight(t), "the "+t.String()+" budget runs out")
	}
	for k := room.DeadlineTimer; k <= room.TombstoneTimer; k++ {
		add(timers+sight(k)-1, "a worker's "+k.String()+" timer fires")
	}
	return all
}
