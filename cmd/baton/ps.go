package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"baton/serve/gateway"
)

// urlDefault is where `baton serve` listens unless told otherwise.
const urlDefault = "http://127.0.0.1:8000"

func newPs() *cobra.Command {
	var url string
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Show where every request is",
		Long: `Ps asks a gateway for its requests, for the rooms at its workers and for the workers
themselves.

A request is what a client asked. A room is one try to serve it on a pair of workers; it
stands in a queue of each of them and waits for something: the column says for what.
Behind each queue's length is how long its oldest room has stood in it.`,
		Example: `  baton ps
  baton ps --watch
  baton ps --json | jq '.rooms[] | select(.age_ms > 10000)'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return ps(ctx, os.Stdout, url, asJSON, watch)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&url, "url", urlDefault, "the gateway's `URL`")
	fl.BoolVar(&asJSON, "json", false, "print the gateway's JSON as it is")
	fl.BoolVar(&watch, "watch", false, "print again every second, until Ctrl-C")
	return cmd
}

func ps(ctx context.Context, w io.Writer, url string, asJSON, watch bool) error {
	for {
		body, err := fetch(ctx, url+"/debug/requests")
		if err != nil {
			return err
		}
		if err := psOnce(w, body, asJSON, watch); err != nil || !watch {
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
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; is `baton serve` running there? (--url)", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, errorText(body))
	}
	return body, nil
}

func psOnce(out io.Writer, body []byte, asJSON, clear bool) error {
	if asJSON {
		_, err := out.Write(body)
		return err
	}
	var in gateway.Inspection
	if err := json.Unmarshal(body, &in); err != nil {
		return fmt.Errorf("the gateway's answer is not understood: %w", err)
	}
	if clear {
		fmt.Fprint(out, "\033[H\033[2J")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tROLE\tUP\tPID\tLEGS\tQUEUES\tBLOCKS free+cached+held+quarantined/total")
	for _, v := range in.Workers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", v.Name, v.Role, yes(v.Up), v.PID, v.Legs, queues(&v), blocks(&v))
	}
	fmt.Fprintln(w, "\nREQUEST\tROOM\tPHASE\tAGE\tPREFILL\tDECODE\tTOKENS\tWAITS FOR")
	for _, r := range in.Requests {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.RID, dash(r.Room), r.Phase, age(r.AgeMS), dash(r.Prefill), dash(r.Decode), r.Tokens, dash(r.WaitsFor))
	}
	fmt.Fprintln(w, "\nROOM\tREQUEST\tWORKER\tQUEUE\tPHASE\tPOLL\tAGE\tWAITS FOR")
	for _, r := range in.Rooms {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Room, dash(r.RID), r.Worker, r.Queue, r.Phase, r.Poll, age(r.AgeMS), dash(r.WaitsFor))
	}
	return w.Flush()
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
	return fmt.Sprintf("%d+%d+%d+%d/%d", b.Free, b.Cached, b.Held, b.Quarantined, b.Total)
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
