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
	faultEvery    = 4 * time.Second        // between two faults
	backoff       = 100 * time.Millisecond // a client that was refused comes back no sooner
)

// fault is one thing done to a worker process.
type fault struct {
	role   string
	signal syscall.Signal
	frozen time.Duration // SIGSTOP to SIGCONT
}

// The long freeze is longer than the silence that links and the supervisor bear (10 s each), the
// short ones are not.
var faults = []fault{
	{"decode", syscall.SIGKILL, 0},
	{"prefill", syscall.SIGSTOP, 3 * time.Second},
	{"prefill", syscall.SIGKILL, 0},
	{"decode", syscall.SIGSTOP, 3 * time.Second},
	{"prefill", syscall.SIGSTOP, 12 * time.Second},
	{"decode", syscall.SIGKILL, 0},
}

// TestStorm sends 2,000 requests, 40 % of whose clients leave at random moments, while workers
// are killed and frozen. It is the incident that Baton began with, made on purpose.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("two thousand requests take a minute")
	}
	c, warm, r := warmCluster(t, stormRequests)
	before := processLevel(t, c.URL, c.PID())

	asks := make([]Ask, stormRequests)
	for i := range asks {
		asks[i] = stormAsk(r, warm)
	}
	ends := storm(t, c, asks, faults)
	awaitQuiet(t, c, stormDeadline+10*time.Second)
	judge(t, asks, ends)
	requireNoCanary(t, c)

	// The same cluster still serves, and its gateway holds no more than before.
	awaitServing(t, c, 30*time.Second)
	requireSame(t, c, warm)
	before.requireNoGrowth(t, "gateway", processLevel(t, c.URL, c.PID()))
}

// TestClientsThatLeaveLeaveNothing breaks nothing but promises: 1,000 requests, 40 % of whose
// clients leave. Every process must be as it was, workers too, which live through it here.
func TestClientsThatLeaveLeaveNothing(t *testing.T) {
	c, warm, r := warmCluster(t, stormRequests/2)
	before := clusterLevels(t, c)
	asks := make([]Ask, stormRequests/2)
	for i := range asks {
		asks[i] = stormAsk(r, warm)
	}
	ends := storm(t, c, asks, nil)
	awaitQuiet(t, c, 10*time.Second)
	judge(t, asks, ends)
	for i, e := range ends {
		if e.Error != "" {
			t.Errorf("nothing was broken, but request %d ended in %+v", i, e)
		}
	}
	requireSame(t, c, warm)
	requireNoCanary(t, c)
	after := clusterLevels(t, c)
	if len(before) != 3 || len(after) != 3 {
		t.Fatalf("processes before %v, after %v, want the same three", before, after)
	}
	for who, level := range after {
		old, lived := before[who]
		if !lived {
			t.Fatalf("%s did not live through it", who)
		}
		old.requireNoGrowth(t, who, level)
	}
}

// warmCluster starts a pair and asks it what the storm will compare long answers with.
func warmCluster(t *testing.T, seed uint64) (*Cluster, []Ask, *rand.Rand) {
	c := start(t, "--canary", "--max-queued-requests", "64", "--request-timeout", stormDeadline.String())
	r := rand.New(rand.NewPCG(13, seed))
	warm := repeats(r, 2*stormAtOnce)
	for i, e := range askAll(t, c, warm, stormAtOnce) {
		if e.Ends != 1 || e.Finish == "" {
			t.Fatalf("warm-up %d: %+v", i, e)
		}
		warm[i].Want = e.Text
	}
	awaitQuiet(t, c, 10*time.Second)
	return c, warm, r
}

// requireSame asks the warm-up's questions again and wants the same answers.
func requireSame(t *testing.T, c *Cluster, warm []Ask) {
	t.Helper()
	for i, e := range askAll(t, c, warm, stormAtOnce) {
		if e.Text != warm[i].Want {
			t.Errorf("after the storm, repeat %d: got %+v, want %q", i, e, warm[i].Want)
		}
	}
	awaitQuiet(t, c, 10*time.Second)
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
func storm(t *testing.T, c *Cluster, asks []Ask, faults []fault) []End {
	ends := make([]End, len(asks))
	hc, hangUp := client()
	defer hangUp()
	next := make(chan int)
	var clients, breaker sync.WaitGroup
	over := make(chan struct{})
	breaker.Go(func() {
		if len(faults) == 0 {
			return
		}
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
	if f.frozen > 0 {
		<-time.After(f.frozen)       // the length of the fault itself, not a wait for something
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
		if tally[must] < len(asks)/50 {
			t.Errorf("only %d requests ended %q: the storm did not test it", tally[must], must)
		}
	}
}
