package tcp

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vectorState is what readv and writev need without allocating: the spans, the result and the
// two functions that the runtime's poller calls.
type vectorState struct {
	iov         [iovMax]unix.Iovec
	n           int
	moved       int
	errno       syscall.Errno
	read, write func(fd uintptr) bool
}

func (v *vector) init() {
	v.read = func(fd uintptr) bool { return v.call(unix.SYS_READV, fd) }
	v.write = func(fd uintptr) bool { return v.call(unix.SYS_WRITEV, fd) }
}

// call says false when the socket is not ready, and the poller waits.
func (v *vector) call(trap, fd uintptr) bool {
	for {
		n, _, e := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(&v.iov[0])), uintptr(v.n))
		switch e {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		v.moved, v.errno = int(n), e
		return true
	}
}

func (v *vector) load(spans [][]byte) {
	v.n = 0
	for _, s := range spans {
		if len(s) > 0 && v.n < iovMax {
			v.iov[v.n].Base = &s[0]
			v.iov[v.n].SetLen(len(s))
			v.n++
		}
	}
}

// readv reads at least one byte into spans, which are not all empty. Waiting ends at the
// connection's deadline; nothing touches the spans after it returned.
func (v *vector) readv(spans [][]byte) (int, error) {
	v.load(spans)
	err := v.raw.Read(v.read)
	clear(v.iov[:v.n])
	switch {
	case err != nil:
		return 0, err
	case v.errno != 0:
		return 0, v.errno
	case v.moved == 0:
		return 0, io.EOF
	}
	return v.moved, nil
}

// writev writes at least one byte from spans, which are not all empty.
func (v *vector) writev(spans [][]byte) (int, error) {
	v.load(spans)
	err := v.raw.Write(v.write)
	clear(v.iov[:v.n])
	if err == nil && v.errno != 0 {
		err = v.errno
	}
	if err != nil {
		return 0, err
	}
	return v.moved, nil
}

// tune sets buffers and congestion control of a socket before it connects or listens, so that
// accepted sockets have them too. Autotuned buffers let tens of MB queue behind an abort; bbr
// costs 20 to 45 % on loopback. What the system does not allow stays as it is.
func tune(buffer int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			if buffer > 0 {
				setBuffer(int(fd), unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, buffer)
				setBuffer(int(fd), unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, buffer)
			}
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
		})
	}
}

// setBuffer goes past the system's limit where the process may.
func setBuffer(fd, force, plain, n int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, n) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, n)
	}
}
