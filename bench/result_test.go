package bench

import (
	"errors"
	"strings"
	"testing"
)

var printed = []Result{
	{Model: "recall", Test: "pp512", Threads: 1, Batch: 1, TokensPerSecond: 12345.67, Spread: 3.456, Bytes: 3 << 19},
	{Model: "recall", Test: "tg64", Threads: 2, Batch: 8, TokensPerSecond: 987.654, Bytes: 5 << 29},
}

// The names of the fields are what scripts read.
func TestJSONIsAListOfPlainRows(t *testing.T) {
	const want = `[
  {
    "model": "recall",
    "test": "pp512",
    "threads": 1,
    "batch": 1,
    "tokens_per_second": 12345.67
  },
  {
    "model": "recall",
    "test": "tg64",
    "threads": 2,
    "batch": 8,
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
	const want = "| model  |     size | threads | batch |  test |             t/s |\n" +
		"| ------ | -------: | ------: | ----: | ----: | --------------: |\n" +
		"| recall | 1.50 MiB |       1 |     1 | pp512 | 12345.67 ± 3.46 |\n" +
		"| recall | 2.50 GiB |       2 |     8 |  tg64 |   987.65 ± 0.00 |\n"
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
