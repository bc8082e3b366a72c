package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/engine/chat"
	"baton/serve/openai"
)

// clientRequest is one HTTP request to the model: one request of the core per choice.
type clientRequest struct {
	g       *Gateway
	w       http.ResponseWriter
	control *http.ResponseController
	parsed  *openai.Request
	answer  openai.Answer
	inbox   *inbox
	calls   []*call
	ended   int // choices that have their ending
	usage   openai.Usage
	arrived time.Duration
	buf     []item
}

// generation answers one of the two endpoints that generate text.
func (g *Gateway) generation(e openai.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, budgets, err := g.accept(e, w, r)
		if err != nil {
			g.log.Info("request refused", "rid", rid(w), "outcome", room.Failed.String(), "cause", err.Cause().String(), "detail", err.Code+": "+err.Message)
			g.refuse(w, err)
			return
		}
		g.answers.Add(1)
		defer g.answered()
		if !c.submit(budgets) {
			g.refuse(w, unavailable("the server is shutting down and takes no new requests"))
			return
		}
		defer c.watch(r.Context())()
		if c.parsed.Stream {
			c.stream(r.Context())
		} else {
			c.whole(r.Context())
		}
	}
}

// accept reads, checks and tokenises a request.
func (g *Gateway) accept(e openai.Endpoint, w http.ResponseWriter, r *http.Request) (*clientRequest, relay.Budgets, *openai.Error) {
	budgets := g.config.Budgets
	if _, err := g.admitted(w); err != nil { // before its body is waited for
		return nil, budgets, err
	}
	body, err := g.readBody(w, r)
	if err != nil {
		return nil, budgets, err
	}
	defer body.Release() // the request holds token ids and no part of it
	s, err := g.admitted(w)
	if err != nil {
		return nil, budgets, err
	}
	if budgets.Total, err = g.timeout(r); err != nil {
		return nil, budgets, err
	}
	parsed, err := openai.Parse(e, body.Bytes, openai.Limits{Vocab: g.config.Text.Vocab()})
	if err != nil {
		return nil, budgets, err
	}
	if err := g.checkModel(parsed.Model); err != nil {
		return nil, budgets, err
	}
	if len(parsed.Stripped) > 0 {
		g.metrics.stripped.Inc()
		g.log.Debug("fields of a gateway stripped from a client's request", "rid", rid(w), "detail", strings.Join(parsed.Stripped, ","))
	}
	prompts, err := g.prompts(parsed, s.contextTokens)
	if err != nil {
		return nil, budgets, err
	}
	c := g.newRequest(w, parsed, prompts)
	if s.manifest != "" {
		c.answer.Fingerprint = "fp_" + s.manifest
	}
	return c, budgets, nil
}

// prompts returns the token ids of every choice, checked against the context.
func (g *Gateway) prompts(r *openai.Request, context int) ([][]int32, *openai.Error) {
	if r.Endpoint == openai.Chat {
		if err := g.checkText("messages", bytesOfMessages(r.Messages), context); err != nil {
			return nil, err
		}
		ids, err := g.conversation(r.Messages)
		if err != nil {
			return nil, err
		}
		return [][]int32{ids}, r.CheckContext(len(ids), context)
	}
	all := make([][]int32, len(r.Prompts))
	longest := 0
	for i, p := range r.Prompts {
		all[i] = p.Tokens
		if p.Tokens == nil {
			if err := g.checkText("prompt", len(p.Text), context); err != nil {
				return nil, err
			}
			all[i] = g.config.Text.Prompt(p.Text, true)
		}
		if len(all[i]) == 0 {
			return nil, r.CheckContext(0, context)
		}
		longest = max(longest, len(all[i]))
	}
	return all, r.CheckContext(longest, context)
}

// checkText refuses a text that cannot fit into the context whatever its tokens are, before it
// is cut into them: a long one takes seconds.
func (g *Gateway) checkText(field string, bytes, context int) *openai.Error {
	if context == 0 || bytes <= context*g.longest {
		return nil
	}
	return openai.TextTooLong(field, bytes, context, context*g.longest)
}

func bytesOfMessages(msgs []openai.Message) (n int) {
	for i := range msgs {
		n += len(msgs[i].Content)
	}
	return n
}

// answered tells the loop when the last handler has given its answer.
func (g *Gateway) answered() {
	if g.answers.Add(-1) == 0 {
		g.post(input{do: func(*loop) {}}) // it looks for whoever waits for that
	}
}

// conversation returns the token ids of a chat. A template may refuse one, which is the
// client's error; whatever else goes wrong there is ours.
func (g *Gateway) conversation(msgs []openai.Message) ([]int32, *openai.Error) {
	ids, err := g.config.Text.Chat(msgs)
	if err == nil {
		return ids, nil
	}
	if refused, ok := errors.AsType[*chat.Refused](err); ok {
		return nil, &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalid, Param: "messages", Code: openai.CodeValue, Message: refused.Error()}
	}
	g.log.Error("chat template failed", "cause", room.Internal.String(), "detail", err.Error())
	return nil, openai.Failure(room.Fail(room.Internal), "", 0)
}

func (g *Gateway) newRequest(w http.ResponseWriter, parsed *openai.Request, prompts [][]int32) *clientRequest {
	c := &clientRequest{g: g, w: w, control: http.NewResponseController(w), parsed: parsed, inbox: newInbox(g.config.ClientBytes), arrived: g.clock()}
	id := "chatcmpl-"
	if parsed.Endpoint == openai.Completion {
		id = "cmpl-"
	}
	c.answer = openai.Answer{ID: id + rid(w), Model: g.config.Model, Created: time.Now().Unix(), Request: parsed, Prompts: prompts}
	for i, ids := range prompts {
		name := rid(w)
		if len(prompts) > 1 {
			name += "/" + string(rune('a'+i)) // openai.PromptsMax is below 26
		}
		c.calls = append(c.calls, &call{req: g.lastReq.Add(1), rid: name, tokens: ids, request: c, choice: i})
	}
	return c
}

func (c *clientRequest) submit(b relay.Budgets) bool {
	for _, one := range c.calls {
		if !c.g.post(input{event: relay.Event{Kind: relay.Arrive, Req: one.req, Budgets: b, Buffered: !c.parsed.Stream}, call: one}) {
			return false
		}
	}
	return true
}

// watch has the client's leaving heard apart from the handler, which may be inside a write that
// blocks (W2). It is called behind submit, for the core drops the leaving of a request that it
// has not seen. The returned function ends the watch.
func (c *clientRequest) watch(client context.Context) (end func()) {
	left := make(chan struct{})
	unwatch := context.AfterFunc(client, func() {
		defer close(left)
		c.leave()
	})
	return func() {
		switch {
		case !unwatch():
			<-left
		case client.Err() != nil: // the handler woke by the same cancellation, and was faster
			c.leave()
		}
	}
}

// leave ends what is left of the request.
func (c *clientRequest) leave() {
	for _, one := range c.calls {
		c.g.post(input{event: relay.Event{Kind: relay.ClientGone, Req: one.req}})
	}
}

// next waits for what comes for the client. It returns nothing when the silence was longer
// than quiet (0 waits without end); false says that there is nobody to answer any more.
func (c *clientRequest) next(ctx context.Context, quiet time.Duration) ([]item, bool) {
	var silence <-chan time.Time
	if quiet > 0 {
		t := time.NewTimer(quiet)
		defer t.Stop()
		silence = t.C
	}
	for {
		select {
		case <-c.inbox.wake:
			// A wake may be of what was taken already: that is no news, and no silence either.
			if c.buf = c.inbox.take(c.buf); len(c.buf) > 0 {
				return c.buf, true
			}
		case <-silence:
			return nil, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

// piece turns a line of a leg into a piece of the answer.
func (it *item) piece() openai.Piece {
	return openai.Piece{Choice: it.choice, Text: it.line.Text, IDs: it.line.IDs, Logprobs: it.line.Logprobs}
}

// heard counts an ending; what is not a success becomes the error of the whole request.
func (c *clientRequest) heard(e *ending) *openai.Error {
	c.ended++
	if e.outcome.Kind == room.Success {
		c.usage = openai.Count(c.usage.PromptTokens+e.end.PromptTokens, c.usage.CompletionTokens+e.end.OutputTokens,
			c.usage.PromptDetails.CachedTokens+e.end.Cached)
		return nil
	}
	if e.missing != "" {
		return unavailable(e.missing)
	}
	detail := e.end.Message
	if e.slow {
		detail = "its client did not read, and too much was waiting for it"
	}
	after := retryHint
	if e.outcome.Cause == room.Overload {
		after = e.after
	}
	err := openai.Failure(e.outcome, detail, after)
	if e.stopped {
		err = unavailable("the server is shutting down")
	}
	err.RequestID = rid(c.w)
	return err
}

// firstPiece is seen once per request.
func (c *clientRequest) firstPiece() {
	c.g.metrics.firstToken.Observe((c.g.clock() - c.arrived).Seconds())
}

// whole answers with one body.
func (c *clientRequest) whole(ctx context.Context) {
	all := make([]openai.Piece, len(c.calls))
	texts := make([]strings.Builder, len(c.calls))
	begun := false
	for c.ended < len(c.calls) {
		items, here := c.next(ctx, 0)
		if !here {
			return // leave tells the loop
		}
		for i := range items {
			it := &items[i]
			if it.anew {
				all[it.choice] = openai.Piece{}
				texts[it.choice].Reset()
				continue
			}
			if it.ending == nil {
				if !begun {
					begun = true
					c.firstPiece()
				}
				p := it.piece()
				a := &all[it.choice]
				texts[it.choice].WriteString(p.Text)
				a.IDs, a.Logprobs = append(a.IDs, p.IDs...), append(a.Logprobs, p.Logprobs...)
				continue
			}
			if err := c.heard(it.ending); err != nil {
				c.leave()
				writeError(c.w, err)
				return
			}
			all[it.choice].Finish, all[it.choice].Matched = it.ending.end.Finish, it.ending.end.Matched
		}
	}
	for i := range all {
		all[i].Choice, all[i].Text = i, texts[i].String()
	}
	body, err := c.answer.Whole(all, c.usage)
	if err != nil {
		c.g.log.Error("answer not printable", "rid", rid(c.w), "cause", room.Internal.String(), "detail", err.Error())
		writeError(c.w, openai.Failure(room.Fail(room.Internal), "", 0))
		return
	}
	writeBody(c.w, http.StatusOK, body)
}

// stream answers with events. The head goes out with the first of them, in one write, so that
// a request that fails before still gets a status; or with a comment, when the silence grew
// long enough for something on the way to cut the connection.
func (c *clientRequest) stream(ctx context.Context) {
	said := make([]progress, len(c.calls))
	begun, headed := false, false
	for c.ended < len(c.calls) {
		items, here := c.next(ctx, max(c.g.config.Keepalive, 0))
		if !here {
			return // leave tells the loop
		}
		events, failed := c.events(items, said)
		switch {
		case failed != nil && !headed && len(events) == 0:
			c.leave()
			writeError(c.w, failed)
			return
		case failed != nil:
			c.leave()
			events = append(events, openai.ErrorEvent(failed)...)
		case len(items) == 0:
			events = append(events, openai.Keepalive...)
		case !begun:
			begun = true
			c.firstPiece()
		}
		if len(events) == 0 {
			continue // held back by the worker, for a stop string or half a character
		}
		if !headed {
			headed = true
			c.head()
		}
		if !c.write(events) {
			c.leave()
			return
		}
		if failed != nil {
			return
		}
	}
}

// progress is what a choice's stream has said.
type progress struct{ opened, chunked bool }

// head sets what makes proxies and clients read the answer as it comes.
func (c *clientRequest) head() {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
}

// write sends events in one write. False says that the client does not take them.
func (c *clientRequest) write(events []byte) bool {
	c.control.SetWriteDeadline(time.Now().Add(writeAfter))
	if _, err := c.w.Write(events); err != nil {
		return false
	}
	return c.control.Flush() == nil
}

// events prints what came. With an error, they are what came before it.
func (c *clientRequest) events(items []item, said []progress) (events []byte, failed *openai.Error) {
	add := func(b []byte, err error) {
		events = append(events, b...)
		if err != nil && failed == nil {
			c.g.log.Error("answer not printable", "rid", rid(c.w), "cause", room.Internal.String(), "detail", err.Error())
			failed = openai.Failure(room.Fail(room.Internal), "", 0)
		}
	}
	for i := range items {
		it := &items[i]
		p := it.piece()
		if it.ending != nil {
			if err := c.heard(it.ending); err != nil {
				return events, err
			}
			p = openai.Piece{Choice: it.choice, Finish: it.ending.end.Finish, Matched: it.ending.end.Matched}
		}
		choice := &said[it.choice]
		if !choice.opened {
			choice.opened = true
			add(c.answer.Opening(it.choice))
		}
		chunk, err := c.answer.Chunk(&p, !choice.chunked)
		choice.chunked = choice.chunked || len(chunk) > 0
		if add(chunk, err); failed != nil {
			return events, failed
		}
	}
	if c.ended == len(c.calls) {
		add(c.answer.Closing(c.usage))
	}
	return events, failed
}
