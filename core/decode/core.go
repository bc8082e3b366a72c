package decode

import (
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// Config sizes one core.
type Config struct {
	Boot        room.Boot // of this process; makes leases unique over restarts
	Blocks      int       // blocks in the pool
	QueuedMax   int       // rooms that may be here and not running
	RunningMax  int       // slots: rooms that may generate at once
	ChunkTokens int       // token budget of one step, a multiple of room.BlockTokens
}

// Core is the decode node: registry of rooms, destination blocks, leases, links, slots.
type Core struct {
	cfg Config
}

// New returns a core without rooms. It panics if cfg makes no sense: see Config.Check.
func New(cfg Config) *Core { return &Core{cfg: cfg} }

// Check says what is wrong with a configuration.
func (c Config) Check() error { return nil }

// Step applies one event at the time now and appends what must be done to out.
func (c *Core) Step(now time.Duration, ev Event, out *Effects) { panic("not yet") }

// NextTimer returns the armed timer that is due first.
func (c *Core) NextTimer() (at time.Duration, t room.Timer, ok bool) { panic("not yet") }

// Timers yields every armed timer.
func (c *Core) Timers(yield func(at time.Duration, t room.Timer) bool) { panic("not yet") }

// AppendState appends a canonical form of the core's state: equal bytes mean equal futures.
func (c *Core) AppendState(b []byte) []byte { panic("not yet") }

// Clone returns an independent copy.
func (c *Core) Clone() *Core { panic("not yet") }

// Rooms yields every live room, oldest first.
func (c *Core) Rooms(yield func(room.View) bool) { panic("not yet") }

// Ended yields the rooms that ended and are still remembered, oldest first.
func (c *Core) Ended(yield func(room.View) bool) { panic("not yet") }

// Blocks counts the pool.
func (c *Core) Blocks() blocks.Count { panic("not yet") }

// Queues returns the state of each queue in room.DecodeQueues, in that order.
func (c *Core) Queues() [len(room.DecodeQueues)]room.QueueStat { panic("not yet") }

// Idle says that no room is live; after Drain it stays so.
func (c *Core) Idle() bool { panic("not yet") }
