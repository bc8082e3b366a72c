package bench

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// The real engine with the embedded model, a few tokens: figures come, in order, above zero.
func TestTheEngineIsMeasured(t *testing.T) {
	p := Plan{Model: "recall", Tests: []string{"pp4", "tg2x2"}, Threads: []int{1}, Repeat: 1}
	var said strings.Builder
	got, err := Engine(t.Context(), p, &said)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Test != "pp4" || got[1].Test != "tg2" || got[1].Batch != 2 {
		t.Fatalf("results %+v", got)
	}
	for _, r := range got {
		if !(r.TokensPerSecond > 0) || r.Model != "recall" || r.Threads != 1 {
			t.Errorf("result %+v", r)
		}
	}
	if !strings.HasPrefix(said.String(), "loading recall\n") {
		t.Errorf("progress %q, want it to begin with the loading", said.String())
	}
}

func TestAModelThatIsNotThereIsNamed(t *testing.T) {
	p := plan()
	p.Model = "/no/such/model.gguf"
	_, err := Engine(t.Context(), p, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `"/no/such/model.gguf"`) || !strings.Contains(err.Error(), "smollm2") {
		t.Errorf("error %v, want the model's name and what is known", err)
	}
}

// A size that fits the form but not the model is the model's to refuse.
func TestATestLongerThanTheContextIsRefused(t *testing.T) {
	p := Plan{Model: "recall", Tests: []string{"pp999999"}, Threads: []int{1}, Repeat: 1}
	if _, err := Engine(t.Context(), p, io.Discard); err == nil || !strings.Contains(err.Error(), "pp999999") {
		t.Errorf("error %v, want one that names pp999999", err)
	}
}

func TestAPlanThatWasStoppedBeforeMeasuresNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Plan{Model: "recall", Tests: []string{"tg2"}, Threads: []int{1}, Repeat: 1}
	if got, err := Engine(ctx, p, io.Discard); len(got) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v; want nothing and the context's error", got, err)
	}
}
