package gateway

import (
	"slices"
	"strconv"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// blameWindow is how long blames of one worker and cause are collected for one line: the legs of
// a worker that dies end within milliseconds of each other, and who reads the log can wait.
const blameWindow = time.Second

// blames are those that are not logged yet, one for each worker and cause. The loop owns them.
type blames []blamed

type blamed struct {
	worker string
	cause  room.Cause
	rid    string // of the first
	n      int
}

// blame counts that a worker failed a request and takes a lost one out.
func (l *loop) blame(e *relay.Effect) {
	name := l.roster.name(e.Worker)
	l.g.metrics.blames.WithLabelValues(name, e.Cause.String()).Inc()
	i := slices.IndexFunc(l.blames, func(b blamed) bool { return b.worker == name && b.cause == e.Cause })
	if i < 0 {
		i = len(l.blames)
		l.blames = append(l.blames, blamed{worker: name, cause: e.Cause, rid: l.rid(e.Req)})
	}
	l.blames[i].n++
	if len(l.blames) == 1 && l.blames[0].n == 1 {
		time.AfterFunc(blameWindow, func() { l.g.post(input{do: (*loop).tellBlames}) })
	}
	l.roster.blame(e.Worker, e.Cause, l.now)
	l.publish()
}

// tellBlames logs a line for each worker and cause.
func (l *loop) tellBlames() {
	for _, b := range l.blames {
		l.g.log.Warn("worker blamed", "worker", b.worker, "cause", b.cause.String(), "rid", b.rid, "detail", strconv.Itoa(b.n)+" attempts")
	}
	l.blames = l.blames[:0]
}
