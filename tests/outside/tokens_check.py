#!/usr/bin/env python3
"""Token ids before and after a GGUF file: random tokenizers of the `tokenizers` package.

For each tokenizer, four sets of ids are compared: of `tokenizers` itself, of Loom from the folder,
of Loom from its GGUF file, and of llama.cpp from that file. Loom must give the ids of `tokenizers`,
or refuse the export and name a field. llama.cpp must give them too, unless a note says otherwise.

  tokens_check.py --runner build/dev/tests/model_runner [--llama LIBRARIES] [--count 60]
                  [--texts 300] [--seed 1] [--show]

LIBRARIES: a folder with libllama (package/bins/linux-x64 of @node-llama-cpp/linux-x64 of npm).
Without it llama.cpp is left out. Needs tokenizers, numpy and safetensors. The last line counts.
"""

import argparse
import collections
import ctypes
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPACE = "\u2581"
WORDS = [
    "the",
    "and",
    "hello",
    "world",
    "Straße",
    "naïve",
    "école",
    "Привет",
    "мир",
    "你好",
    "世界",
    "こんにちは",
    "I'm",
    "we'LL",
    "they've",
    "don't",
    "123",
    "45678",
    "3.14",
    "foo_bar",
    "x=y+z;",
    "🙂",
    "👩‍👩‍👧",
    "cafe\u0301",
    "\u0915\u094d\u0937",
    "\u1100\u1161",
    "https://a.b/c?d=e",
    "ﬁ",
    "Ⅳ",
    "²",
    "ſs",
    "İ",
    "\ufeff",
    "…",
    "—",
]
CORPUS = [" ".join(random.Random(i).choices(WORDS, k=12)) for i in range(200)]
AWKWARD = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n\n",
    "\t",
    "\r\n",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\u200d",
    "\u0301",
    "\x00",
    "\x01",
    "\x7f",
    "\u0085",
    "\u2028",
    "\u180e",
    "\ud7ff",
    "\U0001f468\u200d\U0001f4bb",
    "\U0010ffff",
    "\ufffd",
    SPACE,
    SPACE * 3,
    "<0x0A>",
    "[PAD3]",
    "Ġ",
    "'S",
    "'ſ",
    "１２３",
    "٣٤",
    "½",
    "-",
    "_",
    "a" * 40,
    " " * 30,
    "\n" * 17,
]


def texts_for(tokens, count, seed):
    """Awkward strings with `tokens` inside."""
    draw = random.Random(seed)
    pieces = WORDS + AWKWARD + tokens * 3
    out = list(AWKWARD) + tokens + [f" {t} x{t}{t}" for t in tokens]
    while len(out) < count:
        out.append(
            "".join(
                draw.choice(pieces) + draw.choice(["", "", " ", " ", "  ", "\n"])
                for _ in range(draw.randint(1, 12))
            )
        )
    return out[:count]


def added_tokens(draw, library):
    """Random added tokens."""
    names = [
        "<|im_start|>",
        "<|im_end|>",
        "<tool>",
        "</tool>",
        "[MASK]",
        "hello",
        "ab",
        "bc",
        "<a><b>",
        "  ",
        "世",
    ]
    out = []
    for name in draw.sample(names, draw.choice([0, 0, 2, 3, 5])):
        rare = draw.random() < 0.25
        out.append(
            library.AddedToken(
                name,
                special=draw.random() < 0.5,
                normalized=draw.random() < 0.3,
                lstrip=rare and draw.random() < 0.5,
                rstrip=rare and draw.random() < 0.5,
                single_word=rare and draw.random() < 0.5,
            )
        )
    return out


def around(draw, tokenizer, library):
    """A random post-processor."""
    from tokenizers import processors

    bos, eos = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    single = draw.choice(
        ["", "", "$A", "<s> $A", "<s> $A", "<s> $A", "<s> $A </s>", "$A </s>"] * 2
        + ["<s> <s> $A", "<s> </s> $A"]
    )
    if not single:
        return
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[("<s>", bos), ("</s>", eos)]
    )


def bytes_tokenizer(draw):
    """Byte-level BPE with random options."""
    import tokenizers as library
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

    options = {}
    if draw.random() < 0.1:
        options["end_of_word_suffix"] = "</w>"
    tokenizer = library.Tokenizer(models.BPE(**options))
    level = pre_tokenizers.ByteLevel(add_prefix_space=draw.random() < 0.12, use_regex=False)
    own = pre_tokenizers.ByteLevel(add_prefix_space=draw.random() < 0.12, use_regex=True)
    split = lambda regex, how="isolated", invert=False: pre_tokenizers.Split(
        Regex(regex), how, invert
    )
    tokenizer.pre_tokenizer = draw.choice(
        [
            own,
            own,
            level,
            pre_tokenizers.Sequence([split(LLAMA3), level]),
            pre_tokenizers.Sequence([split(LLAMA3), level]),
            pre_tokenizers.Sequence([split(QWEN2), level]),
            pre_tokenizers.Sequence([split(QWEN2), level]),
            pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), own]),
            pre_tokenizers.Sequence(
                [split(GPT2, draw.choice(["removed", "merged_with_next", "contiguous"])), level]
            ),
            pre_tokenizers.Sequence([split(GPT2, "isolated", True), level]),
            pre_tokenizers.Sequence([level, split(GPT2)]),
            pre_tokenizers.Whitespace(),
        ]
    )
    tokenizer.normalizer = draw.choice(
        [
            None,
            None,
            None,
            normalizers.NFC(),
            normalizers.NFC(),
            normalizers.NFKC(),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.decoder = draw.choice([decoders.ByteLevel()] * 5 + [decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=draw.choice([500, 700]),
        show_progress=False,
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    spec = json.loads(tokenizer.to_str())
    spec["model"]["ignore_merges"] = draw.random() < 0.5
    spec["model"]["unk_token"] = draw.choice([None, None, "<unk>"])
    spec["model"]["fuse_unk"] = draw.random() < 0.2
    return library.Tokenizer.from_str(json.dumps(spec))


def pieces_tokenizer(draw):
    """Pieces with byte fallback: merges of scores, as converters of SentencePiece make them."""
    import tokenizers as library
    from tokenizers import models, pre_tokenizers, trainers

    seed = library.Tokenizer(models.BPE())
    split = draw.random() < 0.7
    seed.pre_tokenizer = pre_tokenizers.Metaspace(split=split)
    seed.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, show_progress=False))
    trained = json.loads(seed.to_str())["model"]
    bytes_of = [f"<0x{b:02X}>" for b in range(256)][: draw.choice([256] * 8 + [200])]
    pieces = sorted(trained["vocab"], key=trained["vocab"].get)
    vocabulary = {t: i for i, t in enumerate(["<unk>", "<s>", "</s>", *bytes_of, *pieces])}
    merges = [m if isinstance(m, list) else m.split(" ") for m in trained["merges"]]
    if draw.random() < 0.75:  # every cut of every piece
        merges = [
            [p[:i], p[i:]]
            for p in pieces
            for i in range(1, len(p))
            if p[:i] in vocabulary and p[i:] in vocabulary
        ]
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    put = {"type": "Prepend", "prepend": SPACE}
    scheme = draw.choice(["always", "first", "never"])
    normalizer, before = draw.choice(
        [
            ({"type": "Sequence", "normalizers": [put, mark]}, None),
            (mark, None),
            (
                mark,
                {
                    "type": "Split",
                    "pattern": {"String": " "},
                    "behavior": "MergedWithPrevious",
                    "invert": False,
                },
            ),
            (
                None,
                {
                    "type": "Metaspace",
                    "replacement": SPACE,
                    "prepend_scheme": scheme,
                    "split": draw.random() < 0.5,
                },
            ),
            ({"type": "Sequence", "normalizers": [{"type": "NFKC"}, put, mark]}, None),
        ]
    )
    return library.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [
                    {
                        "id": i,
                        "content": t,
                        "single_word": False,
                        "lstrip": False,
                        "rstrip": False,
                        "normalized": False,
                        "special": True,
                    }
                    for i, t in enumerate(["<unk>", "<s>", "</s>"])
                ],
                "normalizer": normalizer,
                "pre_tokenizer": before,
                "post_processor": None,
                "decoder": {
                    "type": "Sequence",
                    "decoders": [
                        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                        {"type": "ByteFallback"},
                        {"type": "Fuse"},
                        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                    ],
                },
                "model": {
                    "type": "BPE",
                    "dropout": None,
                    "unk_token": "<unk>",
                    "fuse_unk": draw.random() < 0.7,
                    "byte_fallback": True,
                    "ignore_merges": draw.random() < 0.1,
                    "vocab": vocabulary,
                    "merges": merges,
                },
            }
        )
    )


def write_folder(tokenizer, folder):
    """A model of one layer with this tokenizer."""
    import numpy as np
    from safetensors.numpy import save_file

    size, n = 32, tokenizer.get_vocab_size() + 3
    n += -n % 8
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size,
        "intermediate_size": size,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "vocab_size": n,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.token_to_id("<s>"),
        "eos_token_id": tokenizer.token_to_id("</s>"),
    }
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    layer, square = "model.layers.0.", np.zeros((size, size), np.float32)
    tensors = {
        "model.embed_tokens.weight": np.zeros((n, size), np.float32),
        "model.norm.weight": square[0],
    }
    for name in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ):
        tensors[f"{layer}{name}.weight"] = square
    tensors[layer + "input_layernorm.weight"] = tensors[
        layer + "post_attention_layernorm.weight"
    ] = square[0]
    save_file({k: v.copy() for k, v in tensors.items()}, os.path.join(folder, "model.safetensors"))


def ids_by_loom(runner, model, texts):
    done = subprocess.run([runner, "ids", model, texts], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return [
        [int(v) for v in line.split()] if not line.startswith("error") else line
        for line in done.stdout.splitlines()
    ], ""


def ids_by_llama(libraries, model, texts):
    done = subprocess.run(
        [sys.executable, __file__, "--child", libraries, model, texts],
        capture_output=True,
        text=True,
    )
    lines = [[int(v) for v in line.split()] for line in done.stdout.splitlines()]
    return lines, (
        ""
        if done.returncode == 0
        else f"llama.cpp ended with {done.returncode} {done.stderr[-200:]}"
    )


class Blob(ctypes.Structure):
    """Parameters of llama.cpp, whose fields are not known here."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]


def child(libraries, model, texts):
    """llama.cpp's ids of all texts, in a separate process: a wrong file ends the process."""
    for stem in ("libggml-base", "libggml.", "libllama."):
        library = ctypes.CDLL(
            sorted(glob.glob(f"{libraries}/{stem}*so*"))[0], mode=ctypes.RTLD_GLOBAL
        )
        if stem == "libggml.":
            library.ggml_backend_load_all_from_path(libraries.encode())
    log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
    library.llama_log_set(log, None)
    library.llama_model_default_params.restype = Blob
    library.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Blob]
    library.llama_model_load_from_file.restype = library.llama_model_get_vocab.restype = (
        ctypes.c_void_p
    )
    library.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    library.llama_tokenize.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_bool,
        ctypes.c_bool,
    ]
    loaded = library.llama_model_load_from_file(
        model.encode(), library.llama_model_default_params()
    )
    if not loaded:
        sys.exit(3)
    vocabulary = library.llama_model_get_vocab(loaded)
    with open(texts, encoding="ascii") as file:
        for line in file:
            text = bytes.fromhex(line.strip())
            out = (ctypes.c_int32 * (len(text) * 4 + 16))()
            count = library.llama_tokenize(vocabulary, text, len(text), out, len(out), True, True)
            print(*out[: max(count, 0)])
    sys.stdout.flush()
    os._exit(0)


def first_difference(want, got, texts):
    for text, a, b in zip(texts, want, got):
        if a != b:
            return f"{text!r}: {a} and {b}"
    return "" if len(want) == len(got) else "another count of texts"


def encoded(tokenizer, texts):
    """The texts that the package has ids for, and the ids. It panics at some that have blanks on
    both sides of a token that takes them ("AddedVocabulary bad split", 0.23.3)."""
    kept, ids = [], []
    for text in texts:
        try:
            ids.append(tokenizer.encode(text).ids)
            kept.append(text)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
    return kept, ids


def check(args, number, work, totals):
    import tokenizers as library

    draw = random.Random(args.seed * 100003 + number)
    kind = bytes_tokenizer if draw.random() < 0.55 else pieces_tokenizer
    tokenizer = kind(draw)
    if tokenizer.token_to_id("<s>") is None:
        tokenizer.add_special_tokens(["<s>", "</s>"])
    added = added_tokens(draw, library)
    tokenizer.add_tokens(added)
    around(draw, tokenizer, library)
    folder = os.path.join(work, "model")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    write_folder(tokenizer, folder)
    texts = texts_for(
        [t.content for t in added] + ["<s>", "</s>", "<unk>"], args.texts, args.seed * 7 + number
    )
    count = len(texts)
    texts, want = encoded(tokenizer, texts)
    totals["texts at which tokenizers panics"] += count - len(texts)
    listed, gguf = os.path.join(work, "texts"), os.path.join(work, "m.gguf")
    with open(listed, "w", encoding="ascii") as file:
        file.writelines(t.encode("utf-8", "surrogatepass").hex() + "\n" for t in texts)
    label = f"{number} {kind.__name__}"
    got, why = ids_by_loom(args.runner, folder, listed)
    wrong = why or first_difference(want, got, texts)
    totals["folder wrong" if wrong else "folder equal"] += 1
    if wrong:
        print(f"WRONG {label}: folder: {wrong}")
    if os.path.exists(gguf):
        os.remove(gguf)
    done = subprocess.run([args.runner, "export", folder, gguf], capture_output=True, text=True)
    notes = done.stderr.strip()
    if done.returncode != 0:
        reason = notes.splitlines()[-1].replace(work, "").split("; write an")[0]
        totals["refused"] += 1
        totals["refused: " + reason.split(": ", 1)[-1][:90]] += 1
        if args.show:
            print(f"refused {label}: {reason}")
        return
    got, why = ids_by_loom(args.runner, gguf, listed)
    wrong = why or first_difference(want, got, texts)
    totals["gguf wrong" if wrong else "gguf equal"] += 1
    if wrong:
        print(f"WRONG {label}: gguf: {wrong}")
    if not args.llama:
        return
    got, why = ids_by_llama(args.llama, gguf, listed)
    differs = why or first_difference(want, got, texts)
    said = "llama.cpp may" in notes
    totals[
        "llama equal" if not differs else "llama differs, noted" if said else "llama wrong"
    ] += 1
    if differs and (args.show or not said):
        print(f"{'noted' if said else 'WRONG'} {label}: llama.cpp: {differs} | {notes[:300]}")
    sys.stdout.flush()


def main():
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5])
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--llama", default="")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    totals = collections.Counter()
    with tempfile.TemporaryDirectory() as work:
        for number in args.only or range(args.count):
            check(args, number, work, totals)
    for name, count in sorted(totals.items()):
        print(f"{count:5} {name}")
    failed = totals["folder wrong"] + totals["gguf wrong"] + totals["llama wrong"]
    print(
        f"{sum(totals[k] for k in ('gguf equal', 'refused'))} passed, {failed} failed, 0 skipped"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
