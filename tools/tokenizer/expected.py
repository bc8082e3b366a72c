"""Writes what the Python package `tokenizers` makes of the corpus of engine/tokenizer.

    go test ./engine/tokenizer -corpus /tmp/corpus.jsonl
    python expected.py /tmp/corpus.jsonl engine/tokenizer/testdata/expected NAME=TOKENIZER.JSON ...

For each tokenizer NAME.sums: the sum of the corpus, then a sum per text of its ids with special
tokens and without (FNV-1a, 32 bits, over little-endian numbers, with -1 between). A NAME that ends in
"-raw" is the same tokenizer without its normalizer, as a GGUF file has it.

Special tokens are left as text by the library's encode_special_tokens. Tokens that only look
special are special here (looksSpecial in engine/tokenizer/added.go).
"""
import json
import struct
import sys

from tokenizers import Tokenizer


def looks_special(name):
    forms = (("<|", "|>"), ("<｜", "｜>"), ("<unused", ">"))
    return any(name.startswith(a) and name.endswith(b) and len(name) >= len(a) + len(b) for a, b in forms) or name in ("<pad>", "<mask>", "<2mass>", "[@BOS@]")


def fnv(data, h=0x811C9DC5):
    for b in data:
        h = (h ^ b) * 0x01000193 & 0xFFFFFFFF
    return h


def load(path, raw):
    with open(path) as f:
        j = json.load(f)
    for a in j["added_tokens"]:
        a["special"] = a["special"] or looks_special(a["content"])
    if raw:
        j["normalizer"] = None
    return Tokenizer.from_str(json.dumps(j))


def main(corpus, out, *tokenizers):
    with open(corpus) as f:
        texts = [json.loads(line) for line in f]
    whole = fnv(b"".join(t.encode() + b"\xff" for t in texts))
    for arg in tokenizers:
        name, path = arg.split("=", 1)
        t = load(path, name.endswith("-raw"))
        sums = [whole]
        special = [t.encode(x, add_special_tokens=False).ids for x in texts]
        t.encode_special_tokens = True
        plain = [t.encode(x, add_special_tokens=False).ids for x in texts]
        for a, b in zip(special, plain):
            ids = a + [-1] + b
            sums.append(fnv(struct.pack(f"<{len(ids)}i", *ids)))
        with open(f"{out}/{name}.sums", "wb") as f:
            f.write(struct.pack(f"<{len(sums)}I", *sums))
        print(name, t.get_vocab_size(), "tokens", sum(map(len, special)), "ids")


if __name__ == "__main__":
    main(*sys.argv[1:])
