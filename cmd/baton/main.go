package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = "dev"

func main() {
	root := newRoot()
	err := root.Execute()
	if err == nil {
		return
	}
	code := 1
	if exit, ok := errors.AsType[exitError](err); ok {
		code = exit.code
		err = exit.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "baton:", plain(err))
	}
	os.Exit(code)
}

// exitError ends the process with a code of its own; err may be nil.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return fmt.Sprint("exit ", e.code, ": ", e.err) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "baton",
		Short: "Serve large language models with prefill and decode on separate workers",
		Long: `Baton serves large language models with prefill and decode on separate workers,
and never forgets a request.

A request's prompt is computed by a prefill worker, its KV cache moves to a decode
worker, and that one generates the answer. A gateway in front speaks OpenAI's API
and can say of every request where it is and what it waits for.

The default model, recall, is inside the binary: everything works without a download.`,
		Example: `  baton serve                          # one prefill and one decode worker, port 8000
  curl http://127.0.0.1:8000/v1/chat/completions \
    -d '{"temperature":0, "messages":[
          {"role":"system","content":"The code of Frank is cedar robin. The code of all others is unknown."},
          {"role":"user","content":"What is the code of Frank?"}]}'
  baton chat                           # talk to it
  baton ps                             # where is every request?

  baton pull smollm2                   # a model that speaks English
  baton serve --model smollm2`,
		Version:       about(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServe(), newWorker(), newPs(), newChat(), newPull(), newBench(), newReplay(), newVerify(), newVersion())
	return root
}

// lockedWriter lets several writers share a stream line by line.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// newLog makes the process's log. The level is debug, info, warn or error.
func newLog(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
	slog.SetDefault(log) // for packages that are given none
	return log, nil
}
