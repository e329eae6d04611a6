"""Trains the tokenizers of configs.py and writes the results of HF `tokenizers` for them and for
variants.py to tests/text/golden/.

    python tools/text/make_goldens.py        (needs tokenizers)

Training breaks ties differently from run to run, so a new run changes every file of a family.
"""

import json
import pathlib

from tokenizers import Tokenizer

import configs
import texts
import variants

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "golden"


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    OUT.joinpath(name).write_text(text.replace('"encoded":', '\n"encoded":') + "\n", "utf-8")


def family(data):
    """Ids of every text; and what differs for special tokens as text, and when decoding."""
    tok = Tokenizer.from_str(json.dumps(data))
    encoded, unparsed, bare, decoded, kept = [], [], [], [], []
    for text in texts.TEXTS:
        ids = tok.encode(text).ids
        encoded.append(ids)
        bare.append(len(tok.encode(text, add_special_tokens=False).ids))
        tok.encode_special_tokens = True
        plain = tok.encode(text).ids
        tok.encode_special_tokens = False
        unparsed.append(None if plain == ids else plain)
        back = tok.decode(ids)
        decoded.append(None if back == text else back)
        whole = tok.decode(ids, skip_special_tokens=False)
        kept.append(None if whole == back else whole)
    return {
        "tokenizer": data,
        "encoded": encoded,
        "unparsed": unparsed,
        "bare": bare,
        "decoded": decoded,
        "kept": kept,
    }


def variant(base, name, changes):
    tok = Tokenizer.from_str(json.dumps(variants.apply_changes(base, changes)))
    return {
        "name": name,
        "changes": {key: variants.apply_changes(base, changes)[key] for key in changes},
        "encoded": [tok.encode(text).ids for text in texts.SPLIT_TEXTS],
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    write("texts.json", texts.TEXTS)
    for name, data in configs.families().items():
        write(f"family_{name}.json", family(data))
    base = variants.base()
    cases = [variant(base, name, changes) for name, changes in variants.variants()]
    half = len(cases) // 2
    write("variants_base.json", {"tokenizer": base, "texts": texts.SPLIT_TEXTS})
    write("variants_1.json", cases[:half])
    write("variants_2.json", cases[half:])


if __name__ == "__main__":
    main()
