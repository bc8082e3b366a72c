package model

import (
	"strings"
	"testing"

	"baton/engine/weights/gguf"
)

// rename, set and reshape are damages to a file.
func rename(from, to string) func(*draft) {
	return func(d *draft) {
		for i := range d.tensors {
			if d.tensors[i].name == from {
				d.tensors[i].name = to
			}
		}
	}
}

func set(key string, v any) func(*draft) { return func(d *draft) { d.set(key, v) } }

func reshape(name string, dims ...uint64) func(*draft) {
	return func(d *draft) {
		n := uint64(1)
		for _, x := range dims {
			n *= x
		}
		for i := range d.tensors {
			if d.tensors[i].name == name {
				d.tensors[i].dims, d.tensors[i].data = dims, make([]byte, 4*n)
			}
		}
	}
}

// TestDamagedFilesAreRefusedByName: each row damages one thing, and the error must name it (M4).
func TestDamagedFilesAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*draft)
		want []string // all in the message
	}{
		{"another architecture", set("general.architecture", "mamba"), []string{"mamba", "llama", "gemma3"}},
		{"no architecture", set("general.architecture", nil), []string{"general.architecture"}},
		{"no layers", set("llama.block_count", uint32(0)), []string{"llama.block_count", "0", "1 to 512"}},
		{"too many layers", set("llama.block_count", uint32(100000)), []string{"llama.block_count", "100000"}},
		{"layers missing", set("llama.block_count", nil), []string{"llama.block_count", "missing"}},
		{"kv heads by layer", set("llama.attention.head_count_kv", []uint32{2, 2, 2}), []string{"head_count_kv", "array of u32"}},
		{"heads not a multiple", set("llama.attention.head_count_kv", uint32(4)), []string{"6", "4", "multiple"}},
		{"width of nothing", set("llama.embedding_length", uint64(1<<40)), []string{"llama.embedding_length"}},
		{"value width", set("llama.attention.value_length", uint32(64)), []string{"value_length", "64", "32"}},
		{"odd rotation", set("llama.rope.dimension_count", uint32(34)), []string{"rope.dimension_count", "34"}},
		{"longrope", set("llama.rope.scaling.type", "longrope"), []string{"longrope", "linear", "yarn"}},
		{"yarn of nothing", set("llama.rope.scaling.type", "yarn"), []string{"original_context_length", "missing"}},
		{"factor without yarn", set("llama.rope.scaling.attn_factor", float32(2)), []string{"attn_factor", "wrong answers"}},
		{"sees the future", set("llama.attention.causal", false), []string{"causal"}},
		{"scaled scores", set("llama.attention.scale", float32(0.5)), []string{"llama.attention.scale", "wrong answers"}},
		{"soft caps", set("llama.final_logit_softcapping", float32(30)), []string{"softcapping"}},
		{"experts", set("llama.expert_count", uint32(8)), []string{"expert", "8"}},
		{"negative epsilon", set("llama.attention.layer_norm_rms_epsilon", float32(-1)), []string{"epsilon", "-1"}},
		{"vocabulary", set("llama.vocab_size", uint32(204)), []string{"204", "203"}},
		{"tensor missing", rename("blk.1.ffn_up.weight", "blk.1.ffn_ub.weight"), []string{"blk.1.ffn_up.weight", "missing", "[64 160]"}},
		{"tensor too many", func(d *draft) {
			d.tensors = append(d.tensors, part{"blk.0.attn_sinks.weight", gguf.F32, []uint64{192}, make([]byte, 768)})
		}, []string{"blk.0.attn_sinks.weight", "llama"}},
		{"a bias in one layer", func(d *draft) {
			d.tensors = append(d.tensors, part{"blk.0.attn_q.bias", gguf.F32, []uint64{192}, make([]byte, 768)})
		}, []string{"blk.0.attn_k.bias", "missing"}},
		{"wrong shape", reshape("blk.2.attn_k.weight", 64, 32), []string{"blk.2.attn_k.weight", "[64 32]", "[64 64]"}},
		{"turned shape", reshape("blk.0.ffn_down.weight", 64, 160), []string{"blk.0.ffn_down.weight", "[64 160]", "[160 64]"}},
		{"unreadable type", func(d *draft) {
			for i := range d.tensors {
				if d.tensors[i].name == "blk.0.attn_q.weight" {
					d.tensors[i].typ, d.tensors[i].data = 24 /* I8 */, make([]byte, 64*192)
				}
			}
		}, []string{"I8", "Q8_0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := odd.build(t, 1, c.edit)
			_, err := Open(f, Options{Threads: 1})
			if err == nil {
				t.Fatal("opened")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if !strings.HasPrefix(err.Error(), "model: ") {
				t.Errorf("error %q has no package prefix", err)
			}
		})
	}
}

func TestHeadWidthIsNotWidthOverHeads(t *testing.T) {
	c, err := ReadConfig(odd.build(t, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.HeadDim != 32 || c.QWidth() != 192 || c.KVWidth() != 64 || c.Width != 64 || !c.Tied {
		t.Fatalf("%+v", c)
	}
	c, err = ReadConfig(shape{layers: 1, width: 64, ffn: 64, heads: 4, kvHeads: 4, headDim: 16, vocab: 32}.build(t, 1, func(d *draft) {
		d.set("llama.attention.key_length", nil)
		d.set("llama.attention.value_length", nil)
		d.set("llama.attention.head_count_kv", nil)
	}))
	if err != nil || c.HeadDim != 16 || c.KVHeads != 4 || c.RopeDim != 16 || c.Tied {
		t.Fatalf("%+v, %v", c, err)
	}
}

// TestWindowEndsTheContext: files of these architectures do not say which layers slide, but up to
// the window's width it makes no difference.
func TestWindowEndsTheContext(t *testing.T) {
	for window, want := range map[uint32]int{0: 512, 100: 100, 4096: 512} {
		c, err := ReadConfig(odd.build(t, 1, func(d *draft) { d.set("llama.attention.sliding_window", window) }))
		if err != nil || c.Context != want {
			t.Errorf("window %d: context %d, %v; want %d", window, c.Context, err, want)
		}
	}
}

// TestManifestsDifferByEveryField (M5): a layout that differs in anything is another.
func TestManifestsDifferByEveryField(t *testing.T) {
	m := Manifest{1, []Pool{{"k", "paged", 3, 2, 32, 16, 128, "bf16"}, {"v", "paged", 3, 2, 32, 16, 128, "bf16"}}, 16, 12288, Interleaved, "a", "b", "c"}
	o, err := ParseManifest(m.Bytes())
	if err != nil || !m.Equal(o) {
		t.Fatalf("%s is not %s: %v", o.Bytes(), m.Bytes(), err)
	}
	for name, change := range map[string]func(*Manifest){
		"version": func(m *Manifest) { m.Version++ }, "block_tokens": func(m *Manifest) { m.BlockTokens++ },
		"block_bytes": func(m *Manifest) { m.BlockBytes++ }, "rope": func(m *Manifest) { m.Rope = "half" },
		"kernels": func(m *Manifest) { m.Kernels = "x" }, "model": func(m *Manifest) { m.Model = "" }, "tokenizer": func(m *Manifest) { m.Tokenizer = "" },
		"pools":         func(m *Manifest) { m.Pools = m.Pools[:1] },
		"pools[1].name": func(m *Manifest) { m.Pools[1].Name = "x" }, "pools[1].kind": func(m *Manifest) { m.Pools[1].Kind = "x" },
		"pools[1].layers": func(m *Manifest) { m.Pools[1].Layers++ }, "pools[0].heads": func(m *Manifest) { m.Pools[0].Heads++ },
		"pools[0].head_dim": func(m *Manifest) { m.Pools[0].HeadDim++ }, "pools[0].rows": func(m *Manifest) { m.Pools[0].Rows++ },
		"pools[0].row_bytes": func(m *Manifest) { m.Pools[0].RowBytes++ }, "pools[0].dtype": func(m *Manifest) { m.Pools[0].DType = "f32" },
	} {
		o, _ := ParseManifest(m.Bytes())
		change(&o)
		if d := m.Diff(o); !strings.HasPrefix(d, name+": ") || m.Equal(o) {
			t.Errorf("%s changed: Diff says %q", name, d)
		}
	}
	if _, err := ParseManifest(make([]byte, manifestBytesMax+1)); err == nil {
		t.Error("a manifest without bound was read")
	}
}
