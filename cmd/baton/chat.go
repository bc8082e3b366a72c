package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
)

func newChat() *cobra.Command {
	var c chatSession
	var system string
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a served model",
		Long: `Chat reads lines and streams the model's answers. The conversation so far goes with each
line. Ctrl-C stops an answer; Ctrl-D, or an empty line's Ctrl-C, leaves.

  /new    forgets the conversation
  /exit   leaves`,
		Example: `  baton chat
  baton chat --system "The code of Frank is cedar robin. The code of all others is unknown."
  echo "What is the code of Frank?" | baton chat --system "The code of Frank is cedar robin. The code of all others is unknown."`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if system != "" {
				c.messages = append(c.messages, message{"system", system})
			}
			return c.repl(os.Stdin, os.Stdout)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&c.url, "url", urlDefault, "the gateway's `URL`")
	fl.StringVar(&system, "system", "", "a system message")
	fl.Float64Var(&c.temperature, "temperature", 0, "0 takes the likeliest token")
	fl.IntVar(&c.maxTokens, "max-tokens", 0, "longest answer (default: the rest of the context)")
	return cmd
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chatSession is one conversation.
type chatSession struct {
	url         string
	temperature float64
	maxTokens   int
	messages    []message
}

// repl reads lines until the input ends.
func (c *chatSession) repl(in io.Reader, out io.Writer) error {
	kept := len(c.messages)
	terminal := isTerminal(in)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for {
		if terminal {
			fmt.Fprint(out, "> ")
		}
		if !lines.Scan() {
			if terminal {
				fmt.Fprintln(out)
			}
			return lines.Err()
		}
		switch line := strings.TrimSpace(lines.Text()); line {
		case "":
		case "/exit":
			return nil
		case "/new":
			c.messages = c.messages[:kept]
		default:
			if err := c.say(line, out); err != nil && !terminal {
				return err
			} else if err != nil {
				fmt.Fprintln(out, "error:", err)
			}
		}
	}
}

// say sends one line and prints the answer as it comes. A failed line is taken back.
func (c *chatSession) say(line string, out io.Writer) error {
	ctx, release := signal.NotifyContext(rootContext(), os.Interrupt)
	defer release()
	c.messages = append(c.messages, message{"user", line})
	answer, err := c.ask(ctx, out)
	if answer != "" {
		fmt.Fprintln(out)
	}
	switch {
	case ctx.Err() != nil:
		err = errors.New("stopped")
		fallthrough
	case err != nil:
		c.messages = c.messages[:len(c.messages)-1]
		return err
	}
	c.messages = append(c.messages, message{"assistant", answer})
	return nil
}

func (c *chatSession) ask(ctx context.Context, out io.Writer) (string, error) {
	body, err := json.Marshal(struct {
		Messages    []message `json:"messages"`
		Stream      bool      `json:"stream"`
		Temperature float64   `json:"temperature"`
		MaxTokens   int       `json:"max_tokens,omitempty"`
	}{c.messages, true, c.temperature, c.maxTokens})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("%w; is `baton serve` running there? (--url)", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s (status %d)", errorText(text), resp.StatusCode)
	}
	return readStream(resp.Body, out)
}

// readStream prints the pieces of an answer and returns their whole.
func readStream(r io.Reader, out io.Writer) (string, error) {
	var all strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a comment, or the empty line behind an event
		}
		if data == "[DONE]" {
			return all.String(), nil
		}
		var event struct {
			Error   json.RawMessage
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return all.String(), fmt.Errorf("an event that is not JSON: %w", err)
		}
		if event.Error != nil {
			return all.String(), errors.New(errorText([]byte(data)))
		}
		for _, choice := range event.Choices {
			all.WriteString(choice.Delta.Content)
			fmt.Fprint(out, choice.Delta.Content)
		}
	}
	if err := lines.Err(); err != nil {
		return all.String(), err
	}
	return all.String(), errors.New("the answer was cut")
}

// errorText takes the message out of an error body.
func errorText(body []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return strings.TrimSpace(string(body))
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
