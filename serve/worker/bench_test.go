package worker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/core/room"
	"baton/engine/model"
	"baton/serve/leg"
)

// idleEngine computes nothing: what is left is the worker's own cost per token.
type idleEngine struct {
	block  []byte
	blocks int
	logits []float32
}

func (e *idleEngine) Block(int32) []byte { return e.block }
func (e *idleEngine) Blocks() int        { return e.blocks }
func (e *idleEngine) Close() error       { return nil }
func (e *idleEngine) Step(items []model.Item) error {
	for i := range items {
		items[i].Logits = e.logits
	}
	return nil
}

// BenchmarkOwnCostPerToken streams from an engine that costs nothing: the loop, sampling, text,
// JSON and HTTP, gateway side included. ns/op is per token.
func BenchmarkOwnCostPerToken(b *testing.B) {
	for _, streams := range []int{1, 8, 32} {
		b.Run(map[int]string{1: "1 stream", 8: "8 streams", 32: "32 streams"}[streams], func(b *testing.B) {
			s, f := serveFake(b, 1, "layout")
			s.Engine = &idleEngine{block: f.blocks[0], blocks: 1 << 14, logits: make([]float32, f.vocab)}
			s.Context = room.TokensMax
			w := startServed(b, Unified, s, func(c *Config) { c.Canary = false })
			r := rand.New(rand.NewPCG(1, 1))
			b.ResetTimer()
			for left := b.N; left > 0; {
				var all sync.WaitGroup
				for range streams {
					n := min(left, 2000)
					if n == 0 {
						break
					}
					left -= n
					c := open(b, w, Decode, ask(r, 16, n, f.vocab))
					all.Go(func() {
						if <-c.over; len(c.ids) != n {
							b.Errorf("%d of %d tokens: %+v", len(c.ids), n, c.end)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkRecall is the same with the embedded model and one engine thread.
func BenchmarkRecall(b *testing.B) {
	for _, streams := range []int{1, 8} {
		b.Run(map[int]string{1: "1 stream", 8: "8 streams"}[streams], func(b *testing.B) {
			w := loadRecall(b, Unified, func(c *Config) { c.Sizes.KVTokens = 1 << 15; c.Sizes.MaxRunning = 8 })
			r := rand.New(rand.NewPCG(1, 1))
			b.ResetTimer()
			for left := b.N; left > 0; {
				var all sync.WaitGroup
				for range streams {
					n := min(left, 256)
					if n == 0 {
						break
					}
					left -= n
					c := open(b, w, Decode, ask(r, 64, n, w.served.Vocab))
					all.Go(func() {
						if <-c.over; len(c.ids) != n {
							b.Errorf("%d of %d tokens: %+v", len(c.ids), n, c.end)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkStep is one decode step of eight rooms, whole: core, engine (the embedded model, one
// thread), penalties and draws, text, and lines for a gateway that takes them. It allocates nothing;
// what is left of bytes is lists that double.
func BenchmarkStep(b *testing.B) {
	w := stepper(b)
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	for left := b.N; left > 0; left -= stepsMax {
		steps(b, w, min(left, stepsMax), b.StartTimer, b.StopTimer)
	}
	b.ReportMetric(float64(b.N*stepRooms)/b.Elapsed().Seconds(), "tokens/s")
}

// W12, with what else happens in a process: timers, a list that doubles.
func TestAStepOfRoomsThatGenerateAllocatesNothing(t *testing.T) {
	const n = 400
	var before, after runtime.MemStats
	steps(t, stepper(t), n, func() { runtime.ReadMemStats(&before) }, func() { runtime.ReadMemStats(&after) })
	if each := float64(after.Mallocs-before.Mallocs) / n; each > 0.5 {
		t.Errorf("%v allocations a step", each)
	}
}

const (
	stepRooms = 8
	stepsMax  = 1500 // of one prompt; the model's context ends
)

func stepper(t testing.TB) *Worker {
	return loadRecall(t, Unified, func(c *Config) {
		c.Name, c.Sizes.KVTokens, c.Sizes.MaxRunning, c.Sizes.AheadTokens = bare, 1<<15, stepRooms, AheadMax
	})
}

// steps runs n steps of eight rooms between start and stop.
func steps(t testing.TB, w *Worker, n int, start, stop func()) {
	t.Helper()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1)) // a room's name is never used twice
	tokens, begun, done := new(atomic.Int64), make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for i := range stepRooms {
		q := ask(r, 20, n+64, w.served.Vocab)
		switch i % 3 {
		case 1:
			q.Params.Temperature, q.Params.TopP = 1, 0.9
		case 2:
			q.Params.PresencePenalty, q.Params.RepetitionPenalty, q.Params.MinTokens = 0.5, 1.1, 10
		}
		e, _, err := w.prepare(context.Background(), &q)
		if err != nil {
			t.Fatal(err)
		}
		e.began, e.answer = w.now(), newAnswer(answerMax)
		w.send(w.node.request(e))
		all.Go(func() {
			var lines []leg.Line
			for range e.answer.wake {
				var end *leg.End
				lines, _, end = e.answer.take(lines)
				for i := range lines {
					if len(lines[i].IDs) == 0 {
						continue
					}
					switch tokens.Add(1) {
					case stepRooms * 32: // all are there
						close(begun)
					case int64(stepRooms * (n + 32)):
						close(done)
					}
				}
				if end != nil {
					return
				}
			}
		})
	}
	<-begun
	start()
	<-done
	stop()
	all.Wait()
}

// BenchmarkCancelToBlocksFree measures from the close of a decode leg's connection to the moment
// when its blocks can be given out again, in the middle of a transfer that never comes.
func BenchmarkCancelToBlocksFree(b *testing.B) {
	p, f := start(b, Prefill, 64)
	d, _ := start(b, Decode, 64)
	r := rand.New(rand.NewPCG(1, 1))
	var took []time.Duration
	for range b.N {
		q := ask(r, 200, 20, f.vocab)
		q.Link = p.Link()
		c := open(b, d, Decode, q).accepted()
		inQueue(b, d, q.Room, room.Transfer)
		began := time.Now()
		c.cancel()
		until(b, "the blocks are free", func() bool { return look(b, d).Worker.Blocks.Held == 0 })
		took = append(took, time.Since(began))
		<-c.over
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}
