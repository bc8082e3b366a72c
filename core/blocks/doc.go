// Package blocks counts the KV blocks of one worker: which are free, which are held and by how
// many rooms, and which hold the KV of a prefix that a later room may use again.
//
// It never touches the bytes of a block, sees no token and does not know whose a block is: a
// table of blocks belongs to the room that took or matched it, and a Key is made by the driver.
// Only the cores and proof import it; it imports the standard library alone.
//
// # Life of a block
//
//	          Take                    last Release, no key
//	free ──────────────▶ held ─────────────────────────────▶ free
//	 ▲                  ▲    │ last Release, its key is findable
//	 │ Take evicts      │    ▼
//	 └─────────────── cached ──Match──▶ held
//
//	held ──Quarantine──▶ quarantined ──Clear──▶ free
//
// Publish does not move a block: it says what the bytes of a held block are. From then on
// Match finds it, held or cached, and nobody may write to it until it was given out anew.
//
// A room whose tokens were computed elsewhere at the same time has a second copy of a block.
// It stays private: tables are never rewritten. It keeps its key, so that its release is a use
// of the first copy, or makes it the first if that one is gone; and so is its pin.
//
// # Invariants
//
// Kept by assertions that are on in production; proof/poolsim searches for ways to break them.
//
//	B1  Total = Free + Cached + Held + Quarantined, at every moment.
//	B2  One release. Each Take, and each Match, of a block is one reference; each is released
//	    or quarantined once. A release of a block that is not held, a double or a stranger's,
//	    panics.
//	B3  A quarantined block is given to nobody until somebody has proof that nothing can touch
//	    it any more (QUIET); there is no timer here that could be taken for one. It is not
//	    findable, then or later, until it was given out anew.
//	B4  One writer. What Take gives has one holder and no key; what has a key is written by
//	    nobody. Own asserts it for the blocks that are about to be written.
//	B5  Nothing that anybody reads is evicted: Take evicts only what no room holds.
//	B6  The tail goes first. Of two cached blocks of one chain, the later one is evicted
//	    first, so that what is left is always the beginning of a prompt: a block behind a gap
//	    cannot be found, it would only take up room. Kept by Release, which takes a table from
//	    its end; so a room must not release the head of its table before the tail. A second
//	    copy, and a quarantined one, counts as a use of the first when it is released.
//	    Removed (the order of a table): 7 events to a beginning that is evicted before what
//	    follows it.
//	B7  No poisoned prefix. The pool cannot see bytes: whoever publishes says that the block is
//	    completely filled with the KV of exactly the tokens of its key, and that nobody writes
//	    to it any more. A key never moves to other bytes: eviction and quarantine forget it.
//	B9  A pin is no hold. It decides who is evicted last, and nothing else: what it keeps counts as
//	    available, so nobody ever waits for a pin. It has an end, and a pool has a bound of them,
//	    beyond which the rest of a beginning is not pinned. A beginning is pinned from its first
//	    block on and every block at least as long as those behind it, so that B6 holds; a
//	    pin is a use. Whose it is, its keys say, which have the salt in them. The end of a pin costs
//	    no more than the pin did.
//	B8  Bounded and deterministic. Take, Match, Publish, Release, Quarantine and Clear cost a
//	    constant per block; the same calls give the same numbers.
package blocks
