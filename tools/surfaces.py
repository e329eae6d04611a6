#!/usr/bin/env python3
"""The part of the public C++ interface that each surface has: docs/surfaces.md, from headers and
bindings.

  tools/surfaces.py           rewrites docs/surfaces.md
  tools/surfaces.py --check   exit 1 with a line per cell or count that is not as recorded
  tools/surfaces.py --gaps    prints the cells that have neither a name nor a reason

A row is a public function or a method of a public class of include/loom. Its name elsewhere follows
from its own: Mesh::tick is loom_mesh_tick, Mesh.tick and mesh.tick. api/surfaces.toml has the
capabilities, names that differ, and reasons why a surface lacks one. tools/surfaces_count.toml
has the number of gaps of each surface, which may only fall.
"""

import argparse
import re
import sys
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import surfaces_names
from surfaces_names import snake

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = "api/surfaces.toml"
PAGE = "docs/surfaces.md"
RECORD = "tools/surfaces_count.toml"
SURFACES = ("c", "python", "typescript")
TITLES = {"c": "C", "python": "Python", "typescript": "TypeScript"}


class Wrong(Exception):
    """Faults of the description: place, why."""


@dataclass(frozen=True)
class Member:
    """A public function, or a method or callback as Class::method."""

    header: str
    name: str

    @property
    def owner(self) -> str:
        return self.name.rpartition("::")[0]

    @property
    def own(self) -> str:
        return self.name.rpartition("::")[2]


@dataclass
class Row:
    member: Member
    cells: dict[str, str] = field(default_factory=dict)  # surface -> names, or a reason
    gaps: list[str] = field(default_factory=list)  # surfaces with neither


# ---- the names of a surface ----------------------------------------------------------------------


class Surface:
    """Finds the name that a member has on one surface."""

    def __init__(self, kind: str, names: set[str], classes: dict[str, list[str]]):
        self.kind, self.names, self.classes = kind, names, classes

    def _spelled(self, name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(w.capitalize() for w in rest) if self.kind == "typescript" else name

    def candidates(self, member: Member) -> list[str]:
        owners = self.classes.get(member.owner, [member.owner] if member.owner else [])
        own = self._spelled(member.own)
        if self.kind != "c":
            found = [f"{owner}{end}" for owner in owners for end in (f".{own}", f"({own})")]
            if member.own in ("create", "open", "from_arrays"):
                found += owners  # a constructor
            return found if member.owner else [own]
        if not member.owner:
            return [f"loom_{own}"]
        ends = (f"_{own}", f"_get_{own}", f"_info.{own}", f".{own}")
        return [f"loom_{snake(owner)}{end}" for owner in owners for end in ends]

    def find(self, member: Member, c: str) -> str:
        """c: its name in C. A field of a report of C is one of the object that TypeScript has."""
        names = self.candidates(member)
        if "_info." in c and self.kind == "typescript":
            names += [f"{owner}.info" for owner in self.classes.get(member.owner, [member.owner])]
        return next((name for name in names if name in self.names), "")


# ---- the description -----------------------------------------------------------------------------


def _explicit(text: str, surface: Surface, where: str) -> str:
    """A cell of the description: names at commas, or "no: " and why."""
    if text.startswith("no: "):
        return text
    for name in text.split(", "):
        if name not in surface.names:
            raise Wrong(f"{where}: {TITLES[surface.kind]} has no {name}")
    return text


class Description:
    def __init__(self, table: dict):
        self.capabilities = table["capability"]
        self.cells: dict[str, dict[str, str]] = table.get("cell", {})
        self.used: set[str] = set()
        self.headers = {h: c["name"] for c in self.capabilities for h in c["headers"]}

    def cell(self, member: Member, capability: dict, kind: str) -> str:
        """The entry of a member: by its name, its pattern, or for the whole capability."""
        for key in (member.name, *(k for k in self.cells if "*" in k)):
            if key in self.cells and fnmatchcase(member.name, key):
                self.used.add(key)
                if kind in self.cells[key] or "all" in self.cells[key]:
                    return self.cells[key].get(kind) or self.cells[key]["all"]
        return capability.get("why", {}).get(kind, "")

    def by_pattern(self, member: Member) -> bool:
        """Is what is said of a member said of many?"""
        return member.name not in self.cells


def rows_of(members: list[Member], description: Description, surfaces: list[Surface]) -> list[Row]:
    rows = []
    for member in members:
        if member.header not in description.headers:
            raise Wrong(f"include/loom/{member.header} is in no capability of {DESCRIPTION}")
        name = description.headers[member.header]
        capability = next(c for c in description.capabilities if c["name"] == name)
        row = Row(member)
        for surface in surfaces:
            said = description.cell(member, capability, surface.kind)
            found = surface.find(member, row.cells.get("c", ""))
            if found and (said.startswith("no: ") or description.by_pattern(member)):
                said = ""  # of a whole pattern; this one is there
            cell = _explicit(said, surface, member.name) if said else found
            row.cells[surface.kind] = cell
            if not cell:
                row.gaps.append(surface.kind)
        rows.append(row)
    for key in description.cells.keys() - description.used:
        raise Wrong(f"{DESCRIPTION}: there is no member {key}")
    return rows


# ---- the page ------------------------------------------------------------------------------------

TOP = """\
# Surfaces

<!-- generated by tools/surfaces.py from include/loom, api/ and the bindings; do not edit -->
Each public function, method and callback of C++, and its name in C, Python and TypeScript. A name
of C with a dot is a field of a struct. An empty cell is a gap: the surface lacks it, and nothing
says why. `api/surfaces.toml` has the reasons. `tools/surfaces.py --check` holds the numbers of
gaps, which may only fall. Options are in [training-options.md](training-options.md), kinds of
layers in [layers.md](layers.md): these are generated for every surface.

"""


def _shown(cell: str) -> str:
    if cell.startswith("no: "):
        return cell.removeprefix("no: ")
    return ", ".join(f"`{name}`" for name in cell.split(", ")) if cell else ""


def summary(rows: list[Row]) -> list[str]:
    lines = ["| surface | has | reasons | gaps |", "|---|---|---|---|"]
    for kind in SURFACES:
        said = [row.cells[kind] for row in rows]
        why = sum(cell.startswith("no: ") for cell in said)
        gaps = said.count("")
        has = f"{len(rows) - why - gaps} of {len(rows)}"
        lines.append(f"| {TITLES[kind]} | {has} | {why} | {gaps} |")
    return [*lines, ""]


def page(rows: list[Row], description: Description) -> str:
    lines = summary(rows)
    for capability in description.capabilities:
        mine = [row for row in rows if row.member.header in capability["headers"]]
        lines += [f"## {capability['name'].capitalize()}", ""]
        verbs = ", ".join(f"`loom {verb}`" for verb in capability.get("program", ()))
        lines += [f"Program: {verbs or capability['why']['program'].removeprefix('no: ')}.", ""]
        reasons = [f"{TITLES[kind]}: {capability['why'][kind].removeprefix('no: ')}."
                   for kind in SURFACES if kind in capability.get("why", {})]  # fmt: skip
        lines += [" ".join(reasons), ""] if reasons else []
        lines += _left_out(mine)
        mine = [row for row in mine if not _nowhere(row)]
        if not mine:
            continue
        lines += ["| C++ | C | Python | TypeScript |", "|---|---|---|---|"]
        for row in mine:
            cells = [_shown(row.cells[kind]) if not _of_all(row, kind, capability) else "-"
                     for kind in SURFACES]  # fmt: skip
            lines.append(f"| `{row.member.name}` | {' | '.join(cells)} |")
        lines.append("")
    return TOP + "\n".join(lines)


def _nowhere(row: Row) -> bool:
    """Is it one reason that every surface lacks it?"""
    return set(row.cells.values()) == {row.cells["c"]} and row.cells["c"].startswith("no: ")


def _left_out(rows: list[Row]) -> list[str]:
    """A line per reason, with the members."""
    members: dict[str, list[str]] = {}
    for row in filter(_nowhere, rows):
        members.setdefault(row.cells["c"].removeprefix("no: "), []).append(f"`{row.member.name}`")
    lines = [f"C++ alone, because {why}: {', '.join(names)}." for why, names in members.items()]
    return [line for text in lines for line in (text, "")]


def _of_all(row: Row, kind: str, capability: dict) -> bool:
    """Is the reason that of the whole capability, which is above the table?"""
    return row.cells[kind] != "" and row.cells[kind] == capability.get("why", {}).get(kind)


# ---- counts --------------------------------------------------------------------------------------


def counts(rows: list[Row]) -> dict[str, int]:
    return {kind: sum(kind in row.gaps for row in rows) for kind in SURFACES}


def check(found: dict[str, int], record: dict[str, int]) -> list[str]:
    """One line per count that differs from what is recorded."""
    findings = []
    for kind, gaps in found.items():
        most = record.get(kind)
        if most is None or gaps > most:
            findings.append(f"{TITLES[kind]} has {gaps} gaps, {RECORD} has {most}; add the "
                            f"function, or a reason to {DESCRIPTION}")  # fmt: skip
        elif gaps < most:
            findings.append(f"the gaps of {TITLES[kind]} fell from {most} to {gaps}; record it: "
                            "tools/surfaces.py")  # fmt: skip
    return findings


def build(root: Path = ROOT) -> tuple[list[Row], Description]:
    table = tomllib.loads((root / DESCRIPTION).read_text(encoding="utf-8"))
    description = Description(table)
    members = [Member(*m) for m in surfaces_names.members(root)]
    classes = {kind: {c: names.split(", ") for c, names in names_of.items()}
               for kind, names_of in table["classes"].items()}  # fmt: skip
    readers = {"c": surfaces_names.of_c, "python": surfaces_names.of_python,
               "typescript": surfaces_names.of_typescript}  # fmt: skip
    surfaces = [Surface(k, readers[k](root), classes.get(k, {})) for k in SURFACES]
    verbs = surfaces_names.of_program(root)
    for capability in description.capabilities:
        for verb in capability.get("program", ()):
            if verb.split()[0] not in verbs:
                raise Wrong(f"{DESCRIPTION}: {capability['name']}: there is no `loom {verb}`")
        if not capability.get("program") and "program" not in capability.get("why", {}):
            raise Wrong(f"{DESCRIPTION}: {capability['name']} has neither a verb nor why.program")
    return rows_of(members, description, surfaces), description


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--gaps", action="store_true")
    args = parser.parse_args()
    try:
        rows, description = build()
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if args.gaps:
        for row in rows:
            if row.gaps:
                print(f"{row.member.header:22} {row.member.name:40} {', '.join(row.gaps)}")
        return 0
    found = counts(rows)
    record_file = ROOT / RECORD
    record = tomllib.loads(record_file.read_text()) if record_file.exists() else {}
    findings = check(found, record)
    if args.check:
        if (ROOT / PAGE).read_text(encoding="utf-8") != page(rows, description):
            findings.append(f"{PAGE} is not what the tree has; run tools/surfaces.py")
        print("\n".join(findings))
        return 1 if findings else 0
    rose = [kind for kind, gaps in found.items() if gaps > record.get(kind, gaps)]
    if rose:
        print("\n".join(findings), file=sys.stderr)
        return 1
    (ROOT / PAGE).write_text(page(rows, description), encoding="utf-8")
    head = "# Gaps that tools/surfaces.py counts. A count may only fall.\n"
    record_file.write_text(head + "".join(f"{k} = {n}\n" for k, n in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
