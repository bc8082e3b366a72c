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

// Budget is what is left of one engine step, in tokens.
type Budget struct {
	left   int32
	chunks int
}

// NewBudget returns the budget of one step.
func NewBudget(tokens int) Budget { return Budget{left: int32(tokens)} }

// Decode spends one token on a generating room. It is never refused: the slots bound how many
// there are.
func (b *Budget) Decode() { b.left-- }

// Chunk returns the end of the chunk that a prompt of total tokens, of which the first from
// are computed, would get in this step. It is a multiple of room.BlockTokens or total (S2).
// It is from if the step is full; the first prompt that asks always gets a block (S3).
func (b *Budget) Chunk(from, total int32) (to int32) {
	n := b.left
	if b.chunks == 0 {
		n = max(n, room.BlockTokens)
	}
	if total-from <= n {
		return total
	}
	return from + max(n, 0)/room.BlockTokens*room.BlockTokens
}

// Spend takes a chunk of n tokens into the step.
func (b *Budget) Spend(n int32) {
	b.left -= n
	b.chunks++
}

// Full says that Chunk would refuse everybody.
func (b *Budget) Full() bool { return b.chunks > 0 && b.left < 1 }
