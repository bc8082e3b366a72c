// Package chat turns a conversation into token ids by the template that a model brings, and says
// how its replies are written.
//
// It never lets anything that a client says become a special token: contents, names, tools,
// arguments of calls and of the template are strings of which the engine of templates
// (engine/chat/jinja) knows every byte's origin, whatever the template does with them; what is
// the template's own is encoded with special tokens, the rest without. Everybody in engine and
// above may import it; it imports tokenizer, gguf, and its own sub-packages.
//
// Invariants, cited by code and tests:
//
//	C1  no id that comes from what a client said is special
//	C2  without special tokens in it, Encode gives the tokens of Render
//	C3  time and memory of a rendering are bounded, whatever the template and the conversation
//	C4  the text is that of Hugging Face's apply_chat_template
//	C5  no tool, call or result is left out in silence, and calls come back as calls: a template
//	    that knows none, or has calls written in a way that nobody here reads, gets them as text
package chat
