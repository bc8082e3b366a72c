// Package transfer moves KV blocks from prefill to decode workers. It holds what every way of
// moving (plane) shares: the words, the two ends, the handlers that a worker implements, the
// bounds and the sum of a block. The planes are its folders (tcp); one conformance suite
// judges them all.
//
// It never decides the fate of a room: what arrives is asked of the handler, what ends is told
// to it. It knows nothing of models or engines; serve/worker imports it, and nothing below.
//
// Invariants that each plane keeps and the suite checks:
//
//	T1  a block of decode is written only between the handler's yes to Arrived and exactly one
//	    of Placed and Off for that chunk; after either call nothing touches the block
//	T2  LinkEnd comes after every Placed and Off of its connection, and exactly once after LinkUp
//	T3  each Dial ends in exactly one LinkUp or LinkFailed
//	T4  each Write ends in exactly one WriteDone; before it the source blocks are only read,
//	    after it nothing reads them
//	T5  a chunk is Placed only if each of its blocks had the sum that prefill named
//	T6  nothing waits for ever: a link on which nothing moves ends by itself (Bounds.Silence)
//	T7  methods never block and may be called from inside a callback; Close alone waits
//	T8  when Close has returned no goroutine is left and no block is touched. What is asked of a
//	    closed end is answered by a goroutine that lives for the answer alone and that the next
//	    Close waits for
//	T9  no count or length from the wire is used before it was bounded
//	T10 a worker is known by its boot: a Dial of one to which another peer's link stands ends in
//	    LinkUp with that link's connection, and gets its own LinkEnd when the link ends
package transfer
