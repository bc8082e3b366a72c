"""Writes splits.jsonl and ids.jsonl: what the Python package `tokenizers` makes of hard texts.

../split/testdata/splits.jsonl  the pieces of each pre-tokenizer, as lengths in bytes
ids.jsonl     the token ids of the recall vocabulary (../../../tools/recall/tokenizer.json)
Given the path of SmolLM2-135M-Instruct.Q4_1.gguf as an argument, also smollm2.jsonl, from a
tokenizer built of the vocabulary and the merges in that file.
"""
import json, random, sys
from tokenizers import Tokenizer, Regex, models, pre_tokenizers as pre

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
split = lambda r: pre.Split(Regex(r), "isolated")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
SPLITTERS = {"gpt-2": split(GPT2), "smollm": pre.Sequence([pre.Digits(individual_digits=True), split(GPT2)]),
             "llama-bpe": split(LLAMA3), "qwen2": split(LLAMA3.replace("{1,3}", "")), "deepseek-v3": pre.Sequence([split(r) for r in DEEPSEEK])}

rng = random.Random(7)
TEXTS = ["", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\t", "\r\n", "a", " a", "a ", "  a", "a  b", "a   b", "a\nb", "a\n\nb", "a \n b", "a\n\n  b", "a\t\tb", "1", "12", "123", "1234", "a1", "1a", " 1", "  1", "   12 34",
    "Hello, we can use", "Hello world! 123", "Café déjà vu.", "  multiple   spaces", "don't", "DON'T", "I'm you're he'll we've I'd it's", "I'M YOU'RE HE'LL WE'VE I'D IT'S", "'s", "''s", "' s", "'ss", "'sé", "x's's", "'x", "'", "'r", "'re", "'lL", " 's",
    "!!!", " !!!", "  !!!", "!!! ", "a!b", "a !b", "a! b", "...\n", "...\n\n\nx", "...\r\n\r\nx", " ...\n", "?!\n\n ?!", "\n!", "\t!", "\ta", "\u00a0a", "\u00a0!", "\u3000\u4f60\u597d\u3000", "\u4f60\u597d\uff0c\u4e16\u754c\uff01",
    "\u0441\u043b\u043e\u0432\u043e \u0438 \u0434\u0435\u043b\u043e", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0661\u0662\u0663", "\u0939\u093f\u0928\u094d\u0926\u0940", "e\u0301a\u0308", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467 ok", "\u00bd \u2167 \u00b2", "a\u2028b", "a\u0085b", "x\u200by",
    "def f(x):\n    return x**2  # squared\n\n\nclass A:\n\tpass\n", "{\"a\": [1, 2.5e-3, null]}", "<|im_start|>user\nhi<|im_end|>", "<|end|>", "a<|user|>b", "https://example.com/a_b?c=d&e=1#f", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "_____", "\u200d", "\ufffd", "\x00", "\x7f", "\ufb01", "\u01c5", "\u02b0", "\u2160\u2161", "\u0660\u0661\u0662\u0663", "\u06dd", "\u1f600",
    "'\u017f", "'\u017ft", "it'\u017fa", "a\u0300b", "\u0301", ".caf\u00e9", "..caf\u00e9", " .a", "\x00\x01a", "\x00\x01", "\x00 a", "\u200d\u4e00\u200da", "\u4e00 1", " \u4e00", "  \u304b\u30fc\u4e00x", "\u9fa6\u4e00", "\n\u4e00", " \n1", "\u1c89x", "\ue000\ue001a", "\u20dd.", "\U00010d4512345", "\U00011de5x"]
PARTS = [" ", "  ", "\n", "\r", "\t", "\u00a0", "\u3000", "\u2003", "a", "B", "the", "code", "\u00e9", "\u00df", "\u4f60", "\u0416", "\u0301", "1", "42", "\u0663", "\u00bd", "'", "'s", "'LL", "'re", ".", "!", "-", "_", "\u2014", "\u20ac", "\U0001f600", "\U0001f1e9", "\u200d", "<", "|", ">", "<|end|>"]
TEXTS += ["".join(rng.choice(PARTS) for _ in range(rng.randint(2, 14))) for _ in range(200)]


def lines(name, rows):
    with open(name, "w") as f:
        for r in rows: f.write(json.dumps(r) + "\n")


def pieces(name):
    for t in TEXTS:
        yield {"pre": name, "text": t, "bytes": [len(p.encode()) for p, _ in SPLITTERS[name].pre_tokenize_str(t)]}


lines("../split/testdata/splits.jsonl", [r for n in SPLITTERS for r in pieces(n)])
t = Tokenizer.from_file("../../../tools/recall/tokenizer.json")
LONG = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(3000)), "the" * 700, " " * 400, "\U0001f600" * 200, "ab" * 33 + "\u00e9" * 40]
# special tokens are written into the text there and are not to be found: encode without them
plain = Tokenizer(t.model); plain.pre_tokenizer = t.pre_tokenizer
lines("ids.jsonl", [{"text": x, "plain": plain.encode(x).ids, "special": t.encode(x).ids} for x in TEXTS + LONG])
if len(sys.argv) > 1:
    import gguf
    f = gguf.GGUFReader(sys.argv[1]).fields
    strings = lambda k: [bytes(f[k].parts[i]).decode() for i in f[k].data]
    s = Tokenizer(models.BPE({x: i for i, x in enumerate(strings("tokenizer.ggml.tokens"))}, [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]))
    s.pre_tokenizer = pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)])
    lines("smollm2.jsonl", [{"text": x, "plain": s.encode(x).ids} for x in TEXTS + LONG])
