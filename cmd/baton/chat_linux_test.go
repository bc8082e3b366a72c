package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPTY returns both ends of a terminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// The whole command at a real terminal: Ctrl-C in an answer, then Ctrl-D or Ctrl-C at the prompt,
// as keys.
func TestChatAtATerminal(t *testing.T) {
	for name, key := range map[string]string{"Ctrl-D": "\x04", "Ctrl-C": "\x03"} {
		t.Run(name, func(t *testing.T) {
			master, slave := openPTY(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "chat", "--url", chatServer(t, unfinished))
			cmd.Env = append(os.Environ(), mainEnv+"=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // the terminal is its own: keys are signals
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			slave.Close() // so that the master reads an end when the process is over
			out := newScreen()
			go func() {
				defer close(out.wrote)
				io.Copy(out, master) // ends with the process
			}()
			out.until(t, "/help says more.\r\n> ")
			io.WriteString(master, "hi\n")
			out.until(t, "hel")
			io.WriteString(master, "\x03")
			out.until(t, "(stopped)\r\n> ")
			io.WriteString(master, key)
			if err := cmd.Wait(); err != nil {
				t.Errorf("left with %v", err)
			}
			out.until(t, "\r\n")
		})
	}
}
