"""Writes dequant.jsonl: random blocks of every type that is decoded, and their values by gguf-py."""
import json, numpy as np, gguf
from gguf import GGMLQuantizationType as T

rng = np.random.default_rng(1)
# per type: bytes of a block, offsets of its half-precision scales
BLOCKS = {"F32": (128, []), "F16": (64, range(0, 64, 2)), "BF16": (64, []), "Q8_0": (34, [0]), "Q4_0": (18, [0]), "Q4_1": (20, [0, 2]), "Q5_0": (22, [0]),
          "Q5_1": (24, [0, 2]), "Q4_K": (144, [0, 2]), "Q5_K": (176, [0, 2]), "Q6_K": (210, [208])}
with open("dequant.jsonl", "w") as f:
    for name, (size, scales) in BLOCKS.items():
        b = rng.integers(0, 256, (2, size), dtype=np.uint8)
        for at in scales:
            b[:, at:at + 2] = rng.normal(0, 0.1, (2, 1)).astype(np.float16).view(np.uint8)
        if name in ("F32", "BF16"):
            x = rng.normal(0, 1, (2, 32)).astype(np.float32).view(np.uint32)
            b = (x.view(np.uint8) if name == "F32" else (x >> 16).astype(np.uint16).view(np.uint8)).reshape(2, -1)
        y = np.ascontiguousarray(gguf.quants.dequantize(b, T[name]), dtype=np.float32)
        f.write(json.dumps({"type": name, "stored": b.tobytes().hex(), "float32": y.tobytes().hex()}) + "\n")
