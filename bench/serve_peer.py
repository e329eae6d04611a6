#!/usr/bin/env python3
"""`loom serve` and llama.cpp's server in one run: the same file, threads, slots and requests.

  python3 -m venv peer && peer/bin/pip install xllamacpp
  python3 bench/serve_peer.py build/dev/cli/loom model.gguf --peer peer/bin/python

Both servers run on the loopback and alternate, with 1 and with 8 clients that stream at the same
time. Medians over the rounds are compared: tokens a second by the clock, prompts included, and the
time to the first token. Every prompt is new, so no cache of prompts helps.
The peer is the package xllamacpp, which carries llama.cpp and its server.

Exit status: 0; 1 if a ratio of --check is not reached; 77 if the peer is absent.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from serve_load import stream  # noqa: E402

PEER = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.n_parallel, p.port = sys.argv[1], int(sys.argv[2]), 0
p.n_ctx = p.n_parallel * int(sys.argv[3])
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[4])
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
time.sleep(1e9)
"""
SLOTS, CONTEXT = 8, 512
WORDS = "once upon a time there was little red ball dog cat girl boy ran to the big house".split()


def port_of(process: subprocess.Popen) -> int:
    line = process.stdout.readline()
    if ":" not in line:
        raise SystemExit("serve_peer: a server did not start; run its command by hand")
    return int(line.rsplit(":", 1)[1])


def prompt(number: int) -> str:
    return " ".join(WORDS[(number * 7 + i * (1 + number % 5)) % len(WORDS)] for i in range(14))


async def measure(port: int, streams: int, tokens: int, number: int) -> tuple[float, float]:
    """Tokens a second of all streams, and the median time to a first token in ms."""
    firsts: list[float] = []

    async def one(number: int) -> int:
        start, count, first = time.perf_counter(), 0, None
        body = {"prompt": prompt(number), "n_predict": tokens, "seed": number, "ignore_eos": True,
                "temperature": 0.8, "top_k": 40, "cache_prompt": False, "return_tokens": True}
        async for event in stream(port, body):
            first = first or time.perf_counter()
            count = event.get("tokens_predicted", count)
        firsts.append((first - start) * 1e3)
        return count

    start = time.perf_counter()
    counts = await asyncio.gather(*(one(number + i) for i in range(streams)))
    took = time.perf_counter() - start
    if min(counts) < tokens:
        raise SystemExit(f"serve_peer: a text has {min(counts)} tokens of {tokens}")
    return sum(counts) / took, statistics.median(firsts)


async def compare(ports: dict[str, int], rounds: int, tokens: int) -> dict:
    taken: dict = {}
    number = 0
    for turn in range(rounds + 1):  # the first warms up
        for streams in (1, SLOTS):
            for name, port in ports.items():
                number += SLOTS
                got = await measure(port, streams, tokens, number)
                if turn > 0:
                    taken.setdefault((name, streams), []).append(got)
    return {key: tuple(statistics.median(v[i] for v in values) for i in (0, 1))
            for key, values in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loom")
    parser.add_argument("model", help="a GGUF file with a tokenizer")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has xllamacpp")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--check", type=float, help="the least ratio at 8 streams")
    args = parser.parse_args()
    if subprocess.run([args.peer, "-c", "import xllamacpp"], capture_output=True,
                      check=False).returncode:
        print(f"serve_peer: {args.peer} has no xllamacpp, so there is no peer", file=sys.stderr)
        return 77
    commands = {
        "loom": [args.loom, "serve", args.model, "--port", "0", "--quiet", "--parallel",
                 str(SLOTS), "--context", str(CONTEXT), "--threads", str(args.threads)],
        "llama.cpp": [args.peer, "-c", PEER, args.model, str(SLOTS), str(CONTEXT),
                      str(args.threads)]}
    servers = {name: subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.DEVNULL)
               for name, command in commands.items()}
    try:
        ports = {name: port_of(server) for name, server in servers.items()}
        got = asyncio.run(compare(ports, args.rounds, args.tokens))
    finally:
        for server in servers.values():
            server.terminate()
        for server in servers.values():
            server.wait(30)
    print("| streams | loom tokens/s | llama.cpp | ratio | loom first token, ms | llama.cpp |")
    print("|---|---|---|---|---|---|")
    for streams in (1, SLOTS):
        ours, theirs = got["loom", streams], got["llama.cpp", streams]
        print(f"| {streams} | {ours[0]:.0f} | {theirs[0]:.0f} | {ours[0] / theirs[0]:.2f} | "
              f"{ours[1]:.1f} | {theirs[1]:.1f} |")
    print(f"loom, {SLOTS} streams / 1: "
          f"{got['loom', SLOTS][0] / got['loom', 1][0]:.2f}")
    reached = got["loom", SLOTS][0] / got["llama.cpp", SLOTS][0]
    print(json.dumps({"ratio": round(reached, 3), "threads": args.threads,
                      "tokens": args.tokens, "rounds": args.rounds}))
    return 1 if args.check and reached < args.check else 0


if __name__ == "__main__":
    sys.exit(main())
