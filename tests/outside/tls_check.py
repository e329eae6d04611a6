#!/usr/bin/env python3
"""TLS and Unix sockets of `loom serve` and `loom donate`, with curl, openssl and Python's ssl.

  tests/outside/tls_check.py build/dev/cli/loom [TEST...]

Certificates are made by openssl for each run. Nothing but the standard library is needed.
"""

import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
from counted import run_counted  # noqa: E402

MODEL = str(ROOT / "models" / "stories.entity")
DEADLINE = 300  # seconds, for actions that always end, however busy the machine is
LOOM = ""
PROMPT = {"prompt": "Once upon a time", "max_tokens": 12, "seed": 3}


def run(*words: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, **more)


class Certificates:
    """Authorities and their certificates, as PEM files of a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("ca", "other"):
            self._openssl("req", "-x509", *self._new_key(name), "-out", self[name], "-days", "30",
                          "-subj", f"/CN={name}")
        here = "IP:127.0.0.1,DNS:localhost"
        self.sign("server", "ca", here)
        self.sign("second", "ca", here)
        self.sign("expired", "ca", here, days=-1)
        self.sign("elsewhere", "ca", "DNS:example.org")
        self.sign("client", "ca", "DNS:client")
        self.sign("stranger", "other", "DNS:client")

    def __getitem__(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def sign(self, name: str, by: str, alt: str, days: int = 30) -> None:
        request, extensions = str(self.folder / "request"), self.folder / "extensions"
        extensions.write_text(f"subjectAltName={alt}\n")
        self._openssl("req", *self._new_key(name), "-out", request, "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", request, "-CA", self[by], "-CAkey", self.key(by),
                      "-CAcreateserial", "-days", str(days), "-out", self[name],
                      "-extfile", str(extensions))

    def _new_key(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                self.key(name)]

    def _openssl(self, *words: str) -> None:
        done = run("openssl", *words)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)


class Server:
    """A process of ours that listens; its first line has the address."""

    def __init__(self, *words: str, notes: Path):
        self.notes = notes
        self.process = subprocess.Popen([LOOM, *words], stdout=subprocess.PIPE,
                                        stderr=notes.open("w"), text=True)
        self.line = self.process.stdout.readline().strip()
        found = re.search(r":(\d+)$", self.line)
        self.port = int(found.group(1)) if found else 0

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(DEADLINE)
        self.process.stdout.close()
        return code

    def wait_for_note(self, text: str) -> None:
        end = time.monotonic() + DEADLINE
        while text not in self.notes.read_text():
            if time.monotonic() > end:
                raise AssertionError(f"no note {text!r}: {self.notes.read_text()}")
            time.sleep(0.05)

    def rss(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="loom-tls-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.pem = Certificates(cls.folder)

    def own(self, name: str = "server") -> list[str]:
        return ["--tls-cert", self.pem[name], "--tls-key", self.pem.key(name)]

    def start(self, verb: str, *words: str) -> Server:
        notes = self.folder / f"{self.id()}.notes"
        common = ["--context", "128", *(["--port", "0"] if "--port" not in words else [])]
        server = Server(verb, MODEL, *common, *words, notes=notes)
        self.addCleanup(lambda: server.process.poll() is None and server.process.kill())
        self.assertIn("listening at", server.line, notes.read_text())
        return server

    def curl(self, *words: str) -> subprocess.CompletedProcess:
        return run("curl", "-sS", "--max-time", str(DEADLINE), *words)

    def trusting(self, client: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.pem["ca"])
        if client:
            context.load_cert_chain(self.pem[client], self.pem.key(client))
        return context

    def post(self, connection: http.client.HTTPConnection, body: dict) -> dict:
        connection.request("POST", "/v1/completions", json.dumps(body),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        self.assertEqual(answer.status, 200, data)
        return json.loads(data)

    def ask(self, *words: str) -> subprocess.CompletedProcess:
        return run(LOOM, "donate", "--quiet", "--prompt", "Once upon a time", "--max-tokens", "12",
                   *words)


class Serve(TlsTest):
    def test_a_text_over_tls_is_the_text_over_tcp(self):
        plain, secure = self.start("serve"), self.start("serve", *self.own())
        self.assertTrue(secure.line.startswith("listening at https://127.0.0.1:"), secure.line)
        here = http.client.HTTPConnection("127.0.0.1", plain.port)
        there = http.client.HTTPSConnection("127.0.0.1", secure.port, context=self.trusting())
        wanted = self.post(here, PROMPT)["choices"][0]["text"]
        for _ in range(3):  # one connection
            self.assertEqual(self.post(there, PROMPT)["choices"][0]["text"], wanted)
        self.assertIn(there.sock.version(), ("TLSv1.2", "TLSv1.3"))
        here.close()
        there.close()
        self.assertEqual(plain.stop() + secure.stop(), 0)

    def test_curl_streams_and_sends_a_large_body_after_100_continue(self):
        server = self.start("serve", *self.own())
        url = f"https://127.0.0.1:{server.port}/v1/completions"
        large = self.folder / "large.json"
        large.write_text(json.dumps(PROMPT | {"stream": True, "user": "x" * 3_000_000}))
        done = self.curl("--cacert", self.pem["ca"], url, "-H", "Content-Type: application/json",
                         "-H", "Expect: 100-continue", "--data-binary", f"@{large}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith("data: [DONE]\n\n"), done.stdout[-200:])
        done = self.curl("--cacert", self.pem["ca"], "--http1.0", "-i",
                         f"https://localhost:{server.port}/health")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("200 OK", done.stdout)

    def test_an_end_is_said_so_that_it_is_not_a_cut(self):
        server = self.start("serve", *self.own())
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            with self.trusting().wrap_socket(raw, server_hostname="localhost",
                                             suppress_ragged_eofs=False) as secure:
                secure.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                               b"Connection: close\r\n\r\n")
                got = b""
                while piece := secure.recv(4096):  # raises if the end was not signalled
                    got += piece
        self.assertIn(b"200 OK", got)

    def test_http_without_tls_is_told_so(self):
        server = self.start("serve", *self.own())
        done = self.curl("-i", f"http://127.0.0.1:{server.port}/health")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("HTTP/1.1 400 "), done.stdout)
        self.assertIn("https://", done.stdout)

    def test_tls_1_1_is_refused(self):
        server = self.start("serve", *self.own())
        context = self.trusting()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                context.wrap_socket(raw, server_hostname="localhost")

    def test_clients_do_not_trust_what_is_expired_or_of_another_host(self):
        for name, why in (("expired", "expired"), ("elsewhere", "does not match|no alternative")):
            server = self.start("serve", *self.own(name))
            done = self.curl("--cacert", self.pem["ca"], f"https://127.0.0.1:{server.port}/health")
            self.assertEqual(done.returncode, 60, done.stderr)
            self.assertRegex(done.stderr, why)
            if name == "expired":
                server.wait_for_note("has expired: clients refuse it")

    def test_clients_need_a_certificate_if_the_server_says_so(self):
        server = self.start("serve", *self.own(), "--tls-client-ca", self.pem["ca"])
        url = f"https://127.0.0.1:{server.port}/health"
        trusted = ["--cacert", self.pem["ca"]]
        for words in ([], ["--cert", self.pem["stranger"], "--key", self.pem.key("stranger")]):
            done = self.curl(*trusted, *words, url)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("200", done.stdout)
        done = self.curl(*trusted, "--cert", self.pem["client"], "--key", self.pem.key("client"),
                         "-i", url)
        self.assertIn("200 OK", done.stdout, done.stderr)

    def serial(self, port: int) -> int:
        with socket.create_connection(("127.0.0.1", port)) as raw:
            with self.trusting().wrap_socket(raw, server_hostname="localhost") as secure:
                return int(secure.getpeercert()["serialNumber"], 16)

    def test_a_hangup_reads_the_certificate_again(self):
        cert, key = self.folder / "live.pem", self.folder / "live.key"
        shutil.copy(self.pem["server"], cert)
        shutil.copy(self.pem.key("server"), key)
        server = self.start("serve", "--tls-cert", str(cert), "--tls-key", str(key))
        first = self.serial(server.port)
        cert.write_text("no certificate")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_note("the certificate stays as it was")
        self.assertEqual(self.serial(server.port), first)
        shutil.copy(self.pem["second"], cert)
        shutil.copy(self.pem.key("second"), key)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_note("was read again")
        self.assertNotEqual(self.serial(server.port), first)
        self.assertEqual(server.stop(), 0)

    def test_files_that_cannot_be_used_are_named(self):
        broken = self.folder / "broken.pem"
        broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        locked = self.folder / "locked.key"
        run("openssl", "pkey", "-in", self.pem.key("server"), "-aes256", "-passout", "pass:abcd",
            "-out", str(locked))
        cert, key = self.pem["server"], self.pem.key("server")
        cases = [
            (["--tls-cert", cert], 2, "--tls-key"),
            (["--tls-cert", "/no/such", "--tls-key", key], 3, "no such file"),
            (["--tls-cert", str(broken), "--tls-key", key], 3, "broken.pem"),
            (["--tls-cert", cert, "--tls-key", self.pem.key("client")], 3, "client.key"),
            (["--tls-cert", cert, "--tls-key", str(locked)], 3, "without a password"),
            (["--tls-cert", cert, "--tls-key", key, "--tls-client-ca", str(broken)], 3, "broken"),
            ([*self.own(), "--host", f"unix:{self.folder}/s"], 2, "not encrypted"),
            (["--socket-mode", "9"], 2, "--socket-mode"),
        ]
        for words, code, text in cases:
            done = run(LOOM, "serve", MODEL, "--port", "0", *words, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, text in done.stderr), (code, True),
                             f"{words}: {done.returncode} {done.stderr}")


class SlowHandshakes(TlsTest):
    """Connections that stop in the handshake: silent, in the middle of a hello, after it."""

    COUNT = 1000

    def hello(self) -> bytes:
        to_us, from_us = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.trusting().wrap_bio(to_us, from_us, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return from_us.read()

    def test_they_hold_nobody_else_and_end(self):
        server = self.start("serve", *self.own())
        hello, before = self.hello(), server.rss()
        stopped = []
        for i in range(self.COUNT):
            one = socket.create_connection(("127.0.0.1", server.port))
            one.sendall([b"", hello[: len(hello) // 2], hello][i % 3])
            stopped.append(one)
        longest = 0.0
        for _ in range(30):
            begin = time.monotonic()
            there = http.client.HTTPSConnection("127.0.0.1", server.port, context=self.trusting())
            there.request("GET", "/health")
            self.assertEqual(there.getresponse().status, 200)
            there.close()
            longest = max(longest, time.monotonic() - begin)
        grown = server.rss() - before
        self.assertLess(grown, self.COUNT * (200 << 10))
        for one in stopped:  # ended by the server, after its limit on handshakes
            one.settimeout(DEADLINE)
            with contextlib.suppress(ConnectionError):
                while one.recv(65536):
                    continue
            one.close()
        print(f"{self.COUNT} stopped handshakes: {longest * 1e3:.0f} ms for the slowest of 30 "
              f"others, {grown / 1e6:.1f} MB")
        self.assertEqual(server.stop(), 0)


class Donate(TlsTest):
    def test_a_text_over_tls_is_that_of_loom_run(self):
        here = run(LOOM, "run", MODEL, "-p", "Once upon a time", "--max-tokens", "12", "--quiet")
        server = self.start("donate", *self.own())
        for host in ("127.0.0.1", "localhost"):
            done = self.ask("--to", f"{host}:{server.port}", "--tls-ca", self.pem["ca"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("Once upon a time" + done.stdout, here.stdout)
        self.assertEqual(server.stop(), 0)

    def test_a_model_is_pushed_over_tls(self):
        notes = self.folder / "push.notes"
        server = Server("donate", "--port", "0", *self.own(), notes=notes)
        done = self.ask("--to", f"127.0.0.1:{server.port}", "--tls-ca", self.pem["ca"], "--push",
                        MODEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(done.stdout, "")
        self.assertEqual(server.stop(), 0)

    def test_servers_that_prove_nothing_are_refused(self):
        cases = [("expired", "ca", "has expired"), ("elsewhere", "ca", "mismatch"),
                 ("server", "other", "not trusted"), ("server", "", "not trusted")]
        for name, ca, why in cases:
            server = self.start("donate", *self.own(name))
            trust = ["--tls-ca", self.pem[ca]] if ca else ["--tls"]
            done = self.ask("--to", f"127.0.0.1:{server.port}", *trust)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            server.stop()

    def test_clients_need_a_certificate_if_the_server_says_so(self):
        server = self.start("donate", *self.own(), "--tls-client-ca", self.pem["ca"])
        to = ["--to", f"127.0.0.1:{server.port}", "--tls-ca", self.pem["ca"]]
        for words in ([], self.own("stranger")):
            done = self.ask(*to, *words)
            self.assertEqual(done.returncode, 1, done.stderr)
        done = self.ask(*to, *self.own("client"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_tls_and_plain_do_not_speak_with_each_other(self):
        secure, plain = self.start("donate", *self.own()), self.start("donate")
        done = self.ask("--to", f"127.0.0.1:{secure.port}")
        self.assertEqual((done.returncode, "--tls" in done.stderr), (1, True), done.stderr)
        done = self.ask("--to", f"127.0.0.1:{plain.port}", "--tls-ca", self.pem["ca"])
        self.assertEqual((done.returncode, "no TLS" in done.stderr), (1, True), done.stderr)

    def test_other_machines_are_not_spoken_to_in_plain_text(self):
        secret = self.folder / "secret"
        secret.write_text("0123456789abcdef")
        words = ["--secret-file", str(secret), "--host", "0.0.0.0", "--port", "0"]
        done = run(LOOM, "donate", MODEL, *words)
        self.assertEqual((done.returncode, "--tls-cert" in done.stderr), (2, True), done.stderr)
        done = self.ask("--to", "192.0.2.1", "--secret-file", str(secret))
        self.assertEqual((done.returncode, "--tls" in done.stderr), (2, True), done.stderr)
        server = self.start("donate", *words, "--allow-plaintext")
        done = self.ask("--to", f"127.0.0.1:{server.port}", "--secret-file", str(secret))
        self.assertEqual(done.returncode, 0, done.stderr)


class UnixSockets(TlsTest):
    def test_curl_asks_through_one_and_it_goes_with_the_server(self):
        path = self.folder / "serve.sock"
        server = self.start("serve", "--host", f"unix:{path},127.0.0.1")
        self.assertIn(f"unix:{path}", server.line)
        self.assertGreater(server.port, 0)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        done = self.curl("--unix-socket", str(path), "http://localhost/v1/completions", "-H",
                         "Content-Type: application/json", "-d", json.dumps(PROMPT))
        self.assertIn("text_completion", done.stdout, done.stderr)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(path.exists())

    def test_modes_leftovers_and_files_of_others(self):
        path = self.folder / "mode.sock"
        words = ["--host", f"unix:{path}", "--socket-mode", "0660"]
        server = self.start("serve", *words)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o660)
        second = run(LOOM, "serve", MODEL, *words)
        self.assertEqual(second.returncode, 1, second.stderr)
        self.assertIn("another process listens there", second.stderr)
        server.process.kill()
        server.process.wait()
        self.assertTrue(path.exists())
        server = self.start("serve", *words)  # no process answers at the stale socket
        self.assertEqual(server.stop(), 0)
        path.write_text("a file of somebody")
        done = run(LOOM, "serve", MODEL, *words)
        self.assertEqual((done.returncode, "not a socket" in done.stderr), (1, True), done.stderr)
        self.assertEqual(path.read_text(), "a file of somebody")

    def test_a_path_that_is_too_long_is_refused_with_the_number(self):
        for verb in ("serve", "donate"):
            done = run(LOOM, verb, MODEL, "--host", "unix:/tmp/" + "x" * 200)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("205 bytes; the system allows 107", done.stderr)
        done = self.ask("--to", "unix:" + "y" * 120)
        self.assertEqual((done.returncode, "120 bytes" in done.stderr), (2, True), done.stderr)

    def test_a_machine_is_lent_through_one(self):
        path = self.folder / "donate.sock"
        server = self.start("donate", "--host", f"unix:{path}")
        done = self.ask("--to", f"unix:{path}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(done.stdout, "")
        done = self.ask("--to", f"unix:{path}", "--tls")
        self.assertEqual((done.returncode, "not encrypted" in done.stderr), (2, True), done.stderr)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(path.exists())


def main() -> int:
    global LOOM
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    LOOM = str(Path(sys.argv[1]).resolve())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    loader = unittest.defaultTestLoader
    module = sys.modules[__name__]
    suite = (loader.loadTestsFromNames(sys.argv[2:], module) if len(sys.argv) > 2
             else loader.loadTestsFromModule(module))
    return run_counted(suite)


if __name__ == "__main__":
    os.environ.pop("SSLKEYLOGFILE", None)
    sys.exit(main())
