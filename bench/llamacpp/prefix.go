package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"baton/engine/weights/store"
)

// prefixTokens is the length of the prompt.
const prefixTokens = 1000

// prefix measures how long a request for one token takes, with a prompt that nobody asked before and with the same prompt
// again, through a gateway with a prefill and a decode worker.
func (p *place) prefix(ctx context.Context, o options) (Line, error) {
	model, err := store.Pull(ctx, "smollm2", os.Stderr)
	if err != nil {
		return Line{}, err
	}
	binary := filepath.Join(p.dir, "baton")
	if err := p.run(ctx, "go", "build", "-o", binary, "./cmd/baton"); err != nil {
		return Line{}, err
	}
	s, err := serve(ctx, binary, model)
	if err != nil {
		return Line{}, err
	}
	defer s.stop()
	f := figures{}
	for round := range o.rounds*o.repeat + 1 {
		say("cached prefix, round %d of %d", round, o.rounds*o.repeat)
		prompt, err := s.prompt(ctx, round)
		if err != nil {
			return Line{}, err
		}
		for _, name := range []string{"cold", "cached"} {
			took, err := s.complete(ctx, prompt)
			if err != nil {
				return Line{}, err
			}
			if round > 0 { // the first one wakes everything up
				f.add(name, took.Seconds())
			}
		}
	}
	l := Line{Model: "smollm2", Test: "first token, 1,000 cached by cold", Threads: 1, Ours: f.median("cached"), Theirs: f.median("cold"),
		Ratio: f.ratio("cached", "cold"), Goal: prefixGoal, AtMost: true}
	l.judge()
	return l, nil
}

// server is a baton serve.
type server struct {
	cmd  *exec.Cmd
	base string
}

func serve(ctx context.Context, binary, model string) (*server, error) {
	cmd := exec.CommandContext(ctx, binary, "serve", "--model", model, "--listen", "127.0.0.1:0", "--threads", "1", "--served-model-name", "m")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("llamacpp: baton serve: %w", err)
	}
	s := &server{cmd: cmd}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if base, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			s.base = base
			go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
			return s, nil
		}
	}
	_ = cmd.Wait()
	return nil, fmt.Errorf("llamacpp: baton serve ended before it was ready; run %s serve --model %s to see why", binary, model)
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // says that it was told to end
}

// prompt returns a text of prefixTokens tokens, or one or two more, that begins like no other round's.
func (s *server) prompt(ctx context.Context, round int) (string, error) {
	words := strings.Fields("river stone cloud garden window paper night music bread train")
	text := fmt.Sprintf("Story number %d.", round)
	for i := 0; ; i++ {
		for range 8 {
			i++
			text += " " + words[(i*i+round)%len(words)]
		}
		var got struct {
			Count int `json:"count"`
		}
		if i < prefixTokens/2 {
			continue
		}
		if err := s.post(ctx, "/tokenize", map[string]any{"model": "m", "prompt": text}, &got); err != nil {
			return "", err
		}
		if got.Count >= prefixTokens {
			return text, nil
		}
	}
}

// complete returns how long a request for one token took.
func (s *server) complete(ctx context.Context, prompt string) (time.Duration, error) {
	began := time.Now()
	err := s.post(ctx, "/v1/completions", map[string]any{"model": "m", "prompt": prompt, "max_tokens": 1, "temperature": 0}, nil)
	return time.Since(began), err
}

// post sends a request and decodes the answer into v, unless it is nil.
func (s *server) post(ctx context.Context, path string, body, v any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("llamacpp: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("llamacpp: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("llamacpp: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("llamacpp: %s answered %s: %s", path, answer.Status, text)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("llamacpp: %s answered %s: %w", path, text, err)
	}
	return nil
}
