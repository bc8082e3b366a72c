package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"baton/core/room"
	"baton/proof/replay"
	"baton/serve/recorder"
)

func newReplay() *cobra.Command {
	var p replayPlan
	cmd := &cobra.Command{
		Use:   "replay FILE|DIR...",
		Short: "Check recorded decisions against this build, or draw a room's life",
		Long: `Replay reads traces that "baton serve --record DIR" wrote, a file per process. It makes
a fresh core of each, tells it event by event what the recorded one was told, and wants
the same effects, each time. The first step in which they differ is shown, with the life
of the rooms concerned up to it. A clean file is one line: its events, its rooms by how
they ended, and the one that took longest.

Of several files it also holds that what the processes heard of each other is what they
said: messages between workers, legs and their ends. Who was killed may have said more than
is in its file; clocks must agree within 0.1 s for that to be known. A second file of one life
of a process is refused.

With --room or --rid it draws one room, or all rooms of one request, out of all
files that know it: a line for each step, in the order of the wall clocks of their
processes, with the phase that it led to at the gateway, at prefill and at decode. Steps
alike that follow each other are one line.

A file without an end is that of a killed process, or of one that runs; its last line may
be cut. A trace belongs to the build that wrote it: another may decide otherwise and be
right, and a difference says so.

Exit codes: 0 the cores did the same, 2 one did not, or heard what nobody said, 1 a file
cannot be read or the report not be written, 4 the command makes no sense.`,
		Example: `  baton serve --record traces                  # and use it; Ctrl-C
  baton replay traces
  baton replay traces --rid my-request-17      # what happened to it, everywhere
  baton replay traces/decode-*.trace.jsonl --room 3b1f09a2c4d5e6f7`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exitError{exitUsage, errors.New("replay: which file, or directory of files? one is written by `baton serve --record DIR`")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for _, flag := range []string{"room", "rid"} {
				if c.Flags().Changed(flag) && c.Flag(flag).Value.String() == "" {
					return exitError{exitUsage, fmt.Errorf("replay: --%s \"\" names none: leave it out to check, or say which to draw", flag)}
				}
			}
			return p.run(c.OutOrStdout(), args)
		},
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exitError{exitUsage, fmt.Errorf("replay: %w", flagError(c, err))}
	})
	cmd.Flags().StringVar(&p.room, "room", "", "draw the room `ID`, 16 hexadecimal digits")
	cmd.Flags().StringVar(&p.rid, "rid", "", "draw every room of the request `RID`, as logs and X-Request-Id have it")
	return cmd
}

// replayPlan is what the flags say.
type replayPlan struct{ room, rid string }

// film is what is to be drawn, nil for nothing.
func (p replayPlan) film() (*replay.Film, error) {
	switch {
	case p.room != "" && p.rid != "":
		return nil, errors.New("replay: --room or --rid, not both: a request has its rooms")
	case p.rid != "":
		return replay.OfRequest(p.rid), nil
	case p.room != "":
		id, err := room.ParseID(p.room)
		if err != nil {
			return nil, fmt.Errorf("replay: --room: %w", err)
		}
		return replay.OfRoom(id), nil
	}
	return nil, nil
}

func (p replayPlan) run(out io.Writer, args []string) error {
	film, err := p.film()
	if err != nil {
		return exitError{exitUsage, seen{err}}
	}
	files, unread, err := traces(args)
	if err != nil {
		return seen{err}
	}
	if film != nil {
		for _, f := range files {
			if !f.info.Mode().IsRegular() {
				return exitError{exitUsage, seen{fmt.Errorf("replay: %s is %s: a film needs a file that can be read twice", f.name, sort(f.info))}}
			}
		}
	}
	s := showing{paper: &paper{w: out}, film: film, post: replay.NewPost(), unread: unread}
	began := time.Now()
	for _, f := range files {
		s.check(f.name)
	}
	s.sum(time.Since(began), p.room+p.rid)
	if s.paper.err != nil {
		s.unread = append(s.unread, fmt.Errorf("replay: the report is not whole: %w", s.paper.err))
	}
	if err = errors.Join(s.unread...); err != nil {
		err = seen{err}
	}
	if s.differ > 0 {
		return exitError{exitBroken, err}
	}
	return err
}

// showing is what has been read and shown.
type showing struct {
	paper  *paper
	film   *replay.Film // nil: all that is clean is a line
	post   *replay.Post
	read   int // files
	events int
	bytes  int64
	differ int
	unread []error
}

// check reads a file and shows what is to be said of it alone.
func (s *showing) check(file string) {
	check := s.post.Watch
	if s.film != nil {
		check = s.film.Watch
	}
	r, err := check(file)
	if err != nil {
		s.unread = append(s.unread, err)
		return
	}
	s.read++
	s.events, s.bytes = s.events+r.Events, s.bytes+r.Bytes
	if s.film == nil || r.Differs != nil || r.Panic != "" || r.End == recorder.EndOverrun {
		fmt.Fprintln(s.paper, r) // with a film the clean ones are a number only
	}
	if r.Differs != nil {
		s.differ++
		chart, err := r.Differs.Draw(r)
		if err != nil {
			s.unread = append(s.unread, err)
		}
		fmt.Fprint(s.paper, chart)
	}
}

// sum shows what all files are together, and the film of what was asked for.
func (s *showing) sum(took time.Duration, asked string) {
	verdict := "the cores did again what they did"
	if s.differ > 0 {
		verdict = fmt.Sprintf("%d DIFFER", s.differ)
	}
	if s.read > 0 {
		seconds := max(took.Seconds(), 1e-9)
		fmt.Fprintf(s.paper, "%s, %s, %.1f MB in %.1f s (%.0f events/s): %s\n", count(s.read, "file"), count(s.events, "event"), float64(s.bytes)/1e6, seconds, float64(s.events)/seconds, verdict)
	}
	if s.film == nil && s.read > 1 {
		mail := s.post.Judge()
		fmt.Fprintln(s.paper, mail)
		s.differ += len(mail.Unsaid)
	}
	if s.film != nil {
		chart, err := s.film.Draw()
		if errors.Is(err, replay.ErrNotThere) {
			err = fmt.Errorf("%w: %s", err, recorder.Printable(asked))
		}
		s.unread = append(s.unread, err)
		fmt.Fprint(s.paper, chart)
	}
}

// paper is what the report goes to. Files come from elsewhere, and nothing in them speaks to the
// terminal. It keeps the first error.
type paper struct {
	w   io.Writer
	err error
}

func (s *paper) Write(b []byte) (int, error) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, visible(string(b)))
	}
	return len(b), s.err
}

// seen is an error for the terminal.
type seen struct{ err error }

func (e seen) Error() string { return visible(e.err.Error()) }
func (e seen) Unwrap() error { return e.err }

// visible writes out what cannot be printed, but the ends of lines.
func visible(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == '\n' || strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(text[:n])
		} else {
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// trace is a file to be read.
type trace struct {
	name string
	info os.FileInfo
}

// traces are the files that are named, and those of the directories that are, each once, whatever
// its names. What is in a directory and cannot be read there is in unread.
func traces(args []string) (files []trace, unread []error, err error) {
	add := func(name string, info os.FileInfo) {
		if !slices.ContainsFunc(files, func(f trace) bool { return os.SameFile(f.info, info) }) {
			files = append(files, trace{filepath.Clean(name), info})
		}
	}
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, nil, fmt.Errorf("replay: %w", err)
		}
		if !info.IsDir() {
			add(a, info)
			continue
		}
		entries, err := os.ReadDir(a)
		if err != nil {
			return nil, nil, fmt.Errorf("replay: %w", err)
		}
		found := false
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), recorder.Suffix) {
				continue
			}
			found = true
			name := filepath.Join(a, e.Name())
			info, err := os.Stat(name)
			switch {
			case err != nil:
				unread = append(unread, fmt.Errorf("replay: %w", err))
			case !info.Mode().IsRegular(): // a pipe would keep us waiting for ever
				unread = append(unread, fmt.Errorf("replay: %s is %s and no file: not read; name it to read it", recorder.Printable(name), sort(info)))
			default:
				add(name, info)
			}
		}
		if !found {
			return nil, nil, fmt.Errorf("replay: %s has no file that ends in %s", a, recorder.Suffix)
		}
	}
	return files, unread, nil
}

// sort says what is no regular file.
func sort(info os.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
