"""Writes what the Python package `tokenizers` makes of the corpus of engine/tokenizer.

    go test ./engine/tokenizer -corpus /tmp/corpus.jsonl
    python expected.py /tmp/corpus.jsonl engine/tokenizer/testdata/expected NAME=TOKENIZER.JSON ...

For each tokenizer NAME.sums: the sum of the corpus, a number n, then for each n-th text a sum of
its ids with special tokens and without (FNV-1a, 32 bits, over little-endian numbers, with -1 between).

    python expected.py /tmp/corpus.jsonl engine/tokenizer/testdata/expected engine/tokenizer/testdata/small

does it for the small tokenizers there, and for every eighth text with their variants (cut.py).

Special tokens are left as text by the library's encode_special_tokens. Tokens that only look
special are special here (looksSpecial in engine/tokenizer/added.go).
"""
import glob
import gzip
import json
import os
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


def load(j):
    for a in j["added_tokens"]:
        a["special"] = a["special"] or looks_special(a["content"])
    return Tokenizer.from_str(json.dumps(j))


def write(path, texts, every, t):
    sums = [fnv(b"".join(x.encode() + b"\xff" for x in texts)), every]
    texts = texts[::every]
    special = [t.encode(x, add_special_tokens=False).ids for x in texts]
    t.encode_special_tokens = True
    plain = [t.encode(x, add_special_tokens=False).ids for x in texts]
    for a, b in zip(special, plain):
        ids = a + [-1] + b
        sums.append(fnv(struct.pack(f"<{len(ids)}i", *ids)))
    with open(path + ".sums", "wb") as f:
        f.write(struct.pack(f"<{len(sums)}I", *sums))
    print(path, t.get_vocab_size(), "tokens", sum(map(len, special)), "ids")


def vary(j, change):
    """Parts of a tokenizer.json are replaced, those of its model one by one."""
    model = {**j["model"], **change.get("model", {})}
    if change.get("without_bytes"):
        model["vocab"] = {n: i for n, i in model["vocab"].items() if not (len(n) == 6 and n.startswith("<0x"))}
    return {**{k: change.get(k, v) for k, v in j.items()}, "model": model}


def main(corpus, out, *tokenizers):
    with open(corpus) as f:
        texts = [json.loads(line) for line in f]
    for arg in tokenizers:
        if "=" in arg:
            name, path = arg.split("=", 1)
            with open(path) as f:
                write(f"{out}/{name}", texts, 1, load(json.load(f)))
            continue
        base = {}
        for path in sorted(glob.glob(arg + "/*.json.gz")):
            name = os.path.basename(path).removesuffix(".json.gz")
            with gzip.open(path) as f:
                base[name] = json.load(f)
            write(f"{out}/{name}", texts, 1, load(base[name]))
        with open(arg + "/variants.json") as f:
            for v in json.load(f):
                write(f"{out}/{v['name']}", texts, 8, load(vary(json.loads(json.dumps(base[v["of"]])), v["change"])))


if __name__ == "__main__":
    main(*sys.argv[1:])
