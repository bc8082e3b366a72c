"""Writes renders.jsonl and texts.jsonl: what Jinja2 with Hugging Face's settings makes of the
templates here, and of small ones that are about white space, strings and loops.

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
TEXTS = [
    "{% if true %}{{ 'a' }}\nb{% endif %}", "{%- if true -%}{{ 'a' }} b{% endif %}", "x\n  {{ 'a' }}{% if true %}b{% endif %}", "a\n", "a\n\n",
    "{% raw %} {{- x -}} {% endraw %}|", "{% raw -%} {{- x -}} {%- endraw %}|", "{% raw %}\n a\n{% endraw %}\nb", "{%raw%}a{%endraw%}", "{% raw %}{% endraw -%}\n x",
    "  {% raw %}  {% endraw %}  \n{{ 'a' }}", "{%- raw -%}\n{% if %}\n  {%- endraw -%}\nx",
    "{{ 'a\\'b\\n\\\\n\\x41\\u00e9\\t' }}", "{{ '\\u00e9\\q' }}", "{{ '\\101\\U0001f600\\xe9\\r|\\v|' }}", "{{ \"it's \\\"it\\\"\" }}",
    "{%+ if true +%}\n a{% endif %}", "a\r\nb\rc", "{% if true %}\r\n a{% endif %}", "a{# c #}\nb", "  {# c #}\nb", "  {#- c -#}\n\n b", "{# '}} #}\n {#+ c +#}\nx",
    "x  {%+ if true %}y{% endif %}", "a  \n  {{ 'b' }}", "{% if true %}  \n  x{% endif %}", "{% if true %}\n\n  x{% endif %}", "\n{%- if true %}a{% endif %}",
    "a\x0b {%- if true %}b{% endif %}", "{{ 'a' -}}\n b", "{{ '%}' }}x{{ \"}}\" }}", "  {% if true %}a{% endif %}  {% if true %}b{% endif %}", "\u00a0{%- if true %}b{% endif %}",
    "{% if true %}{# c #}\n\nx{% endif %}", "{{ {'a': {'b': 7}}['a']['b'] }}", "{% set d = {'a': {'b': 7}} %}\n{{ d.a.b }}",
    "{% for i in range(3) %}\n  {{ i }},\n{% endfor %}\nend", "{% for i in range(3) if i != 1 %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for i in [] %}x{% else %}none\n{% endfor %}", "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% macro m(x) %}\n  <{{ x }}>\n{% endmacro %}\n{{ m('a') }}{{ m('b') }}", "{%- macro m(x, y='z') -%} {{ x }}{{ y }} {%- endmacro -%}\n{{ m('a') }}",
    "{% set x %}\n a \n{% endset %}\n[{{ x }}]", "{% if 1 < 2 %}\n{{ messages[0].role }}\n{% else %}\nno\n{% endif %}\n", "{ {{ '{' }} {%- if true %} } {% endif %}%}", "{{'a'}}\n{{'b'}}\n\n",
]
with open("texts.jsonl", "w") as f:
    for src in TEXTS:
        f.write(json.dumps({"source": src, "text": env.from_string(src).render(messages=m(("user", "x")))}) + "\n")
