package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"baton/engine/model"
	"baton/engine/weights/store"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newBenchEngine())
	return cmd
}

// benchResult is one line of bench engine --json.
type benchResult struct {
	Model           string  `json:"model"`
	Test            string  `json:"test"`
	Threads         int     `json:"threads"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

func newBenchEngine() *cobra.Command {
	var name string
	var threads, repeat int
	var asJSON bool
	var tests []string
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure the engine alone: prompt and generation speed",
		Long: `Engine measures tokens per second without workers or network:
  ppN    computes a prompt of N tokens
  tgN    generates N tokens one by one; tgNxB generates B sequences in one batch
Each test runs --repeat times after one run to warm up; the median counts.`,
		Example: `  baton bench engine --model smollm2 --threads 2
  baton bench engine --model model.gguf --tests pp512,tg64,tg64x8 --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			results, err := benchEngine(name, threads, repeat, tests)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(os.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(results)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tTEST\tTHREADS\tTOKENS/S")
			for _, r := range results {
				fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\n", r.Model, r.Test, r.Threads, r.TokensPerSecond)
			}
			return w.Flush()
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&name, "model", store.Recall, "`NAME|PATH` of the model")
	fl.IntVar(&threads, "threads", runtime.NumCPU(), "engine threads")
	fl.IntVar(&repeat, "repeat", 3, "runs per test")
	fl.StringSliceVar(&tests, "tests", []string{"pp512", "tg64"}, "what to measure")
	fl.BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func benchEngine(name string, threads, repeat int, tests []string) ([]benchResult, error) {
	if repeat < 1 {
		return nil, fmt.Errorf("--repeat %d: want at least 1", repeat)
	}
	src, err := store.Resolve(name)
	if err != nil {
		return nil, err
	}
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := model.Open(f, model.Options{Threads: threads})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	short := strings.TrimSuffix(filepath.Base(src.Name), ".gguf")
	var results []benchResult
	for _, test := range tests {
		if _, err := model.Bench(m, test, threads); err != nil {
			return nil, err
		}
		speeds := make([]float64, 0, repeat)
		for range repeat {
			s, err := model.Bench(m, test, threads)
			if err != nil {
				return nil, err
			}
			speeds = append(speeds, s)
		}
		slices.Sort(speeds)
		results = append(results, benchResult{short, test, threads, speeds[len(speeds)/2]})
	}
	return results, nil
}
