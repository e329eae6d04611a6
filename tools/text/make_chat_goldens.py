"""Renders chat_templates/*.jinja (shapes of published templates) and chat_snippets.json (one
construct each) with jinja2, set up as transformers does, to tests/text/golden/chat.json.

    python tools/text/make_chat_goldens.py        (needs jinja2)
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parents[1] / "tests" / "text" / "golden" / "chat.json"


def message(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = [
    [message("user", "Hi there")],
    [message("system", "  Be brief.\n"), message("user", "What is 1 + 1?")],
    [message("user", "a"), message("assistant", " b "), message("user", "c\n")],
    [
        message("system", "S"),
        message("user", "naïve 🙂 «x»"),
        message("assistant", "<think>\nhm\n</think>\n\nok"),
        message("user", "{{ x }} {% y %}"),
        message("assistant", "'\"\\n"),
        message("user", ""),
    ],
    [message("user", "one"), message("user", "two")],
    [message("assistant", "first"), message("tool", "42")],
]
SNIPPET_CONVERSATION = CONVERSATIONS[3]


class Generation(jinja2.ext.Extension):
    """{% generation %} marks the text of the assistant; it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def environment():
    def raise_exception(text):
        raise jinja2.exceptions.TemplateError(text)

    def tojson(value, indent=None):
        return json.dumps(value, ensure_ascii=False, indent=indent)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime(2026, 11, 2).strftime
    return env


def render(env, source, messages, prompt):
    """The text, or None when jinja2 refuses."""
    try:
        return env.from_string(source).render(
            messages=messages,
            add_generation_prompt=prompt,
            tools=None,
            documents=None,
            bos_token="<s>",
            eos_token="</s>",
        )
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError):
        return None


def main():
    env = environment()
    families = []
    for path in sorted(HERE.joinpath("chat_templates").glob("*.jinja")):
        source = path.read_text("utf-8")
        rendered = [
            [render(env, source, messages, prompt) for prompt in (False, True)]
            for messages in CONVERSATIONS
        ]
        families.append({"name": path.stem, "template": source, "rendered": rendered})
    snippets = [
        {"template": source, "rendered": render(env, source, SNIPPET_CONVERSATION, True)}
        for source in json.loads(HERE.joinpath("chat_snippets.json").read_text("utf-8"))
    ]
    golden = {"conversations": CONVERSATIONS, "families": families, "snippets": snippets}
    OUT.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
