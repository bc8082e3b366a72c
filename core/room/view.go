package room

import "time"

// View is what a core shows of one room. All times are in the core's clock: monotonic, since
// the start of the process.
type View struct {
	Room     ID
	Phase    string        // the core's own finer phase
	Poll     Poll          // SGLang's word for it
	Queue    Queue         // NoQueue once ended
	Began    time.Duration // when this core first heard of the room
	Since    time.Duration // when it entered its phase
	Deadline time.Duration // when its time is over
	WaitsFor string        // whose move it is, in words for an operator
	Peer     int32         // decode: handle of its prefill worker, -1 for local. prefill: 0
	Lease    Lease         // zero while there is none
	Outcome  Outcome       // decided outcome, Open while there is none
}

// QueueStat is the length of one queue and the arrival of its oldest room. A change of phase
// within a queue does not make a room younger there.
type QueueStat struct {
	Queue  Queue
	Len    int
	Oldest time.Duration // when the oldest room in it entered it; meaningless if Len is 0
}

// Count adds a room that stands in the queue since then.
func (q *QueueStat) Count(since time.Duration) {
	if q.Len == 0 || since < q.Oldest {
		q.Oldest = since
	}
	q.Len++
}
