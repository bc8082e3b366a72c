package decode

import (
	"fmt"
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// Config sizes one core.
type Config struct {
	Boot        room.Boot // of this process; makes leases unique over restarts
	Blocks      int       // blocks in the pool
	PinnedMax   int       // of these that may be pinned at a time; 0: none
	QueuedMax   int       // rooms that may be here and not have a slot
	RunningMax  int       // slots: outputs that may be generated, or whose prompts are computed here, at once
	ChunkTokens int       // token budget of one step, a multiple of room.BlockTokens
	AheadTokens int       // tokens of output that a room gets blocks for ahead (sched.S6); 0 is all
	Lends       bool      // the Items of a Step are memory that the core writes to again after its StepDone
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case c.Boot == 0:
		return fmt.Errorf("decode: boot is 0, want a random number")
	case c.Blocks < 1:
		return fmt.Errorf("decode: %d blocks, want at least 1: give the worker more KV memory", c.Blocks)
	case c.PinnedMax < 0 || c.PinnedMax > c.Blocks:
		return fmt.Errorf("decode: at most %d pinned blocks of %d, want 0 to as many as there are", c.PinnedMax, c.Blocks)
	case c.QueuedMax < 1:
		return fmt.Errorf("decode: at most %d queued rooms, want at least 1", c.QueuedMax)
	case c.RunningMax < 1:
		return fmt.Errorf("decode: at most %d running rooms, want at least 1", c.RunningMax)
	case c.ChunkTokens < room.BlockTokens || c.ChunkTokens%room.BlockTokens != 0 || c.ChunkTokens > room.TokensMax:
		return fmt.Errorf("decode: chunks of %d tokens, want a multiple of %d up to %d", c.ChunkTokens, room.BlockTokens, room.TokensMax)
	case c.AheadTokens < 0:
		return fmt.Errorf("decode: blocks for %d tokens ahead, want at least 1, or 0 for the whole output", c.AheadTokens)
	}
	return nil
}

// Core is the decode node: registry of rooms, destination blocks, leases, links, slots. It is
// not safe for concurrent use and never needs to be: one loop steps it.
type Core struct {
	cfg      Config
	pool     blocks.Pool
	live     room.List // live rooms, in order of arrival
	rooms    []entry   // by slot of live
	count    [phases]int32
	tombs    room.Tombstones
	peers    []peer
	seq      uint64 // of the newest lease
	slots    int32  // rights to run that are given out
	running  int32  // rooms that hold some
	stepping int32  // items of the outstanding step that have not come home; 0: none is
	draining bool
	soonest  room.Soonest
	items    []StepItem // lent to the outstanding step, if the core lends
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
	case Settled:
		c.settled(now, &ev.Settled, out)
	case LinkUp:
		c.linkUp(now, ev.Peer, ev.Conn)
	case LinkFailed:
		c.linkFailed(now, ev.Peer, ev.Cause, out)
	case LinkEnd:
		c.linkEnd(now, ev.Conn, out)
	case ChunkArrived:
		c.arrived(now, &ev, out)
	case ChunkPlaced:
		c.placed(now, &ev, out)
	case ChunkOff:
		c.off(now, &ev, out)
	case ChunkRefused:
		c.refused(now, &ev, out)
	case StepDone:
		c.stepDone(now, ev.Results, out)
	case Begun:
		c.begun(now, &ev, out)
	case TimerFired:
		c.timer(now, ev.Timer, out)
	case Drain:
		c.draining = true
	default:
		panic(fmt.Sprintf("decode: event kind %d is unknown", ev.Kind))
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
	rooms := room.Copy(dst.rooms, c.rooms, func(e *entry) *[]chunk { return &e.chunks })
	for i := range rooms {
		e := &rooms[i]
		if e.keys = slices.Clip(e.keys); e.more != nil { // c alone appends to what it has
			e.more = slices.Clone(e.more)
		}
	}
	peers := append(dst.peers[:0], c.peers...)
	*dst = *c
	dst.pool, dst.live, dst.tombs, dst.rooms, dst.peers, dst.items = pool, live, tombs, rooms, peers, nil
}

// Clone returns an independent copy.
func (c *Core) Clone() *Core {
	d := new(Core)
	c.CopyTo(d)
	return d
}
