"""Writes the tokenizer.json of SmolLM2 from the vocabulary and the merges in its GGUF file.

    python smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf tokenizer.json
"""
import sys

import gguf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

fields = gguf.GGUFReader(sys.argv[1]).fields


def strings(key):
    return [bytes(fields[key].parts[i]).decode() for i in fields[key].data]


names = strings("tokenizer.ggml.tokens")
types = [int(fields["tokenizer.ggml.token_type"].parts[i][0]) for i in fields["tokenizer.ggml.token_type"].data]
t = Tokenizer(models.BPE({x: i for i, x in enumerate(names)}, [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]))
t.add_special_tokens([AddedToken(n, normalized=False, special=True) for n, k in zip(names, types) if k == 3])
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
t.decoder = decoders.ByteLevel()
t.save(sys.argv[2])
