// Package poolsim explores the block pool with its shared prefixes, alone and inside of the real
// cores, with a memory whose bytes are modelled as what was computed into them.
//
// There are four worlds over the production code, each with its scopes:
//
//	prefill   core/prefill with a few rooms whose prompts begin alike or not, in a pool that is
//	          too small for all: the engine, the link, decode and the gateway do what they may
//	          in any order, and fail, and give rooms up in the middle of a step
//	local     core/decode with rooms that prefill where they generate, that are retracted, and
//	          that find what is left of their prompt
//	pair      both, each with its cache, and a link between them: what decode has found is not
//	          sent, what prefill has found is not computed
//	holder    core/blocks alone, with holders that fill, publish, fail, leave, come again, and
//	          whose blocks are quarantined and cleared, which no production core asks for yet
//
// A prompt is a word, a letter for the tokens of a block. A block holds the prefix that was
// computed into it, or nothing known: while a step writes to it, after a step that failed, and
// when it was computed behind blocks that did not hold the prefix before it. So a poisoned
// prefix is passed on, as it is in an engine.
//
// All worlds keep their own account of who holds, reads and writes which block and believe
// nothing that the pool says of itself. They demand, by name:
//
//	POISON   what can be found under a key, and what a room reads, is exactly the key's prefix
//	OWN      a block has one writer, and no reader beside it
//	QUIET    what becomes free or is given out anew is held, read and written by nobody, and is
//	         not quarantined
//	RELEASE  references are holders; every leg ends once; nothing is held in the end
//	ORDER    of two cached blocks of one prompt the later one is evicted first
//	CAUSE    a room fails only if it was given up or a step or a write failed for it
//	TURN     nobody gets blocks before a room that came earlier and waits for them, and for nothing
//	         that another computes (at prefill)
//	PIN      a pinned block is evicted only if no other is cached; the pins are those that were asked for
//	TWICE    nobody gets blocks to compute what an older room is computing
//	TRUTH    a room says that it waits for an older one's prefix if it does, and only then
//	WHOLE    a success has sent every block of its prompt, once
//
// Nothing here decides: proof/gate runs the scopes, proof/mutants breaks the pool and the core.
package poolsim
