package main

import "fmt"

// subject is a model that both sides measure, with what is wanted of it.
type subject struct {
	name   string // of the file, or of the store
	shape  string // "" for a real model
	format string
	big    bool    // gigabytes; measured on demand
	decode float64 // tokens/s of generation: ours by theirs, at least
}

// Goals: how much faster than llama.cpp, and than ourselves.
const (
	prefillGoal = 1.8 // prompts of 512 tokens, all models
	batchGoal   = 4.0 // generation for 8 sequences by generation for one
	prefixGoal  = 0.1 // first token behind a cached prefix of 1,000 tokens by the first token without, at most
)

func subjects() []subject {
	return []subject{
		{name: "smol-q8_0", shape: "smol", format: "q8_0", decode: 1.1},
		{name: "smol-q4_0", shape: "smol", format: "q4_0", decode: 1.4},
		{name: "smol-bf16", shape: "smol", format: "bf16", decode: 1.7},
		{name: "smollm2", format: "q4_1", decode: 1.2},
		{name: "llama1b-q8_0", shape: "llama1b", format: "q8_0", decode: 1.03, big: true},
		{name: "llama1b-q4_0", shape: "llama1b", format: "q4_0", decode: 1.15, big: true},
		{name: "llama1b-bf16", shape: "llama1b", format: "bf16", decode: 1.3, big: true},
	}
}

// Line is one goal and what was measured.
type Line struct {
	Model   string  `json:"model"`
	Test    string  `json:"test"`
	Threads int     `json:"threads"`
	Ours    float64 `json:"ours"`             // tokens per second; of the prefix, seconds
	Theirs  float64 `json:"theirs,omitempty"` // llama.cpp's, or what ours is compared with
	Ratio   float64 `json:"ratio"`            // median of the rounds' ratios
	Goal    float64 `json:"goal"`
	AtMost  bool    `json:"at_most,omitempty"` // the goal is an upper bound
	Met     bool    `json:"met"`
	// Of generation with one sequence: what our figure takes of the memory's read speed, the probe in the same rounds, and
	// the ratio that reading the weights at the probe's speed would be.
	Bandwidth float64 `json:"gb_per_second,omitempty"`
	Probe     float64 `json:"probe_gb_per_second,omitempty"`
	Cap       float64 `json:"ratio_cap,omitempty"`
}

// judge fills in whether the ratio meets the goal.
func (l *Line) judge() {
	l.Met = l.Ratio >= l.Goal
	if l.AtMost {
		l.Met = l.Ratio <= l.Goal && l.Ratio > 0
	}
}

// verdict says what the table says: met, missed, or missed because no program could reach the goal on this machine.
func (l *Line) verdict() string {
	switch {
	case l.Met:
		return "met"
	case l.Cap > 0 && l.Cap < l.Goal:
		return "missed (memory allows " + times(l.Cap) + ")"
	}
	return "missed"
}

func times(x float64) string { return fmt.Sprintf("%.2f×", x) }

// row is the line in the table.
func (l *Line) row() []string {
	goal, figure, memory := "≥ "+times(l.Goal), "%.1f", ""
	if l.AtMost {
		goal, figure = "≤ "+times(l.Goal), "%.4f s"
	}
	if l.Bandwidth > 0 {
		memory = fmt.Sprintf("%.1f of %.1f GB/s", l.Bandwidth, l.Probe)
	}
	return []string{l.Model, l.Test, fmt.Sprint(l.Threads), fmt.Sprintf(figure, l.Ours), fmt.Sprintf(figure, l.Theirs),
		fmt.Sprintf("%.3f×", l.Ratio), goal, memory, l.verdict()}
}

// head is the table's.
var head = []string{"model", "test", "threads", "ours", "compared", "ratio", "goal", "memory", "verdict"}
