package sched

import "baton/core/room"

// Blocks is how many blocks a room is let in with (S6): for its prompt of tokens, the output that
// it made so far, and ahead tokens more, or 0 for all, of an output of at most most tokens.
func Blocks(tokens, made, most, ahead int) int {
	if ahead == 0 || ahead > most-made {
		ahead = most - made
	}
	return room.BlocksFor(tokens + made + ahead)
}

// Branches is how many blocks a room of n outputs is let in with: the full ones of its prompt once,
// and for each output all that it may need behind them (S6).
func Branches(tokens, most, n int) int {
	common := tokens / room.BlockTokens
	return common + n*(room.BlocksFor(tokens+most)-common)
}

// Yield finds who gives its blocks back for a room that needs one when none is left (S7, S8). The
// core tells it every room that holds blocks, in order of arrival.
type Yield struct {
	of      int32 // slot of the needy room
	slot    int32 // the youngest so far that can, from the needy room on
	isPast  bool  // the needy room was named
	isOlder bool  // somebody before it holds blocks and is not waited for itself
	isSoon  bool  // somebody will give blocks back, or be able to
}

// NewYield asks for the room in slot of.
func NewYield(of int32) Yield { return Yield{of: of, slot: of} }

// Holds names a room that holds blocks; can says that it could give them back now.
func (y *Yield) Holds(slot int32, can bool) {
	switch {
	case slot == y.of:
		y.isPast = true
	case !y.isPast:
		y.isOlder = y.isOlder || can
	case can:
		y.slot = slot
	default:
		y.isSoon = true
	}
}

// Leaves says that a room which ends still holds blocks.
func (y *Yield) Leaves() { y.isSoon = true }

// Slot is the room that yields, which may be the needy one. It is room.None if the needy room has
// to wait.
func (y *Yield) Slot() int32 {
	if y.slot == y.of && (y.isSoon || !y.isOlder) {
		return room.None
	}
	return y.slot
}
