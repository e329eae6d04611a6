"""Chat templates in Loom and in jinja2, with the settings of transformers.

    templates.py --program build/dev/tests/template_runner [--templates FOLDER ...] [--random N]

Real templates are files *.jinja below the folders; each is rendered in 14 conversations. Loom may
refuse a template only with a message that names the feature ("... is not supported"), at most three
times. Random templates and values come from a generator with a seed. The last line counts.

    templates.py --write tests/text/golden/jinja.json --random 500 --seed 20

writes random templates with the output of jinja2, for tests/jinja.
"""

import argparse
import datetime
import json
import pathlib
import random
import subprocess
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 11, 2, 9, 5, 7)
MOST_REFUSED = 3


class Generation(jinja2.ext.Extension):
    """{% generation %} marks the text of the assistant; rendering prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


def tool(name, description, properties, required):
    return {"type": "function",
            "function": {"name": name, "description": description,
                         "parameters": {"type": "object", "properties": properties,
                                        "required": required}}}


TOOLS = [
    tool("get_weather", "The weather of a city.",
         {"city": {"type": "string", "description": "Its name, \"quoted\" & <plain>"},
          "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
          "days": {"type": "integer", "minimum": 1, "maximum": 14}}, ["city"]),
    tool("search", "Searches.",
         {"query": {"type": "string"},
          "limit": {"type": ["integer", "null"], "description": "At most"},
          "filters": {"type": "object", "properties": {"lang": {"type": "string"},
                      "score": {"type": "number", "minimum": 0.5}}, "required": ["lang"]},
          "tags": {"type": "array", "items": {"type": "string"}}}, ["query", "tags"]),
]


def call(name, arguments, identity="call_abc123XYZ"):
    return {"id": identity, "type": "function",
            "function": {"name": name, "arguments": arguments}}


def conversations():
    """Name and inputs, as programs pass them to transformers.apply_chat_template."""
    user = {"role": "user", "content": "What is the weather in Paris?"}
    system = {"role": "system", "content": "You are brief."}
    hello = {"role": "assistant", "content": "Hello! How can I help?"}
    asks = {"role": "assistant", "content": "",
            "tool_calls": [call("get_weather", {"city": "Paris", "days": 2})]}
    result = {"role": "tool", "tool_call_id": "call_abc123XYZ", "name": "get_weather",
              "content": "{\"temperature\": 21.5}"}
    done = {"role": "assistant", "content": "21.5 degrees."}
    thought = dict(done, reasoning_content="They want the weather.\nSay it.")
    many = {"role": "assistant", "content": "I look.", "tool_calls": [
        call("get_weather", {"city": "Zürich", "unit": "celsius"}, "abcdefgh1"),
        call("search", {"query": "x < y & 'z'", "limit": None, "tags": ["a", "b"],
                        "filters": {"lang": "de", "score": 0.25}}, "abcdefgh2")]}
    results = [dict(result, tool_call_id="abcdefgh1", content="cold"),
               {"role": "tool", "tool_call_id": "abcdefgh2", "name": "search", "content": "[]"}]
    parts = {"role": "user", "content": [{"type": "text", "text": "One. "},
                                         {"type": "text", "text": "Two."}]}
    odd = {"role": "user", "content": "  naïve 漢字 🙂 \u00a0\n\t<|im_end|> {{ x }} "}
    base = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    plain = {"add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>"}
    return [
        ("one user turn", dict(base, messages=[user])),
        ("system and user", dict(base, messages=[system, user])),
        ("several turns", dict(plain, messages=[system, user, hello, odd, done])),
        ("a turn to go on", dict(base, messages=[user, hello, user])),
        ("tools offered", dict(base, messages=[user], tools=TOOLS)),
        ("tools offered with system", dict(base, messages=[system, user], tools=TOOLS,
                                           date_string="26 Jul 2024")),
        ("a call and its result", dict(base, messages=[user, asks, result], tools=TOOLS)),
        ("several calls", dict(plain, messages=[system, user, many] + results + [done],
                               tools=TOOLS)),
        ("a call without content", dict(base, messages=[user, dict(asks, content=None), result])),
        ("reasoning", dict(base, messages=[user, thought, user], enable_thinking=True,
                           thinking=True)),
        ("no thinking", dict(base, messages=[user, thought, user], enable_thinking=False,
                             thinking=False, reasoning_effort="low")),
        ("parts", dict(base, messages=[system, parts, hello, parts])),
        ("variables and documents", dict(base, messages=[user], tools=None, documents=[
            {"title": "A", "text": "a text"}, {"title": "B", "text": "b"}],
            reasoning_effort="high", custom_instructions="Be kind.", tools_in_user_message=False,
            xml_tools=TOOLS, model_identity="I am L.", builtin_tools=["browser", "python"],
            keep_past_thinking=True, preserve_thinking=True)),
        ("reasoning and calls", dict(base, messages=[user, dict(asks, reasoning_content="Look."),
                                                     result, thought, odd], tools=TOOLS)),
    ]


class Loom:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="utf-8")

    def render(self, template, inputs):
        self.process.stdin.write(json.dumps({"template": template, "inputs": inputs}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def jinja(env, template, inputs):
    known = {"tools": None, "documents": None}
    # transformers 5 drops null values.
    messages = [{k: v for k, v in m.items() if v is not None} for m in inputs["messages"]]
    inputs = dict(inputs, messages=messages)
    try:
        return {"text": env.from_string(template).render(**dict(known, **inputs))}
    except Exception as error:  # any error of Python: the template does not render
        return {"error": f"{type(error).__name__}: {error}"}


def same(ours, theirs):
    return ours.get("text") == theirs.get("text")


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{a[max(0, at - 60):at + 60]!r}\n      against {b[max(0, at - 60):at + 60]!r}"


def show(ours, theirs):
    if "text" in ours and "text" in theirs:
        return first_difference(ours["text"], theirs["text"])
    return f"{str(ours)[:300]}\n      against {str(theirs)[:300]}"


def check_real(loom, env, folders):
    """Renderings that are equal, that differ, and templates that Loom refuses."""
    equal = different = 0
    refused, files = set(), []
    for folder in folders:
        files += sorted(pathlib.Path(folder).rglob("*.jinja"))
    for file in files:
        template = file.read_text(encoding="utf-8")
        for name, inputs in conversations():
            ours, theirs = loom.render(template, inputs), jinja(env, template, inputs)
            if same(ours, theirs):
                equal += 1
            elif "is not supported" in ours.get("error", ""):
                refused.add(file.name)
                print(f"refused: {file.name}, {name}: {ours['error']}")
            else:
                different += 1
                print(f"differs: {file.name}, {name}:\n      {show(ours, theirs)}")
    print(f"{len(files)} templates, {equal} renderings equal, {different} different, "
          f"{len(refused)} templates refused by name")
    return equal, different + max(0, len(refused) - MOST_REFUSED)


class Random:
    """Templates whose expressions are mostly well typed, over a few variables."""

    TEXTS = ["", "a", "Hello World", "naïve 漢字", " x\ty ", "a,b,,c", "it's", '"q"', "<&>",
             "12", "-3.5", "tEsT case", "line\nline\n\nend"]

    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, *choices):
        return self.r.choice(choices)

    def literal(self, kind):
        r = self.r
        if kind == "text":
            return "'" + r.choice(self.TEXTS).replace("\\", "\\\\").replace("'", "\\'").replace(
                "\n", "\\n").replace("\t", "\\t") + "'"
        if kind == "int":
            return str(r.choice([0, 1, 2, 3, 5, 7, 10, 100, 12345]))
        if kind == "real":
            return r.choice(["0.5", "1.0", "2.25", "1e3", "0.1", "3.14159", "1e16", "1.5e-7"])
        if kind == "bool":
            return r.choice(["true", "false", "True", "none"])
        if kind == "list":
            inner = r.choice(["text", "int"])
            return "[" + ", ".join(self.literal(inner) for _ in range(r.randint(0, 4))) + "]"
        return "{" + ", ".join(f"'{k}': {self.literal(r.choice(['text', 'int', 'list']))}"
                               for k in r.sample(["a", "b", "items", "c d"], r.randint(0, 3))) + "}"

    def text(self, n):
        e = self.any_of
        return self.pick(
            lambda: f"({e('text', n)} ~ {e('any', n)})",
            lambda: f"({e('text', n)} + {e('text', n)})",
            lambda: f"({e('text', n)})" + self.pick(
                "|upper", "|lower", "|title", "|capitalize", "|trim", "|e", "|string", "|reverse",
                "|urlencode", "|indent", "|indent(2, true)", "|indent('> ', blank=true)",
                "|replace('a', 'bb')", "|truncate(5)", "|truncate(6, true, '..', 0)", "|tojson",
                "|center(12)", "|wordcount|string", "|safe", "|format", "|list|join('-')",
                "|first|default('none')", "|last|default('none')", "|default('d', true)"),
            lambda: f"({e('text', n)})" + self.pick(
                ".strip()", ".upper()", ".title()", ".lstrip('a ')", ".rstrip()", ".swapcase()",
                ".replace('l', '1', 2)", ".split()|join('_')", ".split(',')|string",
                ".rsplit(' ', 1)|tojson", ".split(None, 1)|tojson", ".splitlines()|tojson",
                ".partition(' ')|string", ".rpartition('l')|string", ".zfill(7)", ".center(9, '*')",
                ".ljust(6, '.')", ".rjust(6)", ".removeprefix('a')", ".removesuffix('d')",
                ".capitalize()", ".format(1)", ".find('l')|string", ".count('l')|string",
                ".startswith(('a', 'H'))|string", ".isdigit()|string", ".isalpha()|string",
                ".isupper()|string", ".islower()|string", ".isspace()|string", ".isalnum()|string"),
            lambda: f"({e('any', n)})|tojson" + self.pick(
                "", "(indent=2)", "(ensure_ascii=true)", "(sort_keys=true)", "(indent=1)",
                "(separators=(',', ':'))", "(indent=2, sort_keys=true)"),
            lambda: f"({e('any', n)})|string",
            lambda: f"('%s and %d' % ({e('text', n)}, {e('int', n)}))",
            lambda: f"('%05d|%-4s|%.2f' % ({e('int', n)}, {e('text', n)}, {e('real', n)}))",
            lambda: f"'{{}} {{}}'.format({e('text', n)}, {e('any', n)})",
            lambda: f"({e('list', n)})|join({self.literal('text')})",
            lambda: f"({e('text', n)})[{self.pick('1:', ':-1', '::2', '::-1', '1:3', '-2:')}]",
            lambda: f"({e('text', n)} if {e('bool', n)} else {e('text', n)})",
            lambda: f"({e('text', n)} * {self.pick('0', '1', '2', '3')})",
        )()

    def int(self, n):
        e = self.any_of
        return self.pick(
            lambda: f"({e('int', n)} {self.pick('+', '-', '*', '//', '%')} {e('int', n)})",
            lambda: f"({e('text', n)})|length", lambda: f"({e('list', n)})|length",
            lambda: f"({e('text', n)})|int", lambda: f"({e('text', n)})|int(7)",
            lambda: f"({e('real', n)})|int", lambda: f"(-{e('int', n)})|abs",
            lambda: f"({e('int', n)} ** {self.pick('0', '1', '2')})",
            lambda: f"[{e('int', n)}, {e('int', n)}]|{self.pick('max', 'min', 'sum')}",
        )()

    def real(self, n):
        e = self.any_of
        return self.pick(
            lambda: f"({e('int', n)} / {self.pick('1', '2', '3', '7')})",
            lambda: f"({e('real', n)} {self.pick('+', '-', '*')} {e('int', n)})",
            lambda: f"({e('real', n)})|round({self.pick('0', '1', '2', '3')})",
            lambda: f"({e('real', n)})|round(1, '{self.pick('floor', 'ceil')}')",
            lambda: f"({e('text', n)})|float", lambda: f"({e('real', n)} // 2)",
            lambda: f"({e('real', n)} % 3)",
        )()

    def bool(self, n):
        e = self.any_of
        return self.pick(
            lambda: f"({e('any', n)} == {e('any', n)})",
            lambda: f"({e('any', n)} != {e('any', n)})",
            lambda: f"({e('int', n)} < {e('real', n)} <= {e('int', n)})",
            lambda: f"({e('text', n)} < {e('text', n)})",
            lambda: f"({e('text', n)} in {e('text', n)})",
            lambda: f"({e('int', n)} not in {e('list', n)})",
            lambda: f"(not {e('any', n)})", lambda: f"({e('any', n)} and {e('any', n)})",
            lambda: f"({e('any', n)} or {e('any', n)})",
            lambda: f"({e('any', n)} is {self.pick('', 'not ')}" + self.pick(
                "defined", "none", "string", "number", "integer", "float", "boolean", "mapping",
                "sequence", "iterable", "true", "false", "undefined", "eq(1)", "in([1, 'a'])",
                "sameas(true)") + ")",
            lambda: f"({e('int', n)} is " + self.pick(
                "odd", "even", "divisibleby(3)", "gt 2", "le 5") + ")",
            lambda: f"({e('text', n)} is {self.pick('upper', 'lower')})",
        )()

    def list(self, n):
        e = self.any_of
        return self.pick(
            lambda: f"({e('list', n)})[{self.pick('1:', ':2', '::-1', '-1:')}]",
            lambda: f"({e('list', n)} + {e('list', n)})",
            lambda: f"({e('list', n)})|" + self.pick(
                "reverse|list", "unique|list", "list", "batch(2)|list", "slice(2)|list",
                "select|list", "reject('none')|list", "map('string')|list", "map('upper')|list",
                "select('string')|list"),
            lambda: f"({e('list', n)}|map('string')|sort" + self.pick(
                "", "(reverse=true)", "(case_sensitive=true)") + ")",
            lambda: f"range({self.pick('3', '1, 4', '5, 0, -2')})|list",
            lambda: f"({e('text', n)})|list", lambda: f"({e('dict', n)})|list",
            lambda: f"({e('dict', n)})|items|list", lambda: f"({e('dict', n)}).items()|list",
            lambda: f"({e('dict', n)}).values()|list", lambda: f"({e('dict', n)})|dictsort",
            lambda: "messages|map(attribute='role')|list",
            lambda: "messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list",
            lambda: "messages|rejectattr('name', 'defined')|list",
            lambda: "messages|sort(attribute='content')|map(attribute='role')|list",
            lambda: "messages|groupby('role')|map('first')|list",
            lambda: f"[{e('any', n)}, {e('any', n)}]",
            lambda: f"({e('any', n)}, {e('any', n)})|list",
        )()

    def dict(self, n):
        return self.pick(lambda: f"dict({self.literal('dict')}, x={self.any_of('any', n)})",
                         lambda: f"{{'k': {self.any_of('any', n)}, 'a': 1}}",
                         lambda: "messages[0]", lambda: "messages[-1]")()

    def any_of(self, kind, n):
        if kind == "any":
            kind = self.r.choice(["text", "text", "int", "real", "bool", "list", "dict"])
        if n <= 0 or self.r.random() < 0.25:
            return self.r.choice([self.literal(kind), self.literal(kind)] + {
                "text": ["word", "messages[0].content", "messages[0]['role']", "d.a|string"],
                "int": ["number"], "real": ["real"], "bool": ["flag", "missing is defined"],
                "list": ["items", "d['items']"], "dict": ["d"]}[kind])
        return getattr(self, kind)(n - 1)

    def statement(self, n):
        e, s = self.any_of, self.block
        trim = lambda: self.pick("", "", "-")
        open_, close = "{%" + trim() + " ", " " + trim() + "%}"
        return self.pick(
            lambda: "{{" + trim() + " " + e("any", 3) + " " + trim() + "}}",
            lambda: f"{open_}if {e('bool', 2)}{close}{s(n)}{{% elif {e('any', 1)} %}}{s(n)}"
            f"{{% else -%}}{s(n)}{open_}endif{close}",
            lambda: f"{open_}for x in {e('list', 2)}{close}{{{{ loop.index }}}}:"
            f"{{{{ x }}}} {s(n)}{{% else %}}none{{% endfor{close}",
            lambda: f"{open_}for k, v in ({e('dict', 1)}).items() if v{close}"
            f"{{{{ loop.revindex0 }}}}{{{{ k }}}}={{{{ v }}}}{{{{ ', ' if not loop.last }}}}"
            f"{{% if loop.index > 2 %}}{{% break %}}{{% endif %}}{open_}endfor{close}",
            lambda: f"{open_}set word = {e('text', 2)}{close}{{{{ word }}}}",
            lambda: f"{open_}set a, b = {e('any', 1)}, {e('int', 1)}{close}{{{{ a }}}}{{{{ b }}}}",
            lambda: open_ + "set word" + self.pick("", " | upper", " | trim | title") + close
            + s(n) + open_ + "endset" + close + "{{ word }}",
            lambda: open_ + "filter " + self.pick("upper", "trim", "indent(2)", "replace('a', 'b')")
            + close + s(n) + open_ + "endfilter" + close,
            lambda: f"{open_}macro m(x, y={self.literal('text')}){close}[{{{{ x }}}}|"
            f"{{{{ y }}}}{{{{ caller() if caller }}}}]{open_}endmacro{close}"
            f"{{{{ m({e('any', 1)}) }}}}{{{{ m(1, y={e('any', 1)}) }}}}"
            f"{open_}call m({e('text', 1)}){close}{s(n)}{{% endcall %}}",
            lambda: f"{open_}with z = {e('any', 2)}{close}{{{{ z }}}}{s(n)}{open_}endwith{close}",
            lambda: f"{{% set ns = namespace(n={e('int', 1)}, t='') %}}"
            f"{open_}for x in {e('list', 1)}{close}{{% set ns.n = ns.n + 1 %}}"
            f"{{% set ns.t = ns.t ~ x %}}{open_}endfor{close}{{{{ ns.n }}}}{{{{ ns.t }}}}",
            lambda: f"{{% for x in [{e('list', 1)}, {e('list', 1)}] recursive %}}"
            f"{{{{ loop.depth }}}}{{% if x is sequence and x is not string %}}("
            f"{{{{ loop(x) }}}}){{% else %}}{{{{ x }}}}{{% endif %}}{open_}endfor{close}",
            lambda: "{% raw %}{{ x }} {% endraw %}", lambda: "{#- note -#}",
        )()

    def block(self, n):
        if n <= 0:
            return self.r.choice(["text", " ", "\n", "  \n  ", "a\n"])
        return "".join(self.statement(n - 1) + self.r.choice(["", "\n", " ", "\n  "])
                       for _ in range(self.r.randint(1, 2)))


RANDOM_INPUTS = {"messages": [{"role": "user", "content": "Hello World"},
                  {"role": "assistant", "content": "b, a", "name": "x"},
                  {"role": "user", "content": "naïve 'q'"}],
          "word": "Some Word", "number": 4, "real": 2.5, "flag": True, "items": [3, "b", None],
          "d": {"a": 1, "items": ["x", "y"], "n": {"z": 0.125}}, "add_generation_prompt": False}


def random_template(seed, i):
    return Random(f"{seed} {i}").block(2)


def write_golden(path, env, count, seed):
    """The results of jinja2 for random templates, for a test without it; null where it refuses."""
    cases = []
    for i in range(count):
        template = random_template(seed, i)
        cases.append([template, jinja(env, template, RANDOM_INPUTS).get("text")])
    golden = {"inputs": RANDOM_INPUTS, "cases": cases}
    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(path).write_text(text.replace("],[", "],\n[") + "\n", encoding="utf-8")


def check_random(loom, env, count, seed):
    equal = different = failed_too = 0
    for i in range(count):
        template = random_template(seed, i)
        ours = loom.render(template, RANDOM_INPUTS)
        theirs = jinja(env, template, RANDOM_INPUTS)
        if same(ours, theirs):
            equal += 1
            failed_too += "error" in theirs
        else:
            different += 1
            if different <= 25:
                print(f"differs: seed {seed} number {i}: {template!r}\n      {show(ours, theirs)}")
    print(f"{count} random templates, {equal} equal ({failed_too} of them refused by both), "
          f"{different} different")
    return equal, different


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--templates", nargs="*", default=[])
    parser.add_argument("--random", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    env = environment()
    if options.write:
        write_golden(options.write, env, options.random, options.seed)
        return 0
    loom = Loom(options.program)
    passed = failed = 0
    if options.templates:
        p, f = check_real(loom, env, options.templates)
        passed, failed = passed + p, failed + f
    p, f = check_random(loom, env, options.random, options.seed)
    passed, failed = passed + p, failed + f
    print(f"{passed} passed, {failed} failed, {0 if options.templates else 1} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
