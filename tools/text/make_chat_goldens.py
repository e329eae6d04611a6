"""Renders tools/text/chat_templates.py with jinja2, set up as transformers does, to tests/text/golden/chat.json.

    python tools/text/make_chat_goldens.py        (needs jinja2)
"""

import json
import pathlib

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

import chat_templates as chat


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant wrote; it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = raise_exception
    return env


def render(env, source, messages, prompt):
    """The text, or None when jinja2 refuses."""
    try:
        return env.from_string(source).render(
            messages=messages, add_generation_prompt=prompt, tools=None, documents=None, bos_token="<s>",
            eos_token="</s>")
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError):
        return None


def main():
    env = environment()
    families = []
    for name, source in chat.FAMILIES.items():
        rendered = [[render(env, source, messages, prompt) for prompt in (False, True)]
                    for messages in chat.CONVERSATIONS]
        families.append({"name": name, "template": source, "rendered": rendered})
    snippets = [{"template": source, "rendered": render(env, source, chat.CONVERSATIONS[3], True)}
                for source in chat.SNIPPETS]
    out = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "golden" / "chat.json"
    out.write_text(json.dumps({"conversations": chat.CONVERSATIONS, "families": families, "snippets": snippets},
                              ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
