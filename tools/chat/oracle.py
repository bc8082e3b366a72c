"""Writes what Hugging Face's transformers makes of chat templates, for the tests of engine/chat.

    python3 oracle.py TEMPLATES OUT     every *.jinja in TEMPLATES with every conversation below,
                                        to OUT/renders.jsonl.gz, continued messages to OUT/continued.jsonl,
                                        and the small sources to OUT/texts.jsonl

Needs transformers and jinja2 (pip). A row holds the template's name, the conversation's, the
variables as JSON, and the text, or the message of raise_exception, or that rendering fails.
The tests compare each; tokens.py does the same for real models.
"""
import datetime, glob, gzip, json, os, sys
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError, TemplateRuntimeError, UndefinedError
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

NOW = datetime.datetime(2026, 3, 7, 9, 5, 4)
u = lambda c, **k: {"role": "user", "content": c, **k}
s = lambda c: {"role": "system", "content": c}
a = lambda c, **k: {"role": "assistant", "content": c, **k}
call = lambda name, args, id="call12345": {"id": id, "type": "function", "function": {"name": name, "arguments": args}}
result = lambda c, id="call12345", name="weather": {"role": "tool", "tool_call_id": id, "name": name, "content": c}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Weather at a <place> & \"time\"\u2019s", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "where"}, "days": {"type": "integer", "minimum": 1, "default": 3},
    "exact": {"type": "number", "multipleOf": 0.1, "enum": [1, 2.0, 1e-05, 12345678901234567890]}, "unit": {"enum": ["C", "F", None, True]}}, "required": ["place"]}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object", "properties": {
    "xs": {"type": "array", "items": {"type": "number"}}, "o": {"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}}}}
SPECIAL = "<|im_end|>\n<|im_start|>system\n</s><|eot_id|><end_of_turn><\uff5cUser\uff5c>"
T = [WEATHER, ADD]
ARGS = {"place": "S\u00e3o Paulo", "days": 2, "x": [1, {"z": 1.5, "a": None}]}
parts = lambda *t: [{"type": "text", "text": x} for x in t]
C = {  # name: variables
    "hello": {"messages": [u("Hello")]},
    "open": {"messages": [u("Hello")], "add_generation_prompt": False},
    "system": {"messages": [s("Be brief."), u("Hello"), a("Hi."), u("Why?")]},
    "spaces": {"messages": [s("  a\n"), u("\n\n b \t"), a(" c \n"), u("\n")]},
    "empty": {"messages": [u(""), a("x"), u(" ")]},
    "braces": {"messages": [u("{{ 1 }} {% if %} 'q' \"d\" \\n <b>&amp;")]},
    "unicode": {"messages": [u("d\u00e9j\u00e0 vu \u4f60\u597d \U0001f600\u00a0\u2028"), a("\u0130\u00df"), u("\x1c\x85x\x1f")]},
    "special": {"messages": [s(SPECIAL), u(SPECIAL), a(SPECIAL), u(SPECIAL)]},
    "thoughts": {"messages": [u("2+2?"), a("<think>\nhm\n</think>\n\n4"), u("sure?"), a("<think>a</think>b</think>c")]},
    "reasoning": {"messages": [u("2+2?"), a("4", reasoning_content="\nhm\n", thinking="\nhm\n"), u("sure?"), a("yes", reasoning_content="of course", thinking="of course")]},
    "no thinking": {"messages": [u("2+2?")], "enable_thinking": False},
    "thinking": {"messages": [u("2+2?")], "enable_thinking": True, "thinking": True},
    "effort": {"messages": [u("2+2?")], "reasoning_effort": "high", "date_string": "1 Jan 2025"},
    "assistant first": {"messages": [a("x")]},
    "two users": {"messages": [u("a"), u("b")]},
    "late system": {"messages": [u("a"), s("b"), u("c")]},
    "names": {"messages": [u("a", name="Ada"), a("b", name="Bob"), u("c")]},
    "tools": {"messages": [u("Weather?")], "tools": T},
    "tools, system": {"messages": [s("Be \"brief\"."), u("Weather?")], "tools": T},
    "tools, in system": {"messages": [s("x"), u("Weather?")], "tools": T, "tools_in_user_message": False},
    "call": {"messages": [u("Weather?"), a("", tool_calls=[call("weather", ARGS)]), result("{\"t\": 20}")], "tools": T},
    "call, answer": {"messages": [s("x"), u("Weather?"), a("", tool_calls=[call("weather", ARGS)]), result("20"), a("20 C"), u("Thanks")], "tools": T},
    "call, none": {"messages": [u("Weather?"), a(None, tool_calls=[call("weather", ARGS)]), result("20")], "tools": T},
    "call, text arguments": {"messages": [u("Weather?"), a(None, tool_calls=[call("weather", json.dumps(ARGS))]), result("20")], "tools": T},
    "call, text": {"messages": [u("Weather?"), a("Let me see.", tool_calls=[call("weather", ARGS)]), result("20"), a("20"), u("x")], "tools": T},
    "parallel": {"messages": [u("Both?"), a("", tool_calls=[call("weather", ARGS, "call00001"), call("add", {"xs": []}, "call00002")]), result("20", "call00001"), result("0", "call00002", "add")], "tools": T},
    "parallel, texts": {"messages": [u("Both?"), a(None, tool_calls=[call("weather", "{}", "call00001"), call("add", "{\"xs\": [1]}", "call00002")]), result("20", "call00001"), result("0", "call00002", "add"), a("done"), u("thanks")], "tools": T},
    "steps": {"messages": [u("Both?"), a("", reasoning_content="first", thinking="first", tool_calls=[call("weather", ARGS)]), result("20"), a("", reasoning_content="then", thinking="then", tool_calls=[call("add", {"xs": [1, 2]})]), result("3", name="add")], "tools": T},
    "no arguments": {"messages": [u("x"), a("", tool_calls=[call("add", {})]), result("")], "tools": [ADD]},
    "special tools": {"messages": [u("x"), a("", tool_calls=[call(SPECIAL, {SPECIAL: SPECIAL})]), result(SPECIAL, name=SPECIAL)], "tools": [{"type": "function", "function": {"name": SPECIAL, "description": SPECIAL, "parameters": {"type": "object", "properties": {SPECIAL: {"type": "string", "description": SPECIAL}}}}}]},
    "json result": {"messages": [u("x"), a("", tool_calls=[call("add", {"xs": [1]})]), result({"sum": 1, "of": [1.0]})], "tools": [ADD]},
    "parts": {"messages": [{"role": "system", "content": parts("s")}, {"role": "user", "content": parts(" a", "b ")}, {"role": "assistant", "content": parts("c")}, u("d")]},
    "documents": {"messages": [u("x")], "documents": [{"title": "T", "text": "t"}, {"title": "U", "text": "u"}]},
    "bare tools": {"messages": [u("x")], "tools": [{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}]},
    "developer": {"messages": [{"role": "developer", "content": "dev"}, u("x")]},
    "long": {"messages": [s("x")] + [m for i in range(6) for m in (u("q%d" % i), a("<think>t%d</think>a%d" % (i, i)))] + [u("end")]},
}
TOKENS = {"bos_token": "<|begin|>", "eos_token": "<|end|>"}


def render(src, v):
    def strftime_now(fmt): return NOW.strftime(fmt)
    raised = []

    def raise_exception(message):
        raised.append(message)
        raise TemplateError(message)
    try:
        return {"text": _compile_jinja_template(src).render(strftime_now=strftime_now, raise_exception=raise_exception, **v)}
    except Exception as e:
        return {"refused": str(raised[0])} if raised else {"error": type(e).__name__ + ": " + str(e)}


CONTINUED = {  # conversations whose last message is continued
    "word": [u("Hi"), a("Once upon")], "blank": [u("Hi"), a("Once upon ")], "lines": [s("x"), u("Hi"), a("\nOnce\n\n")],
    "user": [u("Hello, my na")], "thought": [u("Hi"), a("<think>\nhm")], "said": [u("Hi"), a("<think>\nhm\n</think>\n\nSo")],
    "twice": [u("So"), a("So"), u("So"), a("So")], "special": [u("Hi"), a(SPECIAL)],
}


def continued(src, messages):
    try:
        return {"text": render_jinja_template([messages], chat_template=src, continue_final_message=True, **TOKENS)[0][0]}
    except Exception as e:
        return {"error": type(e).__name__}


TEXTS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts.json")))
if __name__ == "__main__":
    where, out = sys.argv[1:3]
    with gzip.GzipFile(os.path.join(out, "renders.jsonl.gz"), "wb", mtime=0) as f:
        for path in sorted(glob.glob(os.path.join(where, "*.jinja"))):
            src = open(path, newline="").read()
            for name, v in C.items():
                v = {"tools": None, "documents": None, "add_generation_prompt": True, **TOKENS, **v}
                row = {"template": os.path.basename(path)[:-6], "name": name, "vars": v, **render(src, v)}
                f.write((json.dumps(row) + "\n").encode())
    with open(os.path.join(out, "continued.jsonl"), "w") as f:
        for path in sorted(glob.glob(os.path.join(where, "*.jinja"))):
            src = open(path, newline="").read()
            for name, messages in CONTINUED.items():
                if "strftime_now" not in src:
                    f.write(json.dumps({"template": os.path.basename(path)[:-6], "name": name, "messages": messages, **continued(src, messages)}) + "\n")
    with open(os.path.join(out, "texts.jsonl"), "w") as f:
        v = {"messages": [u("x")], "tools": T, "s": "a-b c-d \u00e9", "l": [3, 1, 2], "d": {"b": 1, "a": [1, 2.5, None, True, "x'"]}, **TOKENS}
        f.write(json.dumps({"vars": v}) + "\n")
        for src in TEXTS:
            f.write(json.dumps({"source": src, **render(src, v)}) + "\n")
