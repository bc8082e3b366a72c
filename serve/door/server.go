package door

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// Times of a connection.
const (
	headAfter = 10 * time.Second // for a request's head
	idleAfter = 2 * time.Minute  // for a kept connection without a request
	// unreadAfter is how long the rest of a body that nobody wants is swallowed, so that its
	// sender comes to read the answer.
	unreadAfter  = time.Second
	headBytesMax = 64 << 10 // of a request's head
)

// Server returns an HTTP server for h with every bound set; a handler has writeAfter for its
// answer, or moves that deadline. It wants a listener of Listen.
func Server(h http.Handler, writeAfter time.Duration, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           loud(guarded(h, writeAfter), log),
		ReadHeaderTimeout: headAfter,
		IdleTimeout:       idleAfter,
		MaxHeaderBytes:    headBytesMax,
		ConnState:         follow,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// loud has a handler that panics say so in the log. net/http cuts its connection, and has the process
// go on; what it says of that stands where nobody looks, among the errors of strangers' connections.
func loud(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler { // by which a handler cuts a connection on purpose
				log.Error("a handler panicked, its connection is cut", "detail", fmt.Sprintf("%s %s: %v\n%s", r.Method, r.URL.Path, v, debug.Stack()))
			}
			panic(v)
		}()
		h.ServeHTTP(w, r)
	})
}

// guarded gives every request its deadlines (D1). A body is nobody's until Bodies.Read took it;
// the answer to one that stays so is the last of its connection (D4).
func guarded(h http.Handler, writeAfter time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(writeAfter))
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			control.SetReadDeadline(time.Now().Add(bodyAfter))
			defer func() {
				if w.Header().Get("Connection") == "close" {
					control.SetReadDeadline(time.Now().Add(unreadAfter))
				}
			}()
		}
		h.ServeHTTP(w, r)
	})
}

// wasRead takes off what guarded put on.
func wasRead(w http.ResponseWriter, control *http.ResponseController) {
	w.Header().Del("Connection")
	// Else its expiry would count as the client's leaving.
	control.SetReadDeadline(time.Time{})
}
