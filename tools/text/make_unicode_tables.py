#!/usr/bin/env python3
"""Writes src/text/normalizers/unicode_tables.cpp: the Unicode data that tokenizers need.

  npm install --prefix DIR @unicode/unicode-{8,9,16,17}.0.0 unicode-property-value-aliases
  tools/text/make_unicode_tables.py DIR

The ids of a tokenizer equal those of HF `tokenizers`. Its parts have different versions of Unicode,
and each table has the version of its part (tokenizers 0.23):

  classes, scripts, folding   16.0  Oniguruma 6.9.10 and Rust's regex-syntax 0.8.
  normal forms                 9.0  unicode-normalization-alignments 0.1.12.
  numbers, lower, upper       17.0  char of Rust's standard library.
  grapheme clusters           17.0  unicode-segmentation.
  punctuation, marks, others   8.0  unicode_categories 0.1.

Decompositions and combining classes come from Python's unicodedata, of any version from 9.0 on: the
standard never changes them for a character that exists.
"""

import json
import pathlib
import subprocess
import sys
import textwrap
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parents[1] / "src" / "text" / "unicode_tables.cpp"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
# Letters of alternating case are one range: the first is of this category, the next a small one.
ALTERNATING = 30


def wrap(items):
    return textwrap.fill(" ".join(items), 100)


def array(kind, name, items):
    size = len(items)
    return f"const std::array<{kind}, {size}> {name}Table = {{{{\n{wrap(items)}\n}}}};\n"


def pairs(name, ranges):
    return array("CodeRange", name, [f"{{{a},{b}}}," for a, b in ranges])


def ranges_of(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def points_of(ranges):
    return {c for a, b in ranges for c in range(a, b + 1)}


def runs_of(value_of):
    """[first, value] for each change of the value."""
    out = []
    for c in range(0x110000):
        value = value_of(c)
        if not out or out[-1][1] != value:
            out.append([c, value])
    return out


def packed(name, runs):
    """The start of each run, and its value in the low 8 bits."""
    return array("uint32_t", name, [f"{c << 8 | value}," for c, value in runs])


def category_runs(categories):
    value = [0] * 0x110000
    for index, ranges in enumerate(categories.values()):
        for a, b in ranges:
            value[a : b + 1] = [index] * (b - a + 1)
    names = list(categories)
    big, small = names.index("Lu"), names.index("Ll")
    out, before = [], 0
    for c, v in runs_of(lambda c: value[c]):
        single = out and c == before + 1  # what came before is one letter
        joins = single and {v, value[before]} == {big, small}
        run = out[-1] if out else None
        alternates = joins and (v == big) == ((c - run[0]) % 2 == 0)
        before = c
        if alternates and (run[1] == ALTERNATING or (run[1] == big and c == run[0] + 1)):
            run[1] = ALTERNATING
        else:
            out.append([c, v])
    out = fix_alternating(out, value, big, small)
    check_categories(out, value, big, small)
    return out


def check_categories(runs, value, big, small):
    for i, (first, v) in enumerate(runs):
        end = runs[i + 1][0] if i + 1 < len(runs) else 0x110000
        for c in range(first, end):
            told = v if v != ALTERNATING else (big if (c - first) % 2 == 0 else small)
            assert told == value[c], hex(c)


def fix_alternating(runs, value, big, small):
    """Ends an alternating run where its last letter is followed by another of the same case."""
    out = []
    for i, (c, v) in enumerate(runs):
        end = runs[i + 1][0] if i + 1 < len(runs) else 0x110000
        out.append([c, v])
        if v != ALTERNATING:
            continue
        for p in range(c, end):
            if value[p] != (big if (p - c) % 2 == 0 else small):
                out.append([p, value[p]])
                break
    return out


def case_rows(mapping):
    """{first, last, step, delta}: every step-th code point maps to itself plus delta."""
    rows = []
    for c, to in mapping:
        delta = to - c
        row = rows[-1] if rows else None
        if row and row[3] == delta and row[1] == row[0] and c - row[1] in (1, 2):
            row[1], row[2] = c, c - row[1]
        elif row and row[3] == delta and row[1] > row[0] and c - row[1] == row[2]:
            row[1] = c
        else:
            rows.append([c, c, 1, delta])
    return [f"{{{a},{b},{step},{delta}}}," for a, b, step, delta in rows]


def decompositions(assigned):
    """{code point: (compatible, [parts])}, one level deep."""
    out = {}
    for c in ALL:
        text = unicodedata.decomposition(chr(c))
        if not text or c not in assigned:
            continue
        words = text.split()
        compatible = words[0].startswith("<")
        out[c] = (compatible, [int(w, 16) for w in words[compatible:]])
    return out


def decomposition_tables(table):
    """Runs of neighbours with parts of equal number; if the parts just rise, only the first."""
    runs, data = [], []
    for c, (compatible, parts) in sorted(table.items()):
        run = runs[-1] if runs else None
        follows = run and c == run["end"] and run["compatible"] == compatible
        if follows and run["rises"] and parts == [run["parts"][0][0] + c - run["first"]]:
            run["end"] += 1
        elif follows and len(run["parts"][0]) == len(parts) and not run["rises"]:
            run["end"] += 1
            run["parts"].append(parts)
            tail = [p[0] for p in run["parts"][-8:]]
            if len(parts) == 1 and tail == list(range(tail[0], tail[0] + 8)):
                del run["parts"][-8:]
                run["end"] -= 8
                if not run["parts"]:
                    runs.pop()
                runs.append(dict(first=c - 7, end=c + 1, compatible=compatible, rises=True,
                                 parts=[[tail[0]]]))
        else:
            runs.append(dict(first=c, end=c + 1, compatible=compatible, rises=False,
                             parts=[parts]))
    rows = []
    for run in runs:
        rows.append("{%d,%d,%d,%d,%d,%d}," % (
            run["first"], run["end"] - 1, len(run["parts"][0]), len(data), run["compatible"],
            run["rises"]))
        data += [p for parts in run["parts"] for p in parts]
    return array("DecompositionRun", "kDecompositionRuns", rows) + array(
        "char32_t", "kDecompositionParts", [f"{p}," for p in data])


def normalization(assigned):
    table = decompositions(assigned)
    excluded = [c for c, (compatible, _) in table.items()
                if not compatible and unicodedata.normalize("NFC", chr(c)) != chr(c)]
    classes = runs_of(lambda c: unicodedata.combining(chr(c)) if c in assigned else 0)
    return (decomposition_tables(table) + pairs("kNotComposed", ranges_of(excluded))
            + packed("kCombiningClasses", classes))


# In the order of `Break` and `Conjunct` in charsmap.cpp.
BREAKS = """Other CR LF Control Extend ZWJ Regional_Indicator Prepend SpacingMark L V T LV
LVT""".split()
CONJUNCTS = "None Linker Consonant Extend".split()


def grapheme_runs(data):
    value = [0] * 0x110000
    for name, listed in data["breaks"].items():
        for c in points_of(listed):
            value[c] = BREAKS.index(name)
    for c in points_of(data["pictographic"]):
        assert value[c] == 0, hex(c)
        value[c] = len(BREAKS)
    for name, listed in data["conjuncts"].items():
        for c in points_of(listed):
            value[c] |= CONJUNCTS.index(name) << 4
    return runs_of(lambda c: value[c])


def scripts(data):
    names = ["Unknown"] + sorted(set(data["scripts"]) - {"Unknown"})
    index = {c: names.index(n) for n, rs in data["scripts"].items() for c in points_of(rs)}
    words = {n.lower().replace("_", ""): i for i, n in enumerate(names)}
    for short, long in data["script_aliases"].items():
        if long in names:
            words.setdefault(short.lower(), names.index(long))
    return packed("kScripts", runs_of(lambda c: index.get(c, 0))) + array(
        "ScriptName", "kScriptNames", [f'{{"{w}",{i}}},' for w, i in sorted(words.items())])


def derived(data, name, categories):
    """A binary property less the categories that it holds whole."""
    whole = set().union(*(points_of(data["categories"][c]) for c in categories))
    points = points_of(data["binary"][name])
    assert whole <= points, name
    return pairs(f"kOther{name}", ranges_of(points - whole))


def tables(data):
    assigned = set(ALL) - points_of(data["unassigned"])
    ascii_marks = [c for c in range(33, 127) if not chr(c).isalnum()]
    punctuation = set(ascii_marks).union(*map(points_of, data["punctuation"].values()))
    numbers = set().union(*map(points_of, data["numbers"].values()))
    yield "// Unicode 16.0: general categories, scripts, properties, simple case folding.\n"
    yield packed("kCategories", category_runs(data["categories"]))
    yield scripts(data)
    yield derived(data, "Alphabetic", ["Lu", "Ll", "Lt", "Lm", "Lo", "Nl"])
    yield derived(data, "Lowercase", ["Ll"])
    yield derived(data, "Uppercase", ["Lu"])
    yield pairs("kIdeographic", data["binary"]["Ideographic"])
    yield pairs("kEmoji", data["binary"]["Emoji"])
    yield pairs("kWhiteSpace", data["binary"]["White_Space"])
    yield array("CaseRow", "kFold", case_rows(data["folds"]))
    yield "// Unicode 17.0.\n"
    yield array("CaseRow", "kLower", case_rows(data["lower"]))
    yield array("CaseRow", "kUpper", case_rows(data["upper"]))
    yield pairs("kNumbers", ranges_of(numbers))
    yield "// Unicode 8.0, and all ASCII punctuation.\n"
    yield pairs("kPunctuation", ranges_of(punctuation))
    yield "// Unicode 8.0: nonspacing marks (Mn); controls, formats and private use (Cc, Cf, Co).\n"
    yield pairs("kNonspacingMarks", data["marks"])
    yield pairs("kOthers", ranges_of(set().union(*map(points_of, data["others"].values()))))
    yield "// Unicode 17.0: grapheme cluster breaks; Indic conjunct breaks in the upper half.\n"
    yield packed("kGraphemeBreaks", grapheme_runs(data))
    yield "// Unicode 9.0: decompositions by one step, combining classes.\n"
    yield normalization(assigned)


HEAD = """// generated by tools/text/make_unicode_tables.py; do not edit.
// unicode_tables.hpp says what each table holds.
#include "text/normalizers/unicode_tables.hpp"

#include <array>

namespace loom::core::text {
namespace {

// clang-format off
"""
SPANS = """kCategories uint32_t
kScripts uint32_t
kScriptNames ScriptName
kOtherAlphabetic CodeRange
kOtherLowercase CodeRange
kOtherUppercase CodeRange
kIdeographic CodeRange
kEmoji CodeRange
kWhiteSpace CodeRange
kFold CaseRow
kLower CaseRow
kUpper CaseRow
kNumbers CodeRange
kPunctuation CodeRange
kNonspacingMarks CodeRange
kOthers CodeRange
kGraphemeBreaks uint32_t
kDecompositionRuns DecompositionRun
kDecompositionParts char32_t
kNotComposed CodeRange
kCombiningClasses uint32_t"""


def main():
    source = subprocess.run(["node", HERE / "unicode_sources.mjs", sys.argv[1]], check=True,
                            capture_output=True, text=True).stdout
    body = "\n".join(tables(json.loads(source)))
    body = body.replace("const std::array", "constexpr std::array")
    spans = "\n".join("const std::span<const {1}> {0}({0}Table);".format(*line.split())
                      for line in SPANS.splitlines())
    OUT.write_text(f"{HEAD}\n{body}\n// clang-format on\n}}  // namespace\n\n{spans}\n\n"
                   "}  // namespace loom::core::text\n", "utf-8")


if __name__ == "__main__":
    main()
