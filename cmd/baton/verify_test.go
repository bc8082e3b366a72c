package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/proof/fleetsim"
)

func TestVerifyTellsItsExitCodes(t *testing.T) {
	for _, args := range []string{"--seeds 0", "--seeds -3", "--prefill 0", "--decode 17", "--gateways x", "--nonsense", "1000", "--seed -1"} {
		err := run(append([]string{"verify"}, strings.Fields(args)...)...)
		exit, ok := errors.AsType[exitError](err)
		if !ok || exit.code != exitUsage || exit.err == nil || !strings.Contains(exit.err.Error(), strings.TrimPrefix(strings.Fields(args)[0], "--")) {
			t.Errorf("verify %s: %v, want exit code %d and the value named", args, err, exitUsage)
		}
	}
}

func TestVerifyHolds(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := verify(verifyPlan{seeds: 4, first: 9, sizes: fleetsim.DefaultSizes(), asJSON: true}, out, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	var v verified
	if err := json.Unmarshal(text, &v); err != nil || v.Seeds != 4 || v.First != 9 || v.Events == 0 || v.Broken != nil || len(v.Sights) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
}

// TestVerifyShowsWhatIsBroken: the property, the chart, and the command that shows it again.
func TestVerifyShowsWhatIsBroken(t *testing.T) {
	r := fleetsim.Report{Seeds: 3, Events: 1000, Failed: &fleetsim.Result{Seed: 12, Broken: "TERM", Reason: "request 3 never ends",
		Chart: "   1 0.1s  request 3 arrives\n", Choices: 2, Drawn: 90, Replay: "baton verify --seeds 1 --seed 12"}}
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return writeVerified(b, verifyPlan{seeds: 5}, &r, 2) },
		func(b *bytes.Buffer) error { return writeVerifiedJSON(b, verifyPlan{seeds: 5}, &r, 2) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"TERM", "request 3 never ends", "request 3 arrives", "baton verify --seeds 1 --seed 12"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
}

// TestVerifyTellsBrokenFromVacuousFromRare: each has words and an exit code of its own.
func TestVerifyTellsBrokenFromVacuousFromRare(t *testing.T) {
	for _, row := range []struct {
		report fleetsim.Report
		code   int
		words  string
	}{
		{fleetsim.Report{Seeds: 3, Failed: &fleetsim.Result{Broken: "TERM"}, Missing: []string{"a retry"}}, exitBroken, "TERM IS BROKEN"},
		{fleetsim.Report{Seeds: 3, Missing: []string{"a retry"}}, exitVacuous, "no promise is broken, but the seeds prove nothing, they never met:\n  a retry\n"},
		{fleetsim.Report{Seeds: 3, Unseen: []string{"a retry"}}, 0, "all promises hold; met 0 of the 0 things that have to be survived\nwarning: seeds of these sizes could have met, and never did:\n  a retry\n"},
		{fleetsim.Report{Seeds: 2, Unseen: []string{"a retry"}}, exitStop, "ended early, after 2 of 3 seeds"},
		{fleetsim.Report{Seeds: 3}, 0, "all promises hold"},
	} {
		var b bytes.Buffer
		p := verifyPlan{seeds: 3}
		if err := writeVerified(&b, p, &row.report, 1); err != nil || !strings.Contains(b.String(), row.words) {
			t.Errorf("%v: %s\nwant %q", err, b.String(), row.words)
		}
		exit, failed := errors.AsType[exitError](p.judge(&row.report))
		if failed != (row.code != 0) || exit.code != row.code {
			t.Errorf("%q: exit code %d, want %d", row.words, exit.code, row.code)
		}
		if help := newVerify().Long; row.code != 0 && !strings.Contains(strings.Join(strings.Fields(help), " "), fmt.Sprintf(" %d ", row.code)) {
			t.Errorf("--help does not name exit code %d", row.code)
		}
		b.Reset()
		if err := writeVerifiedJSON(&b, p, &row.report, 1); err != nil || strings.Contains(b.String(), `"unseen"`) != (row.report.Unseen != nil) {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}
