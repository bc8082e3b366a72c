package cluster

import (
	"fmt"
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Scope is how large the cluster is and what may go wrong in it.
type Scope struct {
	Requests int
	Prefills int
	Decodes  int
	MaxNew   int  // tokens of every output
	Short    bool // every prompt is of one block
	Blocks   int  // of every pool
	Limits   relay.Limits
	Faults   Faults
	Whole    int  // so many requests, the first ones, want their answer in one piece: an attempt may be taken back
	Back     bool // a crashed worker is restarted for sure: without one for a request, only a timer ends it
}

// Faults is how often each thing may go wrong in a whole walk. With few of each, most requests
// live long enough to be struck in an interesting phase.
type Faults struct {
	Leaves  int // of clients
	Crashes int // of workers
	Breaks  int // of links
	Refuses int // of chunks, for wrong bytes
	Steps   int // of engine steps
}

// chunkTokens is one block a chunk, so that prompts travel in several.
const chunkTokens = room.BlockTokens

// far is a deadline that is not what is looked at: timers fire when the walk says so.
const far = time.Hour

// World is one cluster.
type World struct {
	gate     *relay.Core
	requests []request
	legs     []*leg
	prefills []*prefiller
	decodes  []*decoder
	links    []*link
	conns    room.Conn
	rooms    room.ID
	suspects []int32 // workers that the gateway blamed for being lost, and has not heard of since
	left     Faults
	hurt     bool // something was done to somebody: before that every request is served
	hearing  int  // index of the token that the gateway is hearing
	discards int  // answers that were taken back, for tests to see
}

type request struct {
	arrived, gone, ended bool
	placing              int32
	exclude, innocent    []int32
	forwarded            int
	attempt              int32 // that the forwarded tokens are of
	outcome              room.Outcome
}

// leg is one dispatched leg, from Open until nothing of it is left.
type leg struct {
	req     uint64
	attempt int32
	side    relay.Leg
	worker  int
	peer    int32 // decode: its prefill worker
	room    room.ID
	state   legState
	closed  bool
	loaded  bool
	made    int
	posts   []post
}

type legState uint8

const (
	dialled legState = iota // not at the worker yet
	open                    // accepted
	over                    // the worker is through with it
)

// post is what stands in a leg's line to the gateway.
type post struct {
	kind     relay.EventKind
	outcome  room.Outcome
	finished bool
	said     bool
	token    int
}

type prefiller struct {
	core   *prefill.Core // nil while it is down
	step   []prefill.StepItem
	writes []write
}

type write struct {
	piece  chunk
	blocks []int32 // source blocks that it reads
}

type decoder struct {
	core    *decode.Core // nil while it is down
	boot    room.Boot
	lives   int
	step    []decode.StepItem
	begin   []room.ID
	dialing []int32
	filled  map[int32]room.Lease // block → the lease that it was filled under
}

// link is one connection between a decode and a prefill worker. Each end sees its end by itself.
type link struct {
	conn     room.Conn
	boot     room.Boot // of the decode worker that dialled it
	decode   int
	prefill  int
	dUp, pUp bool
	toP, toD []word
	wire     []chunk
	inside   *chunk // in which a receiver is
	table    []int32
}

// word is one control message.
type word struct {
	prealloc *room.Prealloc
	cancel   *room.Cancel
	settled  *room.Settled
}

type chunk struct {
	room  room.ID
	lease room.Lease
	conn  room.Conn
	n     int32
	first int32
	many  int32
	last  bool
}

func (s *System) newWorld() World {
	w := World{gate: relay.New(s.scope.Limits), requests: make([]request, s.scope.Requests), left: s.scope.Faults}
	for range s.scope.Prefills {
		w.prefills = append(w.prefills, &prefiller{core: s.newPrefill()})
	}
	for i := range s.scope.Decodes {
		d := &decoder{}
		w.decodes = append(w.decodes, d)
		s.startDecode(d, i)
	}
	return w
}

func (s *System) newPrefill() *prefill.Core {
	return prefill.New(prefill.Config{Blocks: s.scope.Blocks, QueuedMax: s.scope.Requests, RunningMax: 2, ChunkTokens: chunkTokens})
}

func (s *System) startDecode(d *decoder, i int) {
	d.lives++
	d.boot = room.Boot(100*(i+1) + d.lives)
	d.filled = map[int32]room.Lease{}
	d.core = decode.New(decode.Config{Boot: d.boot, Blocks: s.scope.Blocks, QueuedMax: s.scope.Requests, RunningMax: 2, ChunkTokens: chunkTokens})
}

// prompt is the length of a request's prompt: one to three blocks, the last one not full.
func (s *System) prompt(req uint64) int {
	if s.scope.Short {
		return room.BlockTokens - 1
	}
	return room.BlockTokens*(1+int(req)%3) - 1
}

// legAt finds the leg of a room at a worker, for as long as the worker holds it.
func (w *World) legAt(side relay.Leg, worker int, id room.ID) *leg {
	for _, l := range w.legs {
		if l.side == side && l.worker == worker && l.room == id && l.state == open {
			return l
		}
	}
	return nil
}

// say puts something into the leg's line, unless the gateway has hung up.
func (l *leg) say(p post) {
	if !l.closed {
		l.posts = append(l.posts, p)
	}
}

// ends takes the leg away from its worker.
func (l *leg) ends(p post) {
	p.kind = relay.LegEnd
	l.say(p)
	l.state = over
}

// tidy forgets legs of which nothing is left.
func (w *World) tidy() {
	w.legs = slices.DeleteFunc(w.legs, func(l *leg) bool { return l.state == over && len(l.posts) == 0 && !l.loaded })
	w.links = slices.DeleteFunc(w.links, func(k *link) bool { return !k.dUp && !k.pUp })
}

// hear lets the gateway's core take an event, and does what it asks.
func (s *System) hear(w *World, ev relay.Event) error {
	var out relay.Effects
	w.gate.Step(0, ev, &out)
	for i := range out.List {
		if err := s.ask(w, &out.List[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *System) ask(w *World, e *relay.Effect) error {
	if e.Kind == relay.Blame {
		if e.Cause == room.WorkerLost && !slices.Contains(w.suspects, e.Worker) {
			w.suspects = append(w.suspects, e.Worker)
		}
		return nil
	}
	r := &w.requests[e.Req-1]
	switch e.Kind {
	case relay.Place:
		r.placing, r.exclude, r.innocent = e.Attempt, slices.Clone(e.Exclude), slices.Clone(e.Innocent)
	case relay.Open:
		l := &leg{req: e.Req, attempt: e.Attempt, side: e.Leg, worker: int(e.Worker), room: e.Room, loaded: true}
		if e.Leg == relay.Decode {
			l.worker -= decodeBase
			l.peer = decode.Local
			if n := len(w.legs); n > 0 && w.legs[n-1].room == e.Room {
				l.peer = int32(w.legs[n-1].worker)
			}
		}
		w.legs = append(w.legs, l)
	case relay.Close:
		for _, l := range w.legs {
			if l.req == e.Req && l.attempt == e.Attempt && l.side == e.Leg && l.state != over {
				l.say(post{kind: relay.LegClosed})
				l.closed = true
				if l.state == dialled {
					l.state = over
				}
			}
		}
	case relay.Forward:
		if r.ended || w.hearing != r.forwarded || r.forwarded > 0 && e.Attempt != r.attempt {
			return fmt.Errorf("STREAM: request %d gets token %d of attempt %d after %d of attempt %d", e.Req, w.hearing, e.Attempt, r.forwarded, r.attempt)
		}
		r.forwarded++
		r.attempt = e.Attempt
	case relay.Discard:
		if int(e.Req) > s.scope.Whole || r.ended || r.forwarded == 0 || e.Attempt != r.attempt {
			return fmt.Errorf("STREAM: attempt %d is taken back from request %d, which has %d tokens of attempt %d", e.Attempt, e.Req, r.forwarded, r.attempt)
		}
		r.forwarded = 0
		w.discards++
	case relay.End:
		return s.end(w, r, e)
	case relay.Release:
		for _, l := range w.legs {
			at := int32(l.worker)
			if l.side == relay.Decode {
				at += decodeBase
			}
			if l.req == e.Req && at == e.Worker && l.loaded {
				l.loaded = false
				return nil
			}
		}
		return fmt.Errorf("RELEASE: worker %d is released for nothing", e.Worker)
	}
	return nil
}

// decodeBase keeps the numbers of prefill and decode workers apart.
const decodeBase = 10

func (s *System) end(w *World, r *request, e *relay.Effect) error {
	switch {
	case r.ended:
		return fmt.Errorf("TERM: request %d ends twice", e.Req)
	case e.Outcome.Cause == room.Cancelled && !r.gone:
		return fmt.Errorf("CAUSE: request %d reads cancelled, and nobody cancelled it", e.Req)
	case e.Outcome.Kind != room.Success && !w.hurt:
		return fmt.Errorf("CAUSE: request %d ends as %s, and nothing was done to anybody", e.Req, e.Outcome)
	case e.Outcome.Kind == room.Success && r.forwarded != s.scope.MaxNew:
		return fmt.Errorf("STREAM: request %d is a success with %d of %d tokens", e.Req, r.forwarded, s.scope.MaxNew)
	}
	r.ended, r.outcome, r.placing = true, e.Outcome, 0
	return nil
}
