package fleetsim

import (
	"fmt"
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/room"
)

// decoder drives one decode core as serve/worker does.
type decoder struct {
	core      *decode.Core
	boot      room.Boot
	out       decode.Effects
	todo      []decode.Event
	stepping  bool
	pool      pool
	links     []*link
	dials     []*link
	rooms     map[room.ID]*outputRoom
	running   []decode.StepItem
	copies    []decode.Copy // that the step makes
	has       int           // blocks that rooms were given, each as often as it was given
	known     int           // and those that are known
	vague     int           // rooms that are
	answering *leg          // whose Request is stepped
	asking    *link         // whose ChunkArrived is stepped
	results   []decode.Result
}

// outputRoom is what the driver keeps of a leg.
type outputRoom struct {
	leg     *leg
	lease   room.Lease
	decided room.Outcome
	until   time.Duration // ghost: when its time is over, true time
	conn    room.Conn     // that the lease is bound to
	side    bool          // the first tokens are here, and make sense
	read    uint64        // of which they are made, from the side data
	said    [][]uint64    // its outputs
	has     int           // blocks that it was given
	known   []int32       // these of them, in the order in which they became known
	from    int           // blocks that were found and not asked for
	waits   bool          // the last that it said is that it waits for memory
	vague   bool          // what it computes of its prompt, and what it found, is not known yet
	cut     bool          // a line was dropped: the answer may only fail
}

func (w *World) configD(boot room.Boot) decode.Config {
	return decode.Config{Boot: boot, Blocks: w.plan.blocks[1], PinnedMax: w.plan.blocks[1] / 4, QueuedMax: w.plan.queued, RunningMax: w.plan.slots, ChunkTokens: chunkTokens, AheadTokens: w.plan.ahead}
}

func (w *World) newDecoder(n *node) *decoder {
	boot := room.Boot(n.rng.next() | 1)
	return &decoder{core: decode.New(w.configD(boot)), boot: boot, pool: newPool(w.plan.blocks[1], &n.rng), rooms: map[room.ID]*outputRoom{}}
}

// stepD gives a decode core an event and does its effects, then what came of them.
func (w *World) stepD(n *node, ev decode.Event) {
	d := n.d
	d.todo = append(d.todo, ev)
	if d.stepping {
		return
	}
	d.stepping = true
	for i := 0; i < len(d.todo); i++ {
		d.out.Reset()
		w.events++
		w.whyD(n, &d.todo[i])
		d.core.Step(n.clock.read(w.now), d.todo[i], &d.out)
		for j := range d.out.List {
			w.doD(n, &d.out.List[j])
		}
		w.given(n)
	}
	d.todo, d.stepping = d.todo[:0], false
	w.truthD(n)
	w.rearm(n)
}

func (w *World) doD(n *node, e *decode.Effect) {
	d := n.d
	switch e.Kind {
	case decode.Accept:
		l := d.answering
		d.rooms[e.Room] = &outputRoom{leg: l, until: w.rooms[e.Room].until[1], said: make([][]uint64, w.reqs[l.req].n)}
		w.accept(n, l)
	case decode.Refuse:
		w.refuse(n, d.answering, e.Outcome)
	case decode.Dial:
		w.dial(n, e.Peer)
	case decode.SendPrealloc:
		w.offer(n, e)
	case decode.SendCancel:
		w.giveUp(n, e)
	case decode.Place:
		k := d.asking
		d.asking = nil
		if e.OK {
			k.table = e.Blocks
			w.knows(n, e.Room, d.rooms[e.Room], e.Blocks, 0)
			w.enter(n, k)
		}
	case decode.Step:
		d.running, d.copies = e.Items, e.Copies
		for i := range e.Items {
			it := &e.Items[i]
			r := d.rooms[it.Room]
			if r.has > 0 && len(r.said) == 1 && len(it.Blocks) == r.has+1 { // it has grown
				w.has(n, r, r.has+1)
				w.sights.see(grows)
			}
			w.known(n, it.Room, r, it)
			if p := &d.pool; it.Prefill {
				for _, b := range it.Blocks[int(it.From)/room.BlockTokens : room.BlocksFor(int(it.To))] {
					if p.rooms[b] > 1 || p.inside[b] > 0 {
						w.fail("OWN", w.of(it.Room), "%s computes into block %d, which %d rooms have", n, b, p.rooms[b])
					}
				}
			}
		}
		for i := range e.Items {
			d.pool.in(e.Items[i].Blocks)
		}
		for _, c := range e.Copies {
			d.pool.inside[c.From]++
			if d.pool.rooms[c.To] != 1 {
				w.fail("OWN", 0, "%s copies over block %d, which %d rooms have", n, c.To, d.pool.rooms[c.To])
			}
		}
		w.queue.push(event{at: w.now + w.cost(n, 300*time.Microsecond, 5*time.Millisecond), kind: stepDone, node: int32(n.id), life: n.life})
	case decode.Begin:
		r := d.rooms[e.Room]
		first := sampled(r.read, 0, int(e.Branch))
		r.said[e.Branch] = append(r.said[e.Branch], first)
		d.todo = append(d.todo, decode.Event{Kind: decode.Begun, Room: e.Room, Branch: e.Branch, OK: r.side, Finished: w.reqs[r.leg.req].finished(first, 1)})
	case decode.Emit:
		w.leavesPins(n, &w.reqs[w.of(e.Room)])
		w.emit(n, e.Room, e.Branch)
	case decode.Retract:
		w.sights.see(retracted)
		w.stalls(n, d.rooms[e.Room].leg)
		w.letGo(n, d.rooms[e.Room])
		w.sayWaits(n, e.Room)
		if w.trace != nil {
			w.say(w.of(e.Room), n, "gives its blocks to an older room")
		}
	case decode.Freed:
		if r := d.rooms[e.Room]; r == nil {
			w.fail("RELEASE", w.of(e.Room), "%s frees blocks of room %s, which is not there", n, e.Room)
		} else if len(r.said) > 1 {
			w.keeps(n, e.Room, r)
		} else {
			w.letGo(n, r)
		}
		w.freedD(n, e)
		w.freed(n, &d.pool, e.Room, e.Blocks)
	case decode.End:
		r := d.rooms[e.Room]
		if r == nil {
			w.end(n, nil, e.Room, e.Outcome)
			return
		}
		w.letGo(n, r)
		delete(d.rooms, e.Room)
		w.sticky(n, e.Room, &r.decided, e.Outcome)
		w.judgeWhy(n, e.Room, e.Outcome)
		o := e.Outcome
		if r.cut && o.Kind == room.Success { // the dropped line was the last
			o = room.Fail(room.Overload)
		}
		w.end(n, r.leg, e.Room, o)
	default:
		panic(fmt.Sprintf("fleetsim: effect %v of the decode core is unknown: teach the driver", e.Kind))
	}
}

// stalls lets a client leave that sees its stream stand still.
func (w *World) stalls(n *node, l *leg) {
	if r := &w.reqs[l.req]; r.quits {
		w.queue.push(event{at: w.now + n.rng.span(0, 80*time.Millisecond), kind: quits, node: int32(l.gw.id), life: l.gwLife, n: int32(l.req)})
	}
}

// has notes how many blocks a room has.
func (w *World) has(n *node, r *outputRoom, blocks int) {
	n.d.has += blocks - r.has
	r.has = blocks
}

// known notes which blocks a room has, as far as an engine step shows it for the first time.
func (w *World) known(n *node, id room.ID, r *outputRoom, it *decode.StepItem) {
	if len(r.known) == len(it.Blocks) && len(r.said) == 1 {
		return
	}
	found := r.from
	if it.Prefill && len(r.known) == 0 {
		found = int(it.From) / room.BlockTokens
	}
	if found > 0 {
		w.sights.see(prefixHitD)
		if t := w.reqs[r.leg.req].prompt.turn; t != nil && found*room.BlockTokens > t.tokens {
			w.sights.see(turnFound)
		}
	}
	w.knows(n, id, r, it.Blocks, found)
	if r.from = 0; r.vague {
		r.vague = false
		n.d.vague--
	}
}

// knows adds blocks to what is known of a room's, the first of which it found in the cache.
func (w *World) knows(n *node, id room.ID, r *outputRoom, table []int32, found int) {
	for i := range table {
		if !slices.Contains(r.known, table[i]) {
			w.hold(n, &n.d.pool, id, table[i:i+1], max(min(found-i, 1), 0))
			r.known = append(r.known, table[i])
			n.d.known++
		}
	}
}

// keeps takes from a room of several outputs what one that is over has given back.
func (w *World) keeps(n *node, id room.ID, r *outputRoom) {
	if r.has == 0 {
		return
	}
	var all, gone []int32
	for i := range r.said {
		for _, b := range n.d.core.BranchTable(id, int32(i)) {
			if !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	r.known = slices.DeleteFunc(r.known, func(b int32) bool {
		if slices.Contains(all, b) {
			return false
		}
		gone = append(gone, b)
		return true
	})
	n.d.pool.drop(gone)
	n.d.known -= len(gone)
	if len(all) < r.has && len(all) > 0 {
		w.sights.see(outputOver)
	}
	w.has(n, r, len(all))
}

// letGo takes all blocks from a room.
func (w *World) letGo(n *node, r *outputRoom) {
	n.d.pool.drop(r.known)
	n.d.known -= len(r.known)
	w.has(n, r, 0)
	if r.known, r.from = nil, 0; r.vague {
		r.vague = false
		n.d.vague--
	}
}

// freedD takes what is freed out of the prefix cache, where letGo put what was known.
func (w *World) freedD(n *node, e *decode.Effect) {
	p := &n.d.pool
	for _, b := range e.Blocks {
		switch {
		case p.rooms[b] > 0:
			w.fail("OWN", w.of(e.Room), "%s frees block %d, which %d rooms have", n, b, p.rooms[b])
		case p.cached[b]:
			p.cached[b] = false
			p.kept--
		}
	}
}

// wants is how many blocks a room is let in with.
func (w *World) wants(r *outputRoom) int {
	req := &w.reqs[r.leg.req]
	if req.n > 1 {
		return req.blocks()
	}
	said := len(r.said[0])
	ahead := req.most - said
	if w.plan.ahead > 0 {
		ahead = min(ahead, w.plan.ahead)
	}
	return room.BlocksFor(req.tokens + said + ahead)
}

// given notes the blocks of rooms that compute here, which no effect says.
func (w *World) given(n *node) {
	for v := range n.d.core.Rooms {
		if r := n.d.rooms[v.Room]; len(r.said) > 1 { // what went to the cache, no effect says
			w.keeps(n, v.Room, r)
		}
	}
	if n.role != unifiedRole && w.plan.ahead == 0 {
		return
	}
	for v := range n.d.core.Rooms {
		switch r := n.d.rooms[v.Room]; v.Phase {
		case decode.Unfilled.String(), decode.Prefilling.String(), decode.Regranted.String(), decode.Recomputing.String():
			if r.has == 0 {
				w.has(n, r, w.wants(r))
			}
			if len(r.known) == 0 && !r.vague {
				r.vague = true
				n.d.vague++
			}
		}
	}
}

// enter lets a receiver into its blocks, which nobody else may be inside of.
func (w *World) enter(n *node, k *link) {
	for _, b := range k.table {
		if n.d.pool.inside[b] > 0 {
			w.fail("OWN", w.of(k.cur.room), "decode %d lets a receiver into block %d, which is in use", n.at, b)
		}
	}
	n.d.pool.in(k.table)
}

// offer sends a Prealloc over the connection that it names.
func (w *World) offer(n *node, e *decode.Effect) {
	r := n.d.rooms[e.Room]
	if r.lease != e.Prealloc.Lease {
		r.lease, r.conn = e.Prealloc.Lease, e.Conn
		w.has(n, r, w.wants(r))
		if r.from = e.Prealloc.From / room.BlockTokens; r.from > 0 {
			r.vague = true
			n.d.vague++
		}
	}
	if k := n.d.link(e.Conn); k != nil {
		m := w.compose(n, k, linkPrealloc)
		m.prealloc, m.until = e.Prealloc, r.until
		w.post(m)
	}
}

// giveUp sends a Cancel, and a receiver of that lease leaves.
func (w *World) giveUp(n *node, e *decode.Effect) {
	if why := w.rooms[e.Room].first(n); why.Cause != e.Cancel.Cause {
		w.fail("CAUSE", w.of(e.Room), "decode %d cancels room %s for %s, and what ended it there was %s", n.at, e.Room, e.Cancel.Cause, why)
	}
	k := n.d.link(e.Conn)
	if k == nil {
		return
	}
	m := w.compose(n, k, linkCancel)
	m.cancel = e.Cancel
	w.post(m)
	if k.receiver != 0 && k.cur.lease == e.Cancel.Lease && !k.early {
		k.early = true
		w.queue.push(event{at: w.now + w.cost(n, 10*time.Microsecond, 200*time.Microsecond), kind: leftEarly, node: int32(n.id), life: n.life, link: k, n: k.receiver})
	}
}

func (d *decoder) link(conn room.Conn) *link {
	if i := slices.IndexFunc(d.links, func(k *link) bool { return k.conn == conn && k.dUp }); i >= 0 {
		return d.links[i]
	}
	return nil
}

// stepDoneD samples one token for each room of the step, from the blocks as they are now.
func (w *World) stepDoneD(n *node) {
	d := n.d
	d.results = d.results[:0]
	ok := !n.failStep
	w.failed(n)
	for _, c := range d.copies {
		d.pool.inside[c.From]--
		d.pool.content[c.To] = d.pool.content[c.From]
	}
	d.copies = nil
	for i := range d.running {
		it := &d.running[i]
		d.pool.out(it.Blocks)
		r := d.rooms[it.Room]
		req := &w.reqs[r.leg.req]
		x := decode.Result{Room: it.Room, Branch: it.Branch, OK: ok}
		if !it.Prefill && it.Branch == 0 && it.To%room.BlockTokens == 0 && !w.plan.keyless {
			x.Key = req.prompt.key(req.tokens, r.said[0], int(it.To))
		}
		switch {
		case !ok:
			d.pool.spoil(int(it.From), int(it.To), it.Blocks)
		case it.Prefill:
			d.pool.prefillChunk(req.prompt, req.tokens, r.said[0], int(it.From), int(it.To), it.Blocks)
			if it.Last {
				r.side, r.read = true, d.pool.read(req.tokens, it.Blocks)
			}
		default:
			said := r.said[it.Branch]
			made := len(said)
			token := sampled(d.pool.decodeToken(said[made-1], int(it.From), it.Blocks), made, int(it.Branch))
			r.said[it.Branch] = append(said, token)
			x.Finished = req.finished(token, made+1)
		}
		d.results = append(d.results, x)
	}
	d.running = nil
	w.stepD(n, decode.Event{Kind: decode.StepDone, Results: d.results})
}

// emit sends the newest token of an output to the gateway.
func (w *World) emit(n *node, id room.ID, branch int32) {
	r := n.d.rooms[id]
	if m := w.line(n, id, legToken); m != nil {
		r.waits = false
		said := r.said[branch]
		m.token, m.k, m.output = said[len(said)-1], int32(len(said)-1), branch
		w.send(&r.leg.in, m)
	}
}

// sayWaits tells the gateway that a room waits for memory, now and again: it would else take it
// for stuck.
func (w *World) sayWaits(n *node, id room.ID) {
	r := n.d.rooms[id]
	if m := w.line(n, id, legWaits); m != nil {
		r.waits = true
		w.send(&r.leg.in, m)
		w.queue.push(event{at: w.now + w.plan.budgets.Gap/4, kind: waits, node: int32(n.id), life: n.life, leg: r.leg})
	}
}

// line begins a line of a room's answer. A gateway that does not read loses the room.
func (w *World) line(n *node, id room.ID, kind messageKind) *message {
	r := n.d.rooms[id]
	if r.cut {
		return nil // it has been said
	}
	if r.leg.unread >= unreadMax {
		w.sights.see(slowGateway)
		w.reqs[r.leg.req].refused = true
		r.cut = true
		n.d.todo = append(n.d.todo, decode.Event{Kind: decode.Abort, Room: id, Cause: room.Overload})
		return nil
	}
	r.leg.unread++
	m := w.message()
	m.kind, m.from, m.to, m.life, m.leg = kind, int32(n.id), int32(r.leg.gw.id), r.leg.gwLife, r.leg
	return m
}
