package sim

import "baton/proof/explore"

// Rare is a System in which faults, timers and clients that leave are rare, as they are in
// life: a random walk among all that is possible loses every request before it begins. What
// is hidden in a state depends on the state alone, so a way can still be gone again.
type Rare struct {
	*System
	One uint64 // one in so many faults is possible in a state; crashes are rarer still
	key []byte
	all []Event
}

// Events appends what is possible in w: everything that moves on, and a few of the others.
func (x *Rare) Events(w *world, evs []Event) []Event {
	x.key = x.Key(w, x.key[:0])
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range x.key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	x.all = x.System.Events(w, x.all[:0])
	moving := false
	for _, e := range x.all {
		c := x.Class(e)
		moving = moving || c == explore.Progress || c == explore.Delivery
	}
	for _, e := range x.all {
		one := x.One
		switch c := x.Class(e); {
		case c == explore.Progress, c == explore.Delivery, !moving && c == explore.Timer, e.Kind == restartP, e.Kind == restartD:
			one = 1
		case e.Kind == crashP || e.Kind == crashD:
			one *= 8
		}
		mine := (h ^ uint64(e.Kind)<<40 ^ uint64(e.Room)<<32 ^ uint64(e.Arg)) * 0x9e3779b97f4a7c15
		if mine>>32%one == 0 {
			evs = append(evs, e)
		}
	}
	return evs
}
