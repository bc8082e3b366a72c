package chaos

import (
	"math/rand/v2"
	"testing"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/model"
	"baton/engine/recall"
	"baton/engine/tokenizer"
	"baton/serve/leg"
)

const (
	flipFacts    = 40 // a prompt of about twenty blocks in five chunks
	flipChunk    = "64"
	flipsPerSlot = 4  // flips in every block
	flipsMin     = 64 // of the whole test
)

// conversation is a prompt of the embedded model whose right answer is certain.
type conversation struct {
	tokens     []int32
	answer     string
	blockBytes int
}

func newConversation(t *testing.T, r *rand.Rand, facts int) conversation {
	t.Helper()
	f := recall.Open()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := chat.FromGGUF(f, tok)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(f, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p := recall.NewPrompt(r, facts)
	turn := p.AskOne(r)
	tokens, err := tpl.Encode(p.Messages(turn.Question))
	if err != nil {
		t.Fatal(err)
	}
	return conversation{tokens, turn.Answer, m.Manifest().BlockBytes}
}

// pair is a prefill and a decode worker started by hand, with a flipper on their link.
type pair struct {
	prefill, decode *byHand
	wire            *flipper
}

// ask sends both legs of a room and returns how they ended.
func (p *pair) ask(t *testing.T, r leg.Request) (pre *leg.End, dec *side) {
	t.Helper()
	first := p.prefill.openLeg(t, r)
	r.Link = p.wire.addr()
	dec = p.decode.openLeg(t, r)
	dec.ended(t)
	return first.ended(t), dec
}

// One byte of KV that changes on the way, in whatever block, is caught by that block's sum: the
// chunk is refused, the room ends as transfer_failed without a token, and the same question in
// a new room gets the right answer (X3, X4, X5).
func TestAByteFlippedInFlightIsCaught(t *testing.T) {
	p := &pair{
		prefill: startWorker(t, secret, "--role", "prefill", "--chunk-tokens", flipChunk, "--canary"),
		// Every block has to travel each time; prefill finds them, and sends them with the sums it kept.
		decode: startWorker(t, secret, "--role", "decode", "--canary", "--no-prefix-cache"),
	}
	p.wire = newFlipper(t, p.prefill.Link)
	r := rand.New(rand.NewPCG(17, 64))
	c := newConversation(t, r, flipFacts)
	blocks := room.BlocksFor(len(c.tokens))
	wrong := func() float64 { return p.decode.metric(t, "baton_transfer_chunks_total", "wrong_sum") }
	flips := 0
	for block := range blocks {
		for range flipsPerSlot {
			q := request(c.tokens, "")
			at, mask := block*c.blockBytes+r.IntN(c.blockBytes), byte(1)<<r.IntN(8)
			if flips%flipsPerSlot == 0 {
				mask = byte(1 + r.IntN(255)) // several bits of the byte
			}
			p.wire.arm(q.Room, at, mask)
			before := wrong()
			pre, dec := p.ask(t, q)
			flips++
			if n := p.wire.flipped(); n != 1 {
				t.Fatalf("block %d: %d bytes were flipped, want 1: the test shows nothing", block, n)
			}
			dec.failedWith(t, room.TransferFailed, "wrong sum")
			if dec.text != "" || len(dec.ids) != 0 {
				t.Errorf("byte %d of block %d: the room said %q on wrong KV", at%c.blockBytes, block, dec.text)
			}
			if pre.Cause != room.TransferFailed && pre.Outcome != room.Success {
				t.Errorf("byte %d of block %d: prefill ended with %v (%s), want its work done or decode's cause", at%c.blockBytes, block, pre.Result(), pre.Message)
			}
			if after := wrong(); after != before+1 {
				t.Errorf("byte %d of block %d: wrong sums went from %v to %v, want one more", at%c.blockBytes, block, before, after)
			}
			if _, again := p.ask(t, request(c.tokens, "")); again.end.Outcome != room.Success || again.text != c.answer {
				t.Errorf("the same question again: %v, %q, want %q", again.end.Result(), again.text, c.answer)
			}
		}
	}
	if flips < flipsMin {
		t.Errorf("%d flips, want at least %d", flips, flipsMin)
	}
	for _, w := range []*byHand{p.prefill, p.decode} {
		w.awaitEmpty(t)
		for _, name := range []string{"baton_canary_hits_total", "baton_link_ends_total"} {
			if n := w.metric(t, name, ""); n != 0 {
				t.Errorf("%s of the %s worker is %v, want 0: a wrong block costs its room alone", name, w.Role, n)
			}
		}
	}
	t.Logf("%d flips in %d blocks of %d bytes", flips, blocks, c.blockBytes)
}
