package sim

import (
	"cmp"
	"fmt"
	"strings"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
	"baton/proof/life"
)

// Scope says how large a world is and what may happen in it.
type Scope struct {
	Rooms       int
	Tokens      int // length of every prompt
	MaxNew      int // tokens of output
	BlocksP     int // source pool
	BlocksD     int // destination pool
	Slots       int // rooms that may generate at once
	ChunkTokens int
	Keys        bool // all rooms have one prompt, and prefix caches may keep it
	KnownD      int  // blocks of it that decode's first life has in its cache from the beginning
	KnownP      int  // the same of prefill's
	Ahead       int  // tokens of output that decode reserves ahead, 0 for all: rooms may be retracted
	Local       bool // the unified role: decode prefills by itself, there is no prefill worker

	Twice      bool  // messages may arrive any number of times
	Lose       bool  // messages may be lost
	Tied       bool  // control messages travel on links and are lost with them; otherwise they outlive links and processes, which is worse than what can be
	Abort      bool  // the client may give up, once per room; both legs are told
	GiveUp     bool  // decode may end a room by itself, telling only prefill
	GiveUpP    bool  // prefill may end a room by itself, telling only decode
	Gateway    bool  // when a leg fails, the other one is told
	WriteFails bool  // a write may fail cleanly
	WriteLate  bool  // a write may be reported failed and arrive all the same
	Again      bool  // a chunk may arrive twice on its connection, as on no stream that we have
	Refuse     bool  // a chunk may arrive with wrong bytes
	StepFails  bool  // an engine step may fail
	Drain      bool  // each side may be told to take no new rooms
	Silent     bool  // each side may end a connection on which nothing moves
	Resend     bool  // the resend timer runs
	Recut      bool  // prefill's second life makes chunks of twice the size
	Alike      bool  // rooms are alike, so that decode may hear of them in the order of their numbers: other runs are mirror images. Not with Twice
	Once       bool  // also demand at most one pass and one generation per room and life
	Leases     uint8 // leases over the life of the world, Requests beyond are lost; 0 means 3
	Conns      uint8 // data connections over its life, dials beyond are refused; 0 means 3
	Breaks     uint8 // how often a data connection may end
	CrashP     uint8 // how often each side may crash
	CrashD     uint8
	Forget     uint8 // how many tombstones may expire
}

func (sc *Scope) leases() uint8 { return cmp.Or(sc.Leases, 3) }
func (sc *Scope) conns() uint8  { return cmp.Or(sc.Conns, 3) }

// System explores one scope.
type System struct {
	Prefill, Decode *life.Log // see what the cores move; nil: nobody looks

	scope    Scope
	outP     prefill.Effects
	outD     decode.Effects
	answers  int      // Accept and Refuse in the last step
	places   int      // Place in the last step
	failed   []uint32 // writes of the last step that have no connection
	arriving uint32   // the chunk that decode is being asked about

	// What a core shows of its rooms; note fills it, made once because it is called so often.
	note    func(room.View) bool
	decided [roomsMax]room.Outcome
	here    uint8             // live rooms, one bit each
	over    uint8             // who ended in this step, a bit per room
	held    [roomsMax][]int32 // Keys: decode's tables before the step
}

// New returns the system of a scope.
func New(sc Scope) *System {
	y := &System{scope: sc}
	y.note = func(v room.View) bool {
		y.decided[v.Room-1] = v.Outcome
		y.here |= 1 << (v.Room - 1)
		return true
	}
	return y
}

// Init returns a world in which the gateway has just sent every request to both sides.
func (y *System) Init() world {
	w := world{pUp: !y.scope.Local, dUp: true, pInc: 1, dInc: 1}
	w.breaks, w.crashP, w.crashD, w.forget = y.scope.Breaks, y.scope.CrashP, y.scope.CrashD, y.scope.Forget
	if y.scope.Local {
		w.pInc = bootsMax // it never comes
	}
	y.newP(&w)
	y.newD(&w)
	y.knowsP(&w, y.scope.KnownP)
	y.knowsD(&w, y.scope.KnownD)
	for r := range uint8(y.scope.Rooms) {
		w.net.add(msg{kind: msgRequestD, room: r}.pack())
		if !y.scope.Local {
			w.net.add(msg{kind: msgRequestP, room: r}.pack())
		}
	}
	return w
}

// Done says that every room is over on both sides and nothing is held or on its way.
func (y *System) Done(w *world) bool {
	for _, x := range w.net.all() {
		if k := unpackMsg(x).kind; k == msgRequestP || k == msgRequestD {
			return false // not even started
		}
	}
	return w.wire.n == 0 && y.DoneAlone(w)
}

// DoneAlone says the same where what lies in the dead link does not count.
func (y *System) DoneAlone(w *world) bool {
	if w.nIn != 0 || w.nWrites != 0 || w.pStep.n != 0 || w.dStep.n != 0 || w.begin != 0 {
		return false
	}
	return (!w.pUp || w.p.Idle()) && (!w.dUp || w.d.Idle())
}

// Witnesses, in the order of their bits.
const (
	sawSuccess = iota
	sawDeadline
	sawAbortP     // prefill ended a leg that was aborted
	sawAbortD     // decode did
	sawFailed     // a leg failed
	sawRevoked    // a chunk was turned away
	sawDrainP     // prefill decided how a room ends while its step or a write was under way
	sawDrainD     // decode, while a receiver, its step or its first token was
	sawCrash      // a worker is there again after a crash
	sawForget     // a tombstone expired
	sawBreak      // a connection ended
	sawRetract    // decode took a room's blocks back
	sawFound      // a room succeeded that had found some of its blocks
	sawShared     // a room gave a block back that another one reads
	sawFoundBreak // a lease on the rest of a prompt went with its link
	sawFoundCrash // decode crashed and had found blocks of a room
	witnesses
)

// Witnesses names what may be seen.
func (y *System) Witnesses() []string {
	return []string{"success", "deadline", "prefill aborted", "decode aborted", "failed", "chunk turned away", "prefill drains", "decode drains", "restart", "tombstone expires", "connection ends", "retracted",
		found, foundShared, foundBreak, foundCrash}
}

// Shows returns what the last event showed.
func (y *System) Shows(w *world) uint64 { return w.shows }

func (w *world) saw(o room.Outcome, aborted int) {
	switch o.Kind {
	case room.Aborted:
		w.shows |= 1 << aborted
	case room.Failed:
		w.shows |= 1 << sawFailed
	}
}

// Columns of a chart.
func (y *System) Columns() []string { return []string{"prefill", "decode", "blocks free"} }

// Cells of a chart.
func (y *System) Cells(w *world, dst []string) []string {
	p, d, free := "down", "down", ""
	if w.pUp {
		p = phases(w.p.Rooms, w.p.Ended)
		free = freeOf(w.p.Blocks())
	}
	if w.dUp {
		d = phases(w.d.Rooms, w.d.Ended)
		free += " " + freeOf(w.d.Blocks())
	}
	return append(dst, p, d, strings.TrimSpace(free))
}

func freeOf(n blocks.Count) string { return fmt.Sprintf("%d/%d", n.Free, n.Total) }

func phases(each ...func(func(room.View) bool)) string {
	var all []string
	for _, rooms := range each {
		for v := range rooms {
			all = append(all, fmt.Sprintf("r%d:%s", v.Room, v.Phase))
		}
	}
	return strings.Join(all, " ")
}

// Stuck names what never ends.
func (y *System) Stuck(w *world) string {
	var all []string
	if w.pUp {
		for v := range w.p.Rooms {
			all = append(all, fmt.Sprintf("prefill room %d stays in %s, waits for %s", v.Room, v.Phase, v.WaitsFor))
		}
	}
	if w.dUp {
		for v := range w.d.Rooms {
			all = append(all, fmt.Sprintf("decode room %d stays in %s, waits for %s", v.Room, v.Phase, v.WaitsFor))
		}
	}
	return strings.Join(all, "; ")
}

// Concerns leaves out the events of rooms that are over.
func (y *System) Concerns(_ *world, e Event, last *world) bool {
	if e.Kind >= crashP && e.Kind <= restartD || e.Kind >= cutD && e.Kind <= noLink {
		return true
	}
	live := false
	here := func(v room.View) bool {
		live = true
		return v.Room != id(e.Room)
	}
	stuck := false
	for _, rooms := range []func(func(room.View) bool){last.p.Rooms, last.d.Rooms} {
		rooms(func(v room.View) bool {
			if !here(v) {
				stuck = true
			}
			return true
		})
	}
	return stuck || !live
}

var (
	_ explore.System[world, Event] = (*System)(nil)
	_ explore.Copier[world]        = (*System)(nil)
	_ explore.Islander[world]      = (*System)(nil)
	_ explore.Witness[world]       = (*System)(nil)
	_ explore.Drawer[world]        = (*System)(nil)
	_ explore.Finder[world]        = (*System)(nil)
	_ explore.Focus[world, Event]  = (*System)(nil)
)
