package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCommittedAssemblyIsWhatTheGeneratorPrints: nobody edits the output by hand.
func TestCommittedAssemblyIsWhatTheGeneratorPrints(t *testing.T) {
	for name, want := range outputs() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; run go generate in engine/kernel", name)
		}
	}
}
