package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine/weights"
	"baton/engine/weights/safetensors"
)

// dirWith makes a directory with that config.json and one small tensor.
func dirWith(t *testing.T, config string) *safetensors.Dir {
	t.Helper()
	dir := t.TempDir()
	header := `{"model.embed_tokens.weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+"\x00\x00"...)
	for name, s := range map[string]string{"config.json": config, "model.safetensors": string(b)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// with is a config.json with fields replaced; nil leaves one out.
func with(t *testing.T, config string, fields map[string]any) string {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range fields {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Configs as published, but for fields that no reader here looks at.
const (
	llama32 = `{"architectures":["LlamaForCausalLM"],"attention_bias":false,"bos_token_id":128000,"eos_token_id":[128001,128008,128009],
		"head_dim":64,"hidden_act":"silu","hidden_size":2048,"intermediate_size":8192,"max_position_embeddings":131072,"mlp_bias":false,
		"model_type":"llama","num_attention_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,"rms_norm_eps":1e-05,
		"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},
		"rope_theta":500000.0,"tie_word_embeddings":true,"torch_dtype":"bfloat16","vocab_size":128256}`
	qwen25 = `{"architectures":["Qwen2ForCausalLM"],"hidden_act":"silu","hidden_size":896,"intermediate_size":4864,"max_position_embeddings":32768,
		"max_window_layers":21,"model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,
		"rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"use_sliding_window":false,"vocab_size":151936}`
	qwen3 = `{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"intermediate_size":3072,
		"max_position_embeddings":40960,"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,"num_key_value_heads":8,
		"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,"tie_word_embeddings":true,"use_sliding_window":false,"vocab_size":151936}`
	gemma270 = `{"_sliding_window_pattern":6,"architectures":["Gemma3ForCausalLM"],"attention_bias":false,"attn_logit_softcapping":null,
		"final_logit_softcapping":null,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh","hidden_size":640,"intermediate_size":2048,
		"layer_types":["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention",
		"sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention",
		"sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"],
		"max_position_embeddings":32768,"model_type":"gemma3_text","num_attention_heads":4,"num_hidden_layers":18,"num_key_value_heads":1,
		"query_pre_attn_scalar":256,"rms_norm_eps":1e-06,"rope_local_base_freq":10000.0,"rope_scaling":null,"rope_theta":1000000.0,
		"sliding_window":512,"use_bidirectional_attention":false,"vocab_size":262144}`
)

func TestPublishedConfigsAreRead(t *testing.T) {
	c, err := ReadConfig(dirWith(t, llama32))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Llama3{32, 1, 4, 8192}); c.Angles.Llama3 != want || c.Angles.Base != 500000 || c.HeadDim != 64 || c.Rows != 128256 || !c.Tied || c.QKVBias || c.QKNorm || c.RopeStyle != Half || c.Sliding != nil {
		t.Errorf("Llama 3.2: %+v", c)
	}
	if c, err = ReadConfig(dirWith(t, qwen25)); err != nil {
		t.Fatal(err)
	}
	if !c.QKVBias || c.OutBias || c.QKNorm || c.HeadDim != 64 || c.Sliding != nil || c.Context != 32768 || c.Angles != (Angles{Base: 1e6, Scale: 1}) {
		t.Errorf("Qwen2.5: %+v", c)
	}
	if c, err = ReadConfig(dirWith(t, qwen3)); err != nil {
		t.Fatal(err)
	}
	if c.QKVBias || !c.QKNorm || c.HeadDim != 128 || c.QWidth() != 2048 || c.Context != 40960 {
		t.Errorf("Qwen3: %+v", c)
	}
	if c, err = ReadConfig(dirWith(t, gemma270)); err != nil {
		t.Fatal(err)
	}
	full := []int{}
	for l, s := range c.Sliding {
		if !s {
			full = append(full, l)
		}
	}
	if !slices.Equal(full, []int{5, 11, 17}) || c.Window != 512 || c.Angles.Base != 1e6 || c.Local.Base != 10000 || c.AttnScale != 1.0/16 ||
		c.NormShift != 1 || c.EmbedScale != 25.25 || !c.Tied || !c.GELU || !c.PostNorms || !c.QKNorm || c.AttnCap != 0 || c.LogitCap != 0 {
		t.Errorf("Gemma 3: %+v", c)
	}
	old, err := ReadConfig(dirWith(t, with(t, gemma270, map[string]any{"layer_types": nil, "_sliding_window_pattern": nil, "sliding_window_pattern": 6})))
	if err != nil || !slices.Equal(old.Sliding, c.Sliding) {
		t.Errorf("Gemma 3 by its pattern: %v, %v", old.Sliding, err)
	}
}

func TestScalingIsReadOnlyWhenAskedFor(t *testing.T) {
	yarn := map[string]any{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
	c, err := ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"rope_scaling": yarn})))
	if err != nil || c.Angles.YaRN.Factor != 4 || c.Context != 131072 || math.Abs(c.Angles.magnitude()-(0.1*math.Log(4)+1)) > 1e-15 {
		t.Errorf("%+v, %v", c, err)
	}
	yarn["attention_factor"], yarn["truncate"], yarn["beta_fast"] = 1.5, false, 16
	c, err = ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"rope_scaling": yarn})))
	if y := c.Angles.YaRN; err != nil || y.Magnitude != 1.5 || !y.Exact || y.Fast != 16 || y.Slow != 1 {
		t.Errorf("%+v, %v", y, err)
	}
	c, err = ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"use_sliding_window": true, "sliding_window": 100})))
	if err != nil || c.Window != 100 || !slices.Equal(c.Sliding[20:22], []bool{false, true}) {
		t.Errorf("windows from layer 21 on: %v, %v", c.Sliding, err)
	}
	c, err = ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"use_sliding_window": true, "sliding_window": 100, "max_window_layers": 24})))
	if err != nil || c.Window != 0 || c.Sliding != nil {
		t.Errorf("windows in no layer: %v, %v", c.Sliding, err)
	}
	c, err = ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"use_sliding_window": true, "sliding_window": 100, "max_window_layers": 0})))
	if err != nil || c.Window != 100 || len(c.Sliding) != c.Layers || slices.Contains(c.Sliding, false) {
		t.Errorf("windows in all layers: %v, %v", c.Sliding, err)
	}
	for _, bad := range []int{-1, layersMax + 1} {
		if _, err = ReadConfig(dirWith(t, with(t, qwen25, map[string]any{"use_sliding_window": true, "sliding_window": 100, "max_window_layers": bad}))); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("max_window_layers is %d", bad)) {
			t.Errorf("%d layers without a window: %v", bad, err)
		}
	}
}

// TestBadConfigsAreRefusedByField: each row spoils one field, and the error must name it.
func TestBadConfigsAreRefusedByField(t *testing.T) {
	rope := func(more map[string]any) map[string]any {
		m := map[string]any{"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
		for k, v := range more {
			m[k] = v
		}
		return map[string]any{"rope_scaling": m}
	}
	for name, row := range map[string]struct {
		fields map[string]any
		want   []string
	}{
		"another type":    {map[string]any{"model_type": "mamba"}, []string{`model_type "mamba"`, "gemma3_text, llama, qwen2, qwen3"}},
		"multimodal":      {map[string]any{"model_type": "gemma3"}, []string{`"gemma3"`}},
		"another head":    {map[string]any{"architectures": []string{"LlamaForSequenceClassification"}}, []string{"LlamaForSequenceClassification", "LlamaForCausalLM"}},
		"quantised":       {map[string]any{"quantization_config": map[string]any{"bits": 4}}, []string{"quantization_config", "bf16"}},
		"future":          {map[string]any{"use_bidirectional_attention": true}, []string{"use_bidirectional_attention"}},
		"no layers":       {map[string]any{"num_hidden_layers": nil}, []string{"num_hidden_layers is missing"}},
		"too many layers": {map[string]any{"num_hidden_layers": 100000}, []string{"num_hidden_layers is 100000", "1 to 512"}},
		"zero heads":      {map[string]any{"num_attention_heads": 0}, []string{"num_attention_heads is 0"}},
		"kv heads":        {map[string]any{"num_key_value_heads": 7}, []string{"num_attention_heads 32", "num_key_value_heads 7"}},
		"width":           {map[string]any{"hidden_size": 1 << 40}, []string{"hidden_size is 1099511627776"}},
		"odd width":       {map[string]any{"hidden_size": 2047, "head_dim": nil}, []string{"hidden_size 2047", "head_dim is missing"}},
		"head":            {map[string]any{"head_dim": 40}, []string{"head width is 40"}},
		"ffn":             {map[string]any{"intermediate_size": 8190}, []string{"intermediate_size is 8190", "multiple of 32"}},
		"a text":          {map[string]any{"hidden_size": "2048"}, []string{"hidden_size is a string"}},
		"a fraction":      {map[string]any{"vocab_size": 1.5}, []string{"vocab_size is a number 1.5"}},
		"epsilon":         {map[string]any{"rms_norm_eps": -1}, []string{"rms_norm_eps is -1"}},
		"activation":      {map[string]any{"hidden_act": "relu"}, []string{`hidden_act is "relu"`, "silu"}},
		"theta":           {map[string]any{"rope_theta": 0}, []string{"rope_theta is 0"}},
		"partial":         {map[string]any{"partial_rotary_factor": 0.5}, []string{"partial_rotary_factor is 0.5"}},
		"scaling":         {rope(map[string]any{"rope_type": "longrope"}), []string{`rope_scaling.rope_type "longrope"`, "llama3"}},
		"no factor":       {rope(map[string]any{"factor": nil}), []string{"rope_scaling.factor is missing"}},
		"factor":          {rope(map[string]any{"factor": -8}), []string{"rope_scaling.factor is -8"}},
		"frequencies":     {rope(map[string]any{"high_freq_factor": 1, "low_freq_factor": 4}), []string{"high_freq_factor is 1", "low_freq_factor 4"}},
		"no original":     {rope(map[string]any{"original_max_position_embeddings": nil}), []string{"rope_scaling.original_max_position_embeddings is missing"}},
		"scaling's type":  {map[string]any{"rope_scaling": 3}, []string{"rope_scaling"}},
	} {
		_, err := ReadConfig(dirWith(t, with(t, llama32, row.fields)))
		if err == nil {
			t.Errorf("%s: read", name)
			continue
		}
		for _, w := range append(row.want, "model: ") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", name, err, w)
			}
		}
	}
}

// TestBadConfigsOfGemmaAreRefusedByField: the fields that only a model with windows has.
func TestBadConfigsOfGemmaAreRefusedByField(t *testing.T) {
	for name, row := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"layer types":     {map[string]any{"layer_types": []string{"full_attention"}}, "layer_types has 1 items, want 18"},
		"a layer's type":  {map[string]any{"num_hidden_layers": 1, "layer_types": []string{"chunked_attention"}}, `layer_types[0] is "chunked_attention"`},
		"window":          {map[string]any{"sliding_window": 0}, "sliding_window is 0"},
		"activation":      {map[string]any{"hidden_activation": "gelu"}, `hidden_activation is "gelu"`},
		"query scalar":    {map[string]any{"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0"},
		"cap":             {map[string]any{"final_logit_softcapping": -30}, "final_logit_softcapping is -30"},
		"rope by kind":    {map[string]any{"rope_parameters": map[string]any{"full_attention": map[string]any{"rope_type": "x"}}}, "rope_parameters.full_attention"},
		"pattern":         {map[string]any{"layer_types": nil, "sliding_window_pattern": 0}, "sliding_window_pattern is 0"},
		"no json":         {nil, "config.json: "},
		"local base":      {map[string]any{"rope_local_base_freq": 0}, "rope_local_base_freq is 0"},
		"too long a text": {map[string]any{"model_type": strings.Repeat("x", 1000)}, "model_type"},
	} {
		config := with(t, gemma270, row.fields)
		if row.fields == nil {
			config = "{"
		}
		if _, err := ReadConfig(dirWith(t, config)); err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 300 {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}

// TestPaddingOfAVocabularyIsNotDrawn: rows behind the last token of a GGUF file's vocabulary are
// marked as unused, and have no logits.
func TestPaddingOfAVocabularyIsNotDrawn(t *testing.T) {
	kinds := make([]int32, odd.vocab)
	for i := range kinds {
		kinds[i] = 1
	}
	kinds[100], kinds[201], kinds[202] = tokenUnused, tokenUnused, tokenUnused
	c, err := ReadConfig(odd.build(t, 1, func(d *draft) { d.set("tokenizer.ggml.token_type", kinds) }))
	if err != nil || c.Vocab != 201 || c.Rows != 203 {
		t.Errorf("%d of %d ids can be drawn, %v", c.Vocab, c.Rows, err)
	}
}

// none is a file without tensors.
type none struct{ weights.File }

func (none) Tensor(string) (t weights.Tensor, ok bool) { return t, false }

func FuzzReadConfig(f *testing.F) {
	for _, s := range []string{llama32, qwen25, qwen3, gemma270, `{}`, `{"model_type":"llama","num_hidden_layers":1e3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b, none{})
		if err == nil && (c.Layers > layersMax || c.Rows > vocabMax || c.HeadDim > headDimMax || c.Sliding != nil && len(c.Sliding) != c.Layers) {
			t.Errorf("%+v", c)
		}
	})
}
