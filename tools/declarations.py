"""Declarations and the comments above them, read from headers (C, C++) and TypeScript. This is not
a parser: it suits code that a formatter has laid out."""

import re
from dataclasses import dataclass, field

_BLOCK = re.compile(r"^([ \t]*)/\*\*?(.*?)\*/[ \t]*$", re.M | re.S)
_QUIET = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|`[^`\n]*`', re.S)
_TYPE = re.compile(r"(?:export )?(?:abstract )?(class|struct|union|enum class|enum|interface)\b"
                   r"(?: LOOM_\w+| \[\[\w+\]\])* ?(\w+)?")  # fmt: skip
_SKIPPED = re.compile(r"operator=|~\w+\(|^struct LOOM_LOCAL|unique_ptr<Impl>|^friend |^private |^#"
                      r"|\b(\w+)\(\1 ?(?:const ?)?&&?|impl\(\)|^static_assert"
                      r"|^protected ")  # fmt: skip


@dataclass
class Item:
    comment: list[str]  # lines without their markers
    code: list[str]  # of one or several declarations
    names: list[str]
    members: list["Item"] = field(default_factory=list)
    kind: str = ""  # class, struct, enum, ...; "" for a function or a name


def line_comments(text: str) -> str:
    """Comments of the form /* */ that fill their lines, as // on each line."""

    def lines(found: re.Match) -> str:
        rows = [re.sub(r"^\s*\* ?", "", row).strip() for row in found[2].strip().split("\n")]
        return "\n".join(f"{found[1]}// {row}".rstrip() for row in rows)

    return _BLOCK.sub(lines, text)


def _depth(line: str) -> int:
    bare = _QUIET.sub("", line)
    return sum(bare.count(c) for c in "({[") - sum(bare.count(c) for c in ")}]")


def _ended(code: list[str]) -> bool:
    bare = _QUIET.sub("", code[-1]).rstrip()
    return sum(map(_depth, code)) <= 0 and bare.endswith((";", "}", "};"))


def _signature(code: list[str]) -> list[str]:
    """A function without its body."""
    text = "\n".join(code)
    bare = _QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    depth = 0
    for i, c in enumerate(bare):
        if c == "{" and depth == 0 and re.search(r"[)>\w]\s*$|\) (?:const|noexcept|override)\s*$",
                                                 bare[:i]) and "(" in bare[:i]:  # fmt: skip
            return (text[:i].rstrip() + ";").split("\n")
        depth += (c in "({[") - (c in ")}]")
    return code


def _plain(code: list[str]) -> str:
    """A declaration in one line, without attributes, strings and what is in angle brackets."""
    text = re.sub(r"LOOM_\w+ |\[\[\w+\]\] ", "", " ".join(_QUIET.sub("", c) for c in code)).strip()
    text = text.replace("->", "  ").replace("=>", "  ")
    while re.search(r"<[^<>]*>", text):
        text = re.sub(r"<[^<>]*>", "", text)
    return re.sub(r"^template ", "", text).strip()


def _name(code: list[str]) -> str:
    text = _plain(code)
    found = _TYPE.match(text)
    if found and found[2]:
        return found[2]
    for form in (r"^using (\w+)", r"^(?:export )?type (\w+)", r"^typedef struct (\w+) \{",
                 r"^typedef .*?(?:\(\*)?(\w+)\)?(?:\(.*\))?;$", r"(operator ?\W*?)\(",
                 r"^(?:[^(={;:]|::)*?(\w+)\(", r"(\w+)\??:(?!:)",
                 r"(\w+)\s*(?:\[\w*\]\s*)?(?:=|\{|;|,)",
                 r"(\w+)\("):  # fmt: skip
        found = re.search(form, text)
        if found:
            return found[1].strip()
    return ""


def _has_methods(body: list[str]) -> bool:
    text = _plain(body)
    return re.search(r"\w\([^;{]*\)\s*(?:const|noexcept)?\s*[;{]", text) is not None


def _dedent(line: str, indent: int) -> str:
    return line[indent:] if line[:indent].isspace() or indent == 0 else line.lstrip()


def _inside(code: list[str], kind: str) -> list[str]:
    """The lines of the public part of a body."""
    body = code[1:-1] if len(code) > 2 else []
    public, lines = kind != "class", []
    for line in body:
        mark = re.match(r"\s*(public|private|protected):", line)
        if mark:
            public = mark[1] == "public"
        elif public:
            lines.append(line)
    return lines


def _item(code: list[str], comment: list[str], indent: int, public_by_word: bool) -> Item:
    shown = [_dedent(line, indent) for line in code]
    found = _TYPE.match(re.sub(r"^template <.*?>\s*", "", " ".join(shown)))
    if not found or "{" not in "".join(code):
        return Item(comment, _signature(shown), [_name(shown)])
    kind = found[1]
    first = next(i for i, line in enumerate(code) if "{" in line)
    body = _inside(code[first:], kind if public_by_word else "struct")
    methods = "enum" not in kind and _has_methods(body)
    item = Item(comment, shown, [_name(shown)], [], kind)
    if kind == "class" or (methods and kind == "struct"):
        item.members = items("\n".join(body), indent + 2, public_by_word)
        item.code = [" ".join(line.strip() for line in shown[: first + 1]).rstrip("{ ")]
    return item


def items(text: str, indent: int = 0, public_by_word: bool = True) -> list[Item]:
    """Declarations in order. Those that follow each other without a gap are one item."""
    found: list[Item] = []
    comment: list[str] = []
    code: list[str] = []
    joined = False
    for line in text.split("\n"):
        bare = line.strip()
        if code:
            code.append(line)
        elif not bare:
            comment, joined = [], False
            continue
        elif bare.startswith("//"):
            comment.append(re.sub(r"^// ?", "", bare))
            joined = False
            continue
        elif re.match(r"#|namespace |}|extern \"C\"|import |export [*{]", bare):
            comment = []
            continue
        else:
            code = [line]
        if not _ended(code):
            continue
        shown = code[0].strip()
        if not _SKIPPED.search(shown):
            item = _item(code, comment, indent, public_by_word)
            if joined and found and not (item.kind or found[-1].kind):
                found[-1].code += item.code
                found[-1].names += [n for n in item.names if n not in found[-1].names]
            else:
                found.append(item)
            joined = not item.kind
        code, comment = [], []
    return found
