package worker

import (
	"strconv"
	"time"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/serve/leg"
	"baton/serve/observe"
)

// inboxMax bounds the inputs that wait for the loop; senders wait beyond it (W1). It holds a
// burst of every running room without a switch of goroutines.
const inboxMax = 256

// input is one thing that reaches the loop. A node reads the event of its own core.
type input struct {
	prefill prefill.Event
	decode  decode.Event
	leg     *entry      // with a Request: its payload
	side    []byte      // with ChunkPlaced
	place   chan<- spot // with ChunkArrived: where the answer goes; holds one
	step    *job        // an engine step that came home; the node makes the event of it
	why     string      // with the end of a link or a refused chunk: the reason, for humans
	ask     func()      // a question or a wish from outside, run on the loop
}

// rid names the request that the input brings, "" for none.
func (in *input) rid() string {
	if in == nil {
		return ""
	}
	return ridOf(in.leg)
}

func ridOf(leg *entry) string {
	if leg == nil {
		return ""
	}
	return leg.req.RID
}

// spot answers an arrived chunk.
type spot struct {
	blocks []int32
	ok     bool
}

// node is a core with its driver. All methods are called on the loop.
type node interface {
	step(in *input)
	fire(t room.Timer)
	next() (at time.Duration, t room.Timer, ok bool)
	request(e *entry) *input // the leg's input, made on the caller's goroutine
	abort(id room.ID, c room.Cause)
	drain()
	over() // the loop ends, also by a panic
	idle() bool
	rooms(yield func(room.View) bool)
	phase(id room.ID) string // "" for a room that is not known
	sitsOut(id room.ID) bool // it generates, and waits for blocks that others hold
	queues() []room.QueueStat
	blocks() blocks.Count
	pinned() int // blocks
}

// send hands an input to the loop. It waits for a place and says false only when the loop is
// over.
func (w *Worker) send(in *input) bool {
	select {
	case w.inbox <- in:
		return true
	case <-w.over:
		return false
	}
}

// loop runs the node until stop.
func (w *Worker) loop() {
	defer close(w.over)
	defer w.node.over()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	armed := time.Duration(-1) // what timer is set to
	for {
		at, t, ok := w.node.next()
		switch {
		case ok && at <= w.now():
			w.node.fire(t)
			continue
		case ok && at != armed:
			timer.Reset(at - w.now())
			armed = at
		case !ok && armed >= 0:
			timer.Stop()
			armed = -1
		}
		w.settled()
		select {
		case in := <-w.inbox:
			w.handle(in)
		case <-timer.C:
			armed = -1
		case <-w.stop:
			return
		}
	}
}

func (w *Worker) handle(in *input) {
	if in.ask != nil {
		in.ask()
		return
	}
	if in.step != nil {
		w.metrics.Step(w.stepOf(in.step))
		if in.step.err != nil {
			w.log.Error("engine step failed", "worker", w.name, "detail", in.step.err)
		}
	}
	w.node.step(in)
}

// stepOf says of a step that came home what metrics count.
func (w *Worker) stepOf(j *job) observe.Step {
	s := observe.Step{Rows: len(j.items), Took: j.took, WeightBytes: w.served.StepBytes}
	prompts, outputs := false, false
	for i := range j.items {
		it := &j.items[i]
		s.Tokens += len(it.Tokens)
		s.KVBytes += int64(it.Pos+len(it.Tokens)) * w.tokenBytes
		prompts, outputs = prompts || !j.parts[i].generate, outputs || j.parts[i].generate
	}
	switch {
	case prompts && outputs:
		s.Work = observe.WorkMixed
	case outputs:
		s.Work = observe.WorkDecode
	}
	return s
}

// settled tells those who wait for the node to be idle.
func (w *Worker) settled() {
	if len(w.waiters) == 0 || !w.node.idle() {
		return
	}
	for _, c := range w.waiters {
		close(c)
	}
	w.waiters = nil
}

// room returns the payload of a room that the core has accepted and not ended.
func (w *Worker) room(id room.ID) *entry {
	e := w.rooms[id]
	if e == nil {
		panic("worker: the core named room " + id.String() + ", which has no payload: accepted and ended do not pair up")
	}
	return e
}

// accept opens the answer of the leg that was just requested (W2).
func (w *Worker) accept(id room.ID, e *entry) {
	w.rooms[id] = e
	e.answer.put(leg.Line{Accepted: true})
	w.moved()
}

// refuse answers the leg that was just requested with a refusal (W2).
func (w *Worker) refuse(e *entry, o room.Outcome) {
	why := e.why
	// A worker that drains is not full: another takes the room at once, this one never will again.
	// Nor does it say worker_lost of a room that came too late: said, that is a word about its peer.
	leaving := w.draining.Load() && (o.Cause == room.Overload || o.Cause == room.WorkerLost)
	switch {
	case leaving:
		o = room.Fail(room.WorkerLost)
		why = "the worker " + w.name + " is draining"
	case why != "":
	case o.Cause == room.Overload:
		why = "the worker " + w.name + " is full: " + strconv.Itoa(len(w.rooms)) + " rooms are here"
	case o.Cause == room.ClientError:
		why = "the prompt and its outputs are longer than the worker's memory"
	case o.Cause == room.Internal:
		why = "the room is here already, was here before, or its two legs differ"
	default:
		why = "the room was over at the worker " + w.name + " before its leg came"
	}
	end := &leg.End{Outcome: o.Kind, Cause: o.Cause, PromptTokens: e.req.Prompt(), Message: leg.Shorten(why)}
	r := &refusal{end, end.Status()}
	if leaving {
		r = &refusal{leg.Leaving{Message: end.Message}, leg.LeavingStatus}
	}
	w.metrics.Refused.WithLabelValues(o.Cause.String()).Inc()
	w.log.Info("leg refused", "room", e.req.Room, observe.Known("rid", e.req.RID), "worker", w.name, "outcome", o.Kind, "cause", o.Cause, "after", w.now()-e.began, "detail", why)
	e.answer.refuse(r)
}

// end closes the answer of a room (W2).
func (w *Worker) end(id room.ID, o room.Outcome) *entry {
	e := w.room(id)
	if o.Kind == room.Success && e.answer.gap() {
		o = room.Fail(room.Overload) // the room has all of its output, its gateway never will (STREAM, W3)
	}
	delete(w.rooms, id)
	w.ended(id, e.req.RID, o, e.began)
	e.answer.finish(e.end(o))
	w.moved()
	return e
}

// ended counts the end of a room and says it: one line for every room that was here.
func (w *Worker) ended(id room.ID, rid string, o room.Outcome, began time.Duration) {
	w.metrics.RoomsEnded.WithLabelValues(o.Kind.String(), o.Cause.String()).Inc()
	w.log.Info("room ended", "room", id, observe.Known("rid", rid), "worker", w.name, "outcome", o.Kind, observe.Known("cause", o.Cause.String()), "after", w.now()-began)
}

// moved notes progress: a room was taken or ended, or work of one was started or came home. What
// was just started has a bound of its own: a step in Health, a write in its link (and every
// write starts as the step that made its chunk comes home).
func (w *Worker) moved() { w.progress.Store(int64(w.now())) }

// now is the clock of the core: since the start of the worker.
func (w *Worker) now() time.Duration { return time.Since(w.began) }
