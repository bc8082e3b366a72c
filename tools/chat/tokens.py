"""Writes the tokens that transformers makes of conversations with the tokenizer and template of a
model directory, for TestTokensAreThoseOfTransformers of engine/chat.

    python3 tokens.py DIR...    each with tokenizer.json and tokenizer_config.json; writes DIR/tokens.jsonl.gz
    MODELS=DIR:DIR... go test ./engine/chat -run Tokens -v

Needs transformers, tokenizers and jinja2 (pip). Conversations that name special tokens are left
out: there the two differ on purpose.
"""
import gzip, json, os, sys
from tokenizers import Tokenizer
from oracle import C, render

for where in sys.argv[1:]:
    config = json.load(open(os.path.join(where, "tokenizer_config.json")))
    text = lambda t: t["content"] if isinstance(t, dict) else t
    names = {k: text(config[k]) for k in ("bos_token", "eos_token", "pad_token", "unk_token") if config.get(k)}
    tok = Tokenizer.from_file(os.path.join(where, "tokenizer.json"))
    with gzip.open(os.path.join(where, "tokens.jsonl.gz"), "wt") as f:
        for name, v in C.items():
            if "special" in name:
                continue
            v = {"tools": None, "documents": None, "add_generation_prompt": True, **names, **v}
            r = render(config["chat_template"], v)
            if "text" in r:
                f.write(json.dumps({"name": name, "vars": v, "ids": tok.encode(r["text"], add_special_tokens=False).ids}) + "\n")
