#!/usr/bin/env python3
"""Loom's layers and training step compared with PyTorch and ONNX Runtime, in one run.

Alternates the peers' scripts and `loom bench layers`, and prints the ratio peer time / Loom time of
the best medians (above 1: Loom is faster). An absent peer is left out.

  bench/layers_peer.py --torch-python ~/torch/bin/python
  bench/layers_peer.py --rounds 3 --ort ../shared/peers/ort.sh --work /tmp/peer

Exit status: 0; 77 if all peers are absent.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ORT = re.compile(r"ORT 2T (.+?)\s+min ([\d.]+) us\s+median ([\d.]+) us")
TORCH = re.compile(r"^(mlp .+?|dense .+?|cnn2 .+?|lstm .+?|mha .+?)\s+min\s+([\d.]+) us\s+median\s+"
                   r"([\d.]+) us")


def output(command, timeout=900):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                          check=False).stdout


def keep(times, name, value):
    times[name] = min(value, times.get(name, float("inf")))


def run_torch(python, script, threads, times):
    for line in output([python, script, str(threads)]).splitlines():
        match = TORCH.match(line.strip())
        if not match:
            continue
        name = re.sub(r"\s+", " ", match[1]).strip()
        train = re.match(r"mlp (\S+ batch 64) (SGD|Adam) ", name + " ")
        if train:  # the better of eager and compiled
            name = f"train mlp {train[1]} {train[2].lower()}"
        keep(times, name, float(match[3]))


def run_ort(script, work, times):
    for line in output(["bash", script, work]).splitlines():
        match = ORT.match(line)
        if match:
            keep(times, match[1].strip(), float(match[3]))


def run_loom(loom, threads, times):
    rows = json.loads(output([loom, "bench", "layers", "--suite", "peer", "--threads",
                              str(threads), "--json"]))
    for row in rows:
        keep(times, row["name"], row["median_us"])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    peers = os.path.join(here, "../../shared/peers")
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loom", default=os.path.join(here, "../build/release/cli/loom"))
    parser.add_argument("--torch-python", default="", help="a Python that has torch")
    parser.add_argument("--torch", default=os.path.join(peers, "torch_bench.py"))
    parser.add_argument("--ort", default=os.path.join(peers, "ort.sh"))
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "loom-ort-peer"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    use_torch = bool(args.torch_python) and os.path.exists(args.torch)
    use_ort = os.path.exists(args.ort)
    if not use_torch and not use_ort:
        print("layers_peer: no peer is there", file=sys.stderr)
        return 77
    torch, ort, ours = {}, {}, {}
    for turn in range(args.rounds):
        print(f"turn {turn + 1} of {args.rounds}", file=sys.stderr)
        if use_torch:
            run_torch(args.torch_python, args.torch, args.threads, torch)
        if use_ort:
            run_ort(args.ort, args.work, ort)
        run_loom(args.loom, args.threads, ours)
    print(f"| {args.threads} threads, us | Loom | ONNX Runtime | ratio | PyTorch | ratio |")
    print("|---|---|---|---|---|---|")
    for name, mine in ours.items():
        cells = [name, f"{mine:.1f}"]
        for peer in (ort, torch):
            value = peer.get(name)
            cells += [f"{value:.1f}", f"{value / mine:.2f}"] if value else ["", ""]
        print("| " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
