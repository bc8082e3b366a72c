package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"baton/serve/observe"
)

// The contract of a child process: one ready line, service, and an end when the parent's pipe
// ends.
func TestRunSaysWhenItIsReadyAndEndsWithItsParent(t *testing.T) {
	stdin, parent := io.Pipe()
	out, stdout := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- Run(context.Background(), Config{Role: Prefill, Secret: secret, Sizes: Sizes{Threads: 1, KVTokens: 256},
			Canary: true, Log: quiet(), Ready: stdout, Parent: stdin})
		stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err, <-over)
	}
	var ready observe.Ready
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if !ready.Ready || ready.Role != Prefill || ready.Link == "" || ready.Boot == "" || ready.PID != os.Getpid() {
		t.Errorf("ready line %s", line)
	}
	resp, err := client.Get("http://" + ready.HTTP + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health %d behind the ready line", resp.StatusCode)
	}
	parent.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// brokenPipe is a parent that left before its child was ready.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRunEndsWhenNobodyHearsThatItIsReady(t *testing.T) {
	err := Run(context.Background(), Config{Role: Unified, Sizes: Sizes{Threads: 1, KVTokens: 256}, Log: quiet(), Ready: brokenPipe{}})
	if err != nil {
		t.Error(err)
	}
}

func TestRunRefusesWhatItCannotServe(t *testing.T) {
	for _, c := range []Config{
		{Role: "router"},
		{Role: Unified, Model: "/no/such/model.gguf"},
		{Role: Unified, HTTP: "not an address"},
	} {
		c.Log, c.Sizes.KVTokens, c.Sizes.Threads = quiet(), 256, 1
		if err := Run(context.Background(), c); err == nil {
			t.Errorf("%+v runs", c)
		}
	}
}

// An address that somebody else has is a mistake of the operator's, so the error says which it
// is and what to do.
func TestATakenAddressSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	for _, c := range []struct {
		flag string
		c    Config
	}{{"--http", Config{HTTP: addr}}, {"--link", Config{Link: addr}}} {
		c.c.Role, c.c.Secret, c.c.Log = Prefill, secret, quiet()
		s, _ := serveFake(t, 4, "layout")
		_, err := New(c.c, s)
		if err == nil || strings.Count(err.Error(), addr) != 1 || !strings.Contains(err.Error(), "taken by another process; stop it, or choose another address with "+c.flag) {
			t.Errorf("%s %s: %v", c.flag, addr, err)
		}
	}
	s, _ := serveFake(t, 4, "layout")
	if _, err := New(Config{Role: Unified, HTTP: "not an address", Log: quiet()}, s); err == nil || !strings.Contains(err.Error(), `listening on "not an address"`) || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("%v", err)
	}
}
