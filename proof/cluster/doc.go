// Package cluster is a whole cluster in one thread: a gateway's request core, several prefill
// and decode cores, the links between them, crashes, restarts, broken links, wrong bytes, and
// clients that leave. With one request and few faults it is explored (Scopes, by proof/gate); with
// more of them it is far too large, and explore.Walk goes random ways through it by seed, and
// shortens the ways that end badly.
//
// Every effect of every core is performed as its driver would, and nothing here decides
// anything for a core. The world keeps its own account, and checks at every event:
//
//	TERM     one end per request; nothing is left when all is over
//	PROMPT   that takes no timer, although workers crash: the gateway's cores and the workers'
//	         cores together notice everything
//	STREAM   a client gets the tokens of one attempt, from the first, without gap or repeat, also
//	         if its answer is given in one piece and attempts are taken back before
//	OWN      decode begins on blocks that all came under the room's own lease
//	QUIET    no block is freed while a receiver, a write or an engine step is inside
//	RELEASE  every leg is released once, every pool is full again
//	CAUSE    nobody reads "cancelled" who did not cancel
package cluster
