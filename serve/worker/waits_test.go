package worker

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// page is a response that may be read while it is written.
type page struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ResponseRecorder.Write(b)
}

func (p *page) count(s string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Count(p.Body.String(), s)
}

// TestAWaitingRoomIsSaidAgainAndAgain: a gateway takes a stream that says nothing for dead. So the
// worker repeats that a room waits for memory for as long as it does, but not when the room goes
// on, nor when the worker itself stands still: then its silence is the truth.
func TestAWaitingRoomIsSaidAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Worker, _ *clockwork) {
		w.healthMax = HealthMax
		works := true
		step := func(n int) { // n times waitsEvery, with work of other rooms between
			t.Helper()
			for range n {
				time.Sleep(waitsEvery)
				synctest.Wait()
				if works {
					w.moved()
				}
			}
		}
		to := &page{ResponseRecorder: httptest.NewRecorder()}
		s := &stream{w: w, e: &entry{req: &leg.Request{Room: 7}, answer: newAnswer(answerMax)}, rw: to, rc: http.NewResponseController(to)}
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.run(nil)
		}()
		said := func(when string, want int) {
			t.Helper()
			if got := to.count(`"waits":true`); got != want {
				t.Errorf("%s: said %d times that the room waits, want %d", when, got, want)
			}
		}
		s.e.answer.put(leg.Line{Accepted: true})
		step(4)
		said("while it generates", 0)
		s.e.answer.put(leg.Line{Waits: true})
		synctest.Wait()
		said("when it was retracted", 1)
		time.Sleep(waitsEvery - time.Nanosecond)
		synctest.Wait()
		said("before the first beat is due", 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.moved()
		said("at the first beat", 2)
		step(3)
		said("after three more", 5)
		works = false
		step(10)
		before := 5 + int(HealthMax/waitsEvery)
		said("while nothing moves on the worker", before)
		w.moved()
		works = true
		step(1)
		said("when something moves again", before+1)
		s.e.answer.put(leg.Line{IDs: []int32{1}})
		step(4)
		said("when it goes on", before+1)
		s.e.answer.finish(&leg.End{Outcome: room.Success})
		<-over
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
