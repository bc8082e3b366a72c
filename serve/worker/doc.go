// Package worker is one worker of a fleet: a prefill, a decode or a unified node.
//
// One goroutine, the node loop, owns the core and the payloads of its rooms (tokens, sampling,
// answer). Everything that happens elsewhere - legs over HTTP, the link, the engine - reaches
// it as an input through one bounded channel; what the core wants done comes out as effects,
// which the loop executes in order. The loop never waits for anything but its channel and its
// timer: the engine runs one step at a time in a goroutine of its own, links queue by
// themselves, answers go into bounded buffers that the HTTP goroutines empty.
//
// The package never decides about a room: it holds no branch on a room's state. serve and cmd
// may import it, and tests that want a worker in their process.
//
// Invariants:
//
//	W1  an input is never lost: its sender waits for a place in the channel, or the loop is over
//	W2  every leg is answered: accepted and then ended exactly once, or refused. Only when the
//	    worker itself leaves is a connection cut without an end, or a leg turned away without an
//	    outcome: worker_lost in an end speaks of the peer, and so blames the right one
//	W3  an answer's buffer is bounded; when it is full its room is aborted with the cause
//	    overload, because a limit of ours was reached, and nobody else waits for that reader
//	W4  a connection that closes aborts its room, in every phase
//	W5  sums are taken right after the step that filled the blocks, before anything can move them;
//	    a block that a later room finds is sent with the sum of that step
//	W6  the pool is given back only after the link is closed, the engine's step is home and the
//	    loop has ended: nothing can touch it any more
//	W7  with Canary, a block that is free holds a pattern, and it is checked before the block is
//	    used again and at the end. A cached block holds live bytes, and no pattern
//	W8  what a room finds of its prompt is the KV of exactly its tokens, by SHA-256, and of
//	    requests with the same salt
//	W9  a room that is retracted keeps its tokens, its sampling and its stop strings: it is computed
//	    again from them, at its old positions, and its answer is bit for bit what it would have
//	    been. (Where prefill workers use another family of kernels than decode's, the KV of its
//	    prompt may differ in the last bits afterwards; also where prompts have a family of their own,
//	    of the chunk in which prompt and output meet. Deterministic workers have one.)
//	W10 what a request asks of its output (penalties, biases, grammars, stop strings, choices, log-
//	    probabilities) it gets from a pair as from one worker: prefill chooses the first token of
//	    each choice with the same sequence at its start, and decode replays it
//	W11 a request that goes on behind output of an attempt that was cut says the rest of what that
//	    would have said: all state of sampling is a function of tokens and parameters. (Between two
//	    attempts of which one is not Deterministic the KV may differ in the last bits.)
//	W12 the step of rooms that generate allocates nothing here; a grammar is compiled before its room
//	    is requested, by the goroutine of its leg
//	W13 what the model computes is judged before any parameter: logits that are no finite numbers
//	    fail their room as internal, never as the client's error. While the model has never
//	    computed others the worker is not healthy; later it is, or one prompt that overflows could
//	    take workers out one by one
package worker
