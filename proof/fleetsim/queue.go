package fleetsim

import "time"

// event is one thing that will happen.
type event struct {
	at   time.Duration
	seq  uint64 // breaks ties in order of scheduling
	kind eventKind
	node int32  // whose process takes it, or world
	life uint32 // of that process; an event of another life is void
	n    int32
	m    *message
	leg  *leg
	link *link
}

// world is the node of events that no process takes.
const world = -1

type eventKind uint8

const (
	strike    eventKind = iota // choice n
	heal                       // what choice n began is over
	tick                       // a timer of the node may be due
	deliver                    // m arrives
	stepDone                   // the engine step of the node is through
	written                    // the write at the head of link is through
	placed                     // the receiver of link is through, if n is still its chunk
	leftEarly                  // the receiver of link leaves because its lease was given up
	legOver                    // the gateway's side of leg is over, as m says
	dialOver                   // the dial of link is not answered in time
	poll                       // the gateway asks worker life n how it is
	silence                    // node listens to node n since m.at: is it still silent?
	judgeReq                   // request n must be over
	judgeRoom                  // room m.room must be over at the node
	quits                      // the client of request n leaves, because something failed
	judgeGone                  // room m.room must have ended at the node, without a timer
	reads                      // the client of request n reads again
	waits                      // the room of leg says again that it waits for memory, if it still does
	leaves                     // a node that drains looks whether it may leave
	eventKinds
)

// queue is a 4-ary heap: shallower than a binary one, and its children share a cache line.
type queue struct {
	list []event
	seq  uint64
}

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.list = append(q.list, e)
	l := q.list
	i := len(l) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !before(&e, &l[up]) {
			break
		}
		l[i] = l[up]
		i = up
	}
	l[i] = e
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (q *queue) pop() event {
	l := q.list
	first, e := l[0], l[len(l)-1]
	l[len(l)-1] = event{}
	l = l[:len(l)-1]
	q.list = l
	if len(l) == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= len(l) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(l)); c++ {
			if before(&l[c], &l[least]) {
				least = c
			}
		}
		if !before(&l[least], &e) {
			break
		}
		l[i] = l[least]
		i = least
	}
	l[i] = e
	return first
}
