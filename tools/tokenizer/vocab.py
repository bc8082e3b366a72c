"""Writes the vocabulary of a tokenizer.json as a GGUF file without tensors, as llama.cpp's
conversion does, and the corpus in the form that llamacpp.c reads.

    python vocab.py PRE tokenizer.json vocab.gguf       PRE: qwen2, llama-bpe, deepseek-v3, …, or spm
    python vocab.py corpus corpus.jsonl corpus.bin

With spm the scores are the negative ids: SentencePiece numbers the tokens that it merges in the
order of their scores.
"""
import json
import struct
import sys

import gguf

from expected import looks_special

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def vocab(pre, path, out):
    with open(path) as f:
        j = json.load(f)
    names = {i: n for n, i in j["model"]["vocab"].items()}
    types = {i: BYTE if pre == "spm" and len(n) == 6 and n.startswith("<0x") else NORMAL for i, n in names.items()}
    for a in j["added_tokens"]:
        i, n = a["id"], a["content"]
        if a["special"] or looks_special(n):
            types[i] = UNKNOWN if n == j["model"].get("unk_token") else CONTROL
        else:
            types[i], n = USER, n.replace("▁", " ")
        names[i] = n
    size = max(names) + 1
    w = gguf.GGUFWriter(out, "llama")
    w.add_tokenizer_model("llama" if pre == "spm" else "gpt2")
    w.add_token_list([names.get(i, f"[PAD{i}]") for i in range(size)])
    w.add_token_types([types.get(i, UNUSED) for i in range(size)])
    if pre == "spm":
        w.add_token_scores([-float(i) for i in range(size)])
        w.add_add_space_prefix(False)
    else:
        w.add_tokenizer_pre(pre)
        w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]])
    w.add_add_bos_token(False)
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_context_length(128)
    w.add_embedding_length(32)
    w.add_block_count(1)
    w.add_feed_forward_length(32)
    w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(size)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def corpus(path, out):
    with open(path) as f, open(out, "wb") as o:
        for line in f:
            b = json.loads(line).encode()
            o.write(struct.pack("<I", len(b)) + b)


if __name__ == "__main__":
    if sys.argv[1] == "corpus":
        corpus(*sys.argv[2:])
    else:
        vocab(*sys.argv[1:])
