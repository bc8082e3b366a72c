package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"baton/core/room"
	"baton/serve/openai"
)

// Handler answers clients and operators.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", g.generation(openai.Chat))
	mux.HandleFunc("POST /v1/completions", g.generation(openai.Completion))
	mux.HandleFunc("GET /v1/models", g.models)
	mux.HandleFunc("GET /v1/models/{id...}", g.oneModel)
	mux.HandleFunc("POST /tokenize", g.tokenize)
	mux.HandleFunc("POST /detokenize", g.detokenize)
	mux.HandleFunc("GET /health", g.health)
	mux.HandleFunc("GET /debug/rooms", g.debugRooms)
	mux.HandleFunc("GET /debug/requests", g.debugRequests)
	mux.Handle("GET /metrics", g.metrics.handler())
	mux.HandleFunc("/", g.elsewhere)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// On every answer; for requests to the model it is also the rid in logs and at workers.
		w.Header().Set("X-Request-Id", requestID(r))
		mux.ServeHTTP(w, r)
	})
}

// requestID takes the client's X-Request-Id if it is one that may stand in a log line and a
// header, or makes one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= ridBytesMax && printable(id) {
		return id
	}
	var b [12]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func rid(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// elsewhere answers what no route takes, in the shape that clients parse.
func (g *Gateway) elsewhere(w http.ResponseWriter, r *http.Request) {
	g.refuse(w, &openai.Error{Status: http.StatusNotFound, Type: openai.TypeNotFound, Code: "not_found",
		Message: "there is no " + r.Method + " " + r.URL.Path + " here"})
}

// readBody reads a client's body to its end (W1), within a bound and a time, and only so many
// at once.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *openai.Error) {
	select {
	case g.bodies <- struct{}{}:
		defer func() { <-g.bodies }()
	default:
		return nil, openai.Failure(room.Fail(room.Overload), "too many request bodies are on their way", retryHint)
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(bodyAfter))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.config.BodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, openai.TooLarge(g.config.BodyBytes)
		}
		return nil, &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalid, Code: "incomplete_body",
			Message: "the request body could not be read to its end"}
	}
	control.SetReadDeadline(time.Time{})
	return body, nil
}

// refuse answers with an error before a request was accepted.
func (g *Gateway) refuse(w http.ResponseWriter, e *openai.Error) {
	g.metrics.refused.WithLabelValues(strconv.Itoa(e.Status)).Inc()
	writeError(w, e)
}

func writeError(w http.ResponseWriter, e *openai.Error) {
	e.RequestID = rid(w)
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	writeJSON(w, e.Status, e)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // only our own types come here
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal"}}`)
	}
	writeBody(w, status, append(body, '\n'))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeAfter))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// unavailable is the refusal of a gateway that cannot place or does not take requests.
func unavailable(why string) *openai.Error {
	return &openai.Error{Status: http.StatusServiceUnavailable, Type: openai.TypeUnavailable, Code: "unavailable",
		Message: why, RetryAfter: retryHint}
}

// admitted says whether requests are taken at all right now. That no worker is there at the
// moment is no reason to refuse: one comes back, and the core bounds the wait. Before the first
// one came nobody knows the context that a request must fit into.
func (g *Gateway) admitted(w http.ResponseWriter) (status, *openai.Error) {
	s := *g.status.Load()
	switch {
	case s.draining:
		w.Header().Set("Connection", "close")
		return s, unavailable("the server is shutting down and takes no new requests")
	case s.contextTokens == 0:
		return s, unavailable("no worker is ready to take requests")
	}
	return s, nil
}

// timeout reads X-Request-Timeout, in seconds; it can only lower what is configured.
func (g *Gateway) timeout(r *http.Request) (time.Duration, *openai.Error) {
	const name = "X-Request-Timeout"
	total := g.config.Budgets.Total
	v := r.Header.Get(name)
	if v == "" {
		return total, nil
	}
	s, err := strconv.ParseFloat(v, 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return 0, &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalid, Param: name, Code: openai.CodeValue,
			Message: name + ": want a number of seconds above 0, got " + strconv.Quote(v)}
	}
	if s >= total.Seconds() {
		return total, nil
	}
	return max(time.Duration(s*float64(time.Second)), timeoutMin), nil
}

// checkModel refuses a model that is not served here; an empty name takes what is.
func (g *Gateway) checkModel(name string) *openai.Error {
	if name == "" || name == g.config.Model {
		return nil
	}
	return openai.NoSuchModel(name, g.config.Model)
}

// finished logs and counts the end of an accepted request: the one line that it gets.
func (g *Gateway) finished(c *call, o room.Outcome, after time.Duration) {
	g.metrics.ended(c, o, after)
	g.log.Info("request ended", "rid", c.rid, "room", c.room.String(), "outcome", o.Kind.String(), "cause", o.Cause.String(),
		"after", after.Round(time.Microsecond), "worker", c.decode, "peer", c.prefill)
}

func (g *Gateway) model() openai.Model {
	return openai.Model{ID: g.config.Model, Object: "model", Created: g.started.Unix(), OwnedBy: "baton", MaxModelLen: g.status.Load().contextTokens}
}

func (g *Gateway) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, openai.ModelList{Object: "list", Data: []openai.Model{g.model()}})
}

func (g *Gateway) oneModel(w http.ResponseWriter, r *http.Request) {
	if err := g.checkModel(r.PathValue("id")); err != nil {
		g.refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, g.model())
}
