package store_test

import (
	"testing"

	"baton/engine/weights/store"
	"baton/proof/realmodel"
)

// TestSmolLM2IsTheFileThatWasPinned checks the model in the cache, if it is there.
func TestSmolLM2IsTheFileThatWasPinned(t *testing.T) {
	f := realmodel.SmolLM2(t)
	if bytes, sum := store.Pinned(); f.Size() != bytes || f.SHA256() != sum {
		t.Errorf("%d bytes, %s; want %d, %s", f.Size(), f.SHA256(), bytes, sum)
	}
}
