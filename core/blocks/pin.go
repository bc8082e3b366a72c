package blocks

import (
	"cmp"
	"slices"
	"time"
)

// Pinned is the number of blocks, cached or held, that are pinned.
func (p *Pool) Pinned() int { return len(p.ends) }

// PinnedAt is Pinned without those whose time is over at now, which Expire has yet to find.
func (p *Pool) PinnedAt(now time.Duration) int { return len(p.ends) - p.over(0, now) }

// over counts the pins from one place of the heap down that are over at now. It looks at no others.
func (p *Pool) over(i int, now time.Duration) int {
	if i >= len(p.ends) || p.blocks[p.ends[i]].until > now {
		return 0
	}
	return 1 + p.over(2*i+1, now) + p.over(2*i+2, now)
}

// Pin keeps the beginning of a table that is held, as far as it can be found, in the cache until a
// moment: nothing else is changed than the order in which blocks are evicted (B9). Of a prompt that
// two rooms filled at the same time the copy that is found is pinned, whoever asks. No more than most
// blocks of the pool are pinned; what is pinned already stays so until the later moment.
func (p *Pool) Pin(table []int32, until time.Duration, most int) {
	n, left := 0, most-len(p.ends)
	for ; n < len(table); n++ {
		p.check(table[n], held, "pin")
		b := p.copyOf(table[n])
		if b == none {
			break // what is behind it would be of no use
		}
		if p.blocks[b].until == 0 {
			if left <= 0 {
				break
			}
			left--
		}
	}
	for _, b := range slices.Backward(table[:n]) { // a use of what is cached: the tail goes first (B6)
		p.pin(p.copyOf(b), max(until, 1))
	}
}

// copyOf is the block that is found under the key of a held one; itself, if there is none and it may
// be found from now on; or none.
func (p *Pool) copyOf(b int32) int32 {
	x := &p.blocks[b]
	if x.found {
		return b
	}
	if !x.keyed {
		return none
	}
	if first := p.index.find(p.index.keys[b]); first != none || x.barred {
		return first
	}
	return b
}

// pin pins one block.
func (p *Pool) pin(b int32, until time.Duration) {
	x := &p.blocks[b]
	if !x.found {
		p.index.add(p.blocks, b)
	}
	if x.place == cached {
		p.unlink(b)
	}
	if x.until == 0 {
		x.at = int32(len(p.ends))
		p.ends = append(p.ends, b)
	}
	if until > x.until {
		x.until = until
		p.settleEnd(x.at)
	}
	if x.place == cached {
		p.link(b)
	}
}

// Expire ends the pins whose time is over. It costs nothing before that, and then no more than they
// have cost whoever pinned.
func (p *Pool) Expire(now time.Duration) {
	all := p.ends
	for len(p.ends) > 0 && p.blocks[p.ends[0]].until <= now {
		p.takeEnd(0)
	}
	over := all[len(p.ends):]
	if len(over) > 1 { // in the order of their use, behind those that were used with them and not pinned
		slices.SortFunc(over, func(a, b int32) int { return cmp.Compare(p.blocks[a].used, p.blocks[b].used) })
	}
	for _, b := range over {
		x := &p.blocks[b]
		if x.place != cached {
			x.until = 0
			continue
		}
		p.unlink(b)
		x.until = 0
		p.link(b)
	}
}

// unpin ends the pin of a block that is in no list, if it has one.
func (p *Pool) unpin(b int32) {
	if x := &p.blocks[b]; x.until > 0 {
		p.takeEnd(x.at)
		x.until = 0
	}
}

// takeEnd takes a block out of the heap; it stands behind the others then.
func (p *Pool) takeEnd(i int32) {
	last := int32(len(p.ends)) - 1
	p.swapEnds(i, last)
	p.ends = p.ends[:last]
	if i < last {
		p.settleEnd(i)
	}
}

// settleEnd finds the place in the heap of the block that stands at i and has a new end.
func (p *Pool) settleEnd(i int32) {
	until := func(i int32) time.Duration { return p.blocks[p.ends[i]].until }
	for i > 0 && until(i) < until((i-1)/2) {
		p.swapEnds(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for n := int32(len(p.ends)); 2*i+1 < n; {
		next := 2*i + 1
		if next+1 < n && until(next+1) < until(next) {
			next++
		}
		if until(i) <= until(next) {
			return
		}
		p.swapEnds(i, next)
		i = next
	}
}

func (p *Pool) swapEnds(i, k int32) {
	e := p.ends
	e[i], e[k] = e[k], e[i]
	p.blocks[e[i]].at, p.blocks[e[k]].at = i, k
}
