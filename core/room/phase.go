package room

// PhaseRow says of one phase of a core what operators call it, who moves it on and what ends it
// if that one never does. Each core has a table of them, which tests hold complete and equal to
// ARCHITECTURE.md.
type PhaseRow struct {
	Name     string
	Poll     Poll
	Queue    Queue  // NoQueue once ended
	WaitsFor string // the owner: whose move it is; "" once ended
	Exit     string // what ends the phase if the owner never moves
}

// OlderPrefix is what a room waits for, whatever its row says, while an older one computes blocks that
// it begins with, too (decode.D16, prefill.P12).
const OlderPrefix = "an older room's prefix"

// Row makes a PhaseRow: tables are read as tables.
func Row(name string, poll Poll, queue Queue, waitsFor, exit string) PhaseRow {
	return PhaseRow{name, poll, queue, waitsFor, exit}
}

// View shows a room that is over and remembered; row is that of its last phase.
func (s *Tombstone) View(row *PhaseRow) View {
	return View{Room: s.Room, Phase: row.Name, Poll: row.Poll, Queue: row.Queue, Began: s.Began, Since: s.Ended, Lease: s.Lease, Outcome: s.Outcome}
}

// Copy makes dst equal to src and reuses dst's memory, also that of the one slice that each
// record owns. Other slices in a record are shared.
func Copy[R, X any](dst, src []R, own func(*R) *[]X) []R {
	dst = dst[:cap(dst)]
	if n := len(src); len(dst) < n {
		dst = append(dst, make([]R, n-len(dst))...)
	}
	dst = dst[:len(src)]
	for i := range dst {
		kept := append((*own(&dst[i]))[:0], *own(&src[i])...)
		dst[i] = src[i]
		*own(&dst[i]) = kept
	}
	return dst
}
