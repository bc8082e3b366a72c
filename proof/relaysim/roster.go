package relaysim

import (
	"slices"

	"baton/core/relay"
	"baton/core/room"
)

// worker is one place in the fleet and who fills it.
type worker struct {
	id      int32 // of this life
	state   workerState
	suspect bool // blamed for being lost, and not heard of since
}

type workerState uint8

const (
	well workerState = iota
	ill              // its health is not good: its legs go on, nothing is placed on it
	dead             // its legs ended with it; the next life is another worker
)

// lifeStep keeps the numbers of the lives of one place apart from those of all others.
const lifeStep = 2 * decodeBase

func (s *System) newRoster() []worker {
	var all []worker
	for i := range s.scope.Prefills {
		all = append(all, worker{id: int32(i)})
	}
	for i := range s.scope.Decodes {
		all = append(all, worker{id: decodeBase + int32(i)})
	}
	return all
}

func (w *World) alive(id int32) bool {
	return slices.ContainsFunc(w.workers, func(x worker) bool { return x.id == id && x.state != dead })
}

func (w *World) suspect(id int32) {
	for i := range w.workers {
		if w.workers[i].id == id {
			w.workers[i].suspect = true
		}
	}
}

// pair is what placement finds: the first usable workers that were not tried, or, where there is
// no other, such as nothing is held against.
func (w *World) pair(s *System, r *request) (prefill, decode int32) {
	first := func(all []worker) int32 {
		spare := relay.NoWorker
		for _, x := range all {
			switch {
			case x.state != well || x.suspect:
			case !slices.Contains(r.excluded, x.id):
				return x.id
			case spare == relay.NoWorker && slices.Contains(r.innocent, x.id):
				spare = x.id
			}
		}
		return spare
	}
	return first(w.workers[:s.scope.Prefills]), first(w.workers[s.scope.Prefills:])
}

// served says whether a pair is whole.
func (s *System) served(prefill, decode int32) bool {
	return decode != relay.NoWorker && (prefill != relay.NoWorker || s.scope.Prefills == 0)
}

// rosterEvents are what may happen to workers.
func (s *System) rosterEvents(w *World, dst []Event) []Event {
	if s.scope.Away == 0 {
		return dst
	}
	for i, x := range w.workers {
		n := uint8(i)
		if x.state == well && w.away > 0 {
			dst = append(dst, Event{Kind: Sicken, Worker: n}, Event{Kind: Die, Worker: n})
		}
		if x.state != well {
			dst = append(dst, Event{Kind: Return, Worker: n, Sure: s.scope.Back})
		} else if x.suspect {
			dst = append(dst, Event{Kind: Heard, Worker: n})
		}
	}
	return dst
}

// applyRoster changes the roster and tells the gateway of workers that may be placed on.
func (s *System) applyRoster(w *World, e Event) error {
	x := &w.workers[e.Worker]
	switch e.Kind {
	case Sicken:
		w.away--
		x.state = ill
		return nil
	case Die:
		w.away--
		x.state = dead
		for i := range w.requests {
			for l := range w.requests[i].legs {
				if g := &w.requests[i].legs[l]; g.worker == x.id && (g.state == dialled || g.state == working) {
					g.finish(post{outcome: room.Fail(room.WorkerLost)})
				}
			}
		}
		return nil
	case Return:
		if x.state == dead {
			x.id += lifeStep
		}
		x.state = well
	}
	x.suspect = false
	return s.step(w, relay.Event{Kind: relay.Roster, Worker: x.id})
}
