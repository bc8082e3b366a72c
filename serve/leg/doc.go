// Package leg holds what a gateway and a worker say to each other about one room: the body of
// POST /leg/prefill and POST /leg/decode, and the lines of the answer.
//
// A leg is the part of an attempt at one worker. Its request is one JSON object, its answer a
// stream of JSON lines: first {"accepted":true} once the room is registered, then pieces of
// output (decode only), then exactly one line with an end. Before the stream a refusal is a
// status of its own with an End as the body, or a 503 with a Leaving from a worker that leaves.
// Closing the connection cancels the room.
//
// A request may ask for several choices of one prompt: a piece names its choice, the last of a choice
// says how it ended, which may be long before the others do, and the end has it of each. It may bring
// output of an attempt that was cut: then the pieces are what follows.
//
// The package parses, bounds and prints; it does no I/O of its own, knows no room's state and
// starts no goroutine. serve/worker, serve/gateway, serve/upstream and bench import it.
//
// Invariants:
//
//	L1  every count and length of a parsed value is within the limits of limits.go
//	L2  a Line is exactly one of: accepted, a piece, waits, an end
//	L3  a stream without an end is an error to its reader (ErrNoEnd), never a success
//	L4  what AppendLine prints, ParseLine reads back equal; no float is infinite or not a number
//	L5  a choice finishes once: no piece of it comes behind, and an end that is a success says the same
package leg
