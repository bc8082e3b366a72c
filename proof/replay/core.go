package replay

import (
	"fmt"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/serve/recorder"
)

// machine is a fresh core of one kind, as replay uses it. A key names one of its rooms: the room
// on a worker, the request at a gateway.
type machine[E, X any] struct {
	lines recorder.Lines[E, X]
	step  func(now time.Duration, ev *E) []X // valid until the next
	phase func(key uint64) string            // "" for one that is not known
	began func(x *X) (key uint64, ok bool)   // the effect by which a room begins here
	came  func(ev *E) (key uint64, ok bool)  // the event by which it begins, where that is enough
	ended func(x *X) (end, bool)             // the effect by which it is over
}

// end is how a room was over.
type end struct {
	key     uint64
	outcome room.Outcome
	half    bool          // it never had a leg here
	since   time.Duration // half: when it was first heard of
}

// Bounds of what a file may ask of the memory of who reads it: the largest that a worker takes.
const (
	blocksMax = 1 << 24
	countMax  = 1 << 24
)

func bounded(what string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d, want %d to %d", what, n, least, most)
	}
	return nil
}

func config[C any](b []byte) (C, error) {
	c, err := recorder.NewForm[C]().Parse(b)
	if err != nil {
		err = fmt.Errorf("the core's config: %w", err)
	}
	return c, err
}

// checked is the config of a worker's core, which may be made of it: blocks is the size of its pool.
func checked[C interface{ Check() error }](b []byte, blocks func(C) int) (C, error) {
	c, err := config[C](b)
	if err == nil {
		err = c.Check()
	}
	if err == nil {
		err = bounded("blocks", blocks(c), 1, blocksMax)
	}
	return c, err
}

func newPrefill(b []byte) (*machine[prefill.Event, prefill.Effect], error) {
	cfg, err := checked(b, func(c prefill.Config) int { return c.Blocks })
	if err != nil {
		return nil, err
	}
	core, out := prefill.New(cfg), prefill.Effects{}
	return &machine[prefill.Event, prefill.Effect]{
		lines: recorder.NewLines[prefill.Event, prefill.Effect](),
		step: func(now time.Duration, ev *prefill.Event) []prefill.Effect {
			out.Reset()
			core.Step(now, *ev, &out)
			return out.List
		},
		phase: func(key uint64) string { return core.PhaseOf(room.ID(key)) },
		began: func(x *prefill.Effect) (uint64, bool) { return uint64(x.Room), x.Kind == prefill.Accept },
		came:  func(*prefill.Event) (uint64, bool) { return 0, false },
		ended: func(x *prefill.Effect) (end, bool) {
			return end{uint64(x.Room), x.Outcome, x.Kind == prefill.EndHalf, x.Began},
				x.Kind == prefill.End || x.Kind == prefill.EndHalf || x.Kind == prefill.Refuse
		},
	}, nil
}

func newDecode(b []byte) (*machine[decode.Event, decode.Effect], error) {
	cfg, err := checked(b, func(c decode.Config) int { return c.Blocks })
	if err != nil {
		return nil, err
	}
	core, out := decode.New(cfg), decode.Effects{}
	return &machine[decode.Event, decode.Effect]{
		lines: recorder.NewLines[decode.Event, decode.Effect](),
		step: func(now time.Duration, ev *decode.Event) []decode.Effect {
			out.Reset()
			core.Step(now, *ev, &out)
			return out.List
		},
		phase: func(key uint64) string { return core.PhaseOf(room.ID(key)) },
		began: func(x *decode.Effect) (uint64, bool) { return uint64(x.Room), x.Kind == decode.Accept },
		came:  func(*decode.Event) (uint64, bool) { return 0, false },
		ended: func(x *decode.Effect) (end, bool) {
			return end{key: uint64(x.Room), outcome: x.Outcome}, x.Kind == decode.End || x.Kind == decode.Refuse
		},
	}, nil
}

func newRelay(b []byte) (*machine[relay.Event, relay.Effect], error) {
	limits, err := config[relay.Limits](b)
	for _, n := range []int{limits.MaxRunning, limits.MaxQueued, limits.MaxTries, limits.RetryBurst} {
		if err == nil {
			err = bounded("a limit", n, -1, countMax)
		}
	}
	if err != nil {
		return nil, err
	}
	core, out := relay.New(limits), relay.Effects{}
	return &machine[relay.Event, relay.Effect]{
		lines: recorder.NewLines[relay.Event, relay.Effect](),
		step: func(now time.Duration, ev *relay.Event) []relay.Effect {
			out.Reset()
			core.Step(now, *ev, &out)
			return out.List
		},
		phase: func(key uint64) (phase string) {
			core.Rooms(func(v relay.View) bool {
				if v.Req == key {
					phase = v.Phase.String()
				}
				return v.Req != key
			})
			return phase
		},
		began: func(*relay.Effect) (uint64, bool) { return 0, false },
		came:  func(ev *relay.Event) (uint64, bool) { return ev.Req, ev.Kind == relay.Arrive },
		ended: func(x *relay.Effect) (end, bool) {
			return end{key: x.Req, outcome: x.Outcome}, x.Kind == relay.End
		},
	}, nil
}
