package realmodel

import (
	"os"
	"testing"

	"baton/engine/weights/gguf"
	"baton/engine/weights/store"
)

// requireEnv makes a missing model a failure: machines that are said to have the models must not
// skip what needs them.
const requireEnv = "BATON_REQUIRE_MODELS"

// SmolLM2 opens SmolLM2-135M until the end of the test. Without it the test is skipped, or
// fails where the environment variable BATON_REQUIRE_MODELS is 1.
func SmolLM2(t testing.TB) *gguf.File {
	t.Helper()
	src, err := store.Resolve(store.SmolLM2)
	if err == nil {
		var f *gguf.File
		if f, err = src.Open(); err == nil {
			t.Cleanup(func() { f.Close() })
			return f
		}
	}
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("the model is not on this machine: %v", err)
	}
	t.Skipf("the model is not on this machine: %v", err)
	return nil
}
