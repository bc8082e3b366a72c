// Package blocks counts the KV blocks of one worker: which are free, and which are held.
//
// It never touches the bytes of a block and does not know whose it is: a table of blocks
// belongs to the room that took it. Only the cores import it; it imports core/room.
//
// Invariants, kept by assertions that are on in production:
//
//	B1  Total = Free + Cached + Held + Quarantined, at every moment.
//	B2  a block is given out only while free, and released only while held: a double release
//	    or the release of a stranger's block panics.
//	B3  a quarantined block is given out to nobody until somebody has proof that nothing can
//	    touch it any more (QUIET); there is no timer here that could be taken for one.
package blocks
