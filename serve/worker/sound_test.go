package worker

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"

	"baton/core/room"
	"baton/engine/model"
)

// spoiled is a fake whose logits are changed as long as spoil says.
type spoiled struct {
	*fake
	spoil atomic.Pointer[func(logits []float32)]
}

func (s *spoiled) Step(items []model.Item) error {
	err := s.fake.Step(items)
	if f := s.spoil.Load(); f != nil {
		for i := range items {
			if items[i].Want {
				(*f)(items[i].Logits)
			}
		}
	}
	return err
}

func startSpoiled(t *testing.T, role string, f func([]float32), options ...option) (*Worker, *spoiled) {
	s, inner := serveFake(t, 64, "layout")
	e := &spoiled{fake: inner}
	if f != nil {
		e.spoil.Store(&f)
	}
	s.Engine = e
	return startServed(t, role, s, options...), e
}

func fill(x float64) func([]float32) {
	return func(l []float32) {
		for i := range l {
			l[i] = float32(x)
		}
	}
}

func one(x float64) func([]float32) { return func(l []float32) { l[len(l)/2] = float32(x) } }

// What the model computes is judged before what the client asked: a model that computes no numbers
// is a failure of the server, whatever the parameters, in every role.
func TestAModelThatComputesNoNumbersIsNoClientsFault(t *testing.T) {
	for name, spoil := range map[string]func([]float32){
		"NaN": fill(math.NaN()), "one NaN": one(math.NaN()), "infinity": fill(math.Inf(1)), "one infinity": one(math.Inf(1)), "none": fill(math.Inf(-1)),
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			u, _ := startSpoiled(t, Unified, spoil, log.into(slog.LevelError))
			p, _ := startSpoiled(t, Prefill, spoil)
			d, f := start(t, Decode, 64)
			if status, _ := get(t, u, "/health"); status != http.StatusOK {
				t.Fatal("not healthy before anything was asked")
			}
			for i, n := range []int{0, 3} {
				q := ask(rand.New(rand.NewPCG(uint64(i), 3)), 20, 4, f.vocab)
				q.N, q.Params.PresencePenalty = n, float64(i)
				c := open(t, u, Decode, q).ended(room.Internal)
				if c.end.Message != whyUnsound || len(c.ids) > 0 {
					t.Errorf("unified: %q with %v, want %q", c.end.Message, c.ids, whyUnsound)
				}
				pre, dec := both(t, p, d, q, p.Link())
				if pre.ended(room.Internal); pre.end.Message != whyUnsound {
					t.Errorf("prefill: %q", pre.end.Message)
				}
				within(t, "decode's leg", dec.over)
			}
			if got := log.lines(t, "msg", "model computed no finite number"); len(got) != 2 || got[0]["room"] == nil {
				t.Errorf("logged %v, want a line for each of two rooms", got)
			}
			for _, w := range []*Worker{u, p} {
				if status, body := get(t, w, "/health"); status != http.StatusServiceUnavailable {
					t.Errorf("health of %s: %d %s; the model has never computed anything", w.name, status, body)
				}
				if n := counter(t, w, "baton_unsound_rooms_total"); n != 2 {
					t.Errorf("%s counts %v rooms, want 2", w.name, n)
				}
			}
			empty(t, u, p, d)
		})
	}
}

// A model that has computed well stays in service when one room meets what it cannot compute: else
// one prompt would take the workers out. In the middle of an answer it is a failure, too.
func TestOneRoomWithoutNumbersDoesNotTakeTheWorkerOut(t *testing.T) {
	u, e := startSpoiled(t, Unified, nil)
	r := rand.New(rand.NewPCG(7, 3))
	open(t, u, Decode, ask(r, 20, 4, e.vocab)).ended(room.NoCause)
	held, release := e.hold()
	c := open(t, u, Decode, ask(r, 20, 9, e.vocab))
	within(t, "a step", held)
	bad := fill(math.NaN())
	e.spoil.Store(&bad)
	release()
	if c.ended(room.Internal); c.end.Message != whyUnsound {
		t.Errorf("%q", c.end.Message)
	}
	e.spoil.Store(nil)
	if status, body := get(t, u, "/health"); status != http.StatusOK {
		t.Errorf("health %d %s", status, body)
	}
	open(t, u, Decode, ask(r, 20, 4, e.vocab)).ended(room.NoCause)
	empty(t, u)
}

// Health follows the model both ways: one whose first room met no numbers, and that has computed for
// another since, is in service, for its first prompt may have been the only one that overflows.
func TestAModelThatHasComputedSinceIsHealthy(t *testing.T) {
	first := fill(math.NaN())
	u, e := startSpoiled(t, Unified, first)
	p, pe := startSpoiled(t, Prefill, first)
	d, _ := start(t, Decode, 64)
	r := rand.New(rand.NewPCG(8, 3))
	health := func(w *Worker, want int) {
		t.Helper()
		if status, body := get(t, w, "/health"); status != want {
			t.Errorf("health of %s: %d %s, want %d", w.name, status, body, want)
		}
	}
	open(t, u, Decode, ask(r, 20, 4, e.vocab)).ended(room.Internal)
	pre, dec := both(t, p, d, ask(r, 20, 4, pe.vocab), p.Link())
	pre.ended(room.Internal)
	within(t, "decode's leg", dec.over)
	health(u, http.StatusServiceUnavailable)
	health(p, http.StatusServiceUnavailable)
	e.spoil.Store(nil)
	pe.spoil.Store(nil)
	open(t, u, Decode, ask(r, 20, 4, e.vocab)).ended(room.NoCause)
	pre, dec = both(t, p, d, ask(r, 20, 4, pe.vocab), p.Link())
	pre.ended(room.NoCause)
	dec.ended(room.NoCause)
	health(u, http.StatusOK)
	health(p, http.StatusOK)
	empty(t, u, p, d)
}

// What models compute is taken: minus infinity beside numbers, and numbers whose squares are none.
func TestSoundLogits(t *testing.T) {
	for _, l := range [][]float32{{1, 2}, {0}, {float32(math.Inf(-1)), -3}, {-3e38, 3e38}} {
		if !sound(l) {
			t.Errorf("%v is refused", l)
		}
	}
	if sound(nil) {
		t.Error("no logits at all are taken")
	}
}
