package room

import "time"

// Limits that more than one part keeps to (invariant BOUND). Pools and queues whose size an
// operator chooses are fields of each core's Config.
const (
	// TokensMax bounds the length of a prompt plus its output. 2^20 is eight times the
	// longest context of the models that the engine loads, and keeps every token and block
	// number inside an int32.
	TokensMax = 1 << 20

	// BranchesMax bounds how many outputs of one prompt a room may have. Each is a row of every
	// step and keeps a right to run, so it is small against the rows that a step is fast with.
	BranchesMax = 8

	// PinMax bounds for how long after its end a room may ask that its prefix is kept: an hour, as
	// the longest that services with such an option offer.
	PinMax = time.Hour

	// TombstonesMax bounds how many ended rooms a core remembers. At a thousand rooms a
	// second it is four seconds, several times longer than a message is late on a working
	// link; behind it stands the lease floor, so a smaller number costs promptness only.
	TombstonesMax = 4096

	// TombstoneKeep is how long an ended room is remembered when nothing pushes it out. It
	// outlives the longest request deadline that gateways give by default (five minutes), so
	// that no message of a room can find its tombstone gone in ordinary times.
	TombstoneKeep = 10 * time.Minute

	// FloorsMax bounds for how many boots of decode workers a prefill core keeps a lease
	// floor. A floor may be dropped for a boot that is gone, since its data connections went
	// with it; a prefill worker serves far fewer live decode workers than this.
	FloorsMax = 1024

	// PeersMax bounds how many prefill workers one decode core talks to.
	PeersMax = 1024

	// ResendAfter is when decode repeats a Prealloc that nothing answered. A control message
	// is lost only with its link, and the end of the link is an event of its own: this is a
	// second line, so a value far above a round trip is right.
	ResendAfter = 5 * time.Second
)
