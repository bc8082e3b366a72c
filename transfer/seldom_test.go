package transfer

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// The first of a reason is said at once, then one in SeldomEvery with the count of all since;
// reasons do not wait for each other.
func TestALineOfAReasonIsSaidSeldomAndCountsAll(t *testing.T) {
	now := time.Unix(100, 0)
	s := Seldom{Now: func() time.Time { return now }}
	say := func(r Reason, n int, ok bool) {
		t.Helper()
		if gotN, gotOK := s.Say(r); gotN != n || gotOK != ok {
			t.Errorf("%s: %d, %v; want %d, %v", r, gotN, gotOK, n, ok)
		}
	}
	say(ReasonProtocol, 1, true)
	for i := range 1000 {
		say(ReasonProtocol, i+1, false)
	}
	say(ReasonSecret, 1, true)
	say(0, 1, true)
	say(reasons+7, 1, false) // what is no reason counts as none
	now = now.Add(SeldomEvery - 1)
	say(ReasonProtocol, 1001, false)
	now = now.Add(1)
	say(ReasonProtocol, 1002, true)
	say(ReasonProtocol, 1, false)
	now = now.Add(SeldomEvery)
	say(ReasonProtocol, 2, true)
}

func TestErrorsHaveTheirReason(t *testing.T) {
	for _, row := range []struct {
		err  error
		want Reason
	}{
		{fmt.Errorf("tcp: %w", &Refusal{Reason: ReasonBoot}), ReasonBoot}, {fmt.Errorf("tcp: %w", ErrProtocol), ReasonProtocol},
		{ErrClosed, ReasonClosing}, {fmt.Errorf("tcp: %w", ErrSilent), ReasonSilent}, {errors.New("broken pipe"), 0},
	} {
		if got := ReasonOf(row.err); got != row.want {
			t.Errorf("%v: %s, want %s", row.err, got, row.want)
		}
	}
}
