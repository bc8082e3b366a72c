"""Writes what transformers makes of conversations with the tokenizers and templates of real models,
for the tests of engine/chat that need these models.

    python3 tokens.py DIR OUT    DIR/NAME holds tokenizer.json and tokenizer_config.json, as
                                 tools/tokenizer/fetch.sh brings them; writes OUT/models.jsonl.gz

Needs transformers, tokenizers and jinja2 (pip). A row holds the model, the conversation's name (its
variables are those of renders.jsonl.gz), the text, or that it is refused or fails, and the ids.
Conversations that name special tokens have no ids: there the two differ on purpose.
"""
import gzip, json, os, sys
from tokenizers import Tokenizer
from oracle import C, render

where, out = sys.argv[1:3]
with gzip.GzipFile(os.path.join(out, "models.jsonl.gz"), "wb", mtime=0) as f:
    for model in "deepseek_v3", "gemma3", "llama3_1", "qwen3":
        config = json.load(open(os.path.join(where, model, "tokenizer_config.json")))
        text = lambda t: t["content"] if isinstance(t, dict) else t
        names = {k: text(config[k]) for k in ("bos_token", "eos_token", "pad_token", "unk_token") if config.get(k)}
        tok = Tokenizer.from_file(os.path.join(where, model, "tokenizer.json"))
        for name, v in C.items():
            row = {"template": model, "name": name, **render(config["chat_template"], {"tools": None, "documents": None, "add_generation_prompt": True, **names, **v})}
            if "text" in row and "special" not in name:
                row["ids"] = tok.encode(row["text"], add_special_tokens=False).ids
            f.write((json.dumps(row) + "\n").encode())
