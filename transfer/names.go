package transfer

import (
	"context"
	"slices"
	"sync"

	"baton/core/room"
)

// Names keeps for a dialling end which of its peers are one worker, known by its boot, so that
// they share a link (T10): a second link of the same two would end the first, and each name the
// other's for ever. The zero value is ready.
type Names struct {
	mu     sync.Mutex
	newest map[room.Boot]*shared // up or being made
	up     map[room.Conn]*shared
}

// shared is one link with the peers that it is of.
type shared struct {
	boot  room.Boot
	conn  room.Conn
	made  chan struct{} // closed when it is up, or will not be
	isUp  bool          // guarded by Names.mu
	peers []int32       // guarded by Names.mu
	told  sync.WaitGroup
}

// Claim says what a dial does that has found boot at the other end: make the link, if joined is
// 0, and then call Made; or be content with the link joined, for which it calls LinkUp and then
// told. It waits while another dial makes a link to that boot. A peer that dials although its
// link is up makes a new one: it knows better.
func (n *Names) Claim(ctx context.Context, boot room.Boot, conn room.Conn, peer int32) (joined room.Conn, told func(), err error) {
	for {
		n.mu.Lock()
		x := n.newest[boot]
		switch {
		case x == nil || x.isUp && slices.Contains(x.peers, peer):
			if n.newest == nil {
				n.newest, n.up = map[room.Boot]*shared{}, map[room.Conn]*shared{}
			}
			n.newest[boot] = &shared{boot: boot, conn: conn, made: make(chan struct{}), peers: []int32{peer}}
			n.mu.Unlock()
			return 0, nil, nil
		case x.isUp:
			x.peers = append(x.peers, peer)
			x.told.Add(1)
			n.mu.Unlock()
			return x.conn, x.told.Done, nil
		}
		n.mu.Unlock()
		select {
		case <-x.made:
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

// Made says whether the link that Claim gave to the caller is up.
func (n *Names) Made(boot room.Boot, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.newest[boot]
	if x.isUp = ok; ok {
		n.up[x.conn] = x
	} else {
		delete(n.newest, boot)
	}
	close(x.made)
}

// Ended takes a link that was made out and returns its peers, who all have had their LinkUp and
// are owed a LinkEnd.
func (n *Names) Ended(conn room.Conn) (peers []int32) {
	n.mu.Lock()
	x := n.up[conn]
	delete(n.up, conn)
	if n.newest[x.boot] == x {
		delete(n.newest, x.boot)
	}
	n.mu.Unlock()
	x.told.Wait() // nobody joins any more
	return x.peers
}
