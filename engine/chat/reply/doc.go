// Package reply reads what a model answers: it parts the text into content, thoughts and tool
// calls, while it comes.
//
// It never loses text: what is no call, or a broken one, is content. It knows no tokens and no
// wire. Everybody in engine and above may import it; it imports nothing of ours but grammar.
//
// A call is a JSON object with a name and arguments, in the markup of the style. One that is
// broken before its arguments begin, or that names no tool, is content, all of it. Arguments that
// are put out as they come cannot be taken back: where they break, the call has ended and what
// follows is content, and so is what stands behind arguments that ended well in a call that did
// not; with Options.Whole nothing is put out before all of the call is there.
//
// Invariants, cited by code and tests:
//
//	P1  the joined deltas depend on the joined text alone, not on where it was cut
//	P2  every byte of the text is in a delta, or is markup around thoughts and calls, or white
//	    space next to markup. Markup is what the style names and, of a call's object, all but the
//	    name and the arguments: further members too, if the call is whole or they stand in front
//	P3  what is held back is bounded (holdMax, blankMax), and so is the number of calls (CallsMax)
//	P4  a call's name comes first, once and whole; its arguments follow as the model wrote them
package reply
