// Package room holds the words that every part of Baton shares: the room, its lease, its
// outcome, the three control messages of the room protocol, the names that operators see,
// limits, named timers, and the small tables in which the cores keep their rooms.
//
// It decides nothing and never reads a clock, starts a goroutine or does I/O. Everybody may
// import it; it imports the standard library only.
//
// # Words
//
// One word per thing, everywhere: code, logs, metrics, texts.
//
//	request      what a client asked; rid is its id
//	attempt      one try to serve a request on one pair of workers, or on one unified worker
//	room         the identity of an attempt: 63 random bits, never 0, never used twice
//	leg          the part of an attempt at one worker: one HTTP call of the gateway
//	phase        where a room is in the life that its core has for it
//	queue, poll  what SGLang's operators call that: a coarser view of the phase (phase.go)
//	outcome      how something ended: success, failed or aborted, with its first cause
//	cause        why, from the list in outcome.go
//
//	block        16 tokens of KV over all layers: what a pool counts, a chunk carries whole
//	             and a 64-bit sum guards
//	chunk        a run of tokens of a prompt in whole blocks, but for the last: what one
//	             engine step computes of it and one write moves
//	source       the blocks of a room on prefill, held until its writes have come home
//	destination  the blocks of a room on decode, reserved under a lease
//	hold         what keeps a block from being given out: a table of a room that names it
//	salt         a word that a client may send: prompts begin alike only under the same one
//	key          a digest of a secret of the process, the salt and all tokens of a prompt up to
//	             the end of a block
//	publish      to say what the bytes of a full block are: from then on its key finds it
//	match, find  to take the blocks that are published for the beginning of a prompt
//	cached       of a block: published, and held by nobody now
//	evict        to give a cached block out anew; its key is forgotten
//	quarantine   where a block waits, without a key, for the proof that nothing can touch it
//	pin          a receiver inside a destination block, or an engine step that uses it: while
//	             one is there the block is not released, whatever was decided
//	drain        of a room: its outcome is decided, and it waits for what still touches its
//	             memory (a step, a write, a receiver). Of a worker or gateway: nothing new is
//	             taken, what lives may end
//	retract(ed)  to take a room's blocks and slot back on decode for an older room that needs a
//	             block; it waits for blocks and its prompt and output so far are computed again
//	slot         a right to compute on decode, one of RunningMax
//
//	boot id      one life of a worker process: random, new at every start
//	lease        one reservation of destination blocks for one room: decode's boot id and a
//	             number that only grows
//	link         what a decode worker dials to a prefill worker: one connection for control
//	             messages, one for data. Either one's end is the end of both
//	settle       to say the final word on a lease: done, failed, or given up; and the promise
//	             to write nothing under it any more
//	revoke       to make sure that nothing can touch memory any more
//	tombstone    what a core remembers of a room that ended, to answer what comes late or was
//	             overtaken (TombstonesMax, TombstoneKeep)
//	lease floor  what a tombstone leaves behind on prefill: no lease of that boot id at or
//	             below it is served again
//	fenced       an attempt is, once both its legs are closed: nothing of it can reach the
//	             client or a later attempt
//
//	deadline     when a request's time is over, counted from its arrival at the gateway. A
//	             message carries the time that is left; whoever gets it adds that to its own
//	             clock, and nobody extends it
//	silence      how long a connection may move nothing before it is ended (the silence bound;
//	             idle ones carry pings): the exit of whatever waits for I/O
//	the bound    on steps: a forward pass has a bounded number of tokens and waits for nobody,
//	             so it returns by itself; a worker where one hangs fails /health and is
//	             replaced. On writes and reads: the silence bound
//	quiet        of a block: local proof that nothing can read or write it any more. The
//	             receiver is off it, the write returned, the step came home. A timer is none
//
// # Invariants
//
// The promise of the whole, by the names that cores, explorer, mutants and tests cite. Packages
// have invariants of their own, with labels like P2 or D3, which serve these:
//
//	TERM     every accepted request reaches exactly one outcome, on every part that knows it,
//	         no later than its deadline and a stated grace; its client sees exactly one
//	         terminal event
//	PROMPT   while nothing is broken, and where what breaks is noticed, no request needs a
//	         timer to end. Deadlines hide bugs: this is the property that finds them
//	ALONE    with the link dead for ever, each side still ends its rooms by itself
//	RELEASE  every block, slot, lease, connection and load count is released exactly once, in
//	         whatever state the end comes
//	QUIET    a block is reused only on proof that nothing can read or write it any more
//	OWN      bytes written for a room under a lease are only ever used by that room under that
//	         lease or, once published, by rooms whose prompt begins with the same tokens under
//	         the same salt
//	STREAM   a client receives an exact prefix of the true output, no gap and no repeat, that
//	         ends in a finish reason or in one error event
//	CAUSE    an outcome carries its first cause, and an end blames nobody else
//	TRUTH    health, metrics, usage and the inspection equal what the ledger says; health
//	         means progress
//	BOUND    every table, queue and buffer has a limit with a name; memory returns to its
//	         baseline
//
// An impossible state is an assertion (assert.go), on in production, never a "continue".
package room
