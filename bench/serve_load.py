#!/usr/bin/env python3
"""Many clients at one `loom serve`: no failures, no growth, no waiting for silent clients.

  python3 bench/serve_load.py build/dev/cli/loom models/stories.entity --seconds 60

32 clients stream texts, and every second one disconnects in the middle of its text. 300 connections
stay silent, and 40 send a request a byte at a time. Then the rate of one stream and of eight is
measured. Needs nothing but Python. The exit code is 1 if a text differs from the one of its seed
alone, or a client gets an error. It is also 1 if memory grows by more than 16 MB after the first
tenth.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import AsyncIterator

PROMPTS = ["Once upon a time", "Tom had a red ball.", "Lily and her dog", "A little rabbit"]


class Server:
    def __init__(self, loom: str, model: str, *flags: str) -> None:
        self.process = subprocess.Popen([loom, "serve", model, "--port", "0", "--quiet", *flags],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


async def stream(port: int, body: dict) -> AsyncIterator[dict]:
    """The events of a streamed completion."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    text = json.dumps({**body, "stream": True})
    writer.write(f"POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"
                 .encode())
    try:
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(status.decode().strip())
        async for line in reader:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])
    finally:
        writer.close()


def request(number: int) -> dict:
    return {"prompt": PROMPTS[number % len(PROMPTS)], "seed": number, "n_predict": 60,
            "temperature": 1, "ignore_eos": True}


async def text_of(port: int, number: int) -> str:
    return "".join([event["content"] async for event in stream(port, request(number))
                    if not event["stop"]])


async def health(port: int) -> float:
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()
    return (time.perf_counter() - start) * 1e3


async def drip(port: int) -> None:
    """A request that never becomes whole."""
    with contextlib.suppress(ConnectionError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in b"POST /completion HTTP/1.1\r\nX-Slow: " + b"x" * 10000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.5)


async def load(server: Server, seconds: float) -> dict:
    port = server.port
    wanted = {n: await text_of(port, n) for n in range(64)}
    end = time.monotonic() + seconds
    counts = {"texts": 0, "wrong": 0, "left": 0}
    errors: list[str] = []
    leave: set[int] = set()
    rng = random.Random(1)

    async def client(me: int) -> None:
        while time.monotonic() < end:
            number = rng.randrange(64)
            text = ""
            try:
                async for event in stream(port, request(number)):
                    if me in leave:
                        leave.discard(me)
                        counts["left"] += 1
                        break
                    if not event["stop"]:
                        text += event["content"]
                        continue
                    counts["texts"] += 1
                    counts["wrong"] += text != wanted[number]
            except (OSError, RuntimeError) as why:
                errors.append(str(why))

    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
    slow = [asyncio.create_task(drip(port)) for _ in range(40)]
    clients = [asyncio.create_task(client(i)) for i in range(32)]
    memory, waits = [], []
    while time.monotonic() < end:
        await asyncio.sleep(1)
        leave.add(rng.randrange(32))
        memory.append(server.megabytes())
        waits.append(await health(port))
    await asyncio.gather(*clients)
    for task in slow:
        task.cancel()
    for _, writer in silent:
        writer.close()
    start = memory[len(memory) // 10]
    return {**counts, "errors": len(errors), "first_error": errors[0] if errors else "",
            "megabytes_start": round(start, 1), "megabytes_end": round(memory[-1], 1),
            "health_ms_median": round(statistics.median(waits), 2),
            "health_ms_worst": round(max(waits), 2)}


async def rate(port: int, streams: int) -> dict:
    """Tokens a second of all streams, and the time to their first tokens."""
    firsts: list[float] = []

    async def one(number: int) -> int:
        start, count = time.perf_counter(), 0
        async for event in stream(port, {**request(number), "n_predict": 400}):
            if count == 0:
                firsts.append((time.perf_counter() - start) * 1e3)
            count = event.get("tokens_predicted", count + 1)
        return count

    start = time.perf_counter()
    tokens = await asyncio.gather(*(one(1000 + i) for i in range(streams)))
    return {"streams": streams, "tokens_per_s": round(sum(tokens) / (time.perf_counter() - start)),
            "first_token_ms_median": round(statistics.median(firsts), 2)}


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loom")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    server = Server(args.loom, args.model, "--parallel", "8", "--context", "512")
    try:
        result = await load(server, args.seconds)
        print(json.dumps(result))
        for streams in (1, 8):
            print(json.dumps(await rate(server.port, streams)))
    finally:
        code = server.stop()
    grown = result["megabytes_end"] - result["megabytes_start"]
    good = not result["errors"] and not result["wrong"] and grown < 16 and code == 0
    print("held" if good else "NOT HELD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
