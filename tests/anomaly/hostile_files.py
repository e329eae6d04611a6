#!/usr/bin/env python3
"""Hostile files under a memory limit: runs the real program on each and measures it.

  hostile_files.py LOOM [--random N] [--seed S] [--only NAME]

Every file claims, unpacks to or describes far more than its size. Each command on it must end by
itself, with its own exit code and one line that names the file. It must stay within its memory
limit and five seconds of processor time. Then N random files: whole ones whose size fields were
overwritten.
The standard library alone; all files are made here.
"""

import argparse
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

from hostile_makers import CONVERT, INFO, MB, TRAIN, gguf, gguf_string, npy, table, tokenizer

BUDGET = 256  # MB, given with --memory
DEFAULT_MOST = 512  # MB, where no budget is given
SECONDS = 5.0
# Memory of a map or an allocator beyond what is counted.
SLACK = 8 * MB

# ---- measuring ----------------------------------------------------------------------------------


class Run:
    """One run of the program: its exit code, what it said, its peak memory and processor time."""

    def __init__(self, arguments: list, source: str = os.devnull):
        start = time.monotonic()
        with tempfile.TemporaryFile() as errors, open(source, "rb") as given:
            process = subprocess.Popen(
                arguments,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = 0
            errors.seek(0)
            self.said = errors.read().decode(errors="replace")
        self.code = os.waitstatus_to_exitcode(status)
        self.bytes = usage.ru_maxrss * 1024
        self.seconds = usage.ru_utime + usage.ru_stime
        self.wall = time.monotonic() - start


def faults(run: Run, most: int, name: str, says: str) -> list:
    found = []
    if run.bytes > most + SLACK:
        found.append(f"took {run.bytes / MB:.0f} MB, may take {most / MB:.0f}")
    if run.seconds > SECONDS:
        found.append(f"took {run.seconds:.1f} s, may take {SECONDS:.0f}")
    if run.code not in (0, 1, 2, 3, 4):
        found.append(f"ended with {run.code}")
    if run.code != 0:
        if run.said.count("\n") != 1 or not run.said.startswith("loom: "):
            found.append("did not say one line")
        if name not in run.said and "buffer" not in run.said:
            found.append("does not name the file")
    if says and (run.code == 0 or says not in run.said):
        found.append(f"does not say '{says}'")
    return found


class Suite:
    def __init__(self, loom: str, folder: str):
        self.loom, self.folder, self.failed, self.ran = loom, folder, 0, 0

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, data: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def prepare(self, command: str, name: str) -> list:
        words = {
            "{}": self.path(name),
            "NET": self.path("net.json"),
            "DATA": self.path("data.csv"),
            "OUT.entity": self.path("out.entity"),
            "TOKENS": self.path("tokens.json"),
            "W.npz": self.path("trained.npz"),
        }
        return [self.loom] + [words.get(word, word) for word in command.split()]

    def check(self, command: str, name: str, says: str, budget: int, quiet: bool = False) -> None:
        command, piped, _ = command.partition(" < ")
        arguments = self.prepare(command, name)
        if budget:
            arguments += ["--memory", f"{budget}M"]
        run = Run(arguments, self.path(name) if piped else os.devnull)
        found = faults(run, (budget or DEFAULT_MOST) * MB, name, says)
        self.ran += 1
        self.failed += 1 if found else 0
        if found or not quiet:
            print(
                f"{'FAILED' if found else 'ok':6} {name:24} {arguments[1]:8} "
                f"{run.bytes / MB:4.0f} MB "
                f"{run.seconds:4.1f} s  exit {run.code}  {run.said.strip()[:160]}",
                flush=True,
            )
        for fault in found:
            print(f"       {fault}", flush=True)

    def program(self, *arguments: str) -> None:
        subprocess.run(
            [self.loom, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def begin(self) -> None:
        self.program(
            "new", "mlp", "--in", "2", "--hidden", "4", "--out", "1", "-o", self.path("net.json")
        )
        self.write("data.csv", b"".join(b"%d,%d,%d\n" % (i, i % 3, i % 2) for i in range(20)))
        self.write("tokens.json", tokenizer(0))
        trained = self.path("trained.entity")
        self.program(
            "train", self.path("net.json"), self.path("data.csv"), "--epochs", "1", "-o", trained
        )
        self.program("convert", trained, self.path("trained.npz"), "--quiet")

    # Whole files of every format, to damage.
    def whole_files(self) -> list:
        net, data = self.path("net.json"), self.path("data.csv")
        for name in ("w.safetensors", "w.entity"):
            self.program("train", net, data, "--epochs", "1", "--quiet", "-o", self.path(name))
        for name in ("w.onnx", "w.npz"):
            self.program("convert", self.path("w.entity"), self.path(name), "--quiet")
        self.program(
            "convert", self.path("w.entity"), self.path("w.json"), "--with-weights", "--quiet"
        )
        array = npy("(20, 2)", b"\0" * 160)
        self.write("d.npy", array)
        self.write("d.idx", b"\0\0\x08\x02" + struct.pack(">II", 20, 2) + b"\0" * 40)
        for name in ("d.npy", "d.idx", "data.csv"):
            packer = zlib.compressobj(9, zlib.DEFLATED, 31)
            with open(self.path(name), "rb") as file:
                self.write(name + ".gz", packer.compress(file.read()) + packer.flush())
        targets = npy("(20, 1)", b"\0" * 80)
        with zipfile.ZipFile(self.path("d.npz"), "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("x.npy", array)
            z.writestr("y.npy", targets)
        self.write(
            "d.gguf",
            gguf(
                1,
                1,
                gguf_string(b"general.architecture")
                + struct.pack("<I", 8)
                + gguf_string(b"llama")
                + gguf_string(b"t")
                + struct.pack("<IQIQ", 1, 4, 0, 0)
                + b"\0" * 64,
            ),
        )
        return [
            ("w.safetensors", INFO),
            ("w.entity", INFO),
            ("w.onnx", INFO),
            ("w.json", INFO),
            ("w.npz", TRAIN),
            ("d.npy", TRAIN),
            ("d.idx", TRAIN),
            ("d.npz", TRAIN),
            ("d.npy.gz", TRAIN),
            ("d.idx.gz", TRAIN),
            ("data.csv.gz", TRAIN),
            ("d.gguf", INFO),
            ("w.safetensors", CONVERT),
            ("w.entity", CONVERT),
            ("w.onnx", CONVERT),
        ]

    def damage(self, dice: random.Random, files: list, number: int) -> None:
        name, command = dice.choice(files)
        with open(self.path(name), "rb") as file:
            data = bytearray(file.read())
        for _ in range(dice.randint(1, 3)):
            size = dice.choice((1, 2, 4, 8))
            # Sizes are near the front, or, in ZIP files, near the end.
            near = min(len(data) - size, 300)
            at = (
                dice.randint(0, near)
                if dice.random() < 0.7
                else len(data) - size - dice.randint(0, near)
            )
            most = (1 << (8 * size)) - 1
            value = dice.choice(
                (
                    0,
                    1,
                    most,
                    most >> 1,
                    (most >> 1) + 1,
                    most - 1,
                    dice.randint(0, most),
                    1 << dice.randrange(8 * size),
                )
            )
            data[at : at + size] = value.to_bytes(size, dice.choice(("little", "big")))
        stem, dot, ending = name.partition(".")
        damaged = f"{stem}{number}{dot}{ending}"
        self.write(damaged, bytes(data))
        self.check(command, damaged, "", BUDGET, quiet=True)
        os.remove(self.path(damaged))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loom")
    parser.add_argument("--random", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(arguments.loom), folder)
        suite.begin()
        for name, make, commands, says in table():
            if arguments.only and arguments.only not in name:
                continue
            suite.write(name, make())
            for command in commands:
                suite.check(command, name, says, BUDGET)
            if name.endswith((".gz", ".npz")):
                suite.check(commands[0], name, says, 0)
            os.remove(suite.path(name))
        dice = random.Random(arguments.seed)
        files = suite.whole_files()
        for number in range(0 if arguments.only else arguments.random):
            suite.damage(dice, files, number)
        print(f"{suite.ran - suite.failed} of {suite.ran} runs ended as they must")
        return 1 if suite.failed or suite.ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
