package room

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestIDsSurviveJSON(t *testing.T) {
	for _, id := range []ID{1, IDMask, 1 << 53, 1<<53 + 1} {
		b, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		var back ID
		if err := json.Unmarshal(b, &back); err != nil || back != id {
			t.Errorf("%s becomes %s: %v", id, back, err)
		}
	}
	for _, bad := range []string{"", "0", "0000000000000000", "8000000000000000", "00000000000000g1", "+000000000000001", "00000000000000011"} {
		if id, err := ParseID(bad); err == nil || !strings.Contains(err.Error(), "16 hexadecimal digits") {
			t.Errorf("%q is read as %d: %v", bad, id, err)
		}
	}
}

// TestWordsHaveNames: every kind, cause, poll, queue and timer says its name, and those that
// travel in JSON come back.
func TestWordsHaveNames(t *testing.T) {
	for k := Kind(0); k < kinds; k++ {
		var back Kind
		b, _ := json.Marshal(k)
		if err := json.Unmarshal(b, &back); err != nil || back != k || k.String() == "" {
			t.Errorf("kind %d: %s, %v", k, b, err)
		}
	}
	for _, c := range Causes() {
		var back Cause
		b, _ := json.Marshal(c)
		if err := json.Unmarshal(b, &back); err != nil || back != c || c != NoCause && c.String() == "" {
			t.Errorf("cause %d: %s, %v", c, b, err)
		}
	}
	for p := Poll(0); p < polls; p++ {
		if p.String() == "" {
			t.Errorf("poll %d has no name", p)
		}
	}
	for q := Bootstrap; q < queues; q++ {
		if q.String() == "" {
			t.Errorf("queue %d has no name", q)
		}
	}
	for k := NoTimer; k < timers; k++ {
		if k.String() == "" {
			t.Errorf("timer %d has no name", k)
		}
	}
	if Fail(Cancelled).Kind != Aborted || Fail(Overload).Kind != Failed || Done().Kind != Success || (Outcome{}).Ended() {
		t.Error("only what somebody asked for is an abort, and the zero outcome is open")
	}
}

// TestAnAssertionNamesRoomAndPhase: what is left of a worker that stopped itself must say why.
func TestAnAssertionNamesRoomAndPhase(t *testing.T) {
	defer func() {
		said, _ := recover().(string)
		for _, want := range []string{"prefill", "00000000000000ff", "Transferring", "two words"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q does not say %q", said, want)
			}
		}
	}()
	Assert(true, "prefill", 1, Transferring, "nothing")
	Assert(false, "prefill", 255, Transferring, "two words on one lease")
}
