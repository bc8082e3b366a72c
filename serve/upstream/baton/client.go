package baton

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

const (
	// dialTimeout bounds a connect to a worker: within one data centre a SYN that was not
	// answered in two seconds (one retransmission) will not be.
	dialTimeout = 2 * time.Second
	// idleConnsMax keeps one connection per leg of a busy worker; more are closed after use.
	idleConnsMax = 512
	// idleAfter is below every server's idle bound in use here, so that the client closes first.
	idleAfter = 30 * time.Second
	// refusalBytesMax bounds the body of an answer that is not a stream.
	refusalBytesMax = 64 << 10
	// headBytesMax bounds the head of an answer; ours are below 1 KiB.
	headBytesMax = 32 << 10
)

// tailBytesMax and tailAfter bound what is read behind an end, so that the connection can
// serve again: it is the end of a chunked body, five bytes that follow at once.
const (
	tailBytesMax = 1 << 10
	tailAfter    = time.Second
)

// Client sends legs. It is safe for use by several goroutines.
type Client struct {
	http  *http.Client
	tails sync.WaitGroup // readers of what follows an end
}

// New returns a client with its own connections. Proxies of the environment are not used:
// workers stand beside the gateway.
func New() *Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return Over(&http.Transport{
		DialContext:            dialer.DialContext,
		MaxIdleConnsPerHost:    idleConnsMax,
		IdleConnTimeout:        idleAfter,
		DisableCompression:     true,
		MaxResponseHeaderBytes: headBytesMax,
		WriteBufferSize:        32 << 10, // a prompt of 4,000 ids in one write
	})
}

// Over returns a client whose legs go over t: tests have workers without sockets.
func Over(t http.RoundTripper) *Client {
	return &Client{http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // U2
	}}
}

// Close waits for the last connections to be put back and closes them. No leg may run any more.
func (c *Client) Close() {
	c.tails.Wait()
	c.http.CloseIdleConnections()
}

// Result is how a leg ended.
type Result struct {
	End  leg.End
	Said bool // the worker's own word (U3)
}

// Run sends a leg to http://addr/leg/<kind> and blocks until it is over or ctx is done. Every
// line but the end goes to got, in order, on this goroutine; the first one is Accepted.
func (c *Client) Run(ctx context.Context, addr, kind string, r *leg.Request, got func(leg.Line)) Result {
	body, err := json.Marshal(r)
	if err != nil {
		return concluded(room.Internal, fmt.Errorf("encoding the leg: %w", err))
	}
	// The stream outlives ctx by its tail: the end counts when it was read, not when the
	// connection is free again.
	stream, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, cancel)
	defer unlink()
	req, err := http.NewRequestWithContext(stream, http.MethodPost, "http://"+addr+"/leg/"+kind, bytes.NewReader(body))
	if err != nil {
		cancel()
		return concluded(room.Internal, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		cancel()
		return concluded(room.WorkerLost, err)
	}
	var result Result
	if resp.StatusCode == http.StatusOK {
		result = read(leg.NewReader(resp.Body), r.Choices(), got)
	} else {
		result = refused(resp)
	}
	if !result.Said || !unlink() {
		cancel()
		resp.Body.Close()
		return result
	}
	c.tails.Add(1)
	go c.tail(resp.Body, cancel)
	return result
}

// tail reads the end of a stream and closes it.
func (c *Client) tail(body io.ReadCloser, cancel context.CancelFunc) {
	defer c.tails.Done()
	late := time.AfterFunc(tailAfter, cancel)
	io.CopyN(io.Discard, body, tailBytesMax)
	late.Stop()
	body.Close()
	cancel()
}

// read hands over the lines of a stream of that many choices until its end.
func read(lines *leg.Reader, choices int, got func(leg.Line)) Result {
	for {
		line, err := lines.Next()
		if err != nil {
			return concluded(room.WorkerLost, err)
		}
		if line.Choice >= choices {
			return concluded(room.WorkerLost, fmt.Errorf("a piece of choice %d, asked for were %d choices", line.Choice, choices))
		}
		if line.End == nil {
			got(line)
			continue
		}
		if !line.End.Result().Ended() {
			return concluded(room.WorkerLost, errors.New("the last line names no outcome"))
		}
		return Result{*line.End, true}
	}
}

// refused reads the body of an answer that is no stream.
func refused(resp *http.Response) Result {
	body, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytesMax))
	if err != nil {
		return concluded(room.WorkerLost, err)
	}
	var end leg.End
	if json.Unmarshal(body, &end) == nil && end.Result().Ended() && end.Outcome != room.Success {
		end.Message = leg.Shorten(end.Message)
		return Result{end, true}
	}
	if end.Message != "" { // leg.Leaving, or something between us that speaks JSON
		return concluded(causeOf(resp.StatusCode), fmt.Errorf("status %d: %s", resp.StatusCode, end.Message))
	}
	return concluded(causeOf(resp.StatusCode), fmt.Errorf("status %d without a refusal", resp.StatusCode))
}

// causeOf reads a bare status, as something between us and the worker may send it.
func causeOf(status int) room.Cause {
	switch {
	case status == http.StatusTooManyRequests:
		return room.Overload
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		return room.Deadline
	case status >= 400 && status < 500 && status != http.StatusNotFound && status != http.StatusUnauthorized && status != http.StatusForbidden:
		return room.ClientError
	}
	return room.WorkerLost
}

// concluded is an end that the worker did not say.
func concluded(c room.Cause, err error) Result {
	o := room.Fail(c)
	return Result{End: leg.End{Outcome: o.Kind, Cause: o.Cause, Message: leg.Shorten(err.Error())}}
}
