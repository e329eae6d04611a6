#!/usr/bin/env python3
"""lm-eval against `loom serve`: compares its `local-completions` with its `hf` (transformers). Over
tasks of a local file, these are equal: log-likelihoods, which texts are greedy, and generated
texts.

    tests/outside/lm_eval_check.py build/dev/cli/loom [--model FOLDER] [--documents 40]

FOLDER: a checkpoint that transformers and Loom read; the default is tests/data/stories. It
downloads nothing. Closes with "N passed, N failed, N skipped". Exit status 77 if lm-eval or
transformers is absent.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
try:
    import lm_eval
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as error:
    print(f"lm_eval_check: {error}", file=sys.stderr)
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
BOUND = 2e-4  # nats of a text, and of 1,000 nats; others add in another order
SENTENCES = [
    "Once upon a time there was a little girl who had a red ball.",
    "She played with it every day, and one day the ball was gone!",
    '"Where is my ball?" she asked. Her mom said, "Look under the bed."',
    "Tom and Lily like to play in the park. They see a big tree.",
    "naïve 漢字 🙂 costs 12,345.67 in Zürich.",
    "The dog ran.\n\nThe cat ran too.\n",
    "   spaces   before and    between",
    "He said: \\n is not a line, <|endoftext|> is not an end?",
    "a",
]


def documents(count):
    draw, made = random.Random(7), []
    for number in range(count):
        words = " ".join(draw.sample(SENTENCES, draw.randint(1, 3)))
        cut = draw.randint(1, max(1, len(words) - 2)) if number % 10 else 0  # 0 means no context
        ends = [words[cut : cut + draw.randint(1, 40)] or " end"]
        ends += [" " + draw.choice(SENTENCES)[: draw.randint(2, 30)] for _ in range(3)]
        made.append({"context": words[:cut], "ends": ends, "whole": words})
    return made


def tasks(path):
    """One of each kind of request that lm-eval has."""

    def task(name, kind, **more):
        return {
            "task": f"loom_{name}",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": path}},
            "test_split": "test",
            "output_type": kind,
            **more,
        }

    metric = lambda name: [{"metric": name}]
    return [
        task(
            "next",
            "loglikelihood",
            doc_to_text="{{context}}",
            doc_to_target="{{ends[0]}}",
            target_delimiter="",
            metric_list=metric("perplexity"),
        ),
        task(
            "choice",
            "multiple_choice",
            doc_to_text="{{context}}",
            doc_to_choice="{{ends}}",
            doc_to_target=0,
            target_delimiter="",
            metric_list=metric("acc"),
        ),
        task(
            "rolling",
            "loglikelihood_rolling",
            doc_to_text="",
            doc_to_target="{{whole}}",
            metric_list=metric("word_perplexity"),
        ),
        task(
            "write",
            "generate_until",
            doc_to_text="{{whole}}",
            doc_to_target="{{ends[0]}}",
            metric_list=metric("exact_match"),
            generation_kwargs={"until": ["\n\n", "."], "max_gen_toks": 24, "do_sample": False},
        ),
    ]


def replies(model, how, path):
    """The answer of the model to each request, by the name of a task."""
    found = lm_eval.simple_evaluate(
        model=model,
        model_args=how,
        tasks=tasks(path),
        log_samples=True,
        bootstrap_iters=0,
        batch_size=1,
        verbosity="ERROR",
    )
    return {
        name: [sample["resps"] for sample in sorted(samples, key=lambda s: s["doc_id"])]
        for name, samples in found["samples"].items()
    }


@contextlib.contextmanager
def served(loom, model):
    command = [loom, "serve", model, "--port", "0", "--quiet", "--dtype", "float32"]
    command += ["--activations", "f32", "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait(60)


def flat(reply):
    """The numbers and texts of a reply, in order."""
    if isinstance(reply, (list, tuple)):
        return [value for part in reply for value in flat(part)]
    return [reply]


def number_of(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def difference(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    if len(ours) != len(theirs):
        return f"{ours} and {theirs}"
    for a, b in zip(ours, theirs):
        x, y = number_of(a), number_of(b)
        if a != b and (x is None or y is None or abs(x - y) > BOUND * max(1.0, abs(y) / 1000)):
            return f"{a!r} and {b!r}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--model", default=str(ROOT / "tests" / "data" / "stories"))
    parser.add_argument("--documents", type=int, default=40)
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "documents.jsonl")
        lines = [json.dumps(document) for document in documents(args.documents)]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        # The cache of lm-eval 0.4.13 gives some texts the logits of others.
        checkpoint = {"pretrained": args.model, "dtype": "float32", "device": "cpu"}
        checkpoint["logits_cache"] = False
        theirs = replies("hf", checkpoint, path)
        with served(str(Path(args.program).resolve()), args.model) as address:
            how = {
                "model": Path(args.model).name,
                "base_url": f"{address}/v1/completions",
                "tokenizer": args.model,
                "tokenizer_backend": "huggingface",
            }
            forms = {"ids": {}, "texts": {"tokenized_requests": False}}
            ours = {
                form: replies("local-completions", {**how, **more}, path)
                for form, more in forms.items()
            }
    for form, tables in ours.items():
        for name, rows in tables.items():
            for at, (mine, other) in enumerate(zip(rows, theirs[name], strict=True)):
                reason = difference(mine, other)
                passed, failed = passed + (not reason), failed + bool(reason)
                if reason:
                    where = f"{name}, document {at}, prompts as {form}"
                    print(f"FAILED {where}: Loom and transformers: {reason}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
