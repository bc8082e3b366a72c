package door

import (
	"log/slog"
	"net/http"
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
		Handler:           guarded(h, writeAfter),
		ReadHeaderTimeout: headAfter,
		IdleTimeout:       idleAfter,
		MaxHeaderBytes:    headBytesMax,
		ConnState:         follow,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
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
