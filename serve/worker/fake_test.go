package worker

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"baton/core/room"
	"baton/engine/model"
	"baton/engine/recall"
	"baton/engine/tokenizer"
)

// rowBytes is the width of a row of the fake's KV: a block is 16 of them.
const rowBytes = 64

// fake is an engine whose next token is a function of every KV byte of the sequence, as read
// from the blocks of its table: a block that is missing, stale, torn, of another room or in the
// wrong place changes the output. That makes it the oracle of the hand-off.
type fake struct {
	vocab  int
	blocks [][]byte
	steps  atomic.Int64
	tokens atomic.Int64 // computed so far

	mu   sync.Mutex
	gate chan struct{} // guarded by mu; steps wait until it is closed
	held chan struct{} // guarded by mu; closed when a step waits at the gate
	fail error         // guarded by mu; what the next step returns
}

func newFake(vocab, blocks int) *fake {
	f := &fake{vocab: vocab, blocks: make([][]byte, blocks)}
	for i := range f.blocks {
		f.blocks[i] = make([]byte, rowBytes*room.BlockTokens)
	}
	return f
}

func (f *fake) Block(i int32) []byte { return f.blocks[i] }
func (f *fake) Blocks() int          { return len(f.blocks) }
func (f *fake) Close() error         { return nil }

// hold makes steps wait. held is closed when one does; release lets them go.
func (f *fake) hold() (held <-chan struct{}, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.gate, f.held = gate, make(chan struct{})
	return f.held, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.gate == gate {
			f.gate, f.held = nil, nil
		}
		close(gate)
	})
}

func (f *fake) failOnce(err error) {
	f.mu.Lock()
	f.fail = err
	f.mu.Unlock()
}

func (f *fake) Step(items []model.Item) error {
	f.mu.Lock()
	gate, held, fail := f.gate, f.held, f.fail
	f.fail = nil
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-held:
		default:
			close(held)
		}
		<-gate
	}
	f.steps.Add(1)
	if fail != nil {
		return fail
	}
	for i := range items {
		it := &items[i]
		if len(it.Tokens) == 0 || it.Pos+len(it.Tokens) > len(it.Table)*room.BlockTokens {
			return errors.New("fake: an item outside its table")
		}
		f.tokens.Add(int64(len(it.Tokens)))
		for k, t := range it.Tokens {
			f.store(it.Table, it.Pos+k, t)
		}
		if it.Want {
			it.Logits = make([]float32, f.vocab)
			it.Logits[f.next(it.Table, it.Pos+len(it.Tokens))] = 8
		}
	}
	return nil
}

func (f *fake) store(table []int32, pos int, token int32) {
	b := f.blocks[table[pos/room.BlockTokens]]
	if pos%room.BlockTokens == 0 {
		clear(b)
	}
	fillRow(b[pos%room.BlockTokens*rowBytes:][:rowBytes], token, pos)
}

func fillRow(row []byte, token int32, pos int) {
	x := mix(uint64(token)<<32 | uint64(pos+1))
	for i := 0; i < len(row); i += 8 {
		binary.LittleEndian.PutUint64(row[i:], x)
		x = mix(x)
	}
}

func (f *fake) next(table []int32, tokens int) int32 {
	sum := uint64(0)
	for pos := range tokens {
		sum = hashRow(sum, f.blocks[table[pos/room.BlockTokens]][pos%room.BlockTokens*rowBytes:][:rowBytes])
	}
	return int32(sum % uint64(f.vocab))
}

func hashRow(sum uint64, row []byte) uint64 {
	for i := 0; i < len(row); i += 8 {
		sum = mix(sum ^ binary.LittleEndian.Uint64(row[i:]))
	}
	return sum
}

func mix(x uint64) uint64 { // splitmix64
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// oracle returns the n tokens that must follow prompt, computed without blocks.
func oracle(prompt []int32, n, vocab int) []int32 {
	var out []int32
	sum, row := uint64(0), make([]byte, rowBytes)
	pos := 0
	feed := func(t int32) {
		fillRow(row, t, pos)
		sum = hashRow(sum, row)
		pos++
	}
	for _, t := range prompt {
		feed(t)
	}
	for range n {
		t := int32(sum % uint64(vocab))
		out = append(out, t)
		feed(t)
	}
	return out
}

var recallTokenizer = sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
	f := recall.Open()
	return tokenizer.FromGGUF(f)
})

// serveFake returns a served fake; manifest names its layout.
func serveFake(t testing.TB, blocks int, manifest string) (*Served, *fake) {
	t.Helper()
	tok, err := recallTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(tok.Vocab(), blocks)
	return &Served{Engine: f, Tokenizer: tok, Name: "fake", Vocab: tok.Vocab(), Context: blocks * room.BlockTokens, Manifest: []byte(manifest)}, f
}
