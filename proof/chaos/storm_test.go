package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"baton/engine/recall"
)

const (
	stormRequests = 2000
	stormLeave    = 0.4                    // share of clients that leave
	stormAtOnce   = 32                     // open requests: more than a pair runs at once, so that queues fill
	stormDeadline = 20 * time.Second       // each request's own
	stormGrace    = time.Second            // X1
	frozenFor     = 3 * time.Second        // SIGSTOP to SIGCONT
	faultEvery    = 4 * time.Second        // between two faults
	backoff       = 100 * time.Millisecond // a client that was refused comes back no sooner
)

// fault is one thing done to a worker process.
type fault struct {
	role   string
	signal syscall.Signal
}

var faults = []fault{
	{"decode", syscall.SIGKILL},
	{"prefill", syscall.SIGSTOP},
	{"prefill", syscall.SIGKILL},
	{"decode", syscall.SIGSTOP},
}

// TestStorm sends 2,000 requests, 40 % of whose clients leave at random moments, while workers
// are killed and frozen. It is the incident that Baton began with, made on purpose.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("two thousand requests take a minute")
	}
	c := start(t, "--canary", "--max-queued-requests", "64", "--request-timeout", stormDeadline.String())
	r := rand.New(rand.NewPCG(13, stormRequests))

	warm := repeats(r, 2*stormAtOnce)
	for i, e := range askAll(t, c, warm, stormAtOnce) {
		if e.Ends != 1 || e.Finish == "" {
			t.Fatalf("warm-up %d: %+v", i, e)
		}
		warm[i].Want = e.Text // a repeat is compared with what the same pair said when nothing was wrong
	}
	awaitQuiet(t, c, 10*time.Second)
	before := levels(t, c)

	asks := make([]Ask, stormRequests)
	for i := range asks {
		asks[i] = stormAsk(r, warm)
	}
	ends := storm(t, c, asks)
	awaitQuiet(t, c, stormDeadline+10*time.Second)
	judge(t, asks, ends)
	requireNoCanary(t, c)

	// The same cluster still serves, and holds no more than before.
	awaitServing(t, c, 30*time.Second)
	for i, e := range askAll(t, c, warm, stormAtOnce) {
		if e.Text != warm[i].Want {
			t.Errorf("after the storm, repeat %d: got %+v, want %q", i, e, warm[i].Want)
		}
	}
	awaitQuiet(t, c, 10*time.Second)
	after := levels(t, c)
	if after.descriptors > before.descriptors+8 || after.goroutines > before.goroutines+8 {
		t.Errorf("levels grew (X6): %+v before, %+v after", before, after)
	}
}

// repeats are questions with long answers, for clients that leave in the middle.
func repeats(r *rand.Rand, n int) []Ask {
	asks := make([]Ask, n)
	for i := range asks {
		p := recall.NewPrompt(r, 10+r.IntN(40))
		asks[i] = Ask{Messages: p.Messages(p.Repeat().Question), Stream: true, Deadline: time.Minute}
	}
	return asks
}

func stormAsk(r *rand.Rand, long []Ask) Ask {
	a := ask(r, recall.NewPrompt(r, 5+r.IntN(100)))
	if r.IntN(4) == 0 {
		a = long[r.IntN(len(long))]
	}
	a.Deadline = stormDeadline
	if r.Float64() >= stormLeave {
		return a
	}
	switch a.Leave = Moment(1 + r.IntN(int(momentCount)-1)); a.Leave {
	case AfterDelay: // squared, so that many leave before the head and some much later
		x := r.Float64()
		a.Delay = time.Duration(x * x * float64(time.Second))
	case AtToken:
		a.Stream, a.Token = true, 1+r.IntN(40)
	}
	return a
}

// storm sends the asks and breaks a worker every few seconds.
func storm(t *testing.T, c *Cluster, asks []Ask) []End {
	ends := make([]End, len(asks))
	hc, hangUp := client()
	defer hangUp()
	next := make(chan int)
	var clients, breaker sync.WaitGroup
	over := make(chan struct{})
	breaker.Go(func() {
		tick := time.NewTicker(faultEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				inflict(t, c, faults[i%len(faults)])
			case <-over:
				return
			}
		}
	})
	for range stormAtOnce {
		clients.Go(func() {
			for i := range next {
				if ends[i] = Do(t.Context(), hc, c.URL, asks[i]); ends[i].Error != "" {
					<-time.After(backoff) // as clients do
				}
			}
		})
	}
	for i := range asks {
		next <- i
	}
	close(next)
	clients.Wait()
	close(over)
	breaker.Wait()
	return ends
}

// inflict does one fault to a worker of the cluster.
func inflict(t *testing.T, c *Cluster, f fault) {
	w, err := c.Worker(t.Context(), f.role)
	if err != nil {
		t.Logf("no %s worker to break just now: %v", f.role, err)
		return
	}
	t.Logf("%v to %s worker %s", f.signal, f.role, w.Boot)
	if err := c.Signal(w, f.signal); err != nil {
		t.Logf("it was gone already: %v", err)
		return
	}
	if f.signal == syscall.SIGSTOP {
		<-time.After(frozenFor)      // the length of the fault itself, not a wait for something
		c.Signal(w, syscall.SIGCONT) // it may be gone: the supervisor ends what stays frozen
	}
}

// judge holds X1, X2 and X3 over all ends.
func judge(t *testing.T, asks []Ask, ends []End) {
	tally := map[string]int{}
	for i, e := range ends {
		a := asks[i]
		if e.After > a.Deadline+stormGrace {
			t.Errorf("request %d ended %v after it was sent, its deadline is %v (X1): %+v", i, e.After, a.Deadline, e)
		}
		switch {
		case e.Left && a.Leave != Stay:
			tally["left "+a.Leave.String()]++
			if len(e.Text) > len(a.Want) || e.Text != a.Want[:len(e.Text)] {
				t.Errorf("request %d: %q is not a prefix of %q (X3)", i, e.Text, a.Want)
			}
		case e.Ends != 1 || e.Broken != "":
			t.Errorf("request %d has not exactly one end (X2): %+v", i, e)
		case e.Error != "":
			tally[fmt.Sprintf("error %d", e.Status)]++
			if len(e.Text) > len(a.Want) || e.Text != a.Want[:len(e.Text)] {
				t.Errorf("request %d: before its error came %q, no prefix of %q (X3)", i, e.Text, a.Want)
			}
		case e.Text != a.Want:
			t.Errorf("request %d: got %q, want %q (X3)", i, e.Text, a.Want)
		default:
			tally["right"]++
		}
	}
	t.Logf("ends: %v", tally)
	for _, must := range []string{"right", "left after delay", "left at headers", "left at token"} {
		if tally[must] < stormRequests/50 {
			t.Errorf("only %d requests ended %q: the storm did not test it", tally[must], must)
		}
	}
}

// level is what must not grow.
type level struct{ descriptors, goroutines int }

func levels(t *testing.T, c *Cluster) level {
	t.Helper()
	g, ok := Metric(t.Context(), c.URL, "go_goroutines")
	if !ok {
		t.Fatal("the gateway does not show go_goroutines")
	}
	return level{Descriptors(c.PID()), int(g)}
}
