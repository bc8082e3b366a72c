package prefill

import (
	"fmt"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// Config sizes one core.
type Config struct {
	Blocks      int // blocks in the source pool
	PinnedMax   int // of these that may be pinned at a time; 0: none
	QueuedMax   int // accepted rooms that may wait (bootstrap and waiting together), and as many whose Request is missing
	RunningMax  int // rooms that may be in flight (computing, writing, draining) at once
	ChunkTokens int // token budget of one step, a multiple of room.BlockTokens
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Blocks < 1:
		return fmt.Errorf("prefill: %d blocks, want at least 1: give the worker more KV memory", c.Blocks)
	case c.PinnedMax < 0 || c.PinnedMax > c.Blocks:
		return fmt.Errorf("prefill: at most %d pinned blocks of %d, want 0 to as many as there are", c.PinnedMax, c.Blocks)
	case c.QueuedMax < 1:
		return fmt.Errorf("prefill: at most %d queued rooms, want at least 1", c.QueuedMax)
	case c.RunningMax < 1:
		return fmt.Errorf("prefill: at most %d running rooms, want at least 1", c.RunningMax)
	case c.ChunkTokens < room.BlockTokens || c.ChunkTokens%room.BlockTokens != 0 || c.ChunkTokens > room.TokensMax:
		return fmt.Errorf("prefill: chunks of %d tokens, want a multiple of %d up to %d", c.ChunkTokens, room.BlockTokens, room.TokensMax)
	}
	return nil
}

// Core is the prefill node: registry of rooms, source blocks, tombstones, lease floors. It is
// not safe for concurrent use and never needs to be: one loop steps it.
type Core struct {
	cfg   Config
	pool  blocks.Pool
	live  room.List // live rooms, in order of arrival
	rooms []entry   // by slot of live
	count [phases]int32
	tombs room.Tombstones
	// floors is short: one boot per decode worker that is or was linked.
	floors   []floor
	stepping int32 // items of the outstanding step that have not come home; 0: none is
	draining bool
	soonest  room.Soonest
}

// New returns a core without rooms. It panics if cfg does not pass Check.
func New(cfg Config) *Core {
	if err := cfg.Check(); err != nil {
		panic(err)
	}
	return &Core{cfg: cfg, pool: blocks.New(cfg.Blocks), live: room.NewList()}
}

// Step applies one event at the time now and appends what must be done to out.
func (c *Core) Step(now time.Duration, ev Event, out *Effects) {
	c.pool.Expire(now) // first: what is over makes place for what is pinned in this step
	switch ev.Kind {
	case Request:
		c.request(now, &ev, out)
	case Abort:
		c.abort(now, ev.Room, ev.Cause, out)
	case Prealloc:
		c.prealloc(now, &ev.Prealloc, out)
	case Cancel:
		c.cancel(now, ev.Cancel, out)
	case StepDone:
		c.stepDone(now, ev.Results, out)
	case WriteDone:
		c.writeDone(now, &ev, out)
	case LinkEnd:
		c.linkEnd(now, ev.Boot, ev.Conn, out)
	case TimerFired:
		c.timer(now, ev.Timer, out)
	case Drain:
		c.draining = true
	default:
		panic(fmt.Sprintf("prefill: event kind %d is unknown", ev.Kind))
	}
	c.schedule(now, out)
}

// CopyTo makes dst equal to c and reuses dst's memory. Block tables are shared: nobody ever
// writes to one.
func (c *Core) CopyTo(dst *Core) {
	pool, live, tombs := dst.pool, dst.live, dst.tombs
	c.pool.CopyTo(&pool)
	c.live.CopyTo(&live)
	c.tombs.CopyTo(&tombs)
	rooms := room.Copy(dst.rooms, c.rooms, func(e *entry) *[]int32 { return &e.out })
	floors := append(dst.floors[:0], c.floors...)
	*dst = *c
	dst.pool, dst.live, dst.tombs, dst.rooms, dst.floors = pool, live, tombs, rooms, floors
}

// Clone returns an independent copy.
func (c *Core) Clone() *Core {
	d := new(Core)
	c.CopyTo(d)
	return d
}
