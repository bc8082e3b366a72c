// Package openai speaks the OpenAI dialect of HTTP APIs: it reads and checks requests to
// /v1/chat/completions, /v1/completions, /tokenize and /detokenize, and shapes their answers,
// stream events and errors.
//
// It never does I/O, never tokenises, never knows a worker. serve/gateway and tools that
// talk to it may import it.
//
// Rules that code and tests cite:
//
//	O1  A field that we know and cannot honour is refused with 400 and its name in param;
//	    nothing that a client asked for is dropped in silence. A field that nobody knows is ignored.
//	O2  A wrong type or a value out of range is refused with 400 and its name in param.
//	O3  An integer is never carried through a float: seeds above 2^53 stay as they are.
//	O4  Fields that belong between gateway and workers (bootstrap_*, kv_transfer_params, rid,
//	    data-parallel ranks) never leave this package, whatever a client writes in them.
//	O5  A stream ends in [DONE] or in one error event, never in both.
package openai
