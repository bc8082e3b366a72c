package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"baton/core/room"
	"baton/engine/chat/reply"
	"baton/serve/leg"
	"baton/serve/openai"
)

// spoken is what one choice of an answer has said so far.
type spoken struct {
	parser   *reply.Parser // nil: its text is content
	hidden   bool          // its thoughts are not sent
	opened   bool          // its stream has an opening
	chunked  bool          // and something behind it
	called   bool          // a tool
	finished bool          // how it ended was said
	last     int32         // token
	held     openai.Piece  // of hidden thoughts: tokens that may yet be some, with no text so far
	thoughts int           // tokens of them, without the marks around
}

// begin is a choice that has said nothing.
func (c *clientRequest) begin() spoken {
	s, style := spoken{hidden: c.parsed.Thoughts == openai.ThoughtsHidden}, c.style
	if c.parsed.Thoughts == openai.ThoughtsInText {
		style.Thinks, style.Open = false, false
	}
	if style.Calls == reply.NoCalls && !style.Thinks && !style.Open {
		return s
	}
	o := reply.Options{One: c.parsed.OneCall, Whole: !c.parsed.Stream}
	for _, t := range c.parsed.Tools {
		o.Names = append(o.Names, t.Name)
	}
	s.parser = reply.New(style, o)
	return s
}

// hear turns a line of a leg into a piece of the answer.
func (s *spoken) hear(it *item) openai.Piece {
	p := openai.Piece{Choice: it.choice, Text: it.line.Text, IDs: it.line.IDs, Logprobs: it.line.Logprobs}
	if n := len(p.IDs); n > 0 {
		s.last = p.IDs[n-1]
	}
	if s.parser == nil {
		return p
	}
	before := s.parser.Thinking()
	s.part(&p, s.parser.Push(p.Text))
	if before && s.parser.Thinking() {
		s.thoughts += len(p.IDs)
	}
	if s.hidden {
		s.hide(&p, before)
	}
	return p
}

// hide takes from a piece the tokens of thoughts that are not sent, and of the marks around them.
// Where a token has no part of the text yet it waits for the next that has.
func (s *spoken) hide(p *openai.Piece, before bool) {
	h := &s.held
	h.IDs, h.Logprobs = append(h.IDs, p.IDs...), append(h.Logprobs, p.Logprobs...)
	p.IDs, p.Logprobs = nil, nil
	switch {
	case len(p.Deltas) > 0:
		if before { // the mark that ended them; what came with its token did, too
			last := len(h.IDs) - 1
			h.IDs = h.IDs[max(last, 0):]
			h.Logprobs = h.Logprobs[max(len(h.Logprobs)-1, 0):]
		}
		p.IDs, p.Logprobs, *h = h.IDs, h.Logprobs, openai.Piece{}
	case before, s.parser.Thinking():
		*h = openai.Piece{}
	}
}

// part puts the parts of a text in its place.
func (s *spoken) part(p *openai.Piece, deltas []reply.Delta) {
	p.Text = ""
	for _, d := range deltas {
		s.called = s.called || d.Call != nil
		if d.Reasoning == "" || !s.hidden {
			p.Deltas = append(p.Deltas, d)
		}
	}
}

// finish is the last piece of a choice.
func (c *clientRequest) finish(choice int, how leg.Choice) openai.Piece {
	s := &c.said[choice]
	s.finished = true
	p := openai.Piece{Choice: choice, Finish: how.Finish, Matched: how.Matched}
	if s.parser != nil {
		s.part(&p, s.parser.Close())
		if s.hidden && !s.parser.Thinking() {
			p.IDs, p.Logprobs, s.held = s.held.IDs, s.held.Logprobs, openai.Piece{}
		}
	}
	if s.called && p.Finish == openai.FinishStop {
		p.Finish = openai.FinishCalls
	}
	if by := &c.parsed.Params; how.Matched != "" && slices.Contains(by.StopIDs, s.last) && !slices.Contains(by.Stop, how.Matched) {
		p.MatchedToken = &s.last
	}
	return p
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
	if e.outcome.Cause == room.ClientError {
		err.Param = c.paramOf(e.end.Param)
	}
	err.RequestID = rid(c.w)
	return err
}

// paramOf is the client's name of what a worker calls by ours.
func (c *clientRequest) paramOf(param string) string {
	r := c.parsed
	switch param {
	case "grammar":
		if r.FormatParam == "" {
			return "tools"
		}
		return r.FormatParam
	case "max_tokens":
		if r.MaxTokensParam != "" {
			return r.MaxTokensParam
		}
	case "tokens":
		if r.Endpoint == openai.Chat {
			return "messages"
		}
		return "prompt"
	}
	return param
}

// total is the usage of all choices.
func (c *clientRequest) total() openai.Usage {
	u := c.usage
	for i := range c.said {
		u.CompletionDetails.ReasoningTokens += c.said[i].thoughts
	}
	return u
}

// firstPiece is seen once per request.
func (c *clientRequest) firstPiece() {
	c.g.metrics.firstToken.Observe((c.g.clock() - c.arrived).Seconds())
}

// whole answers with one body.
func (c *clientRequest) whole(ctx context.Context) {
	all := make([]openai.Piece, len(c.said))
	texts := make([]strings.Builder, len(c.said))
	begun := false
	add := func(p openai.Piece) {
		a := &all[p.Choice]
		texts[p.Choice].WriteString(p.Text)
		a.Deltas, a.IDs, a.Logprobs = append(a.Deltas, p.Deltas...), append(a.IDs, p.IDs...), append(a.Logprobs, p.Logprobs...)
		a.Finish, a.Matched, a.MatchedToken = p.Finish, p.Matched, p.MatchedToken
	}
	for c.ended < len(c.calls) {
		items, here := c.next(ctx, 0)
		if !here {
			return // leave tells the loop
		}
		for i := range items {
			it := &items[i]
			switch {
			case it.anew > 0:
				for n := it.choice; n < it.choice+it.anew; n++ {
					all[n], c.said[n] = openai.Piece{}, c.begin()
					texts[n].Reset()
				}
			case it.ending == nil:
				if !begun {
					begun = true
					c.firstPiece()
				}
				add(c.said[it.choice].hear(it))
				if it.line.Finish != "" {
					add(c.finish(it.choice, it.how()))
				}
			default:
				if err := c.heard(it.ending); err != nil {
					c.leave()
					writeError(c.w, err)
					return
				}
				for n, how := range it.ending.choices() {
					if !c.said[it.choice+n].finished {
						add(c.finish(it.choice+n, how))
					}
				}
			}
		}
	}
	for i := range all {
		all[i].Choice, all[i].Text = i, texts[i].String()
	}
	body, err := c.answer.Whole(all, c.total())
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
	begun, headed := false, false
	for c.ended < len(c.calls) {
		items, here := c.next(ctx, max(c.g.config.Keepalive, 0))
		if !here {
			return // leave tells the loop
		}
		events, failed := c.events(items)
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
			continue // held back by the worker, for a stop string or half a character, or by the parser
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
func (c *clientRequest) events(items []item) (events []byte, failed *openai.Error) {
	add := func(b []byte, err error) {
		events = append(events, b...)
		if err != nil && failed == nil {
			c.g.log.Error("answer not printable", "rid", rid(c.w), "cause", room.Internal.String(), "detail", err.Error())
			failed = openai.Failure(room.Fail(room.Internal), "", 0)
		}
	}
	say := func(p openai.Piece) {
		s := &c.said[p.Choice]
		if !s.opened {
			s.opened = true
			add(c.answer.Opening(p.Choice))
		}
		chunk, err := c.answer.Chunk(&p, !s.chunked)
		s.chunked = s.chunked || len(chunk) > 0
		add(chunk, err)
	}
	for i := range items {
		it := &items[i]
		if it.ending == nil {
			say(c.said[it.choice].hear(it))
			if it.line.Finish != "" && failed == nil {
				say(c.finish(it.choice, it.how()))
			}
			if failed != nil {
				return events, failed
			}
			continue
		}
		if err := c.heard(it.ending); err != nil {
			return events, err
		}
		for n, how := range it.ending.choices() {
			if c.said[it.choice+n].finished {
				continue
			}
			if say(c.finish(it.choice+n, how)); failed != nil {
				return events, failed
			}
		}
	}
	if c.ended == len(c.calls) {
		add(c.answer.Closing(c.total()))
	}
	return events, failed
}
