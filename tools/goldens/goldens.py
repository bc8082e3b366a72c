"""Makes tiny models with random weights, one per architecture and rope scaling, and the logits that
Hugging Face transformers computes for them in float32.

    python goldens.py DIR        writes DIR/NAME/{config.json,*.safetensors,golden.json,logits.f32}

engine/model/testdata/goldens was made by it. Weights are rounded to the stored type before the logits
are computed, so that whoever reads the files computes with the same numbers. It needs torch,
transformers 5 and safetensors.
"""

import json
import pathlib
import sys

import torch
import transformers
from transformers import Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config

SMALL = dict(
    hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=88, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None,
    rms_norm_eps=1e-5, tie_word_embeddings=True,
)
PROMPT = 64


def llama(**more):
    return LlamaConfig(**{**SMALL, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, **more})


def rope(kind, theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def gemma(**more):
    return Gemma3TextConfig(**{
        **SMALL, "hidden_size": 96, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": rope("default", 1e6), "sliding_attention": rope("default", 1e4)}, **more})


MODELS = {
    "llama": (llama(tie_word_embeddings=False), torch.bfloat16, "50KB"),
    "llama-bias": (llama(attention_bias=True, mlp_bias=True), torch.float16, None),
    "llama-llama3": (llama(rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                original_max_position_embeddings=64)), torch.bfloat16, None),
    "llama-linear": (llama(rope_parameters=rope("linear", factor=4.0)), torch.bfloat16, None),
    "llama-yarn": (llama(rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=64)), torch.bfloat16, None),
    "qwen2": (Qwen2Config(**SMALL, rope_parameters=rope("default", 1e6)), torch.bfloat16, None),
    "qwen2-window": (Qwen2Config(**SMALL, rope_parameters=rope("default", 1e6), use_sliding_window=True, sliding_window=20,
                                 max_window_layers=1), torch.bfloat16, None),
    "qwen3": (Qwen3Config(**SMALL, head_dim=32, rope_parameters=rope("default", 1e6)), torch.bfloat16, None),
    "gemma3": (gemma(), torch.float32, None),
    "gemma3-caps": (gemma(query_pre_attn_scalar=24, attn_logit_softcapping=3.0, final_logit_softcapping=5.0, rope_parameters={
        "full_attention": rope("linear", 1e6, factor=8.0), "sliding_attention": rope("default", 1e4)}), torch.bfloat16, None),
}


def fill(model, gemma3):
    """Weights that make attention and norms matter: what is left out must show."""
    for name, p in model.named_parameters():
        if name.endswith("norm.weight"):
            p.copy_(torch.randn_like(p) * 0.2 + (0.0 if gemma3 else 1.0))
        elif name.endswith(".bias"):
            p.copy_(torch.randn_like(p) * 0.5)
        elif "embed_tokens" in name:
            p.copy_(torch.randn_like(p) * (0.1 if gemma3 else 1.0))
        else:
            p.copy_(torch.randn_like(p) * 1.5 / p.shape[1] ** 0.5)


@torch.no_grad()
def make(name, config, dtype, shard, out):
    torch.manual_seed(sum(map(ord, name)))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    fill(model, name.startswith("gemma3"))
    for p in model.parameters():  # not model.to(dtype): it rounds the frequencies of rope as well
        p.copy_(p.to(dtype).to(torch.float32))
    for module in model.modules():  # Gemma's constant is kept in the type of the weights, and training did
        if hasattr(module, "scalar_embed_scale"):
            scale = torch.tensor(module.scalar_embed_scale).to(dtype).to(torch.float32)
            module.embed_scale.copy_(scale)
    ids = [(i * i * 7 + i * 13 + 5) % config.vocab_size for i in range(PROMPT)]
    # Gemma 3 has this field, but only Gemma 2 hands it to its attention, which knows it.
    cap = getattr(config, "attn_logit_softcapping", None)
    logits = model(torch.tensor([ids]), use_cache=False, **({"softcap": cap} if cap else {})).logits[0]
    model.to(dtype)
    model.save_pretrained(out, **({"max_shard_size": shard} if shard else {}))
    (out / "generation_config.json").unlink(missing_ok=True)
    (out / "golden.json").write_text(json.dumps({
        "transformers": transformers.__version__, "positions": PROMPT, "vocab": config.vocab_size, "ids": ids}) + "\n")
    (out / "logits.f32").write_bytes(logits.float().contiguous().numpy().astype("<f4").tobytes())
    print(f"{name}: logits within {logits.min():.3f} to {logits.max():.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name, (config, dtype, shard) in MODELS.items():
        out = pathlib.Path(sys.argv[1]) / name
        out.mkdir(parents=True, exist_ok=True)
        make(name, config, dtype, shard, out)
