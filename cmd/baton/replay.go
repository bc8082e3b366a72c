package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
is in its file; clocks must agree within 0.1 s for that to be known.

With --room or --rid it draws one room, or all rooms of one request, out of all
files that know it: a line for each step, in the order of the wall clocks of their
processes, with the phase that it led to at the gateway, at prefill and at decode. Steps
alike that follow each other are one line.

A file without an end is that of a killed process, or of one that runs; its last line may
be cut. A trace belongs to the build that wrote it: another may decide otherwise and be
right, and a difference says so.

Exit codes: 0 the cores did the same, 2 one did not, or heard what nobody said, 1 a file
cannot be read, 4 the command makes no sense.`,
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
		RunE: func(c *cobra.Command, args []string) error { return p.run(c.OutOrStdout(), args) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return exitError{exitUsage, fmt.Errorf("replay: %w; see `baton replay --help`", err)}
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
		return exitError{exitUsage, err}
	}
	files, err := traces(args)
	if err != nil {
		return err
	}
	post := replay.NewPost()
	check := post.Watch
	if film != nil {
		check = film.Watch
	}
	began, events, bytes, differ, read := time.Now(), 0, int64(0), 0, 0
	var unread []error
	for _, f := range files {
		r, err := check(f)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		read++
		events, bytes = events+r.Events, bytes+r.Bytes
		if film == nil || r.Differs != nil || r.Panic != "" || r.End == recorder.EndOverrun {
			fmt.Fprintln(out, r) // with a film the clean ones are a number only
		}
		if r.Differs != nil {
			differ++
			chart, err := r.Differs.Draw(r)
			if err != nil {
				unread = append(unread, err)
			}
			fmt.Fprint(out, chart)
		}
	}
	took := max(time.Since(began).Seconds(), 1e-9)
	verdict := "the cores did again what they did"
	if differ > 0 {
		verdict = fmt.Sprintf("%d DIFFER", differ)
	}
	if read > 0 {
		fmt.Fprintf(out, "%s, %s, %.1f MB in %.1f s (%.0f events/s): %s\n", count(read, "file"), count(events, "event"), float64(bytes)/1e6, took, float64(events)/took, verdict)
	}
	if film == nil && read > 1 {
		mail := post.Judge()
		fmt.Fprintln(out, mail)
		differ += len(mail.Unsaid)
	}
	if film != nil {
		chart, err := film.Draw()
		if errors.Is(err, replay.ErrNotThere) {
			err = fmt.Errorf("%w: %s%s", err, p.room, p.rid)
		}
		unread = append(unread, err)
		fmt.Fprint(out, chart)
	}
	if err = errors.Join(unread...); differ > 0 {
		return exitError{exitBroken, err}
	}
	return err
}

// traces are the files that are named, and those of the directories that are.
func traces(args []string) (files []string, err error) {
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		add := func(file string) {
			if file = filepath.Clean(file); !slices.Contains(files, file) { // named twice, it is read once
				files = append(files, file)
			}
		}
		if !info.IsDir() {
			add(a)
			continue
		}
		entries, err := os.ReadDir(a)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		found := false
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), recorder.Suffix) {
				found = true
				add(filepath.Join(a, e.Name()))
			}
		}
		if !found {
			return nil, fmt.Errorf("replay: %s has no file that ends in %s", a, recorder.Suffix)
		}
	}
	return files, nil
}
