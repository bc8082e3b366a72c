package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"baton/core/decode"
	"baton/core/room"
	"baton/engine/grammar"
	"baton/serve/door"
	"baton/serve/leg"
	"baton/serve/observe"
	"baton/transfer"
)

// Bounds of the HTTP side.
const (
	// legsSpare is how many legs may be here beyond what the core would take, so that the core
	// and not the way in says what is full.
	legsSpare = 64
	// A body may be as long as the longest prompt of this model in JSON, indented (tokenBytes
	// for each id), with as much around it as bodyBytesLeast.
	bodyBytesLeast = 1 << 20
	tokenBytes     = 24
	// writeMax is how long one write to a gateway may hang before its connection is given up.
	writeMax = 20 * time.Second
	// waitsEvery is how often it is said that a room waits for memory, or sits out: four times within the
	// silence that gateways allow a stream by default (a minute).
	waitsEvery = 15 * time.Second
	// hurryMax is what is left of that once its buffer is full.
	hurryMax = 2 * time.Second
	// askMax is how long the loop may take to answer a question before it counts as stuck.
	askMax = time.Second
)

func newServer(w *Worker) *http.Server {
	mux := http.NewServeMux()
	if w.cfg.Role == Prefill {
		mux.HandleFunc("POST /leg/prefill", w.serveLeg)
	} else {
		mux.HandleFunc("POST /leg/decode", w.serveLeg)
	}
	mux.HandleFunc("GET /debug/rooms", w.serveRooms)
	mux.HandleFunc("GET /health", w.serveHealth)
	mux.HandleFunc("GET /server_info", w.serveAbout)
	mux.Handle("GET /metrics", w.metrics.Handler())
	mux.HandleFunc("POST /drain", func(rw http.ResponseWriter, _ *http.Request) {
		w.Drain()
		reply(rw, http.StatusOK, map[string]bool{"draining": true})
	})
	return door.Server(mux, writeMax, w.log)
}

// serve answers what comes to the listener until the server is closed.
func (w *Worker) serve() {
	const full = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
	// One more for each: what stands behind it at the links.
	l := door.Listen(w.listener, door.Connections(1), []byte(full), w.log.With("worker", w.name))
	if err := w.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		w.log.Error("legs are not served any more", "worker", w.name, "detail", err)
	}
}

func reply(rw http.ResponseWriter, status int, v any) {
	http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(writeMax)) // it may come long behind its request
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	json.NewEncoder(rw).Encode(v) // an error is the reader's: it has left
}

// serveLeg is one leg from its request to its end.
func (w *Worker) serveLeg(rw http.ResponseWriter, r *http.Request) {
	began := w.now()
	req, cause, err := w.readLeg(rw, r)
	if err != nil {
		w.turnAway(rw, cause, err)
		return
	}
	select { // only now: a body that does not come holds nobody's place
	case w.legs <- struct{}{}:
		defer func() { <-w.legs }()
	default:
		w.turnAway(rw, room.Overload, errors.New("the worker "+w.name+" holds as many legs as it may"))
		return
	}
	e, cause, err := w.prepare(r.Context(), req)
	if err != nil {
		w.turnAway(rw, cause, err)
		return
	}
	e.began, e.answer = began, newAnswer(min(w.answerMax*req.Choices(), answerMost))
	if !w.send(w.node.request(e)) {
		panic(http.ErrAbortHandler) // as if the process were gone already
	}
	s := &stream{w: w, e: e, rw: rw, rc: http.NewResponseController(rw)}
	s.run(r.Context().Done())
}

// readLeg reads and checks a leg's request; its bytes count until it is read.
func (w *Worker) readLeg(rw http.ResponseWriter, r *http.Request) (*leg.Request, room.Cause, error) {
	most := min(leg.BodyBytesMax, bodyBytesLeast+tokenBytes*int64(w.served.Context))
	body, err := w.bodies.Read(rw, r, most)
	if err == door.ErrFull {
		return nil, room.Overload, fmt.Errorf("worker: %w", err)
	}
	if err != nil {
		return nil, room.ClientError, fmt.Errorf("worker: reading the leg: %w", err)
	}
	defer body.Release()
	req, err := leg.ParseRequest(body.Bytes)
	if err != nil {
		return nil, room.ClientError, err
	}
	return req, room.ClientError, w.check(req)
}

// prepare makes the entry of a request that passed check.
func (w *Worker) prepare(ctx context.Context, r *leg.Request) (*entry, room.Cause, error) {
	var g *grammar.Grammar
	if r.Params.Grammar != nil {
		began := w.now()
		var err error
		var cause room.Cause
		if g, cause, err = w.grammar(ctx, r); cause != room.NoCause {
			return nil, cause, err
		} else if err != nil {
			w.metrics.Grammars.WithLabelValues("refused").Inc()
			return nil, room.ClientError, wrong{paramGrammar, fmt.Errorf("worker: params: grammar: %w", err)}
		}
		w.metrics.Grammars.WithLabelValues("ready").Inc()
		w.metrics.GrammarWait.Observe((w.now() - began).Seconds())
	}
	e, err := newEntry(r, w.served.Tokenizer, g)
	return e, room.ClientError, err
}

// grammar returns a compiled grammar. One that is known does not wait for others to be compiled;
// one that is not waits as long as its client does, its request has time, and the worker is there.
// The cause says why it waited in vain.
func (w *Worker) grammar(ctx context.Context, r *leg.Request) (*grammar.Grammar, room.Cause, error) {
	s := r.Params.Grammar
	if c := w.compiled.Load(); c != nil {
		if g, ok := c.Known(s); ok {
			return g, room.NoCause, nil
		}
	}
	late := time.NewTimer(r.Left())
	defer late.Stop()
	select {
	case w.compiling <- struct{}{}: // it takes a processor for a while; bounded by what a grammar may be
	case <-late.C:
		return nil, room.Deadline, errors.New("worker: the request's time was over before its grammar was compiled")
	case <-ctx.Done():
		return nil, room.Cancelled, errors.New("worker: the client left before its grammar was compiled")
	case <-w.over:
		panic(http.ErrAbortHandler) // as if the process were gone already
	}
	defer func() { <-w.compiling }()
	g, err := w.grammars().Get(s)
	return g, oursOf(err), err
}

// oursOf is the cause of an error of compiling that is no client's, and none for others.
func oursOf(err error) room.Cause {
	if errors.Is(err, grammar.ErrBroken) {
		return room.Internal
	}
	return room.NoCause
}

// wrong is an error of a request with the name of what is wrong in it.
type wrong struct {
	param string // as leg.End has it
	error
}

// paramGrammar is the form of an answer; only the gateway knows the client's name for it.
const paramGrammar = "grammar"

func (w *Worker) turnAway(rw http.ResponseWriter, c room.Cause, why error) {
	w.metrics.Refused.WithLabelValues(c.String()).Inc()
	e := leg.Refusal(c, why.Error())
	if named, ok := errors.AsType[wrong](why); ok && c == room.ClientError {
		e.Param = named.param
	}
	w.log.Info("leg refused", "worker", w.name, "outcome", e.Outcome, "cause", e.Cause, "detail", e.Message)
	reply(rw, e.Status(), e)
}

// check holds what depends on the model and the role.
func (w *Worker) check(r *leg.Request) error {
	if param, message := r.Params.Validate(w.served.Vocab); param != "" {
		return wrong{param, fmt.Errorf("worker: params: %s: %s", param, message)}
	}
	for i, t := range r.Tokens {
		if int(t) >= w.served.Vocab {
			return wrong{"tokens", fmt.Errorf("worker: tokens[%d]: %d; the vocabulary has %d", i, t, w.served.Vocab)}
		}
	}
	if n := r.Prompt() + r.Params.MaxTokens; n > w.served.Context {
		return wrong{"max_tokens", fmt.Errorf("worker: prompt of %d and max_tokens of %d are %d tokens; this worker's context holds %d",
			r.Prompt(), r.Params.MaxTokens, n, w.served.Context)}
	}
	if most := w.choicesMax(); r.Choices() > most {
		return wrong{"n", fmt.Errorf("worker: n: %d choices; this worker makes at most %d of one prompt", r.Choices(), most)}
	}
	if r.Link != "" && w.cfg.Role != Decode {
		return fmt.Errorf("worker: link: a %s worker does not dial; leave it empty", w.cfg.Role)
	}
	return nil
}

// choicesMax is how many choices of one prompt this worker takes: each needs a right to run.
func (w *Worker) choicesMax() int {
	if w.cfg.Role == Prefill {
		return room.BranchesMax
	}
	return min(room.BranchesMax, w.cfg.Sizes.MaxRunning)
}

// stream writes one answer.
type stream struct {
	w       *Worker
	e       *entry
	rw      http.ResponseWriter
	rc      *http.ResponseController
	opened  bool
	broken  bool // nobody reads any more
	aborted bool
	lines   []leg.Line
	buf     []byte
}

// run takes what the loop says and writes it until the end. When the connection closes it
// aborts the room and waits for the end all the same (W4).
func (s *stream) run(gone <-chan struct{}) {
	s.e.answer.onFull(func() { s.rc.SetWriteDeadline(time.Now().Add(hurryMax)) })
	defer s.e.answer.onFull(nil)
	again := time.NewTicker(waitsEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			s.waits()
		case <-s.e.answer.wake:
			if s.write() {
				return
			}
		case <-gone:
			gone = nil
			s.abort("the gateway closed the connection")
		case <-s.w.over: // the worker was closed under a room that did not end; Close says so
			panic(http.ErrAbortHandler)
		}
	}
}

// waits says again that the room waits, while that is the last that was said and the worker makes
// progress: the room waits for older ones. Of one that sits out it says so, too: that waits for others,
// which may wait for other workers.
func (s *stream) waits() {
	if s.broken || !s.opened { // accepted comes first
		return
	}
	moves := s.w.now()-time.Duration(s.w.progress.Load()) <= s.w.healthMax
	if again := s.e.answer.waiting(); again && !moves || !again && !s.sitsOut() {
		return
	}
	s.buf = s.buf[:0]
	s.append(&leg.Line{Waits: true})
	s.flush()
}

// sitsOut asks the loop whether the room does.
func (s *stream) sitsOut() bool {
	w, e := s.w, s.e
	yes, ok := asked(w, func() bool { return w.rooms[e.req.Room] == e && w.node.sitsOut(e.req.Room) })
	return ok && yes
}

// write writes what is new and says whether that was the end.
func (s *stream) write() (done bool) {
	lines, refused, end := s.e.answer.take(s.lines)
	s.lines = lines
	if refused != nil {
		reply(s.rw, refused.status, refused.end)
		return true
	}
	s.buf = s.buf[:0]
	for i := range lines {
		s.append(&lines[i])
	}
	leaving := end != nil && s.e.leaving && end.Cause == room.WorkerLost
	if end != nil && !leaving {
		s.append(&leg.Line{End: end})
	}
	if len(s.buf) > 0 && !s.broken {
		s.flush()
	}
	if leaving {
		// Whoever says worker_lost says it of its peer. Of itself a worker says it by being gone.
		panic(http.ErrAbortHandler)
	}
	return end != nil
}

func (s *stream) append(l *leg.Line) {
	b, err := leg.AppendLine(s.buf, l)
	if err != nil { // our own numbers: clamped, so they always print
		panic("worker: " + err.Error())
	}
	s.buf = b
}

func (s *stream) flush() {
	if !s.opened {
		s.opened = true
		s.rw.Header().Set("Content-Type", "application/x-ndjson")
	}
	s.rc.SetWriteDeadline(time.Now().Add(writeMax))
	if s.e.answer.gap() { // it became full just now, and what that shortened was made long again
		s.rc.SetWriteDeadline(time.Now().Add(hurryMax))
	}
	_, err := s.rw.Write(s.buf)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.abort("the gateway does not take its answer: " + err.Error())
	}
}

// abort ends the room of this leg, if it is still this leg's.
func (s *stream) abort(why string) {
	s.broken = true
	if s.aborted {
		return
	}
	s.aborted = true
	w, e := s.w, s.e
	w.send(&input{ask: func() {
		if w.rooms[e.req.Room] != e { // refused, or over
			return
		}
		if e.why == "" {
			e.why = why
		}
		w.node.abort(e.req.Room, room.Cancelled)
	}})
}

// asked runs f on the loop and returns what it says; false when the loop does not answer.
func asked[T any](w *Worker, f func() T) (T, bool) {
	var zero T
	answer := make(chan T, 1)
	late := time.NewTimer(askMax)
	defer late.Stop()
	select {
	case w.inbox <- &input{ask: func() { answer <- f() }}:
	case <-late.C:
		return zero, false
	case <-w.over:
		return zero, false
	}
	select {
	case v := <-answer:
		return v, true
	case <-late.C:
	case <-w.over:
	}
	return zero, false
}

// Snapshot is what GET /debug/rooms answers; false when the loop does not answer.
func (w *Worker) Snapshot() (observe.Snapshot, bool) { return asked(w, w.snapshot) }

func (w *Worker) snapshot() observe.Snapshot {
	now, b := w.now(), w.node.blocks()
	s := observe.Snapshot{
		Worker: observe.Worker{Name: w.name, Role: w.cfg.Role, Boot: w.boot.String(), PID: os.Getpid(), HTTP: w.HTTP(), Link: w.linkAddr,
			Draining: w.draining.Load(), UptimeMS: now.Milliseconds(), Queues: map[string]observe.Queue{},
			Blocks: observe.Blocks{Total: b.Total, Free: b.Free, Cached: b.Cached, Held: b.Held, Quarantined: b.Quarantined, Pinned: w.node.pinned()}},
		Rooms: []observe.Room{},
	}
	for _, q := range w.node.queues() {
		o := observe.Queue{Len: q.Len}
		if q.Len > 0 {
			o.OldestMS = (now - q.Oldest).Milliseconds()
		}
		s.Worker.Queues[q.Queue.String()] = o
	}
	w.node.rooms(func(v room.View) bool {
		row := observe.Room{Room: v.Room.String(), Role: w.cfg.Role, Queue: v.Queue.String(), Phase: v.Phase, Poll: v.Poll.String(),
			AgeMS: (now - v.Began).Milliseconds(), WaitsFor: v.WaitsFor, Worker: w.name}
		if e := w.rooms[v.Room]; e != nil { // a room that only a peer spoke of has no request yet
			row.RID = e.req.RID
		}
		s.Rooms = append(s.Rooms, row)
		return true
	})
	return s
}

func (w *Worker) serveRooms(rw http.ResponseWriter, _ *http.Request) {
	s, ok := w.Snapshot()
	if !ok {
		reply(rw, http.StatusServiceUnavailable, map[string]string{"error": "the node loop does not answer"})
		return
	}
	reply(rw, http.StatusOK, s)
}

// Health judges progress: a step that hangs, work that nobody does, a loop that does not answer.
func (w *Worker) Health() observe.Health {
	s, ok := w.Snapshot()
	now := w.now()
	h := observe.Health{OK: true, Draining: w.draining.Load(), Live: len(s.Rooms), Bound: w.healthMax.Milliseconds(),
		Progress: (now - time.Duration(w.progress.Load())).Milliseconds()}
	if began := w.stepping.Load(); began > 0 {
		h.Step = (now - time.Duration(began-1)).Milliseconds()
	}
	work := 0
	for i := range s.Rooms {
		r := &s.Rooms[i]
		if (r.Queue == room.Running.String() || r.Queue == room.Inflight.String()) && r.WaitsFor != decode.SitsOut {
			work++
		}
	}
	switch {
	case !ok:
		h.OK, h.Reason = false, "the node loop does not answer"
	case w.numberless.Load():
		h.OK, h.Reason = false, "the model has computed no finite number: its weights are broken, or this machine is"
	case h.Step > h.Bound:
		h.OK, h.Reason = false, "an engine step hangs"
	case work > 0 && h.Progress > h.Bound:
		h.OK, h.Reason = false, "rooms are at work and nothing comes home"
	}
	return h
}

func (w *Worker) serveHealth(rw http.ResponseWriter, _ *http.Request) {
	h := w.Health()
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	reply(rw, status, h)
}

func (w *Worker) serveAbout(rw http.ResponseWriter, _ *http.Request) {
	z := w.cfg.Sizes
	reply(rw, http.StatusOK, observe.About{
		Model: w.served.Name, Boot: w.boot.String(), Role: w.cfg.Role, Name: w.name, Link: w.linkAddr,
		Manifest: fmt.Sprintf("%016x", transfer.Sum(w.served.Manifest)), MaxModelLen: w.served.Context,
		Vocab: w.served.Vocab, Blocks: w.served.Engine.Blocks(), BlockTokens: room.BlockTokens,
		MaxRunning: z.MaxRunning, MaxQueued: z.MaxQueued, ChunkTokens: z.ChunkTokens, AheadTokens: z.AheadTokens, KV: z.KV, ChoicesMax: w.choicesMax(), Deterministic: w.cfg.Deterministic, PID: os.Getpid(),
	})
}
