package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Result is one figure.
type Result struct {
	Model           string  `json:"model"`
	Test            string  `json:"test"` // pp512, tg64
	Threads         int     `json:"threads"`
	Batch           int     `json:"batch"`             // sequences that a step generates for; prompts have one
	TokensPerSecond float64 `json:"tokens_per_second"` // median of the runs, of all sequences together
	Spread          float64 `json:"-"`                 // standard deviation of the runs
	Bytes           int64   `json:"-"`                 // of the model's file
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

// WriteTable prints results for a human, as llama.cpp's own benchmark does: Markdown that lines up.
func WriteTable(w io.Writer, results []Result) error {
	rows := [][]string{{"model", "size", "threads", "batch", "test", "t/s"}}
	for _, r := range results {
		rows = append(rows, []string{r.Model, size(r.Bytes), fmt.Sprint(r.Threads), fmt.Sprint(r.Batch), r.Test,
			fmt.Sprintf("%.2f ± %.2f", r.TokensPerSecond, r.Spread)})
	}
	if err := WriteColumns(w, rows); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// size is a number of bytes as llama-bench prints it.
func size(bytes int64) string {
	const mega, giga = 1 << 20, 1 << 30
	if bytes >= giga {
		return fmt.Sprintf("%.2f GiB", float64(bytes)/giga)
	}
	return fmt.Sprintf("%.2f MiB", float64(bytes)/mega)
}

// WriteColumns prints rows as a Markdown table, the first as its head: the first column to the left, the others, which
// are numbers, to the right.
func WriteColumns(w io.Writer, rows [][]string) error {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if i == 0 {
				fmt.Fprintf(&b, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, cell)
			}
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i := range row {
			line := strings.Repeat("-", width[i])
			if i > 0 {
				line = line[1:] + ":"
			}
			fmt.Fprintf(&b, "| %s ", line)
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
