#!/usr/bin/env python3
"""Hostile requests to `loom serve` in a limited address space, next to 1-token requests.

  bench/hostile_bodies.py build/dev/cli/loom [--bodies 2000] [--clients 4] [--seed 1] [--room MB]
                                             [--only KIND...]

The server gets the address space that it has when idle, and ROOM megabytes more (as `ulimit -v`).
--memory is half of the room. The server must stay alive and within --memory. It must answer each
complete body with JSON and never with 500. It must write the same text for the same request
afterwards. The last line counts. A wait is the time from a request to the end of its answer. It
depends on an idle machine, so it fails only with --wait MS.
"""

import argparse
import http.client
import json
import multiprocessing
import random
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = str(ROOT / "models" / "stories.entity")
DEADLINE = 300
BODY_LIMIT = 32 << 20
ROUTES = ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/completion",
          "/infill", "/api/generate", "/api/chat", "/tokenize", "/detokenize", "/apply-template",
          "/v1/embeddings", "/rerank", "/api/embed", "/predict", "/v1/messages/count_tokens"]
FINE = {200, 400, 404, 413, 415, 429, 431, 501, 503}
PROBE = {"prompt": "Once upon a time", "max_tokens": 1, "temperature": 0}
CONTROL = {"prompt": "Tom had a red ball.", "max_tokens": 12, "seed": 5, "temperature": 1}


def start(loom: str, limit: int, *words: str) -> tuple[subprocess.Popen, int]:
    def confine():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    server = subprocess.Popen(
        [loom, "serve", MODEL, "--port", "0", "--quiet", "--context", "128", "--parallel", "8",
         *words], stdout=subprocess.PIPE, text=True, preexec_fn=confine)
    line = server.stdout.readline()
    if "listening" not in line:
        raise SystemExit("the server did not start")
    return server, int(line.rsplit(":", 1)[1])


def status_of(server: subprocess.Popen, key: str) -> int:
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(key + r":\s+(\d+)", text).group(1)) * 1024


def ask(port: int, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
        except ConnectionError:  # refused before it was whole; the reply says why
            if len(body) <= BODY_LIMIT:
                raise
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Bodies:
    """Draws bodies: (name, route, bytes)."""

    def __init__(self, seed: int, only: list[str]):
        self.random = random.Random(seed)
        names = [name[5:] for name in dir(self) if name.startswith("kind_")]
        self.kinds = [getattr(self, f"kind_{name}") for name in only or names]

    def draw(self) -> tuple[str, str, bytes]:
        kind = self.random.choice(self.kinds)
        route, body = self.random.choice(ROUTES), kind()
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return kind.__name__[5:], route, body

    def size(self, most: int) -> int:
        """Sizes of every order of magnitude."""
        return int(10 ** self.random.uniform(0, len(str(most)) - 1))

    def text(self, most: int) -> str:
        unit = self.random.choice(["7", "a", " ", "\u00e9", "\U0001f469\u200d", "a\u0301", "\ufdfa",
                                   "<|im_end|>", "\n", "ab", "\u0000", "\u1100\u1161"])
        return unit * max(1, self.size(most) // len(unit))

    def with_text(self, text) -> dict:
        return {"prompt": text, "input": text, "content": text, "query": text, "documents": [text],
                "input_prefix": text, "input_suffix": "", "max_tokens": self.random.randint(0, 3),
                "messages": [{"role": "user", "content": text}], "n_predict": 1,
                "instances": [{"@requestFormat": "chatCompletions", "max_tokens": 1,
                               "messages": [{"role": "user", "content": text}]}]}

    def kind_long_text(self):
        return self.with_text(self.text(10_000_000))

    def kind_deep(self):
        depth = self.size(1_000_000)
        return self.random.choice([b"[" * depth, b'{"prompt":' * depth,
                                   b'{"prompt":' + b"[" * depth + b"1" + b"]" * depth + b"}"])

    def kind_many_values(self):
        return self.with_text([self.random.choice([1, 0.5, None, True, "a", [], {}])]
                              * self.size(1_000_000))

    def kind_many_members(self):
        return {f"k{i}": i for i in range(self.size(100_000))} | self.with_text("a")

    def kind_same_members(self):
        return b"{" + b'"prompt":"a",' * self.size(100_000) + b'"max_tokens":1}'

    def kind_cut(self):
        body = json.dumps(self.with_text("abc def" * 50)).encode()
        return body[:self.random.randrange(len(body))]

    def kind_flipped(self):
        body = bytearray(json.dumps(self.with_text("abc def" * 5)).encode())
        for _ in range(self.random.randint(1, 20)):
            body[self.random.randrange(len(body))] = self.random.randrange(256)
        return bytes(body)

    def kind_noise(self):
        return self.random.randbytes(self.size(1_000_000))

    def kind_numbers(self):
        number = self.random.choice([b"1e999", b"-0", b"1" * self.size(100_000), b"NaN", b"1e-999",
                                     b"0." + b"3" * self.size(100_000), b"9223372036854775808"])
        name = self.random.choice([b"max_tokens", b"seed", b"temperature", b"n", b"top_p",
                                   b"logprobs", b"n_keep"])
        return (b'{"prompt":"a","messages":[{"role":"user","content":"a"}],"' + name + b'":'
                + number + b"}")

    def kind_bad_utf8(self):
        unit = self.random.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\\ud800", b"\\u0000"])
        return b'{"prompt":"' + unit * self.size(10_000) + b'"}'

    def kind_turns(self):
        turn = {"role": self.random.choice(["user", "assistant", "tool", "\u0000", "x" * 1000]),
                "content": self.random.choice(["a", None, [], [{"type": "text", "text": "a"}], {}])}
        return {"messages": [turn] * self.size(100_000), "max_tokens": 1}

    def kind_schema(self):
        depth = self.size(10_000)
        schema: dict = {"type": "string"}
        for _ in range(min(depth, 200)):
            schema = self.random.choice([{"anyOf": [schema, schema]}, {"allOf": [schema, schema]},
                                         {"type": "array", "items": schema}, {"$ref": "#"},
                                         {"properties": {"a": schema, "b": schema}}])
            if len(json.dumps(schema)) > 2_000_000:
                break
        return self.with_text("a") | {"json_schema": schema, "format": schema,
                                      "response_format": {"type": "json_schema",
                                                          "json_schema": {"schema": schema}}}

    def kind_pattern(self):
        pattern = self.random.choice(["(a*)*b", "a{1,%d}" % self.size(1_000_000), "(" * 5000,
                                      "((a{9}){9}){9}", "[" + "a-z" * 1000 + "]", "(a|a)*" * 50])
        return self.with_text("a") | {"json_schema": {"type": "string", "pattern": pattern}}

    def kind_grammar(self):
        grammar = self.random.choice(["root ::= root root | \"a\"", "root ::= " + "(" * 10_000,
                                      "root ::= \"a\"{1,%d}" % self.size(1_000_000),
                                      "root ::= " + "\"a\" | " * self.size(10_000) + "\"b\"",
                                      "root ::= [" + "a-z" * 10_000 + "]*"])
        return self.with_text("a") | {"grammar": grammar}

    def kind_biases(self):
        count = self.size(100_000)
        return self.with_text("a") | {"logit_bias": self.random.choice([
            {str(i): 1 for i in range(count)}, [[i, 1] for i in range(count)],
            {"word " * 100 + str(i): 1 for i in range(min(count, 4000))}])}

    def kind_stops(self):
        return self.with_text("a") | {"stop": ["x" * self.size(100_000)] * self.size(1000)}

    def kind_tokens(self):
        ids = [self.random.choice([1, 5, -1, 10 ** 9])] * self.size(100_000)
        return {"prompt": ids, "tokens": ids, "input": ids, "max_tokens": 1}

    def kind_prompts(self):
        return {"prompt": ["a"] * self.size(10_000), "n": self.random.randint(1, 16),
                "max_tokens": 1, "echo": True, "logprobs": self.random.randint(0, 5)}

    def kind_tools(self):
        function = {"name": "f", "description": "d" * self.size(10_000),
                    "parameters": {"type": "object"}}
        tool = {"type": "function", "function": function}
        return {"messages": [{"role": "user", "content": "a"}], "tools": [tool] * self.size(1000),
                "tool_choice": self.random.choice(["required", "auto"]), "max_tokens": 2}

    def kind_parts(self):
        part = {"type": "image_url", "image_url": {"url": "data:," + "A" * self.size(1_000_000)}}
        return self.with_text([part])


class Run:
    def __init__(self, port: int, options: argparse.Namespace):
        self.port, self.left, self.seed, self.only = (port, options.bodies, options.seed,
                                                      options.only)
        self.slowest = (0.0, "")
        self.lock = threading.Lock()
        self.statuses: dict[int, int] = {}
        self.wrong: list[str] = []

    def attack(self, number: int) -> None:
        bodies = Bodies(self.seed * 1000 + number, self.only)
        while True:
            with self.lock:
                if self.left <= 0:
                    return
                self.left -= 1
            name, route, body = bodies.draw()
            leaves = bodies.random.random() < 0.15
            begin = time.monotonic()
            try:
                if leaves:
                    self.leave(route, body, bodies.random.random())
                    continue
                status, answer = ask(self.port, route, body)
            except OSError as error:
                self.note(f"{name} {route}: {error!r}")
                continue
            with self.lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1
                took = time.monotonic() - begin, f"{name} {route} ({len(body)} bytes)"
                self.slowest = max(self.slowest, took)
            self.judge(f"{name} {route} ({len(body)} bytes): {status}", status, answer)

    def leave(self, route: str, body: bytes, part: float) -> None:
        """Sends a part of it, or all, and goes."""
        head = (f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", self.port)) as raw:
            raw.settimeout(DEADLINE)
            try:
                raw.sendall(head + body[:int(len(body) * min(1.0, 2 * part))])
            except ConnectionError:
                return  # refused before it was whole

    def judge(self, what: str, status: int, answer: bytes) -> None:
        if status not in FINE:
            return self.note(f"{what} {answer[:200]!r}")
        try:
            lines = answer.decode().strip().splitlines() or [""]
            json.loads(lines[0] if len(lines) > 1 else answer)
        except ValueError:
            self.note(f"{what}: no JSON: {answer[:200]!r}")
        if status != 200 and b"error" not in answer:
            self.note(f"{what}: no error: {answer[:200]!r}")

    def note(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text)



def probe(port: int, done, told) -> None:
    """Requests 1 token repeatedly. It is a separate process: threads of Python wait for each other,
    and the measured wait must be the server's."""
    wanted, waits, wrong = None, [], []
    while not done.is_set():
        begin = time.monotonic()
        try:
            status, answer = ask(port, "/v1/completions", json.dumps(PROBE).encode())
        except OSError as error:
            wrong.append(f"a 1-token request: {error!r}")
            break
        wait = time.monotonic() - begin
        if status == 200:
            text = json.loads(answer)["choices"][0]["text"]
            wanted = wanted if wanted is not None else text
            if text != wanted:
                wrong.append(f"another text: {text!r} in place of {wanted!r}")
            waits.append(wait)
        elif status not in (429, 503):
            wrong.append(f"a 1-token request: {status} {answer[:200]!r}")
        else:
            waits.append(float("inf"))
        time.sleep(0.01)
    told.put((waits, wrong))


def text_of(port: int) -> str:
    status, answer = ask(port, "/v1/completions", json.dumps(CONTROL).encode())
    return json.loads(answer)["choices"][0]["text"] if status == 200 else f"{status} {answer!r}"


def idle_space(loom: str, memory: int) -> int:
    server, port = start(loom, 0, "--memory", f"{memory}M")
    text_of(port)
    space = status_of(server, "VmPeak")
    server.kill()
    server.wait()
    return space


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile requests beside small ones.")
    parser.add_argument("loom")
    parser.add_argument("--bodies", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", type=int, default=512, help="MB of address space beyond idle")
    parser.add_argument("--only", nargs="*", default=[], help="kinds of bodies")
    parser.add_argument("--wait", type=float, help="ms that 99 %% of 1-token requests may take")
    options = parser.parse_args()
    memory = options.room // 2
    limit = idle_space(options.loom, memory) + (options.room << 20)
    server, port = start(options.loom, limit, "--memory", f"{memory}M")
    before, idle = text_of(port), status_of(server, "VmRSS")
    run = Run(port, options)
    done, told = multiprocessing.Event(), multiprocessing.Queue()
    prober = multiprocessing.Process(target=probe, args=(port, done, told))
    attackers = [threading.Thread(target=run.attack, args=(i,)) for i in range(options.clients)]
    for thread in [prober, *attackers]:
        thread.start()
    for thread in attackers:
        thread.join()
    done.set()
    waits, wrong = told.get()
    run.wrong += wrong
    prober.join()
    alive = server.poll() is None
    grown = status_of(server, "VmHWM") - idle if alive else 0
    after = text_of(port) if alive else "(no server)"
    server.terminate()
    server.wait()
    waits.sort()
    p99 = waits[int(len(waits) * 0.99)] * 1e3 if waits else float("inf")
    checks = {
        "alive": alive,
        "0 wrong": not run.wrong,
        "the same text": before == after,
        f"memory within {memory} MB": grown <= memory << 20,
        "1-token requests": bool(waits) and (options.wait is None or p99 <= options.wait),
    }
    for text in run.wrong[:20]:
        print(f"wrong: {text}")
    print(f"{options.bodies} bodies, statuses {dict(sorted(run.statuses.items()))}; limit of the "
          f"address space {limit >> 20} MB, grown by {grown / (1 << 20):.0f} MB of {memory}")
    print(f"slowest body: {run.slowest[0]:.2f} s, {run.slowest[1]}")
    if waits:
        print(f"{len(waits)} 1-token requests: median {waits[len(waits) // 2] * 1e3:.1f} ms, "
              f"99 % below {p99:.1f} ms, longest {waits[-1] * 1e3:.1f} ms")
    failed = [name for name, good in checks.items() if not good]
    print(f"failed: {', '.join(failed)}" if failed else "all held")
    print(f"{len(checks) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
