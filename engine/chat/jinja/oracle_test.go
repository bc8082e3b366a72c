package jinja

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	plenty = Budget{Steps: 1 << 24, Bytes: 64 << 20}
	then   = func() time.Time { return time.Date(2026, 3, 7, 9, 5, 4, 0, time.UTC) }
)

// row is what tools/chat/oracle.py writes: one of Text, Refused (raise_exception), Error.
type row struct {
	Template, Name, Source string
	Vars                   json.RawMessage
	Text                   *string
	Refused, Error         string
}

func rows(t testing.TB, path string) (out []row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sc *bufio.Scanner
	if filepath.Ext(path) == ".gz" {
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		sc = bufio.NewScanner(z)
	} else {
		sc = bufio.NewScanner(f)
	}
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// judge compares a rendering with the oracle's.
func (r row) judge(t *testing.T, name, got string, err error) bool {
	t.Helper()
	var raised *Raised
	switch {
	case r.Text != nil && (err != nil || got != *r.Text):
		t.Errorf("%s:\n got %q, %v\nwant %q", name, got, err, *r.Text)
	case r.Refused != "" && (!errors.As(err, &raised) || raised.Message != r.Refused):
		t.Errorf("%s: %q, %v, want it refused: %s", name, got, err, r.Refused)
	case r.Error != "" && (err == nil || errors.As(err, &raised)):
		t.Errorf("%s: %q, %v, want the error %s", name, got, err, r.Error)
	default:
		return true
	}
	return false
}

func object(t testing.TB, raw []byte) *Dict {
	t.Helper()
	v, err := FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

// compared renders every row of a folder's renders.jsonl.gz.
func compared(t *testing.T, dir string) (same, all int) {
	sources := map[string]*Template{}
	for _, r := range rows(t, dir+"/renders.jsonl.gz") {
		tpl := sources[r.Template]
		if tpl == nil {
			src, err := os.ReadFile(dir + "/" + r.Template + ".jinja")
			if err != nil {
				t.Fatal(err)
			}
			if tpl, err = Parse(string(src)); err == nil {
				sources[r.Template] = tpl
			} else if r.Error == "" {
				t.Errorf("%s: %v", r.Template, err)
			}
		}
		all++
		if tpl == nil {
			continue
		}
		got, err := tpl.Render(object(t, r.Vars), plenty, then)
		if r.judge(t, r.Template+", "+r.Name, got.String(), err) {
			same++
		}
	}
	return same, all
}

// TestRendersAreThoseOfTransformers holds J3 for whole templates.
func TestRendersAreThoseOfTransformers(t *testing.T) {
	if same, all := compared(t, "../testdata"); all < 200 {
		t.Errorf("%d of %d rows are the same, expected are at least 200 rows", same, all)
	}
}

// textVars are what the small sources see; the same stand in tools/chat/oracle.py.
func textVars(t testing.TB, messages []row) *Dict {
	return object(t, messages[0].Vars)
}

// TestTextIsThatOfJinja2 holds J3 piece by piece: white space around tags, raw text, strings,
// operators, loops, macros, filters, tests, methods and errors.
func TestTextIsThatOfJinja2(t *testing.T) {
	all := rows(t, "../testdata/texts.jsonl")
	for _, r := range all[1:] {
		tpl, err := Parse(r.Source)
		var got Text
		if err == nil {
			got, err = tpl.Render(textVars(t, all), plenty, then)
		}
		r.judge(t, r.Source, got.String(), err)
	}
	if len(all) < 100 {
		t.Errorf("only %d texts", len(all))
	}
}
