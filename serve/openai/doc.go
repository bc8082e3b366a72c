// Package openai speaks the OpenAI dialect of HTTP APIs: it reads and checks requests to
// /v1/chat/completions, /v1/completions, /tokenize and /detokenize, and shapes their answers,
// stream events and errors.
//
// It never does I/O, never tokenises, never knows a worker or how a model writes calls. serve/gateway and tools that
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
//	O5  A stream ends in [DONE] or in one error event, never in both; before [DONE] every choice has
//	    its finish reason.
//	O6  Nothing of a reply is lost: what is no tool call, or a broken one, is content, as clients of
//	    vLLM know it (package reply). Whoever asked for tool_choice required or a function by name
//	    gets calls in the model's own form, held by a grammar; with auto, and so also where a tool
//	    says strict, the model is free and its arguments are what it wrote.
//
// Of several fields with one meaning, of OpenAI, vLLM and SGLang, the one that was sent counts; of
// two that exclude each other the second is refused. What only a template can honour
// (reasoning_effort, chat_template_kwargs) is given to it as a variable, and means what it makes of
// it. Log-probabilities are those of the model before any parameter changed them.
package openai
