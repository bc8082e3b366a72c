package relay

import "time"

// Core holds every request of one gateway. It is not safe for concurrent use.
type Core struct{}

// New returns a core without requests. Limits of zero take their defaults.
func New(l Limits) *Core { panic("relay: not yet") }

// Step takes one event at time now (monotonic, since process start) and appends what is to be
// done about it.
func (c *Core) Step(now time.Duration, ev Event, out *Effects) { panic("relay: not yet") }

// NextTimer returns the timer that fires first.
func (c *Core) NextTimer() (at time.Duration, t Timer, ok bool) { panic("relay: not yet") }

// Timers calls yield for every armed timer.
func (c *Core) Timers(yield func(Timer) bool) { panic("relay: not yet") }

// AppendState appends everything that the future depends on, without times.
func (c *Core) AppendState(b []byte) []byte { panic("relay: not yet") }

// Clone copies the core deeply.
func (c *Core) Clone() *Core { panic("relay: not yet") }

// Rooms calls yield for every request that is not forgotten, oldest first.
func (c *Core) Rooms(yield func(View) bool) { panic("relay: not yet") }

// Queue returns the queue of requests that wait for a right to run.
func (c *Core) Queue() QueueStats { panic("relay: not yet") }

// Running counts the requests that hold a right to run, those in Closing included.
func (c *Core) Running() int { panic("relay: not yet") }

// Draining says whether new requests are refused.
func (c *Core) Draining() bool { panic("relay: not yet") }
