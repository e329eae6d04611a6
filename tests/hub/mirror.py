"""A hub of our own on this machine, for tests: it speaks the protocol of `loom pull`, and
misbehaves on request. It never reaches another address than 127.0.0.1.

  with Mirror() as mirror:
      mirror.add("org/name", {"config.json": b"{}", "model.safetensors": b"..."})
      mirror.fault("model.safetensors", cut=1000)      # the next request for it only
      mirror.fault("model.safetensors", hold=1000)     # no more than so many bytes, and no end
      ... loom pull hf:org/name --endpoint mirror.url
"""

import hashlib
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Repo:
    files: dict[str, bytes]
    commit: str
    lfs: set[str]
    extra: list[dict] = field(default_factory=list)  # entries of the list as they are
    blobs: bool = True  # does the list tell sizes and hashes?
    token: str = ""  # that is asked for

    def etag(self, path: str) -> str:
        data = self.files[path]
        return hashlib.sha256(data).hexdigest() if path in self.lfs else git_hash(data)

    def listing(self, name: str) -> dict:
        siblings = []
        for path, data in self.files.items():
            entry = {"rfilename": path}
            if self.blobs:
                entry |= {"size": len(data), "blobId": git_hash(data)}
                if path in self.lfs:
                    entry["lfs"] = {"sha256": self.etag(path), "size": len(data)}
            siblings.append(entry)
        return {"id": name, "sha": self.commit, "siblings": siblings + self.extra}


class Mirror:
    def __init__(self):
        self.repos: dict[str, Repo] = {}
        self.faults: dict[str, list[dict]] = {}
        self.seen: list[tuple[str, str, dict]] = []  # method, path, headers (small letters)
        self.cdn_seen: list[tuple[str, str, dict]] = []
        self.pace = 0.0  # seconds between pieces of 64 kB
        self.ranges = True
        self.cdn_tag = "cdn-1"
        self.answer_list: bytes | None = None  # instead of a list of files
        self.lock = threading.Lock()

    def __enter__(self):
        handler = type("Hub", (HubHandler,), {"mirror": self})
        cdn = type("Cdn", (CdnHandler,), {"mirror": self})
        self.servers = [Server(("127.0.0.1", 0), h) for h in (handler, cdn)]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.servers[0].server_port}"
        # Another name, because huggingface_hub tells hosts by their names without ports.
        self.cdn_url = f"http://localhost:{self.servers[1].server_port}"
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add(self, name: str, files: dict[str, bytes], lfs=None, **more) -> Repo:
        """Files that `lfs` names are at another port; None: those of weights."""
        if lfs is None:
            lfs = {p for p in files if p.endswith((".safetensors", ".gguf", ".bin"))}
        text = json.dumps(sorted((p, git_hash(d)) for p, d in files.items()))
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.repos[name] = Repo(dict(files), commit, set(lfs), **more)
        return self.repos[name]

    def fault(self, path: str, times: int = 1, **what):
        """Faults of the next requests for `path` (or "list"). Keys: status=, headers=, cut=
        (bytes), flip=True, longer=True, start= (a 206 from that byte for any range), length= (a
        wrong Content-Length). hold= (bytes) then sends nothing until the client leaves.
        """
        with self.lock:
            self.faults.setdefault(path, []).extend([what] * times)

    def take_fault(self, path: str) -> dict:
        with self.lock:
            waiting = self.faults.get(path)
            return waiting.pop(0) if waiting else {}

    def requests_of(self, path: str) -> list[tuple[str, str, dict]]:
        return [r for r in self.seen + self.cdn_seen if r[1].endswith(path) and r[0] == "GET"]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that left


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mirror: Mirror

    def log_message(self, *_):
        pass

    def refuse(self, status: int, code: str = "", headers=None):
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_file(self, data: bytes, tag: str, fault: dict, headers=None):
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        fits = self.headers.get("If-Range", f'"{tag}"') == f'"{tag}"'
        if asked and fits and self.mirror.ranges:
            start = int(asked[1])
            if start >= len(data):
                self.refuse(416, headers={"Content-Range": f"bytes */{len(data)}"})
                return
        start = fault.get("start", start)
        body = bytearray(data[start:])
        if fault.get("flip") and body:
            body[len(body) // 2] ^= 1
        if fault.get("longer"):
            body += b"more"
        partial = start > 0 or "start" in fault
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if "longer" in fault:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(fault.get("length", len(body))))
        self.send_header("ETag", f'"{tag}"')
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body[: fault.get("cut", fault.get("hold"))]
        try:
            for at in range(0, len(body), 65536):
                self.wfile.write(body[at : at + 65536])
                if self.mirror.pace:
                    time.sleep(self.mirror.pace)
            if "cut" in fault:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            if "hold" in fault:
                self.wfile.flush()
                self.connection.recv(1)  # ends when the client has closed the connection
                self.close_connection = True
        except OSError:
            self.close_connection = True

    def do_HEAD(self):
        self.do_GET()


class CdnHandler(Handler):
    def do_GET(self):
        parts = urlsplit(self.path)
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.mirror.cdn_seen.append((self.command, unquote(parts.path), headers))
        name, path = parse_qs(parts.query)["repo"][0], unquote(parts.path)[1:]
        fault = self.mirror.take_fault(path)
        if "status" in fault:
            self.refuse(fault["status"], headers=fault.get("headers"))
            return
        self.send_file(self.mirror.repos[name].files[path], self.mirror.cdn_tag, fault)


class HubHandler(Handler):
    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.mirror.seen.append((self.command, path, headers))
        if found := re.fullmatch(r"/api/models/(.+)/revision/(.+)", path):
            self.answer_listing(found[1], found[2])
        elif found := re.fullmatch(r"/([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", path):
            self.answer_file(*found.groups())
        else:
            self.refuse(404)

    def repo_of(self, name: str, revision: str) -> Repo | None:
        repo = self.mirror.repos.get(name)
        bearer = self.headers.get("Authorization", "")
        if repo is None:
            self.refuse(401 if not bearer else 404, "RepoNotFound")
        elif repo.token and bearer != f"Bearer {repo.token}":
            self.refuse(401 if not bearer else 403, "GatedRepo" if bearer else "RepoNotFound")
        elif revision not in ("main", "refs/pr/1", repo.commit):
            self.refuse(404, "RevisionNotFound")
        else:
            return repo
        return None

    def answer_listing(self, name: str, revision: str):
        fault = self.mirror.take_fault("list")
        if "status" in fault:
            self.refuse(fault["status"], fault.get("code", ""), fault.get("headers"))
            return
        repo = self.repo_of(name, revision)
        if repo is None:
            return
        body = self.mirror.answer_list
        if body is None:
            body = json.dumps(repo.listing(name)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def answer_file(self, name: str, revision: str, path: str):
        repo = self.repo_of(name, revision)
        if repo is None:
            return
        if path not in repo.files:
            self.refuse(404, "EntryNotFound")
            return
        headers = {"X-Repo-Commit": repo.commit}
        if path in repo.lfs:
            headers |= {
                "X-Linked-Etag": f'"{repo.etag(path)}"',
                "X-Linked-Size": str(len(repo.files[path])),
                "Location": f"{self.mirror.cdn_url}/{path}?repo={name}",
            }
            self.refuse(302, headers=headers)
            return
        fault = self.mirror.take_fault(path)
        if "status" in fault:
            self.refuse(fault["status"], headers=fault.get("headers"))
            return
        self.send_file(repo.files[path], repo.etag(path), fault, headers)
