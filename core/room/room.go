package room

import (
	"fmt"
	"strconv"
	"time"
)

// ID names one attempt to serve a request: 63 random bits, never 0, never used twice.
// It is printed and sent as 16 hexadecimal digits, because JSON numbers lose bits above 2^53.
type ID uint64

// IDMask keeps an ID inside 63 bits, as SGLang's bootstrap_room is a signed 64-bit integer.
const IDMask = 1<<63 - 1

func (id ID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// ParseID reads what String prints.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 || n == 0 || n > IDMask {
		return 0, fmt.Errorf("room: %q is not a room: want 16 hexadecimal digits, not zero, first bit clear", s)
	}
	return ID(n), nil
}

// MarshalText and UnmarshalText carry an ID in JSON as a string.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	*id = v
	return err
}

// Boot names one life of a worker process: random, never 0, new at every start.
type Boot uint64

func (b Boot) String() string { return fmt.Sprintf("%016x", uint64(b)) }

// Lease names one reservation of destination blocks. Boot is the decode worker's, so that
// a lease never repeats across its restart; Seq counts from 1. The zero Lease is no lease.
type Lease struct {
	Boot Boot
	Seq  uint64
}

func (l Lease) String() string { return fmt.Sprintf("%s/%d", l.Boot, l.Seq) }

// Conn names one data connection between a decode and a prefill worker. Decode, who dials,
// counts them from 1; the number is unique for the decode worker's boot. 0 is no connection.
type Conn uint64

// BlockTokens is the number of tokens in one block, and of rows in one weight panel, so that
// a block of keys is itself a panel (engine/kernel).
const BlockTokens = 16

// BlocksFor returns how many blocks hold n tokens.
func BlocksFor(tokens int) int { return (tokens + BlockTokens - 1) / BlockTokens }

// Prealloc says, from decode to prefill: blocks for this room are reserved under this lease,
// send its chunks over this data connection.
type Prealloc struct {
	Room   ID
	Lease  Lease
	Conn   Conn
	Tokens int           // length of the prompt
	From   int           // tokens that decode already has; a multiple of BlockTokens
	Left   time.Duration // time left of the request's deadline when this was sent
}

// Cancel says, from decode to prefill: the lease is given up. Cause is why, so that the
// outcome of prefill's leg carries the first cause too; without one it counts as Cancelled.
type Cancel struct {
	Room  ID
	Lease Lease
	Cause Cause
}

// Settled is prefill's final word on a lease: outcome, abort acknowledgement and the promise
// never to write under it again, at once. Chunks counts the chunks of a success.
type Settled struct {
	Room    ID
	Lease   Lease
	Outcome Outcome
	Chunks  int
}
