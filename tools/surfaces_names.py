"""The names that each surface has, read from its sources, for tools/surfaces.py."""

import ast
import re
import tomllib
from pathlib import Path

from cpp_source import without_comments, without_preprocessor

_CLASS = re.compile(r"^(?:class|struct) LOOM_API (\w+)[^;{]*{\n(.*?)^};", re.M | re.S)
# A declaration of two spaces that names what is called; not a member that is data.
_METHOD = re.compile(r"^  (?:static |virtual |explicit )*[\w:<>,&* ]*?[&* ](\w+)\((?!\))?", re.M)
_STRUCT = re.compile(r"^struct (?:LOOM_API )?(\w+)[^;{]*{\n(.*?)^};", re.M | re.S)
_CALLBACK = re.compile(r"^  std::function<[^;]*>\s+(\w+)(?:{}|;)", re.M)
_FUNCTION = re.compile(r"^LOOM_API [^;{]*?[&* ](\w+)\(", re.M)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# ---- C++ -----------------------------------------------------------------------------------------


def _methods(owner: str, body: str) -> list[str]:
    public = re.sub(r"^ (?:private|protected):.*?(?=^ public:|\Z)", "", body, flags=re.M | re.S)
    # Types inside of the class, bodies of methods, and text in parentheses.
    public = re.sub(r"^  (?:struct|enum|using)\b.*?;\n", "", public, flags=re.M | re.S)
    names = []
    for found in _METHOD.finditer(public):
        name = found[1]
        # operator Layer() is a conversion, and impl() is for rooms of src.
        if name not in (owner, "operator", "Layer", "impl", "share") and (
            f"{owner}::{name}" not in names
        ):
            names.append(f"{owner}::{name}")
    return names


# Other headers of options have the functions of this one, so only their callbacks count.
OWN = "training_options.hpp"


def members(root: Path) -> list[tuple[str, str]]:
    """Header and name of each public function, method and callback, by header."""
    found: list[tuple[str, str]] = []
    for path in sorted((root / "include/loom").glob("*.hpp")):
        text = without_preprocessor(without_comments(path.read_text(encoding="utf-8")))
        rows = [(m.start(), [m[1]]) for m in _FUNCTION.finditer(text)]
        if path.name.endswith("_options.hpp") and path.name != OWN:
            rows = []
        rows += [(m.start(), _methods(m[1], m[2])) for m in _CLASS.finditer(text)]
        rows += [(m.start(), [f"{m[1]}::{name}" for name in _CALLBACK.findall(m[2])])
                 for m in _STRUCT.finditer(text)]  # fmt: skip
        for _, names in sorted(rows):
            found += [(path.name, n) for n in names if (path.name, n) not in found]
    return found


# ---- the others ----------------------------------------------------------------------------------


def of_c(root: Path) -> set[str]:
    """Functions, and fields of reports as loom_mesh_info.ticks."""
    table = tomllib.loads((root / "api/loom_api.toml").read_text(encoding="utf-8"))
    fields = {f"{s['name']}.{f[1]}" for s in table["struct"] for f in s["fields"]}
    return {f["name"] for f in table["function"]} | fields


def of_python(root: Path) -> set[str]:
    """Public functions, methods as Mesh.tick, with those that a class inherits, and parameters as
    Trainer.fit(on_epoch)."""
    names: set[str] = set()
    bases: dict[str, list[str]] = {}
    for path in sorted((root / "bindings/python/loom").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                names |= {node.name, *_python_parameters(node.name, node)}
            elif isinstance(node, ast.ClassDef):
                bases[node.name] = [b.id for b in node.bases if isinstance(b, ast.Name)]
                names |= {node.name, *_python_members(node)}
    for name, parents in bases.items():
        for parent in parents:
            inherited = [n for n in names if n.startswith(f"{parent}.")]
            names |= {f"{name}.{n.partition('.')[2]}" for n in inherited}
    return names


def _python_parameters(name: str, node: ast.FunctionDef) -> set[str]:
    return {f"{name}({a.arg})" for a in (*node.args.args, *node.args.kwonlyargs)}


def _python_members(node: ast.ClassDef) -> set[str]:
    found = set()
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            inside = node.name if item.name == "__init__" else f"{node.name}.{item.name}"
            found |= {f"{node.name}.{item.name}", *_python_parameters(inside, item)}
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(f"{node.name}.{item.target.id}")
    return found


def of_typescript(root: Path) -> set[str]:
    """Exported functions, and members of exported classes and interfaces."""
    names: set[str] = set()
    for path in sorted((root / "bindings/typescript/src").glob("*.ts")):
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"^export (?:async )?function (\w+)", text, re.M))
        for name, body in re.findall(
            r"^export (?:abstract class|class|interface) (\w+)[^{]*{\n(.*?)^}", text, re.M | re.S
        ):
            own = r"^  (?:static |async |get |override |readonly |\*)*(\w+)(?:<[^(]*>)?[?!]?[:(]"
            names |= {name, *(f"{name}.{m}" for m in re.findall(own, body, re.M))}
    return names


def of_program(root: Path) -> set[str]:
    text = (root / "cli/verb_list.cpp").read_text(encoding="utf-8")
    return {name.replace("_", "-") for name in re.findall(r"\badd_(\w+)\(\w+\)", text)}
