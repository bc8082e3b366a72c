package poolsim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"baton/core/blocks"
	"baton/proof/explore"
)

// HolderScope sizes a world of holders over the pool alone.
type HolderScope struct {
	Prompts    []string // one holder each
	Lives      int      // how often each comes
	Blocks     int
	Pins       int  // blocks that may be pinned at a time, by who leaves
	Quarantine bool // an operation on a holder's blocks may be given up and still be under way
}

// HolderWorld is one state: the pool, and who holds what.
type HolderWorld struct {
	pool    blocks.Pool
	mem     memory
	holders []holder
	apart   [][]int32 // quarantined tables, in order; nobody knows whether their operations write
	shows   uint64
}

// holder is a room without a core around it.
type holder struct {
	lives   int
	table   []int32 // nil: it is not here
	done    int     // blocks that are filled and published
	filling bool    // block done is being written to
	over    bool    // given up while filling: it goes when that is over
}

// HolderEvent is one choice of the scheduler.
type HolderEvent struct {
	Kind HolderKind
	Who  uint8 // a holder, or a quarantined table
}

// HolderKind of a choice.
type HolderKind uint8

const (
	Enter      HolderKind = iota // it matches, and takes the rest
	Fill                         // it begins to compute its next block
	Filled                       // that came home, and is published
	Spoilt                       // that failed: it goes
	GiveUp                       // its time is over: it goes, at once if nothing is under way
	Leave                        // it has all of its blocks, and goes
	Quarantine                   // it goes, and an operation on its blocks may still be under way
	Clear                        // the proof comes
	Pin                          // it has all of its blocks, pins them as far as that goes, and goes
	PinLonger                    // the same, until later
	PinsOver                     // the time of the earlier pins is over
	AllOver                      // that of all is
	holderKinds
)

var holderKindNames = [holderKinds]string{"enters", "begins a block", "has a block", "fails", "gives up", "leaves", "is quarantined", "is cleared", "pins, and leaves", "pins for longer, and leaves", "pins are over", "all pins are over"}

func (k HolderKind) String() string { return holderKindNames[k] }

// Holders explores a scope.
type Holders struct{ scope HolderScope }

// NewHolders returns the system of a scope.
func NewHolders(sc HolderScope) *Holders { return &Holders{sc} }

func (s *Holders) Init() HolderWorld {
	w := HolderWorld{pool: blocks.New(s.scope.Blocks), mem: newMemory(s.scope.Blocks), holders: make([]holder, len(s.scope.Prompts))}
	if s.scope.Pins > 0 {
		w.mem.pins = make([]uint8, s.scope.Blocks)
	}
	return w
}

func (s *Holders) Clone(w *HolderWorld) HolderWorld {
	var d HolderWorld
	s.CopyInto(&d, w)
	return d
}

func (s *Holders) CopyInto(dst, src *HolderWorld) {
	src.pool.CopyTo(&dst.pool)
	src.mem.copyTo(&dst.mem)
	dst.holders = append(dst.holders[:0], src.holders...)
	dst.apart = append(dst.apart[:0], src.apart...)
	dst.shows = 0
}

// Done: everybody is gone for good, every quarantine has had its proof.
func (s *Holders) Done(w *HolderWorld) bool {
	for i := range w.holders {
		if h := &w.holders[i]; h.table != nil || h.lives < s.scope.Lives {
			return false
		}
	}
	n := w.pool.Count()
	return len(w.apart) == 0 && n.Held+n.Quarantined == 0
}

func (s *Holders) Class(e HolderEvent) explore.Class {
	switch e.Kind {
	case Spoilt, Quarantine:
		return explore.Fault
	case GiveUp, PinsOver, AllOver:
		return explore.Environment
	}
	return explore.Progress
}

func (s *Holders) Events(w *HolderWorld, dst []HolderEvent) []HolderEvent {
	for i := range w.holders {
		h, who := &w.holders[i], uint8(i)
		switch {
		case h.table == nil:
			if h.lives == s.scope.Lives {
				continue
			}
			keys := keysOf(s.scope.Prompts[i])
			if n, cached := w.pool.Find(keys[:len(keys)-1]); len(keys)-n+cached <= w.pool.Available() {
				dst = append(dst, HolderEvent{Enter, who})
			}
			continue
		case h.filling:
			dst = append(dst, HolderEvent{Filled, who}, HolderEvent{Spoilt, who})
		case h.done < len(h.table):
			dst = append(dst, HolderEvent{Fill, who})
		default:
			dst = append(dst, HolderEvent{Leave, who})
			if s.scope.Pins > 0 {
				dst = append(dst, HolderEvent{Pin, who}, HolderEvent{PinLonger, who})
			}
			if s.scope.Quarantine && len(w.apart) == 0 {
				dst = append(dst, HolderEvent{Quarantine, who})
			}
		}
		if !h.over {
			dst = append(dst, HolderEvent{GiveUp, who})
		}
	}
	for i := range w.apart {
		dst = append(dst, HolderEvent{Clear, uint8(i)})
	}
	for then, e := range [...]HolderKind{PinsOver, AllOver} {
		if slices.Contains(w.mem.pins, uint8(then+1)) {
			dst = append(dst, HolderEvent{e, 0})
		}
	}
	return dst
}

func (w *HolderWorld) held(b int32) bool { return w.users(b) > 0 }

// users counts the tables that have a block.
func (w *HolderWorld) users(b int32) (n int) {
	for i := range w.holders {
		if slices.Contains(w.holders[i].table, b) {
			n++
		}
	}
	return n
}

func (w *HolderWorld) isApart(b int32) bool {
	return slices.ContainsFunc(w.apart, func(table []int32) bool { return slices.Contains(table, b) })
}

func (s *Holders) Apply(w *HolderWorld, e HolderEvent) error {
	w.shows = 0
	if e.Kind == Clear {
		table := w.apart[e.Who]
		w.apart = slices.Delete(w.apart, int(e.Who), int(e.Who)+1)
		w.show(proven)
		if err := s.freed(w, w.pool.Clear(table), table); err != nil {
			return err
		}
		return s.check(w)
	}
	if e.Kind == PinsOver || e.Kind == AllOver {
		then := uint8(e.Kind-PinsOver) + 1
		w.pool.Expire(time.Duration(then))
		w.shows |= w.mem.over(then)
		return s.check(w)
	}
	h, prompt := &w.holders[e.Who], s.scope.Prompts[e.Who]
	var err error
	switch e.Kind {
	case Enter:
		err = s.enter(w, h, prompt)
	case Fill:
		w.pool.Own(h.table[h.done:])
		if w.users(h.table[h.done]) != 1 || w.isApart(h.table[h.done]) {
			return fmt.Errorf("OWN: block %d is written to while others use it", h.table[h.done])
		}
		h.filling = true
	case Filled:
		err = s.filled(w, h, prompt)
	case GiveUp:
		h.over = true
		if !h.filling {
			err = s.leave(w, h)
			break
		}
		w.show(midway)
	case Spoilt, Leave, Pin, PinLonger:
		h.filling = false
		if e.Kind != Spoilt {
			w.show(success)
		}
		if e.Kind == Pin || e.Kind == PinLonger {
			before, until := w.mem.found(s.scope.Prompts, w.pool.Found), uint8(e.Kind-Pin)+1
			w.pool.Pin(h.table, time.Duration(until), s.scope.Pins)
			w.shows |= w.mem.pin(prompt, h.table, until, s.scope.Pins, w.mem.first(before, w.pool.Found))
		}
		err = s.leave(w, h)
	case Quarantine:
		if slices.ContainsFunc(h.table, func(b int32) bool { return w.users(b) > 1 }) {
			w.show(apart)
		}
		w.pool.Quarantine(h.table)
		for _, b := range h.table {
			w.mem.used[b] = w.users(b) > 1
		}
		w.apart = append(w.apart, h.table)
		*h = holder{lives: h.lives}
	}
	if err != nil {
		return err
	}
	return s.check(w)
}

func (s *Holders) enter(w *HolderWorld, h *holder, prompt string) error {
	keys := keysOf(prompt)
	keys = keys[:len(keys)-1]
	found := w.pool.Match(keys)
	for _, b := range found {
		if w.show(hit); w.held(b) {
			w.show(shared)
		}
	}
	h.lives++
	h.table, h.done = found, len(found)
	for _, b := range w.pool.Take(len(prompt) - len(found)) {
		if w.held(b) || w.isApart(b) {
			return fmt.Errorf("QUIET: block %d is given out while somebody uses it", b)
		}
		evicted, err := w.mem.give(b, w.held)
		if err != nil {
			return err
		}
		if evicted {
			w.show(wasEvicted)
		}
		h.table = append(h.table, b)
	}
	return w.mem.holds(prompt, h.table, h.done)
}

// filled publishes a block whose step has come home.
func (s *Holders) filled(w *HolderWorld, h *holder, prompt string) error {
	h.filling = false
	w.mem.fill(prompt, h.table, h.done)
	if h.over {
		return s.leave(w, h)
	}
	key := keysOf(prompt)[h.done : h.done+1]
	if _, ok := w.pool.Found(key[0]); ok {
		w.show(private)
	}
	w.pool.Publish(h.table[h.done:h.done+1], key)
	h.done++
	return nil
}

func (s *Holders) leave(w *HolderWorld, h *holder) error {
	table := h.table
	*h = holder{lives: h.lives}
	return s.freed(w, w.pool.Release(table), table)
}

// freed checks what has become free of a table that is no longer used.
func (s *Holders) freed(w *HolderWorld, freed, table []int32) error {
	for _, b := range freed {
		if !slices.Contains(table, b) || w.held(b) || w.isApart(b) {
			return fmt.Errorf("QUIET: block %d of %v is freed while somebody uses it", b, table)
		}
		w.mem.used[b] = false
		w.mem.free(b)
	}
	for _, b := range table { // the others are shared, cached, or quarantined still
		if w.isApart(b) && !w.held(b) {
			w.mem.used[b] = false
		}
	}
	return nil
}

func (s *Holders) check(w *HolderWorld) error {
	for b := range int32(s.scope.Blocks) {
		if got, want := w.pool.Holders(b), w.users(b); got != want {
			return fmt.Errorf("RELEASE: the pool says that %d hold block %d, %d do", got, b, want)
		}
	}
	if err := w.mem.checkedPins(w.pool.Pinned()); err != nil {
		return err
	}
	if len(w.apart) > 0 {
		for _, p := range s.scope.Prompts {
			for i := range p {
				if b, ok := w.pool.Found(keyOf(p[:i+1])); ok && w.isApart(b) {
					return fmt.Errorf("QUIET: block %d is quarantined and can be found as %q", b, p[:i+1])
				}
			}
		}
	}
	return w.mem.checked(s.scope.Prompts, w.pool.Count(), w.pool.Found, w.held)
}

// Key names blocks by the order in which the tables have them.
func (s *Holders) Key(w *HolderWorld, b []byte) []byte {
	b = w.pool.AppendState(b)
	var names []int32
	list := func(table []int32) {
		b = append(b, byte(len(table)))
		for _, x := range table {
			i := slices.Index(names, x)
			if i < 0 {
				i = len(names)
				names = append(names, x)
			}
			b = w.pool.AppendBlock(append(b, byte(i)), x)
		}
	}
	for i := range w.holders {
		h := &w.holders[i]
		b = append(binary.AppendUvarint(b, uint64(h.lives)), byte(h.done), flag(h.filling)|flag(h.over)<<1)
		list(h.table)
	}
	for _, table := range w.apart {
		list(table)
	}
	return b
}

func (w *HolderWorld) show(i int) { w.shows |= 1 << i }

func (s *Holders) Witnesses() []string         { return sights[:] }
func (s *Holders) Shows(w *HolderWorld) uint64 { return w.shows }

func (s *Holders) Columns() []string {
	var c []string
	for i, p := range s.scope.Prompts {
		c = append(c, fmt.Sprintf("holder %d %q", i+1, p))
	}
	return append(c, "apart", "pool")
}

func (s *Holders) Cells(w *HolderWorld, dst []string) []string {
	for i := range w.holders {
		cell := ""
		if h := &w.holders[i]; h.table != nil {
			cell = fmt.Sprintf("%v, %d filled", h.table, h.done)
		}
		dst = append(dst, cell)
	}
	all := ""
	for _, table := range w.apart {
		all += fmt.Sprint(table)
	}
	return append(dst, all, w.mem.String())
}

func (s *Holders) Name(_ *HolderWorld, e HolderEvent) string {
	switch e.Kind {
	case Clear:
		return "the proof comes for a quarantined table"
	case PinsOver, AllOver:
		return e.Kind.String()
	}
	return fmt.Sprintf("holder %d %s", e.Who+1, e.Kind)
}
