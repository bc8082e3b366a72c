package room

import "fmt"

// TimerKind names a timer of a core. Cores arm timers, drivers fire them, the explorer fires
// any armed one at any moment: no core may rely on one timer being longer than another.
type TimerKind uint8

const (
	NoTimer        TimerKind = iota
	DeadlineTimer            // the request's time is over
	ResendTimer              // decode: nothing answered a Prealloc, say it again
	TombstoneTimer           // the oldest tombstone may go; it names no room
	timers
)

var timerNames = [timers]string{"none", "deadline", "resend", "tombstone"}

func (k TimerKind) String() string { return timerNames[k] }

// Timer is one armed timer: what NextTimer returns and what a driver gives back when its
// moment has come. Firing one that is no longer armed does nothing.
type Timer struct {
	Kind TimerKind
	Room ID // 0 for TombstoneTimer
}

func (t Timer) String() string {
	if t.Room == 0 {
		return t.Kind.String()
	}
	return fmt.Sprintf("%s of %s", t.Kind, t.Room)
}
