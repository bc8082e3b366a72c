package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/core/room"
	"baton/serve/door"
	"baton/serve/observe"
	"baton/serve/openai"
)

// route is one path of the API.
type route struct{ method, path string }

func (g *Gateway) routes() map[route]http.HandlerFunc {
	return map[route]http.HandlerFunc{
		{"POST", "/v1/chat/completions"}: g.generation(openai.Chat),
		{"POST", "/v1/completions"}:      g.generation(openai.Completion),
		{"GET", "/v1/models"}:            g.models,
		{"GET", "/v1/models/{id...}"}:    g.oneModel,
		{"POST", "/tokenize"}:            g.tokenize,
		{"POST", "/detokenize"}:          g.detokenize,
		{"GET", "/health"}:               g.health,
		{"GET", "/debug/rooms"}:          g.debugRooms,
		{"GET", "/debug/requests"}:       g.debugRequests,
		{"GET", "/metrics"}:              g.metrics.handler().ServeHTTP,
		{"GET", "/{$}"}:                  g.index,
	}
}

// Handler answers clients and operators.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	for at, h := range g.routes() {
		mux.HandleFunc(at.method+" "+at.path, h)
		mux.HandleFunc(at.path, g.otherMethod(at.method))
	}
	mux.HandleFunc("/", g.elsewhere)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// On every answer; for requests to the model it is also the rid in logs and at workers.
		w.Header().Set("X-Request-Id", requestID(r))
		if !clean(r.URL.Path) { // the mux would answer with a page that sends the client elsewhere
			g.elsewhere(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// clean says whether a path is written as routes are.
func clean(p string) bool {
	short := path.Clean(p)
	return p == short || p == short+"/" && short != "/"
}

// otherMethod answers for a path that takes only method.
func (g *Gateway) otherMethod(method string) http.HandlerFunc {
	allow := method
	if method == http.MethodGet {
		allow += ", HEAD"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		g.refuse(w, &openai.Error{Status: http.StatusMethodNotAllowed, Type: openai.TypeInvalid, Code: "method_not_allowed",
			Message: r.URL.Path + " takes " + allow + ", not " + r.Method})
	}
}

// index says where things are.
func (g *Gateway) index(w http.ResponseWriter, _ *http.Request) {
	var paths []string
	for at := range g.routes() {
		paths = append(paths, at.method+" "+strings.NewReplacer("{$}", "", "{id...}", "{id}").Replace(at.path))
	}
	slices.Sort(paths)
	writeJSON(w, http.StatusOK, struct {
		Server string   `json:"server"`
		Model  string   `json:"model"`
		Paths  []string `json:"paths"`
	}{"baton", g.config.Model, paths})
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
		Message: "there is no " + r.Method + " " + r.RequestURI + " here; GET / lists what is"})
}

// readBody reads a client's body to its end (W1), within a bound and a time. Its bytes count
// until they are released.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (*door.Body, *openai.Error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, &openai.Error{Status: http.StatusUnsupportedMediaType, Type: openai.TypeInvalid, Param: "Content-Encoding", Code: openai.CodeUnsupported,
			Message: "Content-Encoding: " + strconv.Quote(e) + " is not read; send the body as it is, without it"}
	}
	body, err := g.bodies.Read(w, r, g.config.BodyBytes)
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, openai.TooLarge(g.config.BodyBytes)
	}
	switch err {
	case door.ErrFull:
		return nil, openai.Failure(room.Fail(room.Overload), "too many request bodies are on their way", retryHint)
	case door.ErrSlow:
		return nil, &openai.Error{Status: http.StatusRequestTimeout, Type: openai.TypeInvalid, Code: "incomplete_body",
			Message: "the request body did not come in time; send it at 128 KiB/s or more"}
	}
	return nil, &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalid, Code: "incomplete_body",
		Message: "the request body could not be read to its end"}
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
	case s.capacity.Context == 0:
		return s, unavailable(s.missing)
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

// finished logs and counts the end of an accepted request: the one line that it gets. saw is
// what went wrong in words that the client does not get.
func (g *Gateway) finished(c *call, o room.Outcome, after time.Duration, saw string) {
	g.metrics.ended(c, o, after)
	id := ""
	if c.room != 0 { // it was placed
		id = c.room.String()
	}
	g.log.Info("request ended", "rid", c.rid, observe.Known("room", id), "outcome", o.Kind.String(), observe.Known("cause", o.Cause.String()),
		"after", after.Round(time.Microsecond), observe.Known("worker", c.decode), observe.Known("peer", c.prefill), observe.Known("detail", saw))
}

func (g *Gateway) model() openai.Model {
	return openai.Model{ID: g.config.Model, Object: "model", Created: g.started.Unix(), OwnedBy: "baton", MaxModelLen: g.status.Load().capacity.Context}
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
