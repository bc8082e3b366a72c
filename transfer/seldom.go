package transfer

import (
	"errors"
	"sync"
	"time"
)

// SeldomEvery is how often a line of one reason is logged that strangers can cause: the first at
// once, then one in so long, with a count. Who looks sees soon that it goes on, and a day of it
// with every reason comes to a few megabytes.
const SeldomEvery = 30 * time.Second

// Seldom bounds what connections that never became links cost in log lines. It counts by Reason,
// of which there are few, not by who called, of whom there are many. Counters stay exact; that is
// their job. The zero value is ready.
type Seldom struct {
	Now func() time.Time // nil is time.Now

	mu   sync.Mutex
	seen [reasons]struct { // guarded by mu; at 0 what has no reason
		said    time.Time
		unsaid  int
		started bool
	}
}

// Say counts one of a reason and says whether it is to be logged: then n is how many there were
// since the last line, with this one.
func (s *Seldom) Say(r Reason) (n int, ok bool) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if !r.Valid() {
		r = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.seen[r]
	x.unsaid++
	t := now()
	if x.started && t.Sub(x.said) < SeldomEvery {
		return x.unsaid, false
	}
	n = x.unsaid
	x.started, x.said, x.unsaid = true, t, 0
	return n, true
}

// ReasonOf is the reason of an error of a plane, 0 if it has none: the connection broke.
func ReasonOf(err error) Reason {
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return r.Reason
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrOverflow):
		return ReasonProtocol
	case errors.Is(err, ErrClosed):
		return ReasonClosing
	case errors.Is(err, ErrSilent):
		return ReasonSilent
	}
	return 0
}
