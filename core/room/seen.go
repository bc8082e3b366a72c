package room

// Poll is what SGLang's operators see of a room (KVPoll); a finer phase maps onto each.
type Poll uint8

const (
	Bootstrapping Poll = iota
	WaitingForInput
	Transferring
	PollSuccess
	PollFailed
	polls
)

var pollNames = [polls]string{"Bootstrapping", "WaitingForInput", "Transferring", "Success", "Failed"}

func (p Poll) String() string               { return pollNames[p] }
func (p Poll) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Queue is the queue that a live room stands in, in SGLang's words.
type Queue uint8

const (
	NoQueue   Queue = iota // the room has ended
	Bootstrap              // prefill: request or Prealloc still missing
	Waiting                // prefill: both here, not yet scheduled. decode: all KV here, waits for a slot
	Inflight               // prefill: computing, writing, draining
	Preallocq              // decode: waits for blocks
	Transfer               // decode: Prealloc sent, KV on its way
	Running                // decode: generating
	queues
)

var queueNames = [queues]string{"", "bootstrap", "waiting", "inflight", "prealloc", "transfer", "running"}

func (q Queue) String() string               { return queueNames[q] }
func (q Queue) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// Queues of each role, in the order a room passes them.
var (
	PrefillQueues = [...]Queue{Bootstrap, Waiting, Inflight}
	DecodeQueues  = [...]Queue{Preallocq, Transfer, Waiting, Running}
)
