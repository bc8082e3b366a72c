package transfer

import "sync"

// Answers calls handlers for what has its answer at once: a write without a connection, a dial
// of an end that is closed. It does so from a goroutine of its own, one call after the other,
// because whoever asked may hold what the handler needs (T7). The goroutine lives while there is
// something to say, and Wait waits for it (T8). The zero value is ready.
type Answers struct {
	mu      sync.Mutex
	quiet   sync.Cond
	queue   []func() // guarded by mu; as long as the caller's questions that have no answer yet
	running bool     // guarded by mu
}

// Add has f called soon. It never blocks.
func (a *Answers) Add(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, f)
	if !a.running {
		a.running = true
		go a.run()
	}
}

func (a *Answers) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 {
		batch := a.queue
		a.queue = nil
		a.mu.Unlock()
		for _, f := range batch {
			f()
		}
		a.mu.Lock()
	}
	a.running = false
	if a.quiet.L != nil {
		a.quiet.Broadcast()
	}
}

// Wait returns when everything added so far has been called and no goroutine is left. It must
// not be called from one of the calls.
func (a *Answers) Wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet.L = &a.mu
	for a.running {
		a.quiet.Wait()
	}
}
