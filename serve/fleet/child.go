package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"baton/serve/observe"
)

// child is one life of a worker process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer // its end tells the worker to drain and leave
	ready  chan observe.Ready
	exited chan struct{} // closed when it is over and its output is read
	err    error         // how it ended; read after exited
	word   string        // the line on standard error that says why; read after exited
	said   bool          // it does, and is not only the last one; read after exited
}

// ExitRefused is the exit status by which a worker says that it cannot start as it is
// configured, and that another start would end the same: EX_CONFIG of sysexits.h.
const ExitRefused = 78

// start starts a worker. The calling goroutine must hold its thread until the child is over:
// on Linux the kernel kills the child when that thread ends (F3).
func start(cmd *exec.Cmd, name string, out io.Writer, loading func(done, total int64)) (*child, error) {
	c := &child{cmd: cmd, ready: make(chan observe.Ready, 1), exited: make(chan struct{})}
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", name, err)
	}
	c.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", name, err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", name, err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { c.readReady(stdout, loading) })
	readers.Go(func() { c.word, c.said = prefix(stderr, name, out) })
	go func() {
		readers.Wait()
		c.err = cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// readReady takes the ready line and the lines about loading before it; what follows is read and
// dropped.
func (c *child) readReady(r io.Reader, loading func(done, total int64)) {
	b := bufio.NewReaderSize(r, readyMax)
	for {
		line, err := b.ReadSlice('\n')
		var l observe.Ready
		var p observe.Loading
		if json.Unmarshal(line, &p) == nil && p.Total > 0 && p.Done >= 0 && p.Done <= p.Total {
			loading(p.Done, p.Total)
		}
		if json.Unmarshal(line, &l) == nil && l.Ready && l.HTTP != "" {
			select {
			case c.ready <- l:
			default: // it says so a second time
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// fatal is how the line begins by which a program that cannot go on says so: ours, and those of
// Go's runtime, behind which stacks follow, a thousand lines of them.
var fatal = [][]byte{[]byte("baton: "), []byte("panic: "), []byte("fatal error: "), []byte("runtime: ")}

// prefix copies lines with a name before each. It returns the first fatal one, or else
// the last.
func prefix(r io.Reader, name string, out io.Writer) (word string, said bool) {
	b := bufio.NewReaderSize(r, logLineMax)
	for {
		line, err := b.ReadSlice('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if !said {
				word = string(line)
				said = slices.ContainsFunc(fatal, func(f []byte) bool { return bytes.HasPrefix(line, f) })
			}
			fmt.Fprintf(out, "%s | %s\n", name, line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return word, said
		}
	}
}

// leave asks the child to end and kills it if it takes longer than after, or at once when now
// is closed.
func (c *child) leave(after time.Duration, now <-chan struct{}) (killed bool) {
	c.stdin.Close()
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case <-c.exited:
		return false
	case <-late.C:
	case <-now:
	}
	c.kill()
	return true
}

// failed says whether the child, told to leave, ended badly, and not by our killing it.
func (c *child) failed(killed bool) bool {
	return c.err != nil && (!killed || c.cmd.ProcessState.Exited())
}

// kill ends the child and waits for its end.
func (c *child) kill() {
	c.cmd.Process.Signal(os.Kill) // an error says that it is over
	<-c.exited
}

// refused says that it could not start as it was configured.
func (c *child) refused() bool { return c.cmd.ProcessState.ExitCode() == ExitRefused }

// how says how it ended, in words: its own, if it did not end well.
func (c *child) how() string {
	switch {
	case c.err == nil:
		return "exit status 0"
	case c.word == "", !c.said && !c.cmd.ProcessState.Exited(): // a signal has no last words
		return c.err.Error()
	}
	return c.err.Error() + ": " + c.word
}
