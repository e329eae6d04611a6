"""docs/reference/verbs.md: every command of the program with its options, from its help."""

import re
import subprocess
from pathlib import Path

from reference_pages import MARK, escape

_ENTRY = re.compile(r"^ {2}(\S.*?)(?: {2,}(\S.*))?$")
_MORE = re.compile(r"^ {10,}(\S.*)$")


def help_of(program: Path, words: list[str]) -> str:
    command = [str(program), *words, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def sections(text: str) -> tuple[list[str], dict[str, list[tuple[str, str]]]]:
    """Lines outside of groups, and the entries of each group: name and meaning."""
    plain: list[str] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    group = ""
    for line in text.split("\n"):
        entry, more = _ENTRY.match(line), _MORE.match(line)
        if re.match(r"^\w.*:$", line):
            group = line[:-1]
        elif group and group != "Examples" and more and groups.get(group):
            name, meaning = groups[group][-1]
            groups[group][-1] = (name, f"{meaning} {more[1]}".strip())
        elif group and group != "Examples" and entry:
            groups.setdefault(group, []).append((entry[1], entry[2] or ""))
        elif group == "Examples" and line.startswith("  "):
            groups.setdefault(group, []).append((line[2:], ""))
        elif line and not line.startswith(" "):
            group = ""
            plain.append(line)
    return plain, groups


def _commands(groups: dict[str, list[tuple[str, str]]], plain: list[str]) -> list[str]:
    """Names of commands below this one; a command without any has options alone."""
    if not any(line.startswith("Usage") and line.endswith(" COMMAND") for line in plain):
        return []
    rows = [row for name, rows in groups.items() if name not in ("Options", "Examples")
            for row in rows]  # fmt: skip
    return [name for name, _ in rows if re.fullmatch(r"[a-z]+", name)]


def _table(rows: list[tuple[str, str]]) -> list[str]:
    lines = ["| name | meaning |", "|---|---|"]
    for name, meaning in rows:
        lines.append(f"| `{name.replace('|', chr(92) + '|')}` | {escape(meaning)} |")
    return [*lines, ""]


def command(program: Path, words: list[str]) -> list[str]:
    plain, groups = sections(help_of(program, words))
    lines = []
    if words:
        lines += [f"## loom {' '.join(words)}", ""]
        lines += [escape(line) for line in plain if not line.startswith("Usage:")] + [""]
        usage = next(line for line in plain if line.startswith("Usage:"))
        lines += [f"`{usage.removeprefix('Usage: ')}`", ""]
        if "Examples" in groups:
            lines.append("```console")
            lines += [row for row, _ in groups["Examples"]] + ["```", ""]
        for name, rows in groups.items():
            rows = [row for row in rows if not row[0].startswith("-h,--help")]
            if name != "Examples" and rows:
                lines += [f"### {name}", "", *_table(rows)]
    for name in _commands(groups, plain):
        lines += command(program, [*words, name])
    return lines


def page(program: Path) -> str:
    lines = ["# Commands and options", "", MARK.format("the help of the program"), ""]
    lines += ["`loom COMMAND --help` prints the same. [program.md](program.md) has the options",
              "that most commands share, and the exit codes.", ""]  # fmt: skip
    return "\n".join([*lines, *command(program, [])]).rstrip("\n") + "\n"
