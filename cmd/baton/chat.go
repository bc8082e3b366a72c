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
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

const chatCommands = `  /new    forgets the conversation
  /help   lists these
  /exit   leaves, as Ctrl-D does, and Ctrl-C unless an answer is under way: that it stops`

func newChat() *cobra.Command {
	var c chatSession
	var system string
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a served model",
		Long: `Chat reads lines and streams the model's answers. The conversation so far goes with each
line; an answer that was stopped stays in it as far as it came.

` + chatCommands + `

What a model thinks before it answers is shown dimmed in a terminal, and not kept.

Another word behind / at the beginning of a line is not sent to the model.`,
		Example: `  baton chat
  baton chat --system "The code of Frank is cedar robin. The code of all others is unknown."
  echo "What is the code of Frank?" | baton chat --system "The code of Frank is cedar robin. The code of all others is unknown."`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			base, err := baseURL(c.url)
			if err != nil {
				return err
			}
			c.url = base
			if system != "" {
				c.messages = append(c.messages, message{"system", system})
			}
			c.person, c.thoughts = isTerminal(os.Stdin), isTerminal(os.Stdout)
			interrupts := make(chan os.Signal, 1)
			signal.Notify(interrupts, os.Interrupt)
			defer signal.Stop(interrupts)
			c.interrupts = interrupts
			return c.run(os.Stdin, os.Stdout)
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
	person      bool             // somebody types: greet, prompt, and go on after an error
	thoughts    bool             // what the model thinks is shown, dimmed: the output is a terminal
	interrupts  <-chan os.Signal // Ctrl-C
	messages    []message
}

// errStopped says that a person did not want the rest of an answer.
var errStopped = errors.New("stopped")

// run reads lines until the input ends or somebody leaves.
func (c *chatSession) run(in io.Reader, out io.Writer) error {
	kept := len(c.messages)
	if err := c.greet(out); err != nil {
		return err
	}
	lines := newLineReader(in)
	defer lines.close()
	for {
		select {
		case <-c.interrupts: // came too late for the answer that it should have stopped
		default:
		}
		if c.person {
			fmt.Fprint(out, "> ")
		}
		line, err := lines.next(c.interrupts)
		switch {
		case err != nil:
			if c.person {
				fmt.Fprintln(out) // the shell's prompt begins a line of its own
			}
			return left(err, c.person)
		case line == "/exit":
			return nil
		case line == "/new":
			c.messages = c.messages[:kept]
		case line == "/help":
			fmt.Fprintln(out, chatCommands)
		case slashed.MatchString(line):
			err = fmt.Errorf("there is no command %s; /help lists them", strings.Fields(line)[0])
		case line != "":
			err = c.say(line, out)
		}
		switch {
		case err == nil:
		case !c.person && errors.Is(err, errStopped):
			return exitError{code: exitStop}
		case !c.person:
			return err
		case errors.Is(err, errStopped):
			fmt.Fprintln(out, "(stopped)")
		default:
			fmt.Fprintln(out, "error:", plain(err))
		}
	}
}

// slashed is a line that is meant as a command; one that begins with a path is not.
var slashed = regexp.MustCompile(`^/[A-Za-z?]*(\s|$)`)

// left is the error of a session that a person or the end of the input has ended.
func left(err error, person bool) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, errStopped) && person:
		return nil
	case errors.Is(err, errStopped):
		return exitError{code: exitStop}
	}
	return err
}

// greet asks who answers, and tells a person, and how to leave.
func (c *chatSession) greet(out io.Writer) error {
	ctx, release := signal.NotifyContext(rootContext(), os.Interrupt)
	defer release()
	body, err := fetch(ctx, c.url, "/v1/models")
	switch {
	case ctx.Err() != nil:
		return exitError{code: exitStop}
	case err != nil:
		return err
	}
	var models struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &models); err != nil || len(models.Data) == 0 {
		return fmt.Errorf("%s is no server of models: %s", c.url, strings.TrimSpace(string(body[:min(len(body), 200)])))
	}
	if !c.person {
		return nil
	}
	_, err = fmt.Fprintf(out, "%s answers. Ctrl-C stops an answer; /exit or Ctrl-D leaves; /help says more.\n", models.Data[0].ID)
	return err
}

// say sends one line and prints the answer as it comes. A line that failed is taken back, and
// so is one that was stopped before its answer began.
func (c *chatSession) say(line string, out io.Writer) error {
	ctx, cancel := context.WithCancel(rootContext())
	over, watched := make(chan struct{}), make(chan struct{})
	stopped := false
	go func() {
		defer close(watched)
		select {
		case <-c.interrupts:
			stopped = true
			cancel()
		case <-over:
		}
	}()
	c.messages = append(c.messages, message{"user", line})
	answer, err := c.ask(ctx, out)
	close(over)
	<-watched
	cancel()
	if answer != "" {
		fmt.Fprintln(out)
	}
	if err != nil && stopped {
		err = errStopped
	}
	if err != nil && (answer == "" || !stopped) {
		c.messages = c.messages[:len(c.messages)-1]
		return err
	}
	c.messages = append(c.messages, message{"assistant", answer})
	return err
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
		return "", unreachable(c.url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s (status %d)", errorText(text), resp.StatusCode)
	}
	return readStream(resp.Body, out, c.thoughts)
}

// dimmed is how thoughts look in a terminal, up to plainAgain.
const dimmed, plainAgain = "\x1b[2m", "\x1b[22m"

// readStream prints the pieces of an answer and returns their whole, without what the model
// thought: that goes no further than the terminal, if thoughts are wanted.
func readStream(r io.Reader, out io.Writer, thoughts bool) (string, error) {
	var all strings.Builder
	thinking := false
	think := func(now bool) {
		if thinking && !now {
			fmt.Fprint(out, plainAgain+"\n")
		} else if now && !thinking {
			fmt.Fprint(out, dimmed)
		}
		thinking = now
	}
	defer think(false)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue // a comment, or the empty line behind an event
		}
		data = strings.TrimPrefix(data, " ") // which a server may leave out
		if data == "[DONE]" {
			return all.String(), nil
		}
		var event struct {
			Error   json.RawMessage
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return all.String(), fmt.Errorf("an event that is not JSON: %w", err)
		}
		if event.Error != nil && string(event.Error) != "null" {
			return all.String(), errors.New(errorText([]byte(data)))
		}
		for _, choice := range event.Choices {
			if thought := choice.Delta.Reasoning; thoughts && thought != "" {
				think(true)
				fmt.Fprint(out, thought)
			}
			if content := choice.Delta.Content; content != "" {
				think(false)
				all.WriteString(content)
				fmt.Fprint(out, content)
			}
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

// lineReader hands out lines one by one, to somebody who also listens for Ctrl-C.
type lineReader struct {
	ask   chan struct{} // one line is wanted
	lines chan string
	err   error // read after lines is closed
}

// newLineReader reads in only when a line is wanted. Its goroutine ends with the input; a read
// of a terminal cannot be called off, so it may be left to the end of the process.
func newLineReader(in io.Reader) *lineReader {
	r := &lineReader{ask: make(chan struct{}, 1), lines: make(chan string)}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 1<<20)
	go func() {
		defer close(r.lines)
		for range r.ask {
			if !scan.Scan() {
				r.err = scan.Err()
				return
			}
			r.lines <- strings.TrimSpace(scan.Text())
		}
	}()
	return r
}

func (r *lineReader) close() { close(r.ask) }

// next returns a line, io.EOF at the end, or errStopped for Ctrl-C.
func (r *lineReader) next(interrupts <-chan os.Signal) (string, error) {
	r.ask <- struct{}{}
	select {
	case line, ok := <-r.lines:
		if ok {
			return line, nil
		}
		if r.err != nil {
			return "", r.err
		}
		return "", io.EOF
	case <-interrupts:
		return "", errStopped
	}
}
