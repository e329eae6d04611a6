#!/usr/bin/env python3
"""Templates of every filter, test, method, tag and operator, as jinja2 renders them.

  tools/goldens/jinja_cases.py    writes tests/data/jinja/cases.json; needs jinja2 3.1

tests/data/jinja/sources.txt has the templates. The settings are those of transformers, from
tests/outside/templates.py. A case is a line: its template and its text, which is null if jinja2
refuses. jinja2 renders the group "refused", and Loom does not. tests/jinja/cases_test.cpp reads
the cases.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/outside"))
import templates  # noqa: E402

INPUTS = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "  Two words\n"},
        {"role": "assistant", "content": "<b>3 & 4</b>"},
        {"role": "user", "content": "ça va? \u00dcber \U0001f600"},
    ],
    "items": [3, 1, 2, 1],
    "names": ["Bo", "al", "Cy", "bo"],
    "numbers": {"one": 1, "Two": 2, "three": 3.5},
    "rows": [{"a": {"b": 1}, "n": "x"}, {"a": {"b": 0}, "n": "y"}, {"a": {"b": 1}, "n": "z"}],
    "flag": True,
}


def read_sources(path: Path) -> dict[str, list[str]]:
    """Templates by group."""
    groups: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("[") and line.strip("[]").isalpha():
            groups[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            name = list(groups)[-1]
            groups[name].append(json.loads(line) if name == "templates" else "{{ " + line + " }}")
    return groups


def main() -> None:
    env = templates.environment()
    folder = ROOT / "tests/data/jinja"
    parts = []
    for name, sources in read_sources(folder / "sources.txt").items():
        texts = [templates.jinja(env, source, INPUTS).get("text") for source in sources]
        if name == "refused" and None in texts:
            sys.exit(f"jinja2 refuses {sources[texts.index(None)]}")
        cases = [json.dumps(case) for case in zip(sources, texts, strict=True)]
        parts.append(f'"{name}": [\n' + ",\n".join(cases) + "\n]")
    head = f'{{"inputs": {json.dumps(INPUTS)},\n"groups": {{\n'
    (folder / "cases.json").write_text(head + ",\n".join(parts) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
