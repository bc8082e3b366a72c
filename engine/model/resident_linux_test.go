package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
)

// residentMost is what a loaded model may take, over its weights and its pool.
const residentMost = 1.15

// resident returns how much memory this process takes, mapped files included.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// heavy is large enough that what a process takes anyway does not count.
var heavy = shape{layers: 2, width: 1024, ffn: 4096, heads: 16, kvHeads: 4, headDim: 64, vocab: 20000, tied: true}

// TestAFileTakesNoMemoryBesideItsWeights: after load, and after a step that has looked up many
// tokens, the file that the weights came from is not resident as well.
func TestAFileTakesNoMemoryBesideItsWeights(t *testing.T) {
	for _, row := range []struct {
		name string
		open func(t *testing.T) weights.File
	}{
		{"GGUF, one matrix for embedding and output", func(t *testing.T) weights.File { return heavyGGUF(t, true, gguf.Q8_0) }},
		{"GGUF, embeddings in the file", func(t *testing.T) weights.File { return heavyGGUF(t, false, gguf.Q4_0) }},
		{"safetensors in BF16", heavyDir},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := row.open(t)
			defer f.Close()
			debug.FreeOSMemory()
			before := resident(t)
			m, err := Open(f, Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			const blocks = 512
			kv := pool(t, m, blocks)
			defer kv.Close()
			clear(kv.Area()) // now it is resident
			allowed := residentMost * float64(m.StepBytes()+int64(len(kv.Area())))
			got := resident(t) - before
			t.Logf("%d MB for %d MB of weights and %d MB of pool", got>>20, m.StepBytes()>>20, len(kv.Area())>>20)
			if float64(got) > allowed {
				t.Errorf("%d bytes are resident, at most %.0f are allowed", got, allowed)
			}
			ids := make([]int32, 2048)
			for i := range ids {
				ids[i] = int32(i * 7919 % m.Config().Rows)
			}
			for at := 0; at < len(ids); at += 512 { // no logits: the step's own memory is not what is measured
				for i, id := range ids[at:][:512] {
					x := make([]float32, m.Config().Width)
					m.weights.embed.row(x, int(id))
					if i == 0 && slices.Max(x) == slices.Min(x) {
						t.Error("an embedding of equal numbers")
					}
				}
			}
			debug.FreeOSMemory()
			if got := resident(t) - before; float64(got) > allowed {
				t.Errorf("%d bytes are resident behind %d lookups, at most %.0f are allowed", got, len(ids), allowed)
			}
		})
	}
}

func heavyGGUF(t *testing.T, tied bool, typ gguf.Type) weights.File {
	s := heavy
	s.tied, s.fallback = tied, typ
	path := filepath.Join(t.TempDir(), "heavy.gguf")
	s.build(t, 9, func(d *draft) {
		if err := os.WriteFile(path, d.bytes(t), 0o600); err != nil {
			t.Fatal(err)
		}
		d.tensors = d.tensors[:1] // what build returns is not needed
	})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func heavyDir(t *testing.T) weights.File {
	dir := t.TempDir()
	config := fmt.Sprintf(`{"model_type":"qwen3","num_hidden_layers":%d,"hidden_size":%d,"intermediate_size":%d,"num_attention_heads":%d,
		"num_key_value_heads":%d,"head_dim":%d,"vocab_size":%d,"max_position_embeddings":512,"tie_word_embeddings":true}`,
		heavy.layers, heavy.width, heavy.ffn, heavy.heads, heavy.kvHeads, heavy.headDim, heavy.vocab)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Arch: "qwen3", Layers: heavy.layers, Width: heavy.width, FFN: heavy.ffn, Heads: heavy.heads, KVHeads: heavy.kvHeads,
		HeadDim: heavy.headDim, Rows: heavy.vocab, Tied: true, QKNorm: true, hf: true}
	header, at := map[string]any{}, uint64(0)
	for _, s := range c.specs() {
		n := uint64(2)
		shape := slices.Clone(s.dims)
		slices.Reverse(shape)
		for _, d := range shape {
			n *= d
		}
		header[c.fileName(s.name)] = map[string]any{"dtype": "BF16", "shape": shape, "data_offsets": []uint64{at, at + n}}
		at += n
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...))
	r := rand.New(rand.NewPCG(3, 3))
	piece := make([]byte, 1<<20)
	for i := range piece { // numbers near 1
		piece[i] = byte(r.Uint32())
		if i%2 == 1 {
			piece[i] = 0x3f
		}
	}
	for ; at > 0; at -= min(at, uint64(len(piece))) {
		w.Write(piece[:min(at, uint64(len(piece)))])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
