package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/engine/model"
	"baton/engine/weights/gguf"
)

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		line Line
		met  bool
		want string
	}{
		{Line{Ratio: 1.8, Goal: 1.8}, true, "met"},
		{Line{Ratio: 1.7, Goal: 1.8}, false, "missed"},
		{Line{Ratio: 1.2, Goal: 1.7, Cap: 1.25}, false, "missed (memory allows 1.25×)"},
		{Line{Ratio: 1.2, Goal: 1.7, Cap: 1.75}, false, "missed"},
		{Line{Ratio: 0.1, Goal: 0.1, AtMost: true}, true, "met"},
		{Line{Ratio: 0.2, Goal: 0.1, AtMost: true}, false, "missed"},
		{Line{Goal: 0.1, AtMost: true}, false, "missed"}, // nothing was measured
		{Line{Ours: 5, Goal: 1}, false, "missed"},
	} {
		tt.line.judge()
		if got := tt.line.verdict(); got != tt.want || tt.line.Met != tt.met {
			t.Errorf("%+v: %q, want %q", tt.line, got, tt.want)
		}
		if n := len(tt.line.row()); n != len(head) {
			t.Errorf("a row of %d cells under a head of %d", n, len(head))
		}
	}
}

func TestFiguresAreMedians(t *testing.T) {
	f := figures{}
	for _, v := range []float64{5, 1, 9, 7} {
		f.add("x", v)
	}
	if got := f.median("x"); got != 6 {
		t.Errorf("median %g, want 6", got)
	}
	f = figures{"a": {100, 180, 110, 200, 0}, "b": {50, 100, 55, 100}, "none": {0}}
	if got := f.ratio("a", "b"); got != 2 {
		t.Errorf("ratio %g of rounds with 2, 1.8, 2 and 2", got)
	}
	if got := f.ratio("a", "none"); got != 0 {
		t.Errorf("ratio %g to nothing", got)
	}
	m := subject{name: "m", decode: 1.5}
	lines := m.lines(2, figures{"tg64 x1": {100}, "their tg64": {50}, "tg64 x8": {450}, "pp512 x1": {9}, "their pp512": {3}, "probe": {30e9}}, 2e8)
	for i, want := range []float64{3, 2, 4.5} {
		if lines[i].Ratio != want || !lines[i].Met {
			t.Errorf("%s: ratio %g, want %g", lines[i].Test, lines[i].Ratio, want)
		}
	}
	if d := lines[1]; d.Bandwidth != 20 || d.Probe != 30 || d.Cap != 3 {
		t.Errorf("%g of %g GB/s, cap %g; want 20 of 30, 3", d.Bandwidth, d.Probe, d.Cap)
	}
}

// A synthetic file is a model that the engine loads and runs, in every format.
func TestSyntheticFilesAreModels(t *testing.T) {
	small := shape{2, 64, 2, 1, 32, 96, 320, 1e4}
	for name, kind := range synthFormats {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := synthesise(path, small, kind); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer f.Close()
		m, err := model.Open(f, model.Options{Threads: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer m.Close()
		if speed, err := model.Bench(m, "tg4", 1); err != nil || !(speed > 0) {
			t.Errorf("%s: %g tokens/s, %v", name, speed, err)
		}
	}
}

func TestAFileThatCannotBeWrittenIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "m.gguf")
	if err := synthesise(path, shapes["smol"], gguf.Q8_0); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "smol"}, `"smol": want some of smol-q8_0`},
		{[]string{"-threads", "1,x"}, `-threads "1,x"`},
		{[]string{"-threads", "0"}, `-threads "0"`},
		{[]string{"-rounds", "0"}, "-rounds 0"},
		{[]string{"-repeat", "65"}, "-repeat 65"},
		{[]string{"all"}, `"all"`},
	} {
		if _, err := parse(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %s", tt.args, err, tt.want)
		}
	}
	o, err := parse([]string{"-only", "smollm2,smol-bf16", "-threads", "2"})
	if err != nil || !o.wants(subject{name: "smollm2"}) || o.wants(subject{name: "smol-q8_0"}) || len(o.threads) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A command that is missing is named with the remedy; one that fails shows what it said.
func TestCommandsThatFailAreExplained(t *testing.T) {
	p := &place{dir: t.TempDir()}
	if err := p.run(context.Background(), "no-such-command"); err == nil || !strings.Contains(err.Error(), "install it") {
		t.Errorf("error %v, want the remedy", err)
	}
	if err := p.run(context.Background(), "go", "no-such-verb"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("error %v, want what the command said", err)
	}
	p.anchor = filepath.Join(p.dir, "anchor")
	if err := os.WriteFile(p.anchor, []byte("#!/bin/sh\necho pp512 12.5\necho tg64 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := p.theirs(t.Context(), "m", 1, 1, nil)
	if err != nil || got["pp512"] != 12.5 || got["tg64"] != 3 {
		t.Errorf("%v, %v", got, err)
	}
}
