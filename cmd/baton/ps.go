package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"baton/core/room"
	"baton/serve/gateway"
	"baton/serve/observe"
)

// urlDefault is where `baton serve` listens unless told otherwise.
const urlDefault = "http://127.0.0.1:8000"

// rowsMost is how many rows of a table are printed without --all: a screen, with the counts
// above it. The oldest are shown, for what hangs is old.
const rowsMost = 40

// psFlags are what a person chooses to see.
type psFlags struct {
	url         string
	json, watch bool
	all         bool
}

func newPs() *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Show where every request is",
		Long: fmt.Sprintf(`Ps asks a gateway for its requests, for the rooms at its workers and for the workers
themselves. The oldest requests and rooms come first; without --all, %d of each.

A request is what a client asked. A room is one try to serve it on a pair of workers; it
stands in a queue of each of them and waits for something: the column says for what.
Behind each queue's length is how long its oldest room has stood in it.

BLOCKS counts the KV memory of a worker in blocks of %d tokens:
  free         nobody's
  cached       nobody's now, kept for prompts that begin alike; given out when memory is short
  held         a room's
  quarantined  given to nobody until it is proven that nothing can touch it; nothing
               here needs that yet: 0
  pinned       of those cached or held: requests asked (cache_pin) that they are given out
               last; nothing is shown where there are none`, rowsMost, room.BlockTokens),
		Example: `  baton ps
  baton ps --watch
  baton ps --json | jq '.rooms[] | select(.age_ms > 10000)'`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return f.run(ctx, os.Stdout)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.url, "url", urlDefault, "the gateway's `URL`")
	fl.BoolVar(&f.json, "json", false, "print the gateway's JSON as it is")
	fl.BoolVar(&f.watch, "watch", false, "print again every second, until Ctrl-C")
	fl.BoolVar(&f.all, "all", false, "print every request and room")
	return cmd
}

func (f psFlags) run(ctx context.Context, w io.Writer) error {
	base, err := baseURL(f.url)
	if err != nil {
		return err
	}
	for {
		body, err := fetch(ctx, base, "/debug/requests")
		switch {
		case ctx.Err() != nil:
			return nil // left with Ctrl-C, as --watch says
		case err != nil:
			return err
		}
		if err := f.show(w, body); err != nil || !f.watch {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// fetch reads an answer of a gateway, or says in words why there is none.
func fetch(ctx context.Context, base, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, unreachable(base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: status %d: %s", base, path, resp.StatusCode, errorText(body))
	}
	return body, nil
}

func (f psFlags) show(out io.Writer, body []byte) error {
	if f.json {
		_, err := out.Write(body)
		return err
	}
	var in gateway.Inspection
	if err := json.Unmarshal(body, &in); err != nil {
		return fmt.Errorf("the gateway's answer is not understood: %w", err)
	}
	// Stable, so that a --watch does not dance.
	slices.SortStableFunc(in.Requests, func(a, b observe.Request) int { return cmp.Compare(b.AgeMS, a.AgeMS) })
	slices.SortStableFunc(in.Rooms, func(a, b observe.Room) int { return cmp.Compare(b.AgeMS, a.AgeMS) })
	var page bytes.Buffer
	if f.watch && isTerminal(out) {
		page.WriteString("\033[H\033[2J")
	}
	fmt.Fprintln(&page, tally("request", in.Requests, func(r observe.Request) string { return r.Phase }))
	fmt.Fprintln(&page, tally("room", in.Rooms, func(r observe.Room) string { return r.Role + " " + r.Phase }))
	page.WriteByte('\n')
	w := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
	showWorkers(w, in.Workers)
	showRequests(w, in.Requests, f.all)
	showRooms(w, in.Rooms, f.all)
	w.Flush() // into memory
	_, err := out.Write(page.Bytes())
	return err
}

// tally says how many rows there are, and how many in each phase, most first.
func tally[R any](noun string, rows []R, phase func(R) string) string {
	if len(rows) == 0 {
		return "no " + noun + "s"
	}
	counts := map[string]int{}
	for _, r := range rows {
		counts[phase(r)]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return count(len(rows), noun) + ": " + strings.Join(names, ", ")
}

func showWorkers(w io.Writer, workers []gateway.WorkerView) {
	if len(workers) == 0 {
		fmt.Fprintln(w, "no workers")
		return
	}
	fmt.Fprintf(w, "WORKER\tROLE\tUP\tPID\tLEGS\tQUEUES\tBLOCKS (%d tokens each) free+cached+held+quarantined/total\n", room.BlockTokens)
	for _, v := range workers {
		pid := "-" // the process is gone, and its number may be another's
		if v.PID != 0 {
			pid = strconv.Itoa(v.PID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", v.Name, v.Role, yes(v.Up), pid, v.Legs, queues(&v), blocks(&v))
	}
}

func showRequests(w io.Writer, rows []observe.Request, all bool) {
	if len(rows) == 0 {
		return // the tally has said so
	}
	fmt.Fprintln(w, "\nREQUEST\tROOM\tPHASE\tAGE\tPREFILL\tDECODE\tTOKENS\tWAITS FOR")
	shown, rest := cut(rows, all)
	for _, r := range shown {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.RID, dash(r.Room), r.Phase, age(r.AgeMS), dash(r.Prefill), dash(r.Decode), r.Tokens, dash(r.WaitsFor))
	}
	fmt.Fprint(w, rest)
}

func showRooms(w io.Writer, rows []observe.Room, all bool) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w, "\nROOM\tREQUEST\tWORKER\tQUEUE\tPHASE\tPOLL\tAGE\tWAITS FOR")
	shown, rest := cut(rows, all)
	for _, r := range shown {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Room, dash(r.RID), r.Worker, r.Queue, r.Phase, r.Poll, age(r.AgeMS), dash(r.WaitsFor))
	}
	fmt.Fprint(w, rest)
}

// cut returns the rows to show, and the line that stands for the others.
func cut[R any](rows []R, all bool) (shown []R, rest string) {
	if all || len(rows) <= rowsMost {
		return rows, ""
	}
	return rows[:rowsMost], fmt.Sprintf("… and %d more (--all)\n", len(rows)-rowsMost)
}

func queues(v *gateway.WorkerView) string {
	if v.Blocks == nil { // it did not answer: nothing is known
		return "no answer"
	}
	names := make([]string, 0, len(v.Queues))
	for name := range v.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		q := v.Queues[name]
		names[i] = fmt.Sprintf("%s %d", name, q.Len)
		if q.Len > 0 {
			names[i] += " (" + age(q.OldestMS) + ")"
		}
	}
	return dash(strings.Join(names, ", "))
}

func blocks(v *gateway.WorkerView) string {
	if v.Blocks == nil {
		return "-"
	}
	b := v.Blocks
	s := fmt.Sprintf("%d+%d+%d+%d/%d", b.Free, b.Cached, b.Held, b.Quarantined, b.Total)
	if b.Pinned > 0 {
		s += fmt.Sprintf(" (%d pinned)", b.Pinned)
	}
	return s
}

func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
