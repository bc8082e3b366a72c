package room

import "fmt"

// Kind is how a room or request ended.
type Kind uint8

const (
	Open    Kind = iota // has not ended
	Success             // every token that was asked for came out
	Failed              // something broke
	Aborted             // somebody asked for the end
	kinds
)

var kindNames = [kinds]string{"open", "success", "failed", "aborted"}

func (k Kind) String() string { return kindNames[k] }

// Cause is the first reason of an outcome (invariant CAUSE). Append only: it is on the wire.
type Cause uint8

const (
	NoCause        Cause = iota // the cause of a success
	ClientError                 // the request itself was wrong
	Cancelled                   // the client left, or an operator cancelled
	Overload                    // a queue or pool was full
	Deadline                    // the request's time was over
	WorkerLost                  // a worker crashed, was unreachable or forgot the room
	TransferFailed              // KV bytes could not be moved or were wrong on arrival
	Internal                    // our own fault
	causes
)

var causeNames = [causes]string{"", "client_error", "cancelled", "overload", "deadline", "worker_lost", "transfer_failed", "internal"}

func (c Cause) String() string { return causeNames[c] }

// Causes lists every cause, for tables and tests.
func Causes() []Cause {
	all := make([]Cause, causes)
	for i := range all {
		all[i] = Cause(i)
	}
	return all
}

// Outcome is how something ended, and why. The zero Outcome means that it has not ended.
type Outcome struct {
	Kind  Kind
	Cause Cause
}

// Done is the outcome of a success.
func Done() Outcome { return Outcome{Kind: Success} }

// Fail returns the outcome of an end that was not a success: Aborted when somebody asked for
// it, Failed otherwise.
func Fail(c Cause) Outcome {
	if c == Cancelled {
		return Outcome{Aborted, c}
	}
	return Outcome{Failed, c}
}

// Ended says whether the outcome is a final one.
func (o Outcome) Ended() bool { return o.Kind != Open }

func (o Outcome) String() string {
	if o.Cause == NoCause {
		return o.Kind.String()
	}
	return fmt.Sprintf("%s(%s)", o.Kind, o.Cause)
}

// MarshalText and UnmarshalText carry kinds and causes in JSON by name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k *Kind) UnmarshalText(b []byte) error {
	for i, n := range kindNames {
		if n == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("room: unknown outcome %q, want one of %q", b, kindNames)
}

func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Cause) UnmarshalText(b []byte) error {
	for i, n := range causeNames {
		if n == string(b) {
			*c = Cause(i)
			return nil
		}
	}
	return fmt.Errorf("room: unknown cause %q, want one of %q", b, causeNames)
}
