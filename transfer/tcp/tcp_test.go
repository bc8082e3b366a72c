package tcp_test

import (
	"testing"

	"baton/transfer"
	"baton/transfer/conformance"
	"baton/transfer/tcp"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Factory{
		Framed: true,
		Listen: func(id transfer.Identity, mem transfer.Memory, h transfer.PrefillHandler) (transfer.Prefill, error) {
			p, err := tcp.Listen("127.0.0.1:0", id, mem, h)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		Decode: func(id transfer.Identity, mem transfer.Memory, h transfer.DecodeHandler) transfer.Decode {
			return tcp.NewDecode(id, mem, h)
		},
	})
}
