package worker

import (
	"fmt"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
)

// trace logs one transition in the words of the core: what reached it ("event") or what it wants
// done ("effect"), the room's phase being that after the step. What is not known is left out.
func (w *Worker) trace(what string, kind fmt.Stringer, id room.ID, l room.Lease, peer string) {
	keys := append(make([]any, 0, 12), "worker", w.name, "event", kind.String())
	if id != 0 {
		keys = append(keys, "room", id, "phase", w.node.phase(id))
	}
	if l.Seq != 0 {
		keys = append(keys, "lease", l.String())
	}
	if peer != "" {
		keys = append(keys, "peer", peer)
	}
	w.log.Debug(what, keys...)
}

// trace logs an event that was just stepped and what it led to, a line for each room of a step.
func (n *prefillNode) trace(ev *prefill.Event) {
	log := func(what string, kind fmt.Stringer, id room.ID, l room.Lease) {
		peer := ""
		if l.Boot != 0 {
			peer = l.Boot.String()
		}
		n.w.trace(what, kind, id, l, peer)
	}
	id, l := ev.Subject()
	if ev.Kind != prefill.StepDone {
		log("event", ev.Kind, id, l)
	}
	for _, r := range ev.Results {
		log("event", ev.Kind, r.Room, room.Lease{})
	}
	for i := range n.out.List {
		x := &n.out.List[i]
		id, l := x.Subject()
		if x.Kind != prefill.Step {
			log("effect", x.Kind, id, l)
		}
		for _, it := range x.Items {
			log("effect", x.Kind, it.Room, room.Lease{})
		}
	}
}

// trace logs an event that was just stepped and what it led to, a line for each room of a step.
func (n *decodeNode) trace(ev *decode.Event) {
	log := func(what string, kind fmt.Stringer, id room.ID, l room.Lease, peer int32) {
		if e := n.w.rooms[id]; e != nil {
			peer = e.peer
		}
		n.w.trace(what, kind, id, l, n.peers.addr(peer))
	}
	id, l := ev.Subject()
	switch ev.Kind {
	case decode.StepDone:
	case decode.Request, decode.LinkUp, decode.LinkFailed, decode.LinkEnd:
		log("event", ev.Kind, id, l, ev.Peer)
	default:
		log("event", ev.Kind, id, l, decode.Local)
	}
	for _, r := range ev.Results {
		log("event", ev.Kind, r.Room, room.Lease{}, decode.Local)
	}
	for i := range n.out.List {
		x := &n.out.List[i]
		id, l := x.Subject()
		switch x.Kind {
		case decode.Step:
		case decode.Dial:
			log("effect", x.Kind, id, l, x.Peer)
		default:
			log("effect", x.Kind, id, l, decode.Local)
		}
		for _, it := range x.Items {
			log("effect", x.Kind, it.Room, room.Lease{}, decode.Local)
		}
	}
}
