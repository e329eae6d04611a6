#!/usr/bin/env python3
"""Texts and pairs of texts for encoders, as HF `tokenizers` encodes them: ids, types, truncation.

    python tools/text/make_encoder_goldens.py         tests/text/golden/encoders.json
    python tools/text/make_encoder_goldens.py --seed N --out FILE      other random cases, for
        LOOM_TOKENIZER_CASES=FILE build/dev/tests/test_text --gtest_filter='EncoderGolden.*'
    ... --tokenizer tokenizer.json --text FILE     of that tokenizer, on the lines of a text too

Needs tokenizers (0.23).
"""

import argparse
import base64
import json
import pathlib
import random
import struct

from tokenizers import Tokenizer

import texts
from make_unicode_goldens import random_text

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "golden" / "encoders.json"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MARKS = {"[CLS]": 2, "[SEP]": 3}


def pieces(rng, cased):
    """A vocabulary of letters and of pieces of the texts' words."""
    words = sorted({w for t in texts.LANGUAGES + texts.CODE for w in t.split()})
    out = set("abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"()-_/" + ("ABCDEGT" if cased else ""))
    for word in rng.sample(words, 60):
        word = word if cased else word.lower()
        begin = rng.randrange(len(word))
        out.add(word[begin:begin + rng.randint(1, 6)] or "a")
    tail = {"##" + p for p in rng.sample(sorted(out), len(out) * 2 // 3)}
    return SPECIAL + sorted(out) + sorted(tail)


def added(content, index):
    return {"id": index, "content": content, "single_word": False, "lstrip": content == "[MASK]",
            "rstrip": False, "normalized": False, "special": True}


def template(pair_types):
    def special(name, kind):
        return {"SpecialToken": {"id": name, "type_id": kind}}

    def text(name, kind):
        return {"Sequence": {"id": name, "type_id": kind}}
    first = [special("[CLS]", 0), text("A", 0), special("[SEP]", 0)]
    return {"type": "TemplateProcessing", "single": first,
            "pair": first + [text("B", pair_types), special("[SEP]", pair_types)],
            "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in MARKS.items()}}


def word_piece(rng, cased, post, most=100):
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(t, i) for i, t in enumerate(SPECIAL)],
            "normalizer": {"type": "BertNormalizer", "clean_text": rng.random() < 0.9,
                           "handle_chinese_chars": rng.random() < 0.8,
                           "strip_accents": rng.choice([None, None, True, False]),
                           "lowercase": not cased},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": post,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]",
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": most,
                      "vocab": {t: i for i, t in enumerate(pieces(rng, cased))}}}


def charsmap(pairs):
    """A map of SentencePiece: texts and their replacements, as a Darts double array."""
    tree, texts_of = {}, b""
    for text, becomes in pairs.items():
        node = tree
        for byte in text.encode():
            node = node.setdefault(byte, {})
        node[None] = len(texts_of)
        texts_of += becomes.encode() + b"\0"
    units, taken = {0: 0}, {0}

    def place(node, index):
        labels = [0 if b is None else b for b in node]
        base = next(b for b in range(1, 1 << 20)
                    if b not in bases and all(b ^ c not in taken for c in labels))
        bases.add(base)
        taken.update(base ^ c for c in labels)
        offset = index ^ base
        units[index] = units.get(index, 0) | offset << 10 | (1 << 8 if None in node else 0)
        for byte, child in node.items():
            if byte is None:
                units[base] = child | 1 << 31
            else:
                units[base ^ byte] = byte
                place(child, base ^ byte)

    bases = set()
    place(tree, 0)
    size = (max(units) | 255) + 1  # every label of a unit is inside, as the library expects
    trie = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + texts_of).decode()


MAPPED = {"\u00a0": " ", "\u3000": " ", "\ufb01": "fi", "\u00bd": "1\u20442", "\u2026": "...",
          "e\u0301": "\u00e9", "a\u0301": "\u00e1", "\t": " ", "\n": " ", "\u200b": "",
          "\uff21": "A", "\u0e33": "\u0e4d\u0e32", "\u1100\u1161": "\uac00"}


def unigram(rng, fallback, split=True):
    """As T5, XLM-R and related models: a map, runs of spaces, Metaspace, equal scores."""
    words = sorted({p for p in pieces(rng, True)[5:] if not p.startswith("##")})
    tokens = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    tokens += [[p, -rng.choice([2.0, 3.5, rng.uniform(1, 12)])]
               for w in words for p in (w, "\u2581" + w)] + [["\u2581", -4.5]]
    if fallback:
        tokens += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
    names = {"<s>": 0, "</s>": 2}
    around = {"type": "TemplateProcessing",
              "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                         {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "</s>", "type_id": 0}}],
              "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "</s>", "type_id": 0}},
                       {"SpecialToken": {"id": "</s>", "type_id": 0}},
                       {"Sequence": {"id": "B", "type_id": 0}},
                       {"SpecialToken": {"id": "</s>", "type_id": 0}}],
              "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in names.items()}}
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always",
             "split": split}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(t, i) for t, i in names.items()],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": charsmap(MAPPED)},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
            "pre_tokenizer": space, "post_processor": around, "decoder": space,
            "model": {"type": "Unigram", "unk_id": 3, "vocab": tokens, "byte_fallback": fallback}}


def tokenizers(rng):
    around = {"sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    bert = {"type": "BertProcessing", **around}
    roberta = {"type": "RobertaProcessing", **around, "trim_offsets": True,
               "add_prefix_space": False}
    yield "uncased", word_piece(rng, False, template(1))
    yield "cased", word_piece(rng, True, bert, most=rng.choice([5, 9]))
    yield "roberta pairs", word_piece(rng, False, roberta)
    yield "no template", word_piece(rng, False, None)
    yield "unigram", unigram(rng, False)
    yield "unigram with bytes", unigram(rng, True, split=False)


def case(rng, tok, first, second, most):
    if most:
        tok.enable_truncation(most, strategy="longest_first")
    else:
        tok.no_truncation()
    found = tok.encode(first, second) if second is not None else tok.encode(first)
    row = {"text": first, "ids": found.ids}
    if second is not None:
        row["pair"] = second
    if any(found.type_ids):
        row["types"] = found.type_ids
    if most:
        row["most"] = most
    if not most and rng.random() < 0.2:
        row["decoded"] = tok.decode(found.ids)
    return row


def cases(rng, data, count, lines):
    tok = Tokenizer.from_str(json.dumps(data))
    tok.no_padding()
    pool = texts.LANGUAGES + texts.CODE + texts.NUMBERS + texts.SPACES
    pool = pool + ["[CLS] a [MASK] b[SEP]", "x" * 101, "naïve CAFÉ İ ǅ ß ﬁ ½", "\0a\ufffdb"]
    for i in range(count):
        def text():
            return random_text(rng) if rng.random() < 0.4 else rng.choice(pool)
        yield case(rng, tok, text(), text() if rng.random() < 0.5 else None,
                   rng.choice([0, 0, 5, 6, 8, 13, 24]))
    for line in lines:
        yield case(rng, tok, line, None, 0)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--out", default=str(OUT))
    options.add_argument("--tokenizer")
    options.add_argument("--text")
    given = options.parse_args()
    rng = random.Random(given.seed)
    named = list(tokenizers(rng))
    lines = []
    if given.text:
        lines = pathlib.Path(given.text).read_text("utf-8").split("\n")
    if given.tokenizer:
        named = [("given", json.loads(pathlib.Path(given.tokenizer).read_text("utf-8")))]
    rows = [{"name": name, "tokenizer": data, "cases": list(cases(rng, data, given.count, lines))}
            for name, data in named]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(given.out).write_text(text.replace('{"text":', '\n{"text":') + "\n", "utf-8")


if __name__ == "__main__":
    main()
