package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/chat/reply"
	"baton/serve/openai"
)

// clientRequest is one HTTP request to the model: one request of the core per prompt, whose
// choices are of one attempt.
type clientRequest struct {
	g       *Gateway
	w       http.ResponseWriter
	control *http.ResponseController
	parsed  *openai.Request
	answer  openai.Answer
	style   reply.Style // how the model writes
	inbox   *inbox
	calls   []*call  // one per prompt
	ended   int      // of them that have their ending
	said    []spoken // one per choice
	usage   openai.Usage
	arrived time.Duration // its body, whole
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
	arrived := g.clock() // its time runs while it is checked and cut into tokens, too (W9)
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
	prompts, style, err := g.prompts(parsed, s.capacity)
	if err != nil {
		return nil, budgets, err
	}
	if err := g.banWords(parsed); err != nil {
		return nil, budgets, err
	}
	if err := constrain(parsed, style); err != nil {
		return nil, budgets, err
	}
	c := g.newRequest(w, parsed, prompts, style)
	c.arrived = arrived
	if s.manifest != "" {
		c.answer.Fingerprint = "fp_" + s.manifest
	}
	return c, budgets, nil
}

// prompts returns the token ids of every prompt, checked against what the workers can take.
func (g *Gateway) prompts(r *openai.Request, has openai.Capacity) ([][]int32, reply.Style, *openai.Error) {
	if r.Endpoint == openai.Chat {
		field, bytes := openai.Words(&r.Chat)
		if err := g.checkText(field, bytes, has.Context); err != nil {
			return nil, reply.Style{}, err
		}
		p, err := g.conversation(r.Chat)
		if err != nil {
			return nil, reply.Style{}, err
		}
		return [][]int32{p.IDs}, p.Reply, r.CheckContext(len(p.IDs), has)
	}
	all := make([][]int32, len(r.Prompts))
	for i, p := range r.Prompts {
		all[i] = p.Tokens
		if p.Tokens == nil {
			if err := g.checkText("prompt", len(p.Text), has.Context); err != nil {
				return nil, reply.Style{}, err
			}
			ids, err := g.tokens("prompt", p.Text, true)
			if err != nil {
				return nil, reply.Style{}, err
			}
			all[i] = ids
		}
		// Each of them: what choices leave for an answer does not shrink with every token of a prompt.
		if err := r.CheckContext(len(all[i]), has); err != nil {
			return nil, reply.Style{}, err
		}
	}
	return all, reply.Style{}, nil
}

// checkText refuses a text that cannot fit into the context whatever its tokens are, before it
// is cut into them: a long one takes seconds.
func (g *Gateway) checkText(field string, bytes, context int) *openai.Error {
	if context == 0 || bytes <= context*g.longest {
		return nil
	}
	return openai.TextTooLong(field, bytes, context, context*g.longest)
}

// echoes returns the texts of prompts, for echo.
func (g *Gateway) echoes(r *openai.Request) (all []string) {
	if !r.Echo {
		return nil
	}
	for _, p := range r.Prompts {
		if p.Tokens != nil {
			p.Text = g.config.Text.Decode(p.Tokens)
		}
		all = append(all, p.Text)
	}
	return all
}

// answered tells the loop when the last handler has given its answer.
func (g *Gateway) answered() {
	if g.answers.Add(-1) == 0 {
		g.post(input{do: func(*loop) {}}) // it looks for whoever waits for that
	}
}

// conversation returns a chat as the model reads it. A template may refuse one, which is the
// client's error; whatever else goes wrong there is ours.
func (g *Gateway) conversation(c chat.Conversation) (*chat.Prompt, *openai.Error) {
	p, err := g.config.Text.Chat(c)
	if err == nil {
		return p, nil
	}
	if refused, ok := errors.AsType[*chat.Refused](err); ok {
		return nil, refusal(cmp.Or(refused.Field, "messages"), openai.CodeValue, refused.Reason)
	}
	g.log.Error("chat template failed", "cause", room.Internal.String(), "detail", err.Error())
	return nil, openai.Failure(room.Fail(room.Internal), "", 0)
}

func (g *Gateway) newRequest(w http.ResponseWriter, parsed *openai.Request, prompts [][]int32, style reply.Style) *clientRequest {
	c := &clientRequest{g: g, w: w, control: http.NewResponseController(w), parsed: parsed, style: style,
		inbox: newInbox(clientBytes(g.config.ClientBytes, len(prompts)*parsed.N))}
	id := "chatcmpl-"
	if parsed.Endpoint == openai.Completion {
		id = "cmpl-"
	}
	c.answer = openai.Answer{ID: id + rid(w), Model: g.config.Model, Created: time.Now().Unix(), Request: parsed, Prompts: prompts, Echoes: g.echoes(parsed)}
	for i, ids := range prompts {
		name := rid(w)
		if len(prompts) > 1 {
			name += "/" + string(rune('a'+i)) // openai.PromptsMax is below 26
		}
		for range parsed.N {
			c.said = append(c.said, c.begin())
		}
		if style.Special && c.said[0].parser != nil { // what would be skipped is what the parser looks for
			parsed.Params.KeepSpecial = true
		}
		c.calls = append(c.calls, &call{req: g.lastReq.Add(1), rid: name, tokens: ids, request: c, first: i * parsed.N, choices: parsed.N})
	}
	return c
}

// clientBytes bounds what waits for a client that asked for so many choices: what one may have waiting
// for each, up to a ceiling.
func clientBytes(each, choices int) int { return max(each, min(each*choices, clientBytesMost)) }

func (c *clientRequest) submit(b relay.Budgets) bool {
	for _, one := range c.calls {
		if !c.g.post(input{event: relay.Event{Kind: relay.Arrive, Req: one.req, Budgets: b, Buffered: !c.parsed.Stream, Worth: one.choices}, call: one}) {
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
