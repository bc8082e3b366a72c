package gateway

import (
	"context"
	"net/http"
	"time"

	"baton/core/room"
	"baton/serve/openai"
)

// stream answers with events. The head goes out with the first of them, in one write, so that
// a request that fails before still gets a status; or with a comment, when the silence grew
// long enough for something on the way to cut the connection.
func (c *clientRequest) stream(ctx context.Context) {
	begun := make([]bool, len(c.calls)) // per choice: its opening is out
	pieces, headed := false, false
	for c.ended < len(c.calls) {
		items, here := c.next(ctx, max(c.g.config.Keepalive, 0))
		if !here {
			return // leave tells the loop
		}
		events, failed := c.events(items, begun)
		if failed != nil && !headed && len(events) == 0 {
			c.leave()
			writeError(c.w, failed)
			return
		}
		switch {
		case failed != nil:
			c.leave()
			events = append(events, openai.ErrorEvent(failed)...)
		case len(items) == 0:
			events = append(events, openai.Keepalive...)
		}
		if !pieces && failed == nil && len(items) > 0 {
			pieces = true
			c.firstPiece()
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
	if len(events) == 0 {
		return true
	}
	c.control.SetWriteDeadline(time.Now().Add(writeAfter))
	if _, err := c.w.Write(events); err != nil {
		return false
	}
	return c.control.Flush() == nil
}

// events prints what came. With an error, they are what came before it.
func (c *clientRequest) events(items []item, begun []bool) (events []byte, failed *openai.Error) {
	add := func(b []byte, err error) {
		events = append(events, b...)
		if err != nil && failed == nil {
			c.g.log.Error("answer not printable", "rid", rid(c.w), "cause", err.Error())
			failed = openai.Failure(room.Fail(room.Internal), "", 0)
		}
	}
	for i := range items {
		it := &items[i]
		var p openai.Piece
		if it.ending == nil {
			p = it.piece()
		} else if err := c.heard(it.ending); err != nil {
			return events, err
		} else {
			p = openai.Piece{Choice: it.choice, Finish: it.ending.end.Finish, Matched: it.ending.end.Matched}
		}
		if !begun[it.choice] {
			add(c.answer.Opening(it.choice))
		}
		add(c.answer.Chunk(&p, !begun[it.choice]))
		begun[it.choice] = true
		if failed != nil {
			return events, failed
		}
	}
	if c.ended == len(c.calls) {
		add(c.answer.Closing(c.usage))
	}
	return events, failed
}
