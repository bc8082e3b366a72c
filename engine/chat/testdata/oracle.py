"""Writes renders.jsonl: what Jinja2 with Hugging Face's settings makes of the templates here.

recall.jinja and smollm2.jinja are the templates inside these models; the others are written for
this test and use what the templates of other families use.
"""
import json
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])


def refuse(message): raise TemplateError(message)


env.globals["raise_exception"] = refuse
m = lambda *turns: [{"role": r, "content": c} for r, c in turns]
CONVERSATIONS = {
    "hello": m(("user", "Hello")),
    "system": m(("system", "Be brief."), ("user", "Hello"), ("assistant", "Hi."), ("user", "Why?")),
    "spaces": m(("system", "  a\n"), ("user", "\n\n b \t")),
    "empty": m(("user", ""), ("assistant", "x"), ("user", " ")),
    "braces": m(("user", "{{ 1 }} {% if %} 'q' \"d\" \\n <b>&amp;")),
    "unicode": m(("user", "d\u00e9j\u00e0 vu \u4f60\u597d \U0001f600\u00a0")),
    "thoughts": m(("user", "2+2?"), ("assistant", "<think>\nhm\n</think>\n\n4"), ("user", "sure?")),
    "assistant first": m(("assistant", "x")),
}
with open("renders.jsonl", "w") as f:
    for t in ("recall", "smollm2", "trimming", "alternating", "thinking", "blocks"):
        src = open(t + ".jinja").read()
        for name, msgs in CONVERSATIONS.items():
            row = {"template": t, "name": name, "messages": msgs}
            try: row["text"] = env.from_string(src).render(messages=msgs, add_generation_prompt=True, tools=None, documents=None, bos_token="<|endoftext|>", eos_token="<|end|>")
            except TemplateError as e: row["refused"] = str(e)
            f.write(json.dumps(row) + "\n")
