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
			c.g.log.Error("answer not printable", "rid", rid(c.w), "cause", err.Error())
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
