#!/usr/bin/env python3
"""Random grids with feedback of any width, and the same as meshes with links, delays, ports and
further inputs. They are compared with a simulator in float64 (grid_sim.py): the outputs, and the
weights after some updates, as passes and tick by tick.

    tests/outside/grid_check.py build/dev/cli/loom [--count 300] [--first 0]

Closes with "N passed, N failed, N skipped".
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

import numpy as np
from safetensors.numpy import load_file, save_file

import grid_draw
import grid_sim

RATE = 0.05
BOUND = 2e-5  # of the largest value of a tensor; Loom computes in float32


class Failure(Exception):
    pass


class Case:
    """One random network, its samples, and the program that runs it."""

    def __init__(self, program, seed, folder):
        self.program, self.folder = program, folder
        draw = grid_draw.Draw(seed)
        self.net = draw.net()
        self.how = draw.how(self.net)
        self.random, self.inputs = draw.random, draw.inputs
        self.shape = self.net["input"]
        self.make_weights()
        self.make_samples()
        # Most loops without an input fire on zeros, so that they train; some wait forever.
        if self.fill() is None and draw.chance(0.8):
            self.how["zero_fill"] = True

    def loom(self, *words):
        done = subprocess.run(
            [self.program, *map(str, words)], capture_output=True, text=True, cwd=self.folder
        )
        if done.returncode != 0:
            raise Failure(
                f"loom {' '.join(map(str, words[:2]))}: {done.stderr.strip().splitlines()[-1]}"
            )
        return done.stdout

    def make_weights(self):
        """Random parameters of our own, under the names of the program."""
        description = json.dumps(grid_draw.describe(self.net))
        (self.folder / "net.json").write_text(description)
        self.loom("convert", "net.json", "start.safetensors", "--quiet")
        self.params = {}
        for name, value in load_file(self.folder / "start.safetensors").items():
            scale = 0.3 if value.ndim == 1 else 0.9 / np.sqrt(value.shape[-1])
            middle = 1.0 if name.endswith("gamma") else 0.0
            drawn = middle + scale * self.random.standard_normal(value.shape)
            self.params[name] = drawn.astype(np.float32)
        raw = (self.folder / "start.safetensors").read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        save_file(self.params, self.folder / "net.safetensors", metadata=header["__metadata__"])

    def make_samples(self):
        rows = self.net["cells"][-1]["out"]
        self.streams, self.length = 1 + int(self.random.integers(2)), 6 + int(
            self.random.integers(6)
        )
        n = self.streams * self.length
        drawn = lambda wide: self.random.standard_normal([n, *self.shape[:-1], wide]).astype(
            np.float32
        )
        self.data = {"x": drawn(self.shape[-1]), "y": drawn(rows)}
        for name, wide in {**self.inputs, **self.how["ports"]}.items():
            self.data[name] = drawn(wide)
        np.savez(self.folder / "data.npz", **self.data)

    def doubles(self):
        return {name: value.astype(np.float64) for name, value in self.params.items()}

    def rows(self, index, variants=1):
        """Samples of these numbers for every port, and their targets."""

        def pick(values):
            return np.repeat(values[index][None].astype(complex), variants, 0)

        ports = {name: pick(self.data[name]) for name in [*self.inputs, *self.how["ports"]]}
        return {"input": pick(self.data["x"]), **ports}, self.data["y"][index].astype(np.float64)

    def fill(self):
        """The first tick in which the last cell fires; None: it never does."""
        ports, _ = self.rows(np.array([0]))
        return grid_sim.Mesh(self.net, self.how).fill(ports)

    def mesh_words(self):
        words = ["--quiet"]
        name = lambda at: ",".join(map(str, at))
        for at, (kind, source) in self.how["links"].items():
            words += ["--link", f"{name(at)}={source if kind == 'port' else name(source)}"]
        for at, delay in self.how["delays"].items():
            words += ["--delay", f"{name(at)}={delay}"]
        for port, wide in self.how["ports"].items():
            words += ["--port", f"{port}={','.join(map(str, [*self.shape[:-1], wide]))}"]
        words += ["--carry"] if self.how["carry"] else []
        return words + (["--zero-fill"] if self.how["zero_fill"] else [])


def compare(what, got, want):
    scale = max(float(np.abs(want).max(initial=0)), 0.1)
    if not np.all(np.isfinite(got)) or np.abs(got - want).max(initial=0) > BOUND * scale:
        raise Failure(f"{what}: off by {np.abs(got - want).max():.3g} at a scale of {scale:.3g}")


def compare_weights(case, file, params):
    for name, value in load_file(case.folder / file).items():
        compare(f"{file}, {name}", value.astype(np.float64), params[name])


def mean_square(y, target):
    error = y - target
    return (error * error).reshape(y.shape[0], -1).mean(-1)


def check_pass(case):
    """The first pass, in which feedback links carry zeros."""
    n = len(case.data["x"])
    single = {k: v for k, v in case.data.items() if k not in ("y", *case.how["ports"])}
    np.savez(case.folder / "x.npz", **single)
    case.loom("predict", "net.safetensors", "x.npz", "-o", "y.npz", "--force", "--batch", n,
              "--quiet")  # fmt: skip
    params, _ = grid_sim.variants(case.doubles(), [])
    ports, _ = case.rows(np.arange(n))
    want = grid_sim.Passes(case.net).run(params, ports["input"], ports)[0].real
    compare(
        "outputs of a pass", np.load(case.folder / "y.npz")["outputs"].reshape(want.shape), want
    )


def check_pass_training(case):
    """Batches one after the other, whose feedback links carry the previous outputs."""
    n, batch = len(case.data["x"]), 3
    used = n // batch * batch
    data = {k: v[:used] for k, v in case.data.items() if k not in case.how["ports"]}
    np.savez(case.folder / "batches.npz", **data)
    case.loom(
        "train",
        "net.safetensors",
        "batches.npz",
        "--carry-feedback",
        "--no-shuffle",
        "--epochs",
        1,
        "--batch",
        batch,
        "--loss",
        "mse",
        "--optimizer",
        "sgd",
        "--rate",
        RATE,
        "--schedule",
        "constant",
        "-o",
        "passes.safetensors",
        "--quiet",
    )
    params, names = case.doubles(), list(case.params)
    passes = grid_sim.Passes(case.net)
    for first in range(0, used, batch):
        many, places = grid_sim.variants(params, names)
        ports, target = case.rows(np.arange(first, first + batch), len(places) or 1)
        passes.before = {k: np.repeat(v[:1], len(places) or 1, 0) for k, v in passes.before.items()}
        loss = mean_square(passes.run(many, ports["input"], ports), target)
        grid_sim.descend(params, places, loss, RATE)
    compare_weights(case, "passes.safetensors", params)


def stream_rows(case, tick, variants=1):
    """Values of ports in a tick; the first tick is 1. After the end the last sample stays."""
    sample = min(tick - 1, case.length - 1)
    return case.rows(np.arange(case.streams) * case.length + sample, variants)


def check_ticks(case):
    """The output of the last cell in every tick, with the samples as one stream."""
    ticks = case.length + 9
    case.loom(
        "mesh",
        "run",
        "net.safetensors",
        "data.npz",
        *case.mesh_words(),
        "--ticks",
        ticks,
        "-o",
        "ticks.csv",
    )
    rows = list(csv.reader(open(case.folder / "ticks.csv")))
    got = np.array([[float(v) for v in row[1:]] for row in rows])
    params, _ = grid_sim.variants(case.doubles(), [])
    mesh, last = grid_sim.Mesh(case.net, case.how), len(case.data["x"]) - 1
    past, want = mesh.begin(), []
    for tick in range(1, ticks + 1):
        ports, _ = case.rows(np.array([min(tick - 1, last)]))
        mesh.tick(past, params, ports)
        y = past["cells"][-1].get(mesh.order[-1])
        want.append(np.zeros(got.shape[1]) if y is None else y[0].real.reshape(-1))
    compare("outputs of ticks", got, np.array(want))


def window_loss(case, mesh, past, first, how, variants):
    """The loss of the window that `past` is at the end of, per variant; 0: no tick of it counts."""
    window, stride, lag = how
    losses = []
    for i in range(window):
        due = first + i - lag
        fresh = first == 0 or i >= window - stride
        if fresh and 0 <= due < case.length:
            _, target = stream_rows(case, due + 1)
            losses.append(mean_square(past["cells"][first + i + 1][mesh.order[-1]], target))
    return sum(losses) / len(losses) if losses else np.zeros(variants, complex)


def check_mesh_training(case):
    mesh = grid_sim.Mesh(case.net, case.how)
    fill = case.fill()
    if fill is None:
        return False
    window = 2 + int(case.random.integers(5))
    stride = 1 + int(case.random.integers(window))
    case.loom(
        "mesh",
        "train",
        "net.safetensors",
        "data.npz",
        *case.mesh_words(),
        "--epochs",
        1,
        "--bptt",
        window,
        "--stride",
        stride,
        "--batch",
        case.streams,
        "--loss",
        "mse",
        "--optimizer",
        "sgd",
        "--rate",
        RATE,
        "-o",
        "mesh.safetensors",
    )
    params, names, past = case.doubles(), list(case.params), mesh.begin()
    ticks = case.length + fill - 1
    for first in range(0, max(ticks - window, 0) + stride, stride):
        many, places = grid_sim.variants(params, names)
        count = len(places) or 1
        past = mesh.constant(past, first)
        spread(past, count)
        for i in range(window):
            mesh.tick(past, many, stream_rows(case, first + i + 1, count)[0])
        loss = window_loss(case, mesh, past, first, (window, stride, fill - 1), count)
        grid_sim.descend(params, places, loss, RATE)
    compare_weights(case, "mesh.safetensors", params)
    return True


def spread(past, variants):
    """The state for this number of variants."""
    for rows in (past["cells"], past["ports"], past["states"]):
        for row in rows:
            for key, value in row.items():
                row[key] = np.repeat(value[:1], variants, 0)


def run(program, seed):
    """The parts that ran; Failure names the one that differs."""
    with tempfile.TemporaryDirectory() as folder:
        case = Case(program, seed, Path(folder))
        check_pass(case)
        check_pass_training(case)
        check_ticks(case)
        return check_mesh_training(case)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    failed = untrained = 0
    for seed in range(args.first, args.first + args.count):
        try:
            untrained += 0 if run(str(Path(args.program).resolve()), seed) else 1
        except Failure as failure:
            failed += 1
            print(f"FAILED seed {seed}: {failure}")
    print(f"meshes that nothing reaches, which were run but not trained: {untrained}")
    print(f"{args.count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
