package gateway

import (
	"slices"
	"sync"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// inbox is what waits for one client: pieces of its choices and their endings. The loop puts
// in and never waits; the client's handler takes out.
type inbox struct {
	wake  chan struct{} // holds one token while something waits
	max   int           // bytes
	mu    sync.Mutex
	items []item // guarded by mu
	bytes int    // guarded by mu; of the items
}

// item is a piece of a choice, the word that it starts anew, or its ending.
type item struct {
	choice int
	line   leg.Line
	anew   int     // no piece: those of so many choices from this one on are taken back
	ending *ending // of the choices from this one on
}

// ending is the last that comes of the choices of a prompt.
type ending struct {
	first   int // choice
	outcome room.Outcome
	end     leg.End
	missing string
	slow    bool
	stopped bool          // by the gateway's own end
	after   time.Duration // when it may be worth while to come again
}

func newInbox(bytesMax int) *inbox {
	return &inbox{wake: make(chan struct{}, 1), max: bytesMax}
}

// push adds a piece and says whether there was room for it.
func (b *inbox) push(choice int, l *leg.Line) bool {
	size := bytesOf(l)
	b.mu.Lock()
	fits := b.bytes+size <= b.max
	if fits {
		b.bytes += size
		b.items = append(b.items, item{choice: choice, line: *l})
	}
	b.mu.Unlock()
	b.signal()
	return fits
}

// how says how the choice of a last piece ended.
func (it *item) how() leg.Choice {
	return leg.Choice{Finish: it.line.Finish, Matched: it.line.Matched}
}

// choices says how each of them ended, after a success.
func (e *ending) choices() []leg.Choice {
	if len(e.end.Choices) > 0 {
		return e.end.Choices
	}
	return []leg.Choice{{Finish: e.end.Finish, Matched: e.end.Matched}}
}

// anew takes back the pieces of n choices, here and at the handler (relay.G10).
func (b *inbox) anew(first, n int) {
	b.mu.Lock()
	b.items = slices.DeleteFunc(b.items, func(it item) bool {
		theirs := it.choice >= first && it.choice < first+n
		if theirs {
			b.bytes -= it.bytes()
		}
		return theirs
	})
	b.items = append(b.items, item{choice: first, anew: n})
	b.mu.Unlock()
	b.signal()
}

// end adds an ending; there is always room for it, as each prompt has one.
func (b *inbox) end(e ending) {
	b.mu.Lock()
	b.items = append(b.items, item{choice: e.first, ending: &e})
	b.mu.Unlock()
	b.signal()
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox into buf.
func (b *inbox) take(buf []item) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	buf = append(buf[:0], b.items...)
	clear(b.items)
	b.items = b.items[:0]
	b.bytes = 0
	return buf
}

// bytes is what push counted for the item.
func (it *item) bytes() int {
	if it.anew > 0 || it.ending != nil {
		return 0
	}
	return bytesOf(&it.line)
}

// bytesOf estimates what a piece takes in memory.
func bytesOf(l *leg.Line) int {
	const header, logprob, top = 128, 56, 40
	n := header + len(l.Text) + len(l.Matched) + 4*len(l.IDs)
	for i := range l.Logprobs {
		n += logprob + top*len(l.Logprobs[i].Top)
	}
	return n
}
