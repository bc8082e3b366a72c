"""Cuts the tokenizers of real models down to sizes that can be kept with the tests.

    python cut.py DIR engine/tokenizer/testdata/small      DIR: where fetch.sh put them, …/tokenizers

NAME.json.gz has the first merges of NAME and the tokens that they need, numbered anew, and some of
its added tokens. variants.json has what changes them into tokenizers that use what none of
the real ones does.
"""
import gzip
import json
import sys

MERGES = {"qwen3": 1800, "llama3_1": 1800, "deepseek_v3": 1800, "gemma3": 3000}
KEEP = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|repo_name|>",
        "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|python_tag|>", "<|reserved_special_token_7|>", "<bos>", "<eos>", "<pad>", "<unk>", "<mask>",
        "[multimodal]", "<start_of_turn>", "<end_of_turn>", "<unused12>", "<table>", "</table>", "<h1>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>",
        "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜place▁holder▁no▁7｜>", "<｜fim▁hole｜>", "<|EOT|>", "\n\n", "\n\n\n", "\n\n\n\n", "\t\t", "▁▁", "▁▁▁▁"]


def cut(name, j):
    m = j["model"]
    by_id = sorted(m["vocab"], key=m["vocab"].get)
    byte_tokens = [n for n in by_id if len(n) == 6 and n.startswith("<0x")] if m["byte_fallback"] else []
    # Gemma's first merges are runs of one character; the ones after them are of words.
    merges, have = [], set()
    chars = [n for n in by_id if len(n) == 1 and (ord(n) < 0x3000 or ord(n) % 7 == 0)]
    have.update(chars)
    for pair in m["merges"]:
        a, b = pair.split(" ") if isinstance(pair, str) else pair
        if a in have and b in have and a + b in m["vocab"]:
            merges.append(pair)
            have.add(a + b)
            if len(merges) == MERGES[name]:
                break
    names = [n for n in by_id if n in have or n in byte_tokens]
    added = [a for a in j["added_tokens"] if a["content"] in KEEP]
    names += [a["content"] for a in added if a["content"] not in names]
    vocab = {n: i for i, n in enumerate(names)}
    for a in added:
        a["id"] = vocab[a["content"]]
    outside = {a["content"] for a in added if a["content"] not in m["vocab"]}
    post = json.loads(json.dumps(j["post_processor"]))
    for p in post.get("processors", [post]):
        for n, s in p.get("special_tokens", {}).items():
            s["ids"] = [vocab[n]]
    return {**j, "added_tokens": sorted(added, key=lambda a: a["id"]), "post_processor": post,
            "model": {**m, "vocab": {n: i for n, i in vocab.items() if n not in outside}, "merges": merges}}


def variants(small):
    qwen = small["qwen3"]
    def added(j, *more):
        top = 1 + max([*j["model"]["vocab"].values()] + [a["id"] for a in j["added_tokens"]])
        base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        new = [m["content"] for m in more if m["content"] not in j["model"]["vocab"]]
        return j["added_tokens"] + [{**base, "id": j["model"]["vocab"][c] if c not in new else top + new.index(c), **m} for m in more for c in [m["content"]]]
    sequence = lambda *steps: {"type": "Sequence", "pretokenizers": list(steps)}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = lambda pattern, behavior, invert=False: {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    meta = lambda scheme, cut: {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut},
                                "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}]}}
    tekken = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    flags = added(qwen, {"content": "code", "single_word": True}, {"content": "the", "lstrip": True}, {"content": "<t>", "rstrip": True, "lstrip": True, "special": True},
                  {"content": "ha", "rstrip": True}, {"content": "é", "normalized": True}, {"content": "e\u0301s", "normalized": True}, {"content": "ab"}, {"content": "的", "single_word": True, "normalized": True})
    return [
        {"name": "metaspace-first", "of": "gemma3", "change": meta("first", True)},
        {"name": "metaspace-always", "of": "gemma3", "change": meta("always", False)},
        {"name": "metaspace-never", "of": "gemma3", "change": meta("never", True)},
        {"name": "prepend", "of": "gemma3", "change": {"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}},
        {"name": "unknown-fused", "of": "gemma3", "change": {"model": {"byte_fallback": False, "fuse_unk": True}, "without_bytes": True}},
        {"name": "unknown-single", "of": "gemma3", "change": {"model": {"byte_fallback": False, "fuse_unk": False}, "without_bytes": True}},
        {"name": "unknown-none", "of": "gemma3", "change": {"model": {"byte_fallback": False, "unk_token": None}, "without_bytes": True}},
        {"name": "wholes-of-characters", "of": "gemma3", "change": {"model": {"ignore_merges": True}, "pre_tokenizer": split({"String": "▁"}, "MergedWithNext")}},
        {"name": "replace-regex", "of": "gemma3", "change": {"normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"Regex": r"[ \t]{2,}"}, "content": " "}, {"type": "NFC"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}},
        {"name": "added-flags", "of": "qwen3", "change": {"added_tokens": flags}},
        {"name": "gpt2-prefix", "of": "qwen3", "change": {"pre_tokenizer": {**bytes_, "add_prefix_space": True, "use_regex": True}}},
        {"name": "gpt2", "of": "qwen3", "change": {"pre_tokenizer": {**bytes_, "use_regex": True}}},
        {"name": "smollm", "of": "qwen3", "change": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, {**bytes_, "use_regex": True})}},
        {"name": "digits-runs", "of": "qwen3", "change": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, {"type": "Punctuation", "behavior": "Isolated"}, {**bytes_, "use_regex": True})}},
        {"name": "regex-unknown", "of": "qwen3", "change": {"normalizer": None, "pre_tokenizer": sequence(split({"Regex": tekken}, "Isolated"), bytes_)}},
        {"name": "regex-removed-inverted", "of": "qwen3", "change": {"pre_tokenizer": sequence(split(qwen["pre_tokenizer"]["pretokenizers"][0]["pattern"], "Removed", True), bytes_)}},
        {"name": "split-removed", "of": "qwen3", "change": {"pre_tokenizer": sequence(split({"Regex": r"\s+"}, "Removed"), bytes_)}},
        {"name": "split-previous", "of": "qwen3", "change": {"pre_tokenizer": sequence(split({"Regex": r"[a-e ]"}, "MergedWithPrevious"), bytes_)}},
        {"name": "split-next", "of": "qwen3", "change": {"pre_tokenizer": sequence(split({"Regex": r"[a-e ]"}, "MergedWithNext"), bytes_)}},
        {"name": "split-contiguous", "of": "qwen3", "change": {"pre_tokenizer": sequence(split({"Regex": r"[a-e ]"}, "Contiguous"), bytes_)}},
        {"name": "split-inverted", "of": "qwen3", "change": {"pre_tokenizer": sequence(split({"String": "a"}, "MergedWithNext", True), bytes_)}},
        {"name": "white-space", "of": "qwen3", "change": {"pre_tokenizer": sequence({"type": "WhitespaceSplit"}, {"type": "CharDelimiterSplit", "delimiter": "="}, bytes_)}},
    ]


def main(source, out):
    small = {}
    for name in MERGES:
        with open(f"{source}/{name}/tokenizer.json") as f:
            small[name] = cut(name, json.load(f))
        with open(f"{out}/{name}-small.json.gz", "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
            z.write(json.dumps(small[name], ensure_ascii=False, separators=(",", ":")).encode())
    with open(f"{out}/variants.json", "w") as f:
        rows = [json.dumps({**v, "of": v["of"] + "-small"}, ensure_ascii=False) for v in variants(small)]
        f.write("[\n" + ",\n".join(rows) + "\n]\n")


main(*sys.argv[1:])
