#!/usr/bin/env python3
"""Counts what is written by hand several times, and fails when a count rises.

  tools/written_once.py            table; exit 1 with a line per count that is not as recorded.
  tools/written_once.py --write    records counts that fell in tools/written_once.toml.
  tools/written_once.py --of NAME  files that name an option, optimizer, loss, layer or operator.
  tools/written_once.py --operators  where ONNX operators have a meaning; those in one place last.
  tools/written_once.py --root DIR another tree.

A place is a file, written by hand, that names the thing. Generated files, tests, prose of docs and
the room that computes with the thing do not count. Counts of several names are the mean and the
largest.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cpp_source import is_generated, without_comments, written_by_hand

RECORD = "tools/written_once.toml"
SURFACES = ("src", "include", "cli", "bindings", "api", "web", "tools")
TEXT = {".cpp", ".hpp", ".h", ".inl", ".def", ".py", ".ts", ".js", ".mjs", ".rs", ".go", ".java",
        ".cs", ".dart", ".toml"}  # fmt: skip
CODE = {".cpp", ".hpp", ".h", ".inl", ".def", ".py", ".ts", ".rs", ".go", ".java", ".cs", ".dart"}
ONNX_ROOMS = ("src/onnx/",)
# The counter itself, frozen layouts, generators of test data and files of packages.
LEFT_OUT = ("tools/written_once", "tools/sweeps/", "tools/goldens/", "tools/stories/",
            "api/frozen/", "node_modules/")  # fmt: skip


# The declarations of an operator in a file of an ONNX room. All but signature and export are
# meanings.
ONNX_ROLES = (
    ("row", r"src/onnx/(interpreter|operators)/"),
    ("signature", r"src/onnx/operators/declared"),
    ("fold", r"src/onnx/import/fold"),
    ("function", r"src/onnx/import/expr"),
    ("reader", r"src/onnx/import/reader/"),
    ("pattern", r"src/onnx/import/lower/"),
    ("node", r"src/onnx/import/general/"),
    ("export", r"src/onnx/export/"),
)
NO_MEANING = {"signature", "export"}


@dataclass(frozen=True)
class Count:
    name: str
    value: float
    says: str


class Tree:
    def __init__(self, root: Path):
        self.root = root

    @cached_property
    def files(self) -> dict[str, str]:
        """Path -> text of each file that is written by hand."""
        found = {}
        for top in SURFACES:
            for path in sorted((self.root / top).rglob("*")):
                name = path.relative_to(self.root).as_posix()
                if path.suffix not in TEXT or any(part in name for part in LEFT_OUT):
                    continue
                text = path.read_text(encoding="utf-8", errors="replace")
                if not is_generated(text) and not text.startswith("// Code generated"):
                    found[name] = written_by_hand(text)
        return found

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    # ---- names -----------------------------------------------------------------------------------

    def members(self, path: str, struct: str) -> list[str]:
        body = re.search(rf"struct {struct} {{(.*?)\n}};", without_comments(self.read(path)), re.S)
        return re.findall(r"(\w+)\s*(?:=[^;]*|{[^;]*})?;", body[1]) if body else []

    def enumerators(self, path: str, enum: str) -> list[str]:
        body = re.search(rf"enum class {enum}\b[^{{]*{{(.*?)}}", self.read(path), re.S)
        return re.findall(r"\b[a-z]\w*", without_comments(body[1])) if body else []

    def options(self) -> list[str]:
        """Members of TrainerOptions that are not ordinary words: those with an underscore."""
        members = self.members("include/loom/training_options.hpp", "TrainerOptions")
        return [name for name in members if "_" in name]

    def optimizers(self) -> list[str]:
        plain = {"sgd", "momentum", "step"}  # words of other things, too
        names = self.enumerators("include/loom/training_kinds.hpp", "OptimizerKind")
        return [name for name in names if name not in plain]

    def losses(self) -> list[str]:
        plain = {"automatic", "cosine", "quantile", "poisson"}  # words of other things, too
        return [name for name in self.enumerators("include/loom/training_kinds.hpp", "Loss")
                if name not in plain]  # fmt: skip

    def layers(self) -> list[str]:
        rows = tomllib.loads(self.read("api/layers.toml"))["layer"]
        names = [row.get("type", row["name"]).format(axes)
                 for row in rows for axes in range(1, 1 + len(row.get("ids", (0,))))]  # fmt: skip
        plain = {"KMeans"}  # a way to group points, too
        names = [name for name in names if name not in plain]
        return [name for name in names if re.search(r"[a-z][A-Z]|[A-Z]{2}", name)]

    def operators(self) -> list[str]:
        """Rows of the interpreter's tables."""
        texts = [text for path, text in self.files.items()
                 if path.startswith(("src/onnx/interpreter/", "src/onnx/"))]  # fmt: skip
        rows = r'{(?:""|k\w+), "([A-Z]\w+)",'
        return sorted({name for text in texts for name in re.findall(rows, text)})

    # ---- places ----------------------------------------------------------------------------------

    @cached_property
    def words(self) -> dict[str, set[str]]:
        """Words of each file: plain names, and names in quotes or as a flag with these marks."""
        name, whole = re.compile(r"[A-Za-z_]\w*"), re.compile(r'--[a-z][a-z-]*|"[A-Za-z][\w-]*"')
        return {path: {*name.findall(text), *whole.findall(text)}
                for path, text in self.files.items()}  # fmt: skip

    def places(self, *names: str, but: str | tuple[str, ...] = "-",
               only: tuple[str, ...] = ("",)) -> list[str]:
        """Files that have one of the words."""
        return [path for path, words in self.words.items()
                if path.startswith(only) and not path.startswith(but)
                and not words.isdisjoint(names)]  # fmt: skip

    def option_places(self, name: str) -> list[str]:
        flag = name.replace("_", "-")
        return self.places(name, f"--{flag}", f'"{flag}"', but="src/learn/")

    def optimizer_places(self, name: str) -> list[str]:
        return self.places(name, name.capitalize(), name.upper())

    def loss_places(self, name: str) -> list[str]:
        named = {"cross_entropy": ("softmax_ce",)}.get(name, ())  # in files and of the op
        return self.places(name, *named, but=("src/learn/loss/", "src/learn/metrics/"))

    def layer_places(self, name: str) -> list[str]:
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        return self.places(name, snake, but="src/families/")  # names of tensors there

    def operator_places(self, name: str) -> list[str]:
        return self.places(f'"{name}"', only=ONNX_ROOMS)

    def operator_roles(self, name: str) -> list[str]:
        """The parts of an operator in the ONNX rooms: names of ONNX_ROLES."""
        places = self.operator_places(name)
        return [role for role, files in ONNX_ROLES
                if any(re.match(files, path) for path in places)]  # fmt: skip

    def operator_meanings(self, name: str) -> int:
        return len(set(self.operator_roles(name)) - NO_MEANING)

    def operator_table(self) -> str:
        """A line per operator, those with the most meanings first."""
        names = sorted(self.operators(), key=lambda name: (-self.operator_meanings(name), name))
        return "\n".join(f"{self.operator_meanings(name)} {name:32} "
                         f"{' '.join(self.operator_roles(name))}" for name in names)  # fmt: skip

    # ---- what is counted as a number -------------------------------------------------------------

    def matches(self, pattern: str, top: str) -> int:
        return sum(len(re.findall(pattern, text)) for path, text in self.files.items()
                   if path.startswith(top))  # fmt: skip

    def magic_counts(self) -> int:
        return (self.matches(r"enum_of<[\w:]+>\([^;]*?,\s*\d+,", "src/capi/")
                + self.matches(r"layer\.(?:integer|number|flag)\(\d+\)", "src/")
                + self.matches(r"static_cast<\w+Kind>\(\d+\)", "src/"))  # fmt: skip

    def doubled_types(self) -> list[str]:
        declared = r"\n(?:enum class|struct|class)\s+(?:LOOM_\w+\s+)?(\w+)\b(?!::)[^;{]*{"
        public, core = set(), set()
        for header in (self.root / "include/loom").glob("*.hpp"):  # generated ones, too
            public |= set(re.findall(declared, "\n" + header.read_text(encoding="utf-8")))
        for path, text in self.files.items():
            names = set(re.findall(declared, "\n" + text))
            if re.match(r"src/.*\.hpp$", path) and "namespace loom::core" in text:
                core |= names
        return sorted(public & core)

    def flat_room(self) -> tuple[str, int]:
        rooms = Counter(path.rpartition("/")[0] for path in self.files
                        if path.startswith(("src/", "cli/"))
                        and not path.startswith("src/families/"))  # a file per family
        return rooms.most_common(1)[0]

    def lines(self) -> int:
        rooms = ("src/", "cli/", "bindings/")
        return sum(text.count("\n") for path, text in self.files.items()
                   if path.startswith(rooms) and Path(path).suffix in CODE)  # fmt: skip

    def counts(self) -> list[Count]:
        rows = []
        for kind, names, places in (
            ("option", self.options(), self.option_places),
            ("optimizer", self.optimizers(), self.optimizer_places),
            ("loss", self.losses(), self.loss_places),
            ("layer", self.layers(), self.layer_places),
            ("operator", self.operators(), self.operator_places),
        ):
            each = {name: len(places(name)) for name in names}
            most = max(each, key=each.__getitem__)
            mean = round(sum(each.values()) / len(each), 1)
            rows.append(Count(f"{kind}_mean", mean, f"places of one of {len(each)} names"))
            rows.append(Count(f"{kind}_most", each[most], f"places of {most}"))
        meanings = [self.operator_meanings(name) for name in self.operators()]
        rows.append(Count("operator_meanings", sum(meanings),
                          f"meanings of {len(meanings)} operators"))  # fmt: skip
        room, files = self.flat_room()
        doubled = self.doubled_types()
        rows.append(Count("magic_counts", self.magic_counts(), "numbers in place of names"))
        rows.append(Count("doubled_types", len(doubled), "names in loom and in loom::core"))
        rows.append(Count("flat_room", files, f"files in {room}"))
        return rows


def check(counts: list[Count], record: dict[str, float]) -> list[str]:
    """One line per count that differs from what is recorded."""
    findings = []
    for count in counts:
        most = record.get(count.name)
        if most is None or count.value > most:
            findings.append(f"{count.name} is {count.value:g} ({count.says}), {RECORD} has {most}; "
                            "write it once")  # fmt: skip
        elif count.value < most:
            findings.append(f"{count.name} fell from {most:g} to {count.value:g}; "
                            "record it: tools/written_once.py --write")  # fmt: skip
    return findings


def written(counts: list[Count]) -> str:
    head = "# Counts of tools/written_once.py. A count may only fall; --write records it.\n"
    return head + "".join(f"{c.name} = {c.value:g}  # {c.says}\n" for c in counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--of")
    parser.add_argument("--operators", action="store_true")
    args = parser.parse_args()
    tree = Tree(args.root)
    if args.of:
        found = [tree.option_places, tree.optimizer_places, tree.loss_places, tree.layer_places,
                 tree.operator_places]  # fmt: skip
        kinds = [tree.options(), tree.optimizers(), tree.losses(), tree.layers(), tree.operators()]
        chosen = [places for places, names in zip(found, kinds, strict=True) if args.of in names]
        if not chosen:
            print(f"'{args.of}' is not an option, optimizer, loss, layer or operator",
                  file=sys.stderr)  # fmt: skip
            return 2
        print("\n".join(chosen[0](args.of)))
        return 0
    if args.operators:
        print(tree.operator_table())
        return 0
    counts = tree.counts()
    path = args.root / RECORD
    record = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    findings = check(counts, record)
    for count in counts:
        print(f"{count.name:16} {count.value:8g}  {count.says}")
    print(f"{'lines':16} {tree.lines():8}  by hand in src, cli and bindings (not limited)")
    if args.write:
        rose = [count for count in counts if count.value > record.get(count.name, 1e9)]
        if rose:
            print("\n".join(findings), file=sys.stderr)
            return 1
        path.write_text(written(counts), encoding="utf-8")
        return 0
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
