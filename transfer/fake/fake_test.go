package fake_test

import (
	"testing"

	"baton/transfer"
	"baton/transfer/conformance"
	"baton/transfer/fake"
)

func TestConformance(t *testing.T) {
	w := fake.New(fake.Faults{})
	conformance.Run(t, conformance.Factory{
		Listen: func(id transfer.Identity, mem transfer.Memory, h transfer.PrefillHandler) (transfer.Prefill, error) {
			p, err := w.Listen(id, mem, h)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		Decode: func(id transfer.Identity, mem transfer.Memory, h transfer.DecodeHandler) transfer.Decode {
			return w.Decode(id, mem, h)
		},
	})
}
