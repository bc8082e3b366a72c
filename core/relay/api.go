package relay

import (
	"time"

	"baton/core/room"
)

// EventKind says what happened.
type EventKind uint8

const (
	Arrive     EventKind = iota // Req, Budgets, Buffered, Worth: a client asked
	Pair                        // Req, Attempt, OK, Room, Prefill, Decode: the answer to Place. Not OK: nobody is there just now, and Outcome is what the client hears if nobody comes
	LegOpen                     // Req, Attempt, Leg: the worker accepted
	Tokens                      // Req, Attempt, N: the decode leg brought tokens
	LegEnd                      // Req, Attempt, Leg, Outcome, Finished, Said: the leg is over
	LegClosed                   // Req, Attempt, Leg: the close is confirmed, nothing comes from the leg any more
	ClientGone                  // Req
	TimerFired                  // Timer
	Drain                       // no new requests; those accepted go on
	Waits                       // Req, Attempt: the decode leg says that its room waits for memory and will go on
	Roster                      // Worker: it may be placed on and could not before, because it joined or is healthy again
	eventKinds
)

var eventNames = [eventKinds]string{"arrive", "pair", "leg_open", "tokens", "leg_end", "leg_closed", "client_gone", "timer", "drain", "waits", "roster"}

func (k EventKind) String() string { return eventNames[k] }

// Event is one thing that happened. Fields that a kind does not name are zero.
type Event struct {
	Kind     EventKind
	Req      uint64 // chosen by the driver, never used twice
	Attempt  int32  // counts from 1
	Leg      Leg
	OK       bool
	Finished bool // LegEnd of decode: a finish reason came. A success without one is an early end
	Buffered bool // Arrive: the client gets nothing before the end, so that an attempt may be taken back until then
	Worth    int  // Arrive: how many rights to run it takes, one for each choice of its prompt; 0 is 1
	Said     bool // LegEnd: the worker itself said so in its last line; else the gateway concluded it
	N        int  // tokens
	Room     room.ID
	Prefill  int32 // worker, or NoWorker if the decode worker prefills itself (unified)
	Decode   int32
	Worker   int32
	Outcome  room.Outcome
	Budgets  Budgets
	Timer    Timer
}

// NoWorker stands for the prefill worker of a unified attempt.
const NoWorker int32 = -1

// Leg is the part of an attempt at one worker.
type Leg uint8

const (
	Prefill Leg = iota
	Decode
	legs
)

var legNames = [legs]string{"prefill", "decode"}

func (l Leg) String() string { return legNames[l] }

// Peer is the other leg.
func (l Leg) Peer() Leg { return l ^ 1 }

// Budgets bound the phases of one request. 0 means no bound of its own, but Place and Total
// always have one.
type Budgets struct {
	Queue      time.Duration // from arrival until an attempt is placed
	Place      time.Duration // per attempt, from asking for a pair until there is one; 0 means PlaceDefault
	Connect    time.Duration // per attempt, until both workers accepted
	FirstToken time.Duration // per attempt, from then until the first token
	Gap        time.Duration // between tokens, or words that there is a reason for none (Waits)
	Total      time.Duration // from arrival to the end; 0 means TotalDefault
}

// TimerName names what a timer bounds.
type TimerName uint8

const (
	QueueTimer TimerName = iota
	PlaceTimer
	ConnectTimer
	FirstTokenTimer
	GapTimer
	TotalTimer
	timerNames
)

var timerTexts = [timerNames]string{"queue", "place", "connect", "first_token", "gap", "total"}

func (t TimerName) String() string { return timerTexts[t] }

// Timer is one armed timer.
type Timer struct {
	Req  uint64
	Name TimerName
}

// EffectKind says what is to be done.
type EffectKind uint8

const (
	Place   EffectKind = iota // Req, Attempt, Exclude, Innocent: choose a pair and a new room, answer with Pair. Asked again when nobody was there and Roster came
	Open                      // Req, Attempt, Leg, Worker, Room: dispatch the leg, count it as load of the worker
	Close                     // Req, Attempt, Leg: end the leg, answer with LegClosed
	Forward                   // Req, Attempt: hand the tokens just received to the client, or put them to its buffered answer
	Discard                   // Req, Attempt: take back all that was forwarded of the attempt; only of buffered requests
	End                       // Req, Outcome, Finished: the one terminal event of the request
	Blame                     // Worker, Cause, Req: the worker, or what stands between us, failed
	Release                   // Worker, Req: the leg is no longer load of the worker
	effectKinds
)

var effectNames = [effectKinds]string{"place", "open", "close", "forward", "discard", "end", "blame", "release"}

func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing to do. Fields that a kind does not name are zero.
type Effect struct {
	Kind     EffectKind
	Req      uint64
	Attempt  int32
	Leg      Leg
	Finished bool
	Worker   int32
	Room     room.ID
	Outcome  room.Outcome
	Cause    room.Cause
	Exclude  []int32 // workers tried before, not to be used again; never written again
	Innocent []int32 // those of Exclude that nothing is held against: if the fleet has no other of their role, they may serve again
}

// Effects collects what one Step wants done, in order. It is reused.
type Effects struct{ List []Effect }

// Reset empties the list and keeps its memory.
func (e *Effects) Reset() { e.List = e.List[:0] }

func (e *Effects) add(f Effect) { e.List = append(e.List, f) }

// Phase is where a request is.
type Phase uint8

const (
	Queued     Phase = iota // waits for a right to run
	Placing                 // a pair is being chosen, or nobody is there and one is waited for
	Connecting              // legs dispatched, not both accepted
	Prefilling              // both accepted, no token yet
	Streaming               // tokens flow
	Retrying                // the attempt failed, its legs are being closed, another will follow
	Closing                 // the outcome is said, legs are being closed
	phases
)

var phaseNames = [phases]string{"queued", "placing", "connecting", "prefilling", "streaming", "retrying", "closing"}

func (p Phase) String() string               { return phaseNames[p] }
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// View is what an operator sees of one request.
type View struct {
	Req      uint64
	Room     room.ID // of the current attempt; 0 before the first
	Attempt  int32
	Worth    int // rights to run that it takes
	Phase    Phase
	Arrived  time.Duration // on the clock of Step
	Since    time.Duration // when it entered the phase
	Prefill  int32         // NoWorker if none
	Decode   int32         // NoWorker if none
	Tokens   int           // forwarded, and not taken back
	Outcome  room.Outcome  // set in Closing
	Deadline time.Duration // when TotalTimer fires
	WaitsFor string        // what has to happen next, for people
}

// Limits bound what the core holds.
type Limits struct {
	MaxRunning int // rights to run: requests that hold or are about to hold workers, each as often as it has choices
	MaxQueued  int // requests that wait behind them
	MaxTries   int // attempts per request
	RetryBurst int // retries in a row over all requests, before RetryShare bounds them
}

// DefaultLimits returns the limits of a gateway that was told nothing.
func DefaultLimits() Limits {
	return Limits{MaxRunning: 1024, MaxQueued: 4096, MaxTries: 3, RetryBurst: 32}
}

const (
	// TotalDefault bounds a request that brought no bound: long outputs of reasoning models
	// take minutes, and ten of them is where a client has given up.
	TotalDefault = 10 * time.Minute

	// PlaceDefault is how long a request waits for workers to be there: a killed worker of a
	// fleet is back after a pause of up to 5 s and a start of a second or two, a frozen one is
	// taken for dead after 10 s. Who waits longer is better served by a 503 that a load
	// balancer can act on.
	PlaceDefault = 10 * time.Second

	// retryCost is what one retry costs in arrivals: behind the burst at most one request in
	// five is tried again, so that retries cannot double the load on a fleet in trouble.
	retryCost = 5
)

// QueueStats describes the queue of requests without a right to run.
type QueueStats struct {
	Len    int
	Oldest time.Duration // when the oldest arrived; 0 if the queue is empty
}
