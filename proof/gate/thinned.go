package gate

import (
	"slices"

	"baton/proof/explore"
)

// thinned is a system in which events of some classes never happen: what a scope has to have
// shown can then not be reached.
type thinned[S any, E comparable] struct {
	explore.System[S, E]
	gone  []explore.Class
	taken *int // events that were taken away
}

func (x thinned[S, E]) Events(s *S, dst []E) []E {
	return slices.DeleteFunc(x.System.Events(s, dst), func(e E) bool {
		gone := slices.Contains(x.gone, x.Class(e))
		if gone {
			*x.taken++
		}
		return gone
	})
}

// Witnesses and Shows are those of the system itself.
func (x thinned[S, E]) Witnesses() []string {
	if w, ok := x.System.(explore.Witness[S]); ok {
		return w.Witnesses()
	}
	return nil
}

func (x thinned[S, E]) Shows(s *S) uint64 {
	if w, ok := x.System.(explore.Witness[S]); ok {
		return w.Shows(s)
	}
	return 0
}

// DoneAlone is the system's, or Done if it makes no difference.
func (x thinned[S, E]) DoneAlone(s *S) bool {
	if i, ok := x.System.(explore.Islander[S]); ok {
		return i.DoneAlone(s)
	}
	return x.Done(s)
}
