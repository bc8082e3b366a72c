package prefill

import "baton/core/room"

// Subject says which room and lease an event is about: for traces, so that one search finds the
// whole life of a room. Either is zero where there is none; Results name the rooms of a
// StepDone, and of a LinkEnd's lease only the boot is known.
func (e *Event) Subject() (room.ID, room.Lease) {
	switch e.Kind {
	case Prealloc:
		return e.Prealloc.Room, e.Prealloc.Lease
	case Cancel:
		return e.Cancel.Room, e.Cancel.Lease
	case LinkEnd:
		return 0, room.Lease{Boot: e.Boot}
	case TimerFired:
		return e.Timer.Room, room.Lease{}
	}
	return e.Room, e.Lease
}

// Subject says which room and lease an effect is about. Items name the rooms of a Step.
func (e *Effect) Subject() (room.ID, room.Lease) {
	if e.Kind == Settle {
		return e.Settled.Room, e.Settled.Lease
	}
	return e.Room, e.Lease
}

// PhaseOf names the phase that a room is in, "" for one that is not known here.
func (c *Core) PhaseOf(id room.ID) string {
	if e := c.find(id); e != nil {
		return e.phase.String()
	}
	if s := c.tombs.Find(id); s != nil {
		return ended(s.Outcome).String()
	}
	return ""
}
