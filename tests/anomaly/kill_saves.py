#!/usr/bin/env python3
"""Kills the program while it saves, and looks at what is left.

    kill_saves.py LOOM [--converts N] [--trainings N] [--seed N]

converts: `loom convert --force` over an existing model, killed at a random moment; the file must be
the old model or the new one, byte for byte; then likewise over a folder of several files.
trainings: `loom train --checkpoint --resume`, killed at random moments until a run comes to its
end; it must resume every time, and end with the weights of an uninterrupted run. Prints one
line for each; exit status 1 when anything was lost.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EPOCHS = 150


class Lost(Exception):
    """A model that is neither the old nor the new one, or a run that cannot go on."""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Lost(f"{' '.join(map(str, command))}: {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def killed_after(command, seconds):
    """Whether the kill came before the end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        time.sleep(seconds)
        child.kill()
        errors = child.communicate()[1]
    if child.returncode not in (0, -9):
        raise Lost(f"{' '.join(map(str, command))}: {child.returncode}: {errors.decode().strip()}")
    return child.returncode == -9


def leftovers(folder, name):
    """Temporary files beside `name`, removed; anything else there is an error of ours."""
    found = list(folder.glob(f".{name}*.tmp-*"))
    for path in found:
        path.unlink()
    return len(found)


def kill_converts(loom, folder, kills, rng):
    model = folder / "model.entity"
    whole = []
    for seed in (1, 2):
        path = folder / f"{seed}.entity"
        run([loom, "convert", "--shape", "tiny", "--seed", str(seed), "--dtype", "q8_0", "--quiet",
             "-o", path])
        whole.append(path.read_bytes())
    if whole[0] == whole[1]:
        raise Lost("the two models are the same")
    model.write_bytes(whole[0])
    start = time.monotonic()
    run([loom, "convert", folder / "2.entity", model, "--force", "--quiet", "--threads", "1"])
    takes = time.monotonic() - start
    seen = {False: 0, True: 0}
    left = done = 0
    for i in range(kills):
        source = folder / f"{i % 2 + 1}.entity"
        command = [loom, "convert", source, model, "--force", "--quiet", "--threads", "1"]
        if killed_after(command, rng.uniform(0, takes)):
            takes *= 1.005
        else:  # the machine is faster than it was: aim at the last moments
            done += 1
            takes *= 0.98
        now = model.read_bytes()
        if now not in whole:
            raise Lost(f"after kill {i}: {len(now)} bytes that are neither model")
        seen[now == whole[i % 2]] += 1
        left += leftovers(folder, model.name)
    run([loom, "verify", "hash", model])
    print(f"convert: {kills} kills ({done} came too late), {seen[False]} times the old model, "
          f"{seen[True]} times the new one, 0 lost; {left} temporary files left")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kill_folder_converts(loom, folder, kills, rng):
    """The same over a folder of several files, which has a file of the user's as well."""
    model, whole = folder / "model", []
    for seed in (1, 2):
        path = folder / f"folder{seed}"
        run([loom, "convert", "--shape", "tiny", "--seed", str(seed), "--quiet", "-o", path])
        (path / "README.md").write_text("mine")
        whole.append(contents(path))
    run(["cp", "-r", folder / "folder1", model])
    start = time.monotonic()
    run([loom, "convert", folder / "folder2", model, "--force", "--quiet", "--threads", "1"])
    takes = time.monotonic() - start
    seen, done, left = {False: 0, True: 0}, 0, 0
    for i in range(kills):
        source = folder / f"folder{i % 2 + 1}"
        command = [loom, "convert", source, model, "--force", "--quiet", "--threads", "1"]
        done += not killed_after(command, rng.uniform(0, takes))
        now = contents(model)
        if now not in whole:
            raise Lost(f"after kill {i}: a folder that is neither model: {sorted(now)}")
        seen[now == whole[i % 2]] += 1
        left += len(list(folder.glob(".model.tmp-*")))
    run([loom, "convert", folder / "folder1", model, "--force", "--quiet"])
    if contents(model) != whole[0] or list(folder.glob(".model.*")):
        raise Lost("the next convert did not clean up")
    print(f"convert to a folder: {kills} kills ({done} came too late), {seen[False]} times the old "
          f"folder, {seen[True]} times the new one, 0 lost; {left} temporary folders seen")


def weights_hash(text):
    return json.loads(text)["weights_hash"]


def kill_trainings(loom, folder, kills, rng):
    data, net, saved = folder / "d.csv", folder / "net.json", folder / "run.safetensors"
    rows = [f"{(i * 7 % 13) / 13},{(i * 5 % 11) / 11},{i % 3}\n" for i in range(60)]
    data.write_text("".join(rows))
    run([loom, "new", "mlp", "--in", "2", "--hidden", "8", "--out", "3", "-o", net])
    train = [loom, "train", net, data, "--epochs", str(EPOCHS), "--threads", "1", "--json",
             "--quiet"]
    start = time.monotonic()
    expected = weights_hash(run([*train, "--checkpoint", folder / "whole.safetensors"]))
    takes = time.monotonic() - start
    command = [*train, "--checkpoint", saved, "--resume"]
    runs = left = count = 0
    while count < kills:
        if killed_after(command, rng.uniform(0, 0.3 * takes)):
            count += 1
            left += leftovers(folder, saved.name)
            continue
        if weights_hash(run(command)) != expected:
            raise Lost("a run that was killed ended with other weights")
        runs += 1
        for path in (saved, Path(f"{saved}.previous")):
            path.unlink()
    if weights_hash(run(command)) != expected:
        raise Lost("a run that was killed ended with other weights")
    print(f"train: {count} kills, resumed every time, {runs + 1} runs came to the same weights, "
          f"0 lost; {left} temporary files left")


def main():
    parser = argparse.ArgumentParser(description=re.sub(r"\n.*", "", __doc__))
    parser.add_argument("loom")
    parser.add_argument("--converts", type=int, default=30)
    parser.add_argument("--trainings", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="loom-kill-") as name:
        try:
            kill_converts(args.loom, Path(name), args.converts, rng)
            kill_folder_converts(args.loom, Path(name), args.converts, rng)
            kill_trainings(args.loom, Path(name), args.trainings, rng)
        except Lost as lost:
            print(f"LOST: {lost}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
