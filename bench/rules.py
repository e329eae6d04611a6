#!/usr/bin/env python3
"""Learning rules on real digits: one table of accuracies, with their spread over seeds.

IMAGES and LABELS are IDX files of 10,000 digits (the test files of MNIST). They are shuffled once,
in a fixed order; the first 8,000 train, the last 2,000 test. Settings were chosen with --tune,
which sees the 8,000 alone (6,400 train, 1,600 validate) and other seeds.

  bench/rules.py build/dev/cli/loom images-idx3-ubyte.gz labels-idx1-ubyte.gz

  bench/rules.py LOOM IMAGES LABELS --only mlp --seeds 1,2,3

  bench/rules.py LOOM IMAGES LABELS --tune --only 'mlp dtp' --set rate=0.0005

  bench/rules.py LOOM IMAGES LABELS --jobs 16 --results runs.jsonl

With --results every finished run is added to FILE, and the runs of FILE are not repeated. So an
interrupted table continues. Lines of other settings are left alone.

Exit status: 0; 1 when a mean is below its floor, which the table then says.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading

TRAIN, TEST, TUNE = 8000, 2000, 1600


def mlp(activation, widths=(784, 256, 128, 10), last="linear"):
    layers = []
    for i in range(len(widths) - 1):
        end = i + 2 == len(widths)
        layers.append({"type": "Dense", "in": widths[i], "out": widths[i + 1],
                       "activation": last if end else activation})
    return {"loom": 1, "input": [28, 28], "layers": layers}


def dropped(activation):
    """The same with a share of hidden values left out in training."""
    net = mlp(activation)
    first, second, last = net["layers"]
    net["layers"] = [first, {"type": "Dropout", "rate": 0.3}, second,
                     {"type": "Dropout", "rate": 0.2}, last]
    return net


def normed(activation, widths=(784, 256, 128, 10)):
    """A norm in front of every layer but the first, in one cell with it."""
    net = mlp(activation, widths)
    net["layers"] = net["layers"][:1] + [
        {"type": "Sequential", "children": [{"type": "RMSNorm", "width": layer["in"]}, layer]}
        for layer in net["layers"][1:]]
    return net


def cnn(activation, norm=False):
    dense = {"type": "Dense", "in": 16 * 7 * 7, "out": 10}
    second = {"type": "CNN2", "channels": 8, "filters": 16, "kernel": 3, "stride": 2, "padding": 1,
              "activation": activation}
    if norm:
        dense = {"type": "Sequential", "children": [
            {"type": "LayerNorm", "width": 7}, dense]}
        second = {"type": "Sequential", "children": [{"type": "LayerNorm", "width": 14}, second]}
    return {"loom": 1, "input": [1, 28, 28], "layers": [
        {"type": "CNN2", "channels": 1, "filters": 8, "kernel": 3, "stride": 2, "padding": 1,
         "activation": activation}, second, dense]}


def attention(activation, width=32, read_width=64, norm=False):
    """The rows of an image attend to each other; the last layers see all of them. With norms, each
    row is added to its result, because an isolated block cannot restore what the block before
    averaged away."""
    mha = {"type": "MultiHeadAttention", "width": width, "heads": 4, "kv_heads": 4,
           "head_dim": width // 4, "causal": False}
    dense = {"type": "Dense", "in": width, "out": width, "activation": activation}
    read = {"type": "Dense", "in": 28 * width, "out": read_width, "activation": activation}
    last = {"type": "Dense", "in": read_width, "out": 10}
    look = [mha, dense]
    if norm:
        look = [{"type": "RMSNorm", "width": width}, {"type": "Residual", "children": [mha]}, dense]
        read = [{"type": "Flatten"}, {"type": "RMSNorm", "width": 28 * width}, read]
        read = {"type": "Sequential", "children": read}
        last = {"type": "Sequential",
                "children": [{"type": "RMSNorm", "width": read_width}, last]}
    return {"loom": 1, "input": [28, 28], "layers": [
        {"type": "Dense", "in": 28, "out": width, "activation": activation},
        {"type": "Sequential", "children": look}, read, last]}


def lstm(hidden=32):
    """An image is a sequence of 28 rows; the last layer sees all states."""
    return {"loom": 1, "input": [28, 28], "layers": [
        {"type": "LSTM", "in": 28, "hidden": hidden},
        {"type": "Dense", "in": 28 * hidden, "out": 64, "activation": "tanh"},
        {"type": "Dense", "in": 64, "out": 10}]}


class Run:
    """A row of the table. floor: minimum mean accuracy in percent; None: reported, not checked."""

    def __init__(self, name, rule, net, floor, goal=None, **flags):
        self.name, self.rule, self.net, self.floor, self.goal = name, rule, net, floor, goal
        self.flags = {"epochs": 10, "batch": 64, "rate": 0.002, "schedule": "cosine",
                      "normalize": "range", **flags}


RUNS = [
    Run("mlp back-propagation", "back-propagation", dropped("relu"), 97.0, epochs=25, rate=0.003),
    Run("mlp chain", "chain", dropped("relu"), 96.7, epochs=25, rate=0.003),
    Run("mlp diff-project", "diff-project", mlp("relu"), 95.5, 96.5),
    Run("mlp dtp", "dtp", mlp("tanh"), 94.5, 96.0),
    Run("mlp fixed-dtp", "fixed-dtp", mlp("tanh"), 93.5, 95.5, epochs=25, rate=0.004),
    Run("mlp dfa", "dfa", mlp("tanh"), 95.5, 96.5, epochs=25, rate=0.006),
    Run("mlp drtp", "drtp", mlp("tanh"), 91.0, 93.5, epochs=25, rate=0.004),
    Run("mlp forward-forward", "forward-forward", normed("relu", (784, 500, 500, 10)), 93.0, 95.5,
        rule_label_scale=0.3, rule_threshold=1, rule_temperature=8),
    Run("mlp diff-project ternary", "diff-project", mlp("relu"), 93.0, 95.0, dtype="ternary"),
    Run("mlp diff-project binary", "diff-project", mlp("relu"), 90.0, 93.0, dtype="binary"),
    Run("mlp hebb (ablation)", "hebb", mlp("tanh"), None),
    Run("cnn back-propagation", "back-propagation", cnn("relu"), 95.0),
    Run("cnn chain", "chain", cnn("relu"), 95.0),
    Run("cnn diff-project", "diff-project", cnn("relu"), 94.0),
    Run("cnn dtp", "dtp", cnn("tanh"), 93.0),
    Run("cnn fixed-dtp", "fixed-dtp", cnn("tanh"), 92.0, epochs=25, rate=0.008),
    Run("cnn dfa", "dfa", cnn("tanh"), 92.0),
    Run("cnn drtp", "drtp", cnn("tanh"), 88.0),
    Run("cnn forward-forward", "forward-forward", cnn("relu", True), 88.0,
        rule_label_scale=0.03),
    Run("lstm back-propagation", "back-propagation", lstm(), 93.0),
    Run("lstm chain", "chain", lstm(), 93.0),
    Run("lstm diff-project", "diff-project", lstm(), 92.0),
    Run("lstm dtp", "dtp", lstm(), 90.0),
    Run("lstm fixed-dtp", "fixed-dtp", lstm(), 90.0, epochs=20, rate=0.005),
    Run("lstm dfa", "dfa", lstm(), 90.0, epochs=20, rate=0.005),
    Run("lstm drtp", "drtp", lstm(), 85.0, epochs=30, rate=0.005),
    Run("lstm forward-forward", "forward-forward", lstm(), 80.0, epochs=20, rule_label_scale=0.3,
        rule_threshold=0.2, rule_temperature=2),
    Run("attention back-propagation", "back-propagation", attention("relu"), 93.0),
    Run("attention chain", "chain", attention("relu"), 93.0),
    Run("attention diff-project", "diff-project", attention("relu"), 92.0),
    Run("attention dtp", "dtp", attention("tanh"), 90.0),
    Run("attention fixed-dtp", "fixed-dtp", attention("tanh"), 90.0, epochs=20, rate=0.005),
    Run("attention dfa", "dfa", attention("tanh"), 90.0, epochs=20, rate=0.005),
    Run("attention drtp", "drtp", attention("tanh"), 85.0, epochs=30, rate=0.005),
    Run("attention forward-forward", "forward-forward",
        attention("relu", read_width=400, norm=True), 80.0, rule_label_scale=0.3,
        rule_threshold=1, rule_temperature=8),
]


def read_idx(path, header):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as f:
        data = f.read()
    return data[:header], data[header:]


def write_parts(images, labels, folder, tune, channels):
    """Training and test files with the samples in a fixed order."""
    head, pixels = read_idx(images, 16)
    _, marks = read_idx(labels, 8)
    order = list(range(TRAIN + TEST))
    random.Random(20261124).shuffle(order)
    parts = {"train": order[:TRAIN], "test": order[TRAIN:]}
    if tune:
        parts = {"train": order[:TRAIN - TUNE], "test": order[TRAIN - TUNE:TRAIN]}
    axes = [1, 28, 28] if channels else [28, 28]
    for name, chosen in parts.items():
        count = len(chosen).to_bytes(4, "big")
        shape = b"".join(n.to_bytes(4, "big") for n in axes)
        with open(os.path.join(folder, name + ".idx"), "wb") as f:
            f.write(head[:3] + bytes([1 + len(axes)]) + count + shape)
            f.write(b"".join(pixels[784 * i:784 * (i + 1)] for i in chosen))
        with open(os.path.join(folder, name + "_labels.idx"), "wb") as f:
            f.write(b"\x00\x00\x08\x01" + count + bytes(marks[i] for i in chosen))


def train(loom, run, seed, folder):
    part = os.path.join(folder, "pictures" if len(run.net["input"]) == 3 else "rows")
    net = os.path.join(folder, f"{run.name.replace(' ', '_')}_{seed}.json")
    with open(net, "w", encoding="utf-8") as f:
        json.dump(run.net, f)
    command = [loom, "train", net, os.path.join(part, "train.idx"),
               "--labels", os.path.join(part, "train_labels.idx"),
               "--validation", os.path.join(part, "test.idx"),
               "--validation-labels", os.path.join(part, "test_labels.idx"),
               "--rule", run.rule, "--seed", str(seed), "--threads", "1", "--json"]
    for flag, value in run.flags.items():
        command += ["--" + flag.replace("_", "-"), str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{run.name}: {' '.join(command)}\n{done.stderr}")
    report = json.loads(done.stdout)
    return 100 * report["accuracy"], report["seconds"]


class Results:
    """Results of runs, by their settings; a named file of JSON lines keeps them."""

    def __init__(self, path):
        self.path, self.known, self.lock = path, {}, threading.Lock()
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    entry = json.loads(line)
                    self.known[entry["key"]] = entry["accuracy"], entry["seconds"]

    @staticmethod
    def key(run, seed, tune):
        return json.dumps([run.name, run.rule, run.net, run.flags, seed, tune], sort_keys=True)

    def add(self, key, got):
        with self.lock:
            self.known[key] = got
            if self.path:
                with open(self.path, "a", encoding="utf-8") as f:
                    print(json.dumps({"key": key, "accuracy": got[0], "seconds": got[1]}), file=f)


def row(run, got):
    """A line of the table, and whether the mean is below the floor."""
    scores = [score for score, _ in got]
    mean = statistics.fmean(scores)
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    missed = run.floor is not None and mean < run.floor
    floor = "" if run.floor is None else f"{run.floor:.1f} %"
    return (f"| {run.name} | {mean:.2f} % | {spread:.2f} | {min(scores):.2f} % | "
            f"{floor + (' MISSED' if missed else '')} | "
            f"{'' if run.goal is None else f'{run.goal:.1f} %'} | {len(scores)} | "
            f"{statistics.fmean(s for _, s in got):.0f} |"), missed


def table(args, runs, seeds, folder):
    """Trains what is not known yet and prints the rows; how many are below their floor."""
    results = Results(args.results)

    def one(job):
        key = results.key(*job, args.tune)
        if key not in results.known:
            results.add(key, train(args.loom, *job, folder))
        return results.known[key]

    below = 0
    print("| run | mean | spread (standard deviation) | least | floor | goal | seeds | s per run |")
    print("|---|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = [(run, [pool.submit(one, (run, seed)) for seed in seeds]) for run in runs]
        for run, jobs in waiting:
            line, missed = row(run, [job.result() for job in jobs])
            below += missed
            print(line, flush=True)
    return below


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loom")
    parser.add_argument("images")
    parser.add_argument("labels")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="runs whose name has this text; may be repeated, in that order")
    parser.add_argument("--seeds", default="", help="default: 1,2,3,4,5; with --tune 101,102")
    parser.add_argument("--tune", action="store_true", help="on a part of the training samples")
    parser.add_argument("--set", action="append", default=[], metavar="FLAG=VALUE",
                        help="a flag of loom train for all runs; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time, a thread each")
    parser.add_argument("--results", metavar="FILE", help="JSON lines, a run each: see above")
    args = parser.parse_args()
    seeds = [int(s) for s in (args.seeds or ("101,102" if args.tune else "1,2,3,4,5")).split(",")]
    runs = [run for text in args.only or [""] for run in RUNS if text in run.name]
    for run in runs:
        run.flags.update(dict(pair.split("=", 1) for pair in args.set))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rows", "pictures"):
            os.mkdir(os.path.join(folder, name))
            write_parts(args.images, args.labels, os.path.join(folder, name), args.tune,
                        name == "pictures")
        below = table(args, runs, seeds, folder)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
