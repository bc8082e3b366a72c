package gateway

import (
	"log/slog"
	"time"

	"baton/core/relay"
	"baton/serve/openai"
)

// Config is what a gateway is made of. Zero values take the defaults below.
type Config struct {
	Model       string // the name that clients use
	Text        Text   // the model's tokenizer and chat template
	Limits      relay.Limits
	Budgets     relay.Budgets
	BodyBytes   int64         // bound of a request body
	ClientBytes int           // bound of what waits for one slow client
	Keepalive   time.Duration // silence of a stream after which a comment is sent; negative: never
	Log         *slog.Logger
}

// Default budgets. A client can lower the total with X-Request-Timeout.
const (
	queueDefault      = time.Minute      // longer in the queue, and whoever asked has asked again
	connectDefault    = 10 * time.Second // accepting is bookkeeping; a machine that swaps needs seconds
	firstTokenDefault = 3 * time.Minute  // a prompt of 32k tokens at 200 tokens/s, behind others
	gapDefault        = time.Minute      // a decode step behind a worker's longest prefill
	keepaliveDefault  = 15 * time.Second // load balancers cut silent streams after 30 to 60 s
)

// Bounds of the HTTP side.
const (
	headerAfter     = 10 * time.Second   // for a request's head
	bodyAfter       = time.Minute        // for a request's body: 8 MB over a slow line
	writeAfter      = 30 * time.Second   // for one write to a client that does not read
	idleAfter       = 2 * time.Minute    // for a kept connection without a request
	inspectAfter    = time.Second        // for a worker's or the loop's answer to an operator's question
	retryHint       = time.Second        // Retry-After: a worker is back within a second or two
	ridBytesMax     = 128                // of a client's X-Request-Id; a UUID has 36
	clientBytesMax  = 256 << 10          // waiting for a slow client: minutes of tokens
	inboxLen        = 1024               // events on their way to the loop; senders wait beyond it
	inspectBytesMax = 16 << 20           // of a worker's answer: 4,096 rooms of 4 KiB
	timeoutMax      = 24 * 7 * time.Hour // what a leg can carry
	timeoutMin      = time.Millisecond   // what a leg can carry
	progressMax     = 2 * time.Second    // the loop's answer to a health question
	headBytesMax    = 64 << 10           // of a request's head
)

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.BodyBytes <= 0 {
		c.BodyBytes = openai.BodyBytesMax
	}
	if c.ClientBytes <= 0 {
		c.ClientBytes = clientBytesMax
	}
	b := &c.Budgets
	for _, d := range []struct {
		budget *time.Duration
		def    time.Duration
	}{
		{&b.Queue, queueDefault}, {&b.Connect, connectDefault}, {&b.FirstToken, firstTokenDefault},
		{&b.Gap, gapDefault}, {&b.Total, relay.TotalDefault}, {&c.Keepalive, keepaliveDefault},
	} {
		if *d.budget == 0 {
			*d.budget = d.def
		}
	}
	c.Budgets.Total = min(c.Budgets.Total, timeoutMax)
}
