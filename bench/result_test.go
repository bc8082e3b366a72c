package bench

import (
	"errors"
	"strings"
	"testing"
)

var printed = []Result{{"recall", "pp512", 1, 12345.67}, {"recall", "tg64", 2, 987.654}}

// The names of the fields are what scripts read.
func TestJSONIsAListOfPlainRows(t *testing.T) {
	const want = `[
  {
    "model": "recall",
    "test": "pp512",
    "threads": 1,
    "tokens_per_second": 12345.67
  },
  {
    "model": "recall",
    "test": "tg64",
    "threads": 2,
    "tokens_per_second": 987.654
  }
]
`
	var b strings.Builder
	if err := WriteJSON(&b, printed); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := WriteJSON(&b, nil); err != nil || b.String() != "[]\n" {
		t.Errorf("no results: %v, %q; want an empty list", err, b.String())
	}
}

func TestTheTableLinesUp(t *testing.T) {
	const want = "MODEL   TEST   THREADS  TOKENS/S\n" +
		"recall  pp512  1        12345.7\n" +
		"recall  tg64   2        987.7\n"
	var b strings.Builder
	if err := WriteTable(&b, printed); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAWriterThatFailsIsReported(t *testing.T) {
	for _, err := range []error{WriteJSON(full{}, printed), WriteTable(full{}, printed)} {
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("error %v, want the writer's", err)
		}
	}
}
