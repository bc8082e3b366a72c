package relay

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// Rooms calls yield for every request that is not forgotten, oldest first.
func (c *Core) Rooms(yield func(View) bool) {
	for e := c.all.Front(); e != nil; e = e.Next() {
		r := e.Value.(*request)
		v := View{Req: r.id, Room: r.room, Attempt: r.attempt, Worth: r.worth, Phase: r.phase, Arrived: r.arrived, Since: r.since,
			Prefill: r.legs[Prefill].worker, Decode: r.legs[Decode].worker, Tokens: r.tokens,
			Deadline: r.arrived + r.budgets.Total, WaitsFor: r.waitsFor()}
		if r.phase == Closing {
			v.Outcome = r.verdict
		}
		if !yield(v) {
			return
		}
	}
}

func (r *request) waitsFor() string {
	switch r.phase {
	case Queued:
		return "a right to run"
	case Placing:
		if r.place == alone {
			return "a prefill/decode worker"
		}
		return "a pair of workers"
	case Connecting:
		if r.legs[Prefill].state == opening {
			if r.legs[Decode].state == opening {
				return "both workers to accept"
			}
			return "the prefill worker to accept"
		}
		return "the decode worker to accept"
	case Prefilling:
		return "the first token"
	case Streaming:
		return "the next token"
	}
	if r.legs[Prefill].state == closing {
		return "the prefill leg to close"
	}
	return "the decode leg to close"
}

// Queue returns the queue of requests that wait for a right to run.
func (c *Core) Queue() QueueStats {
	q := QueueStats{Len: c.waiting.Len()}
	if q.Len > 0 {
		q.Oldest = c.waiting.Front().Value.(*request).arrived
	}
	return q
}

// Running counts the rights to run that are taken, also by requests in Closing.
func (c *Core) Running() int { return c.running }

// Live counts the requests that are not forgotten: those in the queue, and those that take rights.
func (c *Core) Live() int { return c.all.Len() }

// Draining says whether new requests are refused.
func (c *Core) Draining() bool { return c.draining }

// Timers calls yield for every armed timer, of the oldest request first.
func (c *Core) Timers(yield func(Timer) bool) {
	for e := c.all.Front(); e != nil; e = e.Next() {
		r := e.Value.(*request)
		for t, armed := range r.armed {
			if armed && !yield(Timer{r.id, TimerName(t)}) {
				return
			}
		}
	}
}

// AppendState appends everything that the future depends on, without times: a timer counts as
// armed or not.
func (c *Core) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.all.Len()))
	for e := c.all.Front(); e != nil; e = e.Next() {
		b = e.Value.(*request).appendState(b)
	}
	b = binary.AppendUvarint(b, uint64(c.credit))
	return append(b, bit(c.draining))
}

func (r *request) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, r.id)
	b = binary.AppendUvarint(b, uint64(r.room))
	b = append(b, byte(r.phase), byte(r.attempt), bit(r.tokens > 0)|bit(r.buffered)<<1, byte(r.worth), byte(r.verdict.Kind), byte(r.verdict.Cause))
	b = append(b, byte(r.place), byte(r.nobody.Kind), byte(r.nobody.Cause))
	for _, l := range r.legs {
		b = append(b, byte(l.state))
		b = binary.AppendVarint(b, int64(l.worker))
	}
	for _, d := range []time.Duration{r.budgets.Queue, r.budgets.Connect, r.budgets.FirstToken, r.budgets.Gap} {
		b = append(b, bit(d > 0))
	}
	for _, armed := range r.armed {
		b = append(b, bit(armed))
	}
	b = append(b, byte(len(r.tried)))
	for _, t := range r.tried {
		b = append(binary.AppendVarint(b, int64(t.worker)), bit(t.guilty))
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Clone copies the core deeply.
func (c *Core) Clone() *Core {
	n := &Core{limits: c.limits, byID: maps.Clone(c.byID), due: slices.Clone(c.due), running: c.running,
		arrivals: c.arrivals, credit: c.credit, draining: c.draining}
	for e := c.all.Front(); e != nil; e = e.Next() {
		r := *e.Value.(*request)
		r.tried = slices.Clone(r.tried)
		r.listed = n.all.PushBack(&r)
		n.byID[r.id] = &r
		if r.heapSlot >= 0 {
			n.due[r.heapSlot] = &r
		}
	}
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		r := n.byID[e.Value.(*request).id]
		r.queued = n.waiting.PushBack(r)
	}
	return n
}
