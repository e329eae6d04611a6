#!/usr/bin/env python3
"""Encoders of transformers, exported by PyTorch with their masks, in Loom and in ONNX Runtime.

Each is small, with random weights and random sizes: BERT, DistilBERT, RoBERTa and ELECTRA, bare or
with a classifier. They go through both exporters of torch.onnx, with both kinds of attention.
Further inputs are int64: attention_mask, and token_type_ids if the class has them. Masks are
ragged.

  onnx_encoders.py --loom build/dev/cli/loom [--count 16] [--seed 1]

Needs torch, transformers, onnx, onnxscript and onnxruntime; exit status 77 without them. A file
that Loom refuses fails, and the reason is printed. The last line counts.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
try:
    import numpy as np
    import onnxruntime
    import onnxscript  # noqa: F401
    import torch
    import transformers as T
except ImportError as error:
    print(f"onnx_encoders: {error}", file=sys.stderr)
    sys.exit(77)

CLASSES = {
    "BertModel": T.BertConfig,
    "BertForSequenceClassification": T.BertConfig,
    "BertForTokenClassification": T.BertConfig,
    "DistilBertModel": T.DistilBertConfig,
    "DistilBertForSequenceClassification": T.DistilBertConfig,
    "ElectraForSequenceClassification": T.ElectraConfig,
    "RobertaForSequenceClassification": T.RobertaConfig,
}
PAD = 1


class First(torch.nn.Module):
    """The first output alone, with the inputs by position."""

    def __init__(self, model, kinds):
        super().__init__()
        self.model, self.kinds = model, kinds

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        more = {"token_type_ids": token_type_ids} if self.kinds else {}
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **more)[0]


def drawn(r, name):
    heads = r.choice((1, 2, 4))
    length = r.randint(3, 12)
    common = {"vocab_size": r.randint(20, 60), "max_position_embeddings": length + r.randint(2, 8),
              "num_labels": r.randint(2, 4), "pad_token_id": PAD,
              "attn_implementation": r.choice(("eager", "sdpa"))}
    width, layers, inner = heads * r.choice((4, 8)), r.randint(1, 3), r.randint(4, 30)
    if name.startswith("DistilBert"):
        sizes = {"dim": width, "n_layers": layers, "n_heads": heads, "hidden_dim": inner}
    else:
        sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": inner,
                 "num_attention_heads": heads, "type_vocab_size": r.randint(1, 3)}
    if name.startswith("Electra"):
        sizes["embedding_size"] = r.choice((width, 6))
    return CLASSES[name](**common, **sizes), length


def filled(model):
    """Exporters make one tensor of equal ones, so no two are."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0.0, 0.3)
            p.add_(1.0 if p.ndim == 1 and p.numel() > 1 else 0.0)
    return model.eval()


def exported(model, given, newer, path):
    names = list(given)
    if newer:
        batch = torch.export.Dim("batch")
        program = torch.onnx.export(model, tuple(given.values()), dynamo=True, input_names=names,
                                    output_names=["y"], verbose=False,
                                    dynamic_shapes={n: {0: batch} for n in names})
        program.save(path)
    else:
        torch.onnx.export(model, tuple(given.values()), path, dynamo=False, input_names=names,
                          output_names=["y"], opset_version=17,
                          dynamic_axes={n: {0: "batch"} for n in [*names, "y"]})


def samples(r, config, length, count, kinds):
    ids = torch.tensor([[r.randrange(2, config.vocab_size) for _ in range(length)]
                        for _ in range(count)])
    mask = torch.ones(count, length, dtype=torch.long)
    for i in range(count):
        mask[i, r.randint(1, length):] = 0
    ids[mask == 0] = PAD
    given = {"input_ids": ids, "attention_mask": mask}
    if kinds:
        given["token_type_ids"] = torch.tensor(
            [[r.randrange(config.type_vocab_size) for _ in range(length)] for _ in range(count)])
    return given


def loom(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def difference(program, folder, path, given):
    """None: refused, with the reason printed."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {i.name: given[i.name].numpy() for i in session.get_inputs()}
    truth = session.run(None, feed)[0]
    data, out = os.path.join(folder, "x.npz"), os.path.join(folder, "y.npz")
    np.savez(data, **{"x" if k == "input_ids" else k: v for k, v in feed.items()})
    code, said = loom(program, "predict", path, data, "--force", "-o", out)
    if code == 4:
        print(f"refused: {said}")
        return None
    if code != 0:
        print(said)
        return float("inf")
    with np.load(out) as made:
        ours = made[made.files[0]].reshape(truth.shape)
    return float(np.abs(ours - truth).max() / max(np.abs(truth).max(), 1e-3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loom", required=True)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed = failed = refused = 0
    for number in range(args.count):
        r = random.Random(args.seed * 10007 + number)
        torch.manual_seed(number)
        name, newer = r.choice(sorted(CLASSES)), r.random() < 0.5
        config, length = drawn(r, name)
        kinds = name.startswith(("Bert", "Electra"))
        model = First(filled(getattr(T, name)(config)), kinds).eval()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            exported(model, samples(r, config, length, 2, kinds), newer, path)
            off = difference(args.loom, folder, path, samples(r, config, length, 5, kinds))
        label = f"{number} {name} {config._attn_implementation} {'newer' if newer else 'older'}"
        refused += off is None
        wrong = off is not None and not off <= 1e-4
        failed += wrong
        passed += off is not None and not wrong
        said = "refused" if off is None else off
        print(f"{'WRONG ' if wrong else ''}{label}: {said}", flush=True)
    print(f"{refused} refused")
    print(f"{passed} passed, {failed + refused} failed, 0 skipped")
    return 1 if failed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
