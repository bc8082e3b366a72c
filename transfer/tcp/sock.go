package tcp

import (
	"net"
	"syscall"
	"time"
)

// pieceBytes is how much one system call may move into a block, and so how long a receiver can
// be inside one after it was told to leave: 64 KiB are some 15 µs, and no dearer than 256 KiB.
const pieceBytes = 64 << 10

// writeBytes is how much one system call may send. Nobody waits for a writer to leave, so it is
// as much as the socket's buffer takes.
const writeBytes = 1 << 20

// iovMax is how many spans one call takes. Blocks of less than writeBytes/iovMax, 16 KiB, need
// more than one call for what the buffer would take; models have larger ones.
const iovMax = 64

// past is a deadline that has always passed: it wakes whoever waits for the socket.
var past = time.Unix(1, 0)

// vector moves bytes between a socket and several spans of memory in one call.
type vector struct {
	conn *net.TCPConn
	raw  syscall.RawConn
	vectorState
}

func newVector(c *net.TCPConn) (*vector, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	v := &vector{conn: c, raw: raw}
	v.init()
	return v, nil
}
