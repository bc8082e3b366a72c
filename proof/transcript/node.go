package transcript

import (
	"fmt"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// Node is what both cores of a pair show of themselves.
type Node interface {
	Blocks() blocks.Count
	Rooms(yield func(room.View) bool)
	Ended(yield func(room.View) bool)
	NextTimer() (at time.Duration, t room.Timer, ok bool)
}

// ShowNode returns the rows of a core with these queues.
func ShowNode(n Node, queues []room.QueueStat, now time.Duration) (rows []string) {
	row := func(format string, a ...any) { rows = append(rows, fmt.Sprintf(format, a...)) }
	row("blocks %+v", n.Blocks())
	for _, q := range queues {
		if q.Len > 0 {
			row("%s: %d, oldest %v", q.Queue, q.Len, now-q.Oldest)
		}
	}
	for _, rooms := range []func(func(room.View) bool){n.Rooms, n.Ended} {
		for v := range rooms {
			s := fmt.Sprintf("room %d: %s (%s) for %v", v.Room, v.Phase, v.Poll, now-v.Since)
			if v.Outcome.Ended() {
				s += fmt.Sprintf(", %s", v.Outcome)
			}
			if v.WaitsFor != "" {
				s += ", waits for " + v.WaitsFor
			}
			row("%s", s)
		}
	}
	if at, timer, ok := n.NextTimer(); ok {
		row("next timer: %s of %d in %v", timer.Kind, timer.Room, at-now)
	}
	return rows
}
