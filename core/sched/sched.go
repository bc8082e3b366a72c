package sched

import "baton/core/room"

// Line serves one resource first come, first served, for one walk over the rooms.
type Line struct {
	free    int
	waiting bool
}

// NewLine returns a line for a resource of which free units are left.
func NewLine(free int) Line { return Line{free: free} }

// Take says whether the next room gets n units. After the first no, everybody gets a no (S1).
func (l *Line) Take(n int) bool {
	if l.waiting || n > l.free {
		l.waiting = true
		return false
	}
	l.free -= n
	return true
}

// Close turns everybody behind away.
func (l *Line) Close() { l.waiting = true }

// Closed says that nobody behind will get anything.
func (l *Line) Closed() bool { return l.waiting }

// Budget divides one engine step among the rooms that ask for a place in it, in order of
// arrival (S3, S4).
type Budget struct {
	left  int32 // tokens that no room has, the last part's among them
	parts []Part
}

// Part is one prompt's chunk in a step.
type Part struct {
	Slot   int32 // of the room, the core's
	Tokens int32 // a multiple of room.BlockTokens, or all that it needs (S2)
	need   int32
}

// NewBudget returns the budget of one step, in tokens.
func NewBudget(tokens int) Budget { return Budget{left: int32(tokens)} }

// Decode spends one token on a generating room. It is never refused: the slots bound how many
// there are. All of them come before the first prompt.
func (b *Budget) Decode() { b.left-- }

// Fits says whether a prompt of which need tokens are missing gets a part of this step. The
// first that asks always does (S5).
func (b *Budget) Fits(need int32) bool {
	return len(b.parts) == 0 || b.rest() >= min(need, room.BlockTokens)
}

// Full says that Fits refuses everybody.
func (b *Budget) Full() bool { return len(b.parts) > 0 && b.rest() < 1 }

// Add takes a prompt that fits into the step: whoever was the last so far keeps half.
func (b *Budget) Add(slot, need int32) {
	if n := len(b.parts); n > 0 {
		p := &b.parts[n-1]
		p.Tokens = b.half(p)
		b.left -= p.Tokens
	}
	b.parts = append(b.parts, Part{Slot: slot, need: need})
}

// rest is what is left behind the last part, if that one is content with half.
func (b *Budget) rest() int32 { return b.left - b.half(&b.parts[len(b.parts)-1]) }

// half is what p takes while others wait behind it.
func (b *Budget) half(p *Part) int32 {
	blocks := room.BlocksFor(int(b.left+1) / 2)
	return min(int32(max(blocks, 1)*room.BlockTokens), p.need)
}

// Parts ends the division: the last part takes all that is left, and what it does not need goes
// to the others, the first of them first. Each part is at least one token.
func (b *Budget) Parts() []Part {
	if n := len(b.parts); n > 0 {
		p := &b.parts[n-1]
		p.Tokens = b.half(p) // a block at least, even from a step that is full
		b.left -= p.Tokens
		b.raise(p)
	}
	for i := range b.parts {
		b.raise(&b.parts[i])
	}
	return b.parts
}

// raise gives p what it can use of what is left.
func (b *Budget) raise(p *Part) {
	more := min(p.need-p.Tokens, b.left)
	if more < p.need-p.Tokens {
		more = max(more, 0) / room.BlockTokens * room.BlockTokens
	}
	p.Tokens += more
	b.left -= more
}
