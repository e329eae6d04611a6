#!/usr/bin/env python3
"""Writes the additions of HF `tokenizers` to a prompt to tests/text/golden/continuations.json.

An addition is decode(prompt and ids) after decode(prompt). The tokenizers are those of that folder
that drop or join spaces.

    python tools/text/make_continuation_goldens.py        (needs tokenizers)
"""

import json
import pathlib
import random

from tokenizers import Tokenizer

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "golden"
FAMILIES = ["llama2", "mistral", "gemma", "pieces", "clip", "gpt2", "roberta"]
PROMPTS = ["Once upon", "Once upon ", "", " ", "é", "one\ntwo\n", "<s>", "</s>", "a<s>", "Hi</s>",
           "<s>[INST] Hi [/INST]", "日本"]
TEXTS = [" a time", "a time", "  two spaces", "é", "\nnext", " 日本", "."]


def cases(name):
    data = json.loads(GOLDEN.joinpath(f"family_{name}.json").read_text("utf-8"))["tokenizer"]
    tok = Tokenizer.from_str(json.dumps(data))
    rng = random.Random(name)
    first = [tok.encode(text, add_special_tokens=False).ids for text in TEXTS]
    first += [[rng.randrange(tok.get_vocab_size()) for _ in range(6)] for _ in range(6)]
    for prompt in PROMPTS:
        before = tok.encode(prompt).ids
        told = tok.decode(before)
        for ids in first:
            whole = tok.decode(before + ids)
            if whole.startswith(told):
                yield {"family": name, "prompt": before, "ids": ids, "text": whole[len(told):]}


def main():
    rows = [row for name in FAMILIES for row in cases(name)]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    GOLDEN.joinpath("continuations.json").write_text(
        text.replace('{"family"', '\n{"family"') + "\n", "utf-8")
    print(len(rows), "cases")


if __name__ == "__main__":
    main()
