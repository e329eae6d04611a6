#!/usr/bin/env python3
"""Asks HF `tokenizers` about every code point and about random strings, and writes hashes of its
answers to tests/text/golden/unicode.json.

    python tools/text/make_unicode_goldens.py [--full FILE]      (needs tokenizers)

--full: the ranges themselves, to look at when a hash differs.
"""

import argparse
import json
import pathlib
import random

import tokenizers
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "golden"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERYTHING = "".join(map(chr, ALL))
CATEGORIES = """L M N P S Z C LC Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So
Zs Zl Zp Cc Cf Cs Co Cn""".split()
PROPERTIES = "Any Alphabetic White_Space Lowercase Uppercase Ideographic Emoji Unknown".split()
PATTERNS = [
    r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", r"\H", r".", r"\R", r"[\w]", r"[^\w]", r"[\s]",
    r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"\P{L}",
    r"\p{^L}", r"[\P{L}]", r"(?i:k)", r"(?i:[a-z])", r"(?i:[^k-s])", r"(?i:\x{3A3})",
    r"(?i:\p{Lu})",
    r"(?i:[\p{Lu}])", r"(?i:[\p{Ll}])", r"(?i:[\p{Lt}])", r"(?i:[\P{Lu}])", r"(?i:\w)",
    r"(?i:[\w])", r"(?i:[\p{M}\p{Lo}\p{Lm}])", r"(?i:[\p{N}\p{So}])", "[一-龥ࠀ-一가-퟿]",
]
PRE_TOKENIZERS = {
    "Digits": pre_tokenizers.Digits(individual_digits=True),
    "Punctuation": pre_tokenizers.Punctuation(),
    "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
    "Whitespace": pre_tokenizers.Whitespace(),
}
# clean_text, handle_chinese_chars, strip_accents, lowercase
BERT = {
    "Bert clean": (True, False, False, False),
    "Bert ideographs": (False, True, False, False),
    "Bert accents": (False, False, True, False),
    "Bert": (True, True, None, True),
}


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return "".join(f"{a:x}-{b:x}\n" for a, b in out)


def script_names():
    lines = GOLDEN.parents[2].joinpath("src/text/normalizers/unicode_tables.cpp").read_text("utf-8")
    names = lines.split("kScriptNamesTable = {{", 1)[1].split("}};", 1)[0]
    return [name.split('"')[1] for name in names.split("},") if '"' in name]


def matched(pattern):
    """The code points that the pattern matches one by one."""
    out = set(ALL)
    pieces = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(EVERYTHING)
    for _, (begin, end) in pieces:
        out.difference_update(ALL[begin:end])
    return ranges(out)


def cut(pre_tokenizer):
    """The code points that do not stay together with letters around them."""
    return ranges(c for c in ALL if len(pre_tokenizer.pre_tokenize_str(f"a{chr(c)}a")) > 1)


def changed(normalizer):
    lines = []
    for c in ALL:
        text = normalizer.normalize_str(chr(c))
        if text != chr(c):
            lines.append(f"{c:x}>{' '.join(f'{ord(x):x}' for x in text)}\n")
    return "".join(lines)


def random_text(rng):
    """Letters, marks and the newest characters side by side, so that orders and pairs matter."""
    blocks = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F),
              (0x591, 0x6FF), (0x900, 0xDFF), (0xE00, 0x11FF), (0x1AB0, 0x1AFF), (0x1C80, 0x1FFF),
              (0x2000, 0x2BFF), (0x3000, 0x33FF), (0x4E00, 0x4EFF), (0xA640, 0xABFF),
              (0xAC00, 0xACFF), (0xF900, 0xFFEF), (0x10000, 0x10FFF), (0x11000, 0x11FFF),
              (0x1D000, 0x1FFFF), (0x30000, 0x323AF), (0x9, 0xD), (0x20, 0x20)]
    text, spans = [], rng.sample(blocks, rng.randint(1, 5))
    for _ in range(rng.randint(1, 24)):
        low, high = rng.choice(spans)
        text.append(chr(rng.randint(low, high)))
    return "".join(text)


def answers():
    for name in CATEGORIES + PROPERTIES + script_names():
        yield "property", name, matched(rf"\p{{{name}}}")
    for pattern in PATTERNS:
        yield "pattern", pattern, matched(pattern)
    for name, pre_tokenizer in PRE_TOKENIZERS.items():
        yield "pre_tokenizer", name, cut(pre_tokenizer)
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase"):
        yield "normalizer", name, changed(getattr(normalizers, name)())
    for name, parts in BERT.items():
        yield "normalizer", name, changed(normalizers.BertNormalizer(*parts))


def strings(count):
    rng = random.Random(20241122)
    texts = [random_text(rng) for _ in range(count)]
    forms = {n: [fnv(getattr(normalizers, n)().normalize_str(t)) for t in texts]
             for n in ("NFC", "NFD", "NFKC", "NFKD")}
    families = {}
    forms["Bert"] = [fnv(normalizers.BertNormalizer().normalize_str(t)) for t in texts]
    for path in sorted(GOLDEN.glob("family_*.json")):
        data = json.loads(path.read_text("utf-8"))["tokenizer"]
        if data["model"].get("merge_ranks"):
            continue  # a member of our own, which the library does not read
        tok = Tokenizer.from_str(json.dumps(data))
        families[path.stem] = [fnv(" ".join(map(str, tok.encode(t).ids))) for t in texts]
    return {"texts": texts, "forms": forms, "families": families}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--full")
    full = options.parse_args().full
    found = list(answers())
    if full:
        text = "".join(f"# {kind} {name}\n{lines}" for kind, name, lines in found)
        pathlib.Path(full).write_text(text, "utf-8")
    rows = [{"kind": kind, "name": name, "lines": lines.count("\n"), "hash": fnv(lines)}
            for kind, name, lines in found]
    data = {"tokenizers": tokenizers.__version__, "every_code_point": rows, "strings": strings(300)}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    GOLDEN.joinpath("unicode.json").write_text(text.replace('{"kind"', '\n{"kind"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
