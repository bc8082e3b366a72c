package room

import (
	"fmt"
	"time"
)

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

// Soonest remembers which armed timer of a core is due first, so that a driver may ask after
// every event. The core tells it what is armed and disarmed; when the remembered timer itself
// goes, the core has to look again. The zero Soonest has to be told by a first look.
type Soonest struct {
	at    time.Duration
	timer Timer
	known bool
}

// Armed says that t is now armed for at.
func (s *Soonest) Armed(at time.Duration, t Timer) {
	if s.known && (s.timer.Kind == NoTimer || at < s.at) {
		s.at, s.timer = at, t
	}
}

// Disarmed says that t is armed no longer, or for another moment.
func (s *Soonest) Disarmed(t Timer) {
	if s.timer == t {
		s.known = false
	}
}

// Get returns the soonest timer; all yields every armed one, for when it is not known.
func (s *Soonest) Get(all func(yield func(time.Duration, Timer) bool)) (at time.Duration, t Timer, ok bool) {
	if !s.known {
		*s = Soonest{known: true}
		for at, t := range all {
			s.Armed(at, t)
		}
	}
	return s.at, s.timer, s.timer.Kind != NoTimer
}
