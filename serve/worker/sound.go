package worker

import (
	"math"

	"baton/core/room"
	"baton/engine/kernel"
)

// whyUnsound is said of a room whose logits are not what a model computes. That is the fault of
// weights, of kernels or of the machine, and of no client: it is judged before any parameter.
const whyUnsound = "the model computed no finite number"

// sound says whether logits are what a model computes: numbers, of which some are finite. Minus
// infinity may be among them, for tokens that are no tokens. One pass over what was just written is
// small beside the step that wrote it; only where it finds something there is another.
func sound(logits []float32) bool {
	d := kernel.Dot(logits, logits)
	switch {
	case d != d:
		return false
	case !math.IsInf(float64(d), 0):
		return len(logits) > 0
	}
	finite := false // squares of large numbers are infinite, too
	for _, x := range logits {
		if x > math.MaxFloat32 || x != x {
			return false
		}
		finite = finite || x >= -math.MaxFloat32
	}
	return finite
}

// well notes that the model has computed numbers: it can, whatever it did before.
func (w *Worker) well() {
	if !w.computes {
		w.computes = true
		w.numberless.Store(false)
	}
}

// unsound ends the room of p, and says so once.
func (w *Worker) unsound(p *part) {
	if !w.computes {
		w.numberless.Store(true) // its steps go on and bring nothing
	}
	if p.entry.why == whyUnsound {
		return
	}
	p.entry.why = whyUnsound
	w.metrics.Unsound.Inc()
	w.log.Error("model computed no finite number", "worker", w.name, "room", p.room, "rid", p.entry.req.RID, "cause", room.Internal.String())
}
