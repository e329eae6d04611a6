"""Pages of docs/reference/python: signatures and docstrings of the package, from its sources."""

import ast
import inspect
import re
from pathlib import Path

from reference_pages import MARK, escape


def exports(package: Path) -> dict[str, list[str]]:
    """Names that `import loom` has, by module; ["*"] for all of one."""
    found: dict[str, list[str]] = {}
    for node in ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            names = [a.name for a in node.names if not a.name.startswith("_")]
            found.setdefault(node.module, []).extend(names)
    return found


_ARGUMENT = re.compile(r"(\w+): (.*)")


def _doc(node: ast.AST) -> str:
    """A docstring as Markdown. Lines `name: text` are a list; other indented lines are code."""
    out: list[str] = []
    argument = code = False
    for line in inspect.cleandoc(ast.get_docstring(node) or "").split("\n"):
        found, deep = _ARGUMENT.fullmatch(line), line.startswith("    ")
        if argument and deep:
            out.append(f"  {escape(line.strip())}")
            continue
        if out and out[-1] and (bool(found) != argument or deep != code):
            out.append("")
        argument, code = bool(found), deep
        if found:
            out.append(f"- `{found[1]}`: {escape(found[2])}")
        else:
            out.append(line if deep else escape(line))
    return "\n".join(out)


def _signature(node: ast.FunctionDef, name: str = "") -> str:
    arguments = node.args
    if name:  # of a class: without self
        arguments.args = arguments.args[1:]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and not name else ""
    text = f"{name or node.name}({ast.unparse(arguments)}){returns}"
    if len(text) <= 88:
        return text
    parts, depth, start, inner = [], 0, 0, ast.unparse(arguments)
    for i, c in enumerate(inner):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(inner[start:i].strip())
            start = i + 1
    parts.append(inner[start:].strip())
    rows = "".join(f"    {part},\n" for part in parts)
    return f"{name or node.name}(\n{rows}){returns}"


def _decorators(node: ast.AST) -> list[str]:
    return [ast.unparse(d) for d in node.decorator_list]


def _function(node: ast.FunctionDef, level: int) -> list[str]:
    marks = _decorators(node)
    if any(mark.endswith((".setter", "overload")) for mark in marks):
        return []
    if "property" in marks:
        result = f": {ast.unparse(node.returns)}" if node.returns else ""
        code = f"{node.name}{result}"
    else:
        code = "".join(f"@{mark}\n" for mark in marks) + _signature(node)
    doc = _doc(node)
    heading = f"{'#' * level} `{node.name}`"
    return [heading, "", "```python", code, "```", "", *([doc, ""] if doc else [])]


def _fields(node: ast.ClassDef) -> list[str]:
    rows = [ast.unparse(each) for each in node.body
            if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_")]  # fmt: skip
    if rows and any(ast.unparse(base) == "Layer" for base in node.bases):
        call = f"{node.name}({', '.join(rows)})"
        rows = [call if len(call) <= 88 else f"{node.name}(\n    " + ",\n    ".join(rows) + ",\n)"]
    return ["```python", *rows, "```", ""] if rows else []


def _class(node: ast.ClassDef) -> list[str]:
    lines = [f"## `{node.name}`", ""]
    functions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    made = next((each for each in functions if each.name == "__init__"), None)
    if made is not None:
        lines += ["```python", _signature(made, node.name), "```", ""]
    doc = _doc(node)
    lines += [doc, ""] if doc else []
    lines += _fields(node)
    for each in functions:
        if not each.name.startswith("_"):
            lines += _function(each, 3)
    return lines


def page(module: Path, name: str, names: list[str]) -> str:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    lines = [f"# Python: {name}", "", MARK.format(f"bindings/python/loom/{module.name}"), ""]
    lines += [_doc(tree), ""]
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
            continue
        if "*" in names or node.name in names:
            lines += _class(node) if isinstance(node, ast.ClassDef) else _function(node, 2)
    return "\n".join(lines).rstrip("\n") + "\n"


def pages(package: Path) -> dict[str, str]:
    """Modules of the package by their file, and those a program imports by name."""
    found = exports(package)
    for own in ("sklearn", "telemetry"):
        found[own] = ["*"]
    result = {}
    for module, names in sorted(found.items()):
        path = package / f"{module}.py"
        if path.is_file() and not module.startswith("_"):
            result[f"{module}.md"] = page(path, f"loom.{module}", names)
    return result
