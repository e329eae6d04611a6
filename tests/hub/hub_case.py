"""Code that the tests of models from a hub share: the program, a cache of its own, a hub of
ours."""

import os
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from mirror import Mirror

ROOT = Path(__file__).resolve().parents[2]
LOOM = os.environ.get("LOOM_PROGRAM", str(ROOT / "build" / "dev" / "cli" / "loom"))
DEADLINE = 300  # seconds, of what ends by itself however busy the machine is
BIG = random.Random(7).randbytes(3_000_000)


def model_files(**more: bytes) -> dict[str, bytes]:
    return {
        "config.json": b'{"model_type": "llama"}',
        "tokenizer.json": b'{"version": "1.0"}',
        "generation_config.json": b"{}",
        "model.safetensors": BIG,
        "README.md": b"# read me",
        "pytorch_model.bin": b"pickle",
        "onnx/model.onnx": b"onnx",
    } | {name.replace("__", "."): data for name, data in more.items()}


class HubTest(unittest.TestCase):
    def setUp(self):
        help_text = subprocess.run(
            [LOOM, "pull", "hf:a/b", "--endpoint", "http://127.0.0.1:9", "--retries", "0"],
            capture_output=True,
            text=True,
            env=self.clean_env("/nonexistent"),
        )
        if "cannot load over the network" in help_text.stderr:
            self.skipTest("this build of loom has no libcurl")
        self.home = Path(tempfile.mkdtemp(prefix="loom-hub-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.mirror = Mirror().__enter__()
        self.addCleanup(self.mirror.__exit__)

    def clean_env(self, home) -> dict[str, str]:
        env = {
            k: v for k, v in os.environ.items() if not k.startswith(("HF_", "XDG_", "http", "HTTP"))
        }
        return env | {"HF_HOME": str(home), "NO_PROXY": "127.0.0.1,localhost"}

    def loom(self, *words: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [LOOM, *words],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
            env=self.clean_env(self.home) | env,
        )

    def pull(self, name: str, *words: str, **env: str) -> subprocess.CompletedProcess:
        return self.loom("pull", name, "--endpoint", self.mirror.url, *words, **env)

    def good(self, ran: subprocess.CompletedProcess) -> str:
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def refused(self, ran: subprocess.CompletedProcess, code: int, *texts: str):
        self.assertEqual(ran.returncode, code, ran.stderr)
        for text in texts:
            self.assertIn(text, ran.stderr)
        self.assertNotIn("secret", ran.stderr)

    def repo_folder(self, repo: str) -> Path:
        return self.home / "hub" / ("models--" + repo.replace("/", "--"))

    def blobs(self, repo: str) -> list[str]:
        return sorted(p.name for p in (self.repo_folder(repo) / "blobs").iterdir())
