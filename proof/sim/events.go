package sim

import (
	"fmt"
	"time"

	"baton/core/room"
	"baton/proof/explore"
)

// Event is one choice of the scheduler: small and comparable, so that equal choices in
// different states count as one for fairness.
type Event struct {
	Kind Kind
	Room uint8  // 0-based; of timers and compute
	Arg  uint32 // a packed message or chunk, or a connection
}

// Kind is the kind of an Event.
type Kind uint8

const (
	deliver Kind = iota // a message arrives
	stepP               // prefill's engine step comes home
	stepD               // decode's
	begun               // decode's driver fed a first token
	arrive              // a chunk's header is read at decode
	body                // its bytes are placed
	returns             // a write returns at prefill
	cutD                // decode notices that a connection ended
	cutP                // prefill notices it
	linkUp              // a dial succeeds
	noLink              // a dial is refused, because prefill is down
	deadlineP
	deadlineD
	staleD // decode ends a silent connection
	staleP // prefill does
	resend
	twice // a message arrives and stays in flight
	lose
	writeFails // and its bytes are gone
	writeLate  // it is reported failed, and its bytes arrive all the same
	refuse     // a chunk's bytes have a wrong sum
	stepPFails
	stepDFails
	breakD // a connection ends, decode notices first
	breakP
	crashP
	crashD
	restartP
	restartD
	forgetP // the oldest tombstone expires
	forgetD
	giveUp      // decode ends a room by itself
	giveUpP     // prefill does
	again       // a chunk's header is read, and comes again
	clientAbort // the gateway tells both
	clientEarly // ... or decode alone, because prefill's leg is not open yet
	drainP      // prefill takes no new rooms any more
	drainD      // decode does not
	kinds
)

var kindTable = [kinds]struct {
	class explore.Class
	name  string
}{
	deliver:     {explore.Delivery, ""},
	stepP:       {explore.Progress, "prefill: engine step done"},
	stepD:       {explore.Progress, "decode: engine step done"},
	begun:       {explore.Progress, "decode: first token fed"},
	arrive:      {explore.Delivery, ""},
	body:        {explore.Delivery, "decode: placed"},
	returns:     {explore.Delivery, "prefill: write returns"},
	cutD:        {explore.Delivery, "decode: sees the end of connection"},
	cutP:        {explore.Delivery, "prefill: sees the end of connection"},
	linkUp:      {explore.Delivery, "decode: linked by a new connection"},
	noLink:      {explore.Delivery, "decode: dial refused"},
	deadlineP:   {explore.Timer, "prefill: deadline"},
	deadlineD:   {explore.Timer, "decode: deadline"},
	staleD:      {explore.Timer, "decode: ends the silent connection"},
	staleP:      {explore.Timer, "prefill: ends the silent connection"},
	resend:      {explore.Retry, "decode: resend timer"},
	twice:       {explore.Fault, ""},
	lose:        {explore.Fault, ""},
	writeFails:  {explore.Fault, "prefill: write fails"},
	writeLate:   {explore.Fault, "prefill: write fails, but the bytes are in flight"},
	refuse:      {explore.Fault, "decode: wrong sum"},
	stepPFails:  {explore.Fault, "prefill: engine step fails"},
	stepDFails:  {explore.Fault, "decode: engine step fails"},
	breakD:      {explore.Fault, "decode: loses connection"},
	breakP:      {explore.Fault, "prefill: loses connection"},
	crashP:      {explore.Fault, "PREFILL CRASHES"},
	crashD:      {explore.Fault, "DECODE CRASHES"},
	restartP:    {explore.Environment, "prefill restarts"},
	restartD:    {explore.Environment, "decode restarts"},
	forgetP:     {explore.Fault, "prefill: oldest tombstone expires"},
	forgetD:     {explore.Fault, "decode: oldest tombstone expires"},
	giveUp:      {explore.Fault, "decode: gives up by itself"},
	giveUpP:     {explore.Fault, "prefill: gives up by itself"},
	again:       {explore.Fault, "a chunk comes twice"},
	clientAbort: {explore.Environment, "client gives up"},
	clientEarly: {explore.Environment, "client gives up before prefill's leg is opened"},
	drainP:      {explore.Environment, "prefill: is drained"},
	drainD:      {explore.Environment, "decode: is drained"},
}

// Class says what kind of event e is.
func (y *System) Class(e Event) explore.Class { return kindTable[e.Kind].class }

// Events appends everything that is possible in w.
func (y *System) Events(w *world, evs []Event) []Event {
	sc := &y.scope
	add := func(k Kind, r uint8, arg uint32) { evs = append(evs, Event{k, r, arg}) }
	for _, m := range w.net.all() {
		r := unpackMsg(m).room
		if sc.Alike && r > 0 && m == (msg{kind: msgRequestD, room: r}).pack() && w.net.has(msg{kind: msgRequestD, room: r - 1}.pack()) {
			continue
		}
		add(deliver, r, m)
		if sc.Twice {
			add(twice, r, m)
		}
		if sc.Lose {
			add(lose, r, m)
		}
	}
	if w.pStep.n > 0 {
		add(stepP, w.pStep.item[0].room, 0)
		if sc.StepFails {
			add(stepPFails, w.pStep.item[0].room, 0)
		}
	}
	if w.dStep.n > 0 {
		add(stepD, w.dStep.item[0].room, 0)
		if sc.StepFails {
			add(stepDFails, w.dStep.item[0].room, 0)
		}
	}
	for r := range uint8(sc.Rooms) {
		if w.begin>>r&1 == 1 {
			add(begun, r, 0)
		}
		if sc.Abort && w.gone>>r&1 == 0 {
			add(clientAbort, r, 0)
			if sc.Gateway && w.opened>>r&1 == 0 && w.net.has(msg{kind: msgRequestP, room: r}.pack()) {
				add(clientEarly, r, 0)
			}
		}
	}
	evs = y.chunkEvents(w, evs)
	evs = y.linkEvents(w, evs)
	evs = y.timerEvents(w, evs)
	if w.pUp && w.crashP > 0 {
		add(crashP, 0, 0)
	}
	if w.dUp && w.crashD > 0 {
		add(crashD, 0, 0)
	}
	if sc.Drain && w.pUp && w.drained&1 == 0 {
		add(drainP, 0, 0)
	}
	if sc.Drain && w.dUp && w.drained&2 == 0 {
		add(drainD, 0, 0)
	}
	if !w.pUp && w.pInc < bootsMax {
		add(restartP, 0, 0)
	}
	if !w.dUp && w.dInc < bootsMax {
		add(restartD, 0, 0)
	}
	return evs
}

// chunkEvents are those of the data plane. Four things happen to a chunk, ordered by nothing
// but cause: its write returns, its header arrives, its body is placed, or it is lost.
func (y *System) chunkEvents(w *world, evs []Event) []Event {
	sc := &y.scope
	add := func(k Kind, x uint32) { evs = append(evs, Event{k, unpackChunk(x).room, x}) }
	for _, x := range w.wire.all() {
		add(arrive, x)
		if sc.Again {
			add(again, x)
		}
	}
	for i := range w.nIn {
		x := w.in[i].id
		add(body, x)
		if sc.Refuse {
			add(refuse, x)
		}
	}
	for i := range w.nWrites {
		x := w.writes[i].id
		add(returns, x)
		if sc.WriteFails {
			add(writeFails, x)
		}
		if sc.WriteLate {
			add(writeLate, x)
		}
	}
	return evs
}

func (y *System) linkEvents(w *world, evs []Event) []Event {
	sc := &y.scope
	add := func(k Kind, conn uint8) { evs = append(evs, Event{k, 0, uint32(conn)}) }
	for k := uint8(1); k <= w.conn; k++ {
		d, p := w.dUp && w.dCut>>k&1 == 0, w.pUp && w.pCut>>k&1 == 0
		if d && w.pCut>>k&1 == 1 {
			add(cutD, k)
		}
		if p && w.dCut>>k&1 == 1 {
			add(cutP, k)
		}
		if d && sc.Silent {
			add(staleD, k)
		}
		if p && sc.Silent {
			add(staleP, k)
		}
		if d && p && w.breaks > 0 {
			add(breakD, k)
			add(breakP, k)
		}
	}
	if w.dUp && w.dialing {
		if w.pUp && w.conn < y.scope.conns() {
			add(linkUp, w.conn+1)
		} else {
			add(noLink, 0)
		}
	}
	return evs
}

func (y *System) timerEvents(w *world, evs []Event) []Event {
	if w.pUp {
		w.p.Timers(func(_ time.Duration, t room.Timer) bool {
			switch {
			case t.Kind == room.DeadlineTimer:
				evs = append(evs, Event{deadlineP, uint8(t.Room - 1), 0})
				if y.scope.GiveUpP {
					evs = append(evs, Event{giveUpP, uint8(t.Room - 1), 0})
				}
			case w.forget > 0:
				evs = append(evs, Event{forgetP, 0, 0})
			}
			return true
		})
	}
	if w.dUp {
		w.d.Timers(func(_ time.Duration, t room.Timer) bool {
			switch {
			case t.Kind == room.DeadlineTimer:
				evs = append(evs, Event{deadlineD, uint8(t.Room - 1), 0})
				if r := uint8(t.Room - 1); y.scope.GiveUp && (y.scope.Gateway || w.leased(r)) {
					evs = append(evs, Event{giveUp, r, 0})
				}
			case t.Kind == room.ResendTimer:
				if y.scope.Resend {
					evs = append(evs, Event{resend, uint8(t.Room - 1), 0})
				}
			case w.forget > 0:
				evs = append(evs, Event{forgetD, 0, 0})
			}
			return true
		})
	}
	return evs
}

// leased says that decode holds a lease for the room, so that prefill will hear if it gives up.
func (w *world) leased(r uint8) bool {
	for v := range w.d.Rooms {
		if v.Room == id(r) {
			return v.Lease.Seq != 0
		}
	}
	return false
}

// Name says what e does, in a chart.
func (y *System) Name(_ *world, e Event) string {
	row := kindTable[e.Kind]
	switch e.Kind {
	case deliver, twice, lose:
		how := map[Kind]string{twice: "   (and again)", lose: "   ✗ LOST"}[e.Kind]
		return unpackMsg(e.Arg).String() + how
	case arrive, again:
		c := unpackChunk(e.Arg)
		how := map[Kind]string{again: "   (and again)"}[e.Kind]
		return fmt.Sprintf("r%d prefill ══ header of chunk %d, lease %d/%d, connection %d ══▶ decode%s", c.room+1, c.n, c.boot, c.seq, c.conn, how)
	case body, refuse, returns, writeFails, writeLate:
		c := unpackChunk(e.Arg)
		return fmt.Sprintf("r%d %s (chunk %d, lease %d/%d)", c.room+1, row.name, c.n, c.boot, c.seq)
	case cutD, cutP, staleD, staleP, breakD, breakP, linkUp:
		return fmt.Sprintf("%s %d", row.name, e.Arg)
	case crashP, crashD, restartP, restartD, noLink, forgetP, forgetD, drainP, drainD:
		return row.name
	}
	return fmt.Sprintf("r%d %s", e.Room+1, row.name)
}

func (m msg) String() string {
	at := fmt.Sprintf("r%d ", m.room+1)
	switch m.kind {
	case msgRequestP:
		return at + "gateway ── Request ──▶ prefill"
	case msgRequestD:
		return at + "gateway ── Request ──▶ decode"
	case msgAbortP:
		return at + "gateway ── Abort ──▶ prefill"
	case msgAbortD:
		return at + "gateway ── Abort ──▶ decode"
	case msgPrealloc:
		from := ""
		if m.from > 0 {
			from = fmt.Sprintf(", from block %d", m.from)
		}
		return at + fmt.Sprintf("decode ── Prealloc(lease %d/%d, connection %d%s) ──▶ prefill", m.boot, m.seq, m.n, from)
	case msgCancel:
		return at + fmt.Sprintf("decode ── Cancel(lease %d/%d) ──▶ prefill", m.boot, m.seq)
	}
	if m.n == 0 {
		return at + fmt.Sprintf("prefill ── Settled(lease %d/%d, failed) ──▶ decode", m.boot, m.seq)
	}
	return at + fmt.Sprintf("prefill ── Settled(lease %d/%d, success, %d chunks) ──▶ decode", m.boot, m.seq, m.n)
}
