package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Result is one figure.
type Result struct {
	Model           string  `json:"model"`
	Test            string  `json:"test"`
	Threads         int     `json:"threads"`
	TokensPerSecond float64 `json:"tokens_per_second"` // median of the runs
}

// WriteJSON prints results as a JSON list, also when there are none.
func WriteJSON(w io.Writer, results []Result) error {
	if results == nil {
		results = []Result{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(results); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// WriteTable prints results for a human.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tTEST\tTHREADS\tTOKENS/S")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\n", r.Model, r.Test, r.Threads, r.TokensPerSecond)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}
