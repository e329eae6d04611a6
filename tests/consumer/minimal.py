#!/usr/bin/env python3
"""The build for inference alone (-DLOOM_MINIMAL=ON): what it runs, what it says of what it has no
code for, and the size of its program. Builds build/minimal; with a warm ccache that takes seconds.

Closes with "N passed, N failed, N skipped".
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))

sys.dont_write_bytecode = True
from counted import run_counted  # noqa: E402

BUILD = ROOT / "build" / "minimal"
STORY = ROOT / "models" / "stories.entity"
# Megabytes of the stripped program. Before it is raised docs/decisions says why.
BUDGET = 7.5

# file, its first bytes, what the build says of it
LEFT_OUT = [
    ("x.tflite", b"\x10\x00\x00\x00TFL3",
     "this build has no reader for TFLite files; build with -DLOOM_TFLITE=ON"),
    ("x.onnx", b"\x08\x08", "this build has no reader for ONNX files; build with -DLOOM_ONNX=ON"),
    ("x.gguf", b"GGUF\3\0\0\0",
     "this build has no reader for GGUF files; build with -DLOOM_GGUF=ON"),
    ("x.npz", b"PK\3\4" + bytes(30),
     "this build has no reader for .npz files; build with -DLOOM_ARRAYS=ON"),
    ("x.safetensors", (2).to_bytes(8, "little") + b"{}",
     "this build has no reader for .safetensors files; build with -DLOOM_ARRAYS=ON"),
    ("old.entity", b"ENTITY\0\0\1\0" + bytes(16),
     "this build has no reader for .entity files of the original; build with -DLOOM_ORIGINAL=ON"),
    ("old.json", b'{"layers_per_cell": 1}',
     "this build has no reader for JSON files of the original; build with -DLOOM_ORIGINAL=ON"),
    ("x.txt", b"no model at all", "is not a model that this build opens"),
]


def run(*command: str, cwd: Path = ROOT, fails: bool = False) -> str:
    ran = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if (ran.returncode != 0) != fails:
        raise AssertionError(f"{shlex.join(command)}\n{ran.stdout[-4000:]}")
    return ran.stdout


class Minimal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The flags of the other builds, so that ccache knows all but the files that are guarded.
        options = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12"]
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        run("cmake", "--preset", "minimal", *options)
        run("cmake", "--build", "--preset", "minimal")
        cls.program = str(BUILD / "minimal")
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def file(self, name: str, content: bytes) -> str:
        path = Path(self.folder.name) / name
        path.write_bytes(content)
        return str(path)

    def test_a_language_model_tells_a_story(self):
        story = run(self.program, str(STORY), "Once upon a time")
        self.assertTrue(story.startswith("Once upon a time, there was a brave boy named Jacob."))

    def test_a_description_becomes_a_network_that_is_asked(self):
        text = b'{"loom": 1, "input": [2], "layers": [{"type": "Dense", "in": 2, "out": 3}]}'
        answer = run(self.program, self.file("net.json", text)).split()
        self.assertEqual(answer, ["0", "0", "0"])  # of zeros, with a bias that starts at 0

    def test_files_of_formats_that_are_left_out_name_the_option_that_brings_them(self):
        for name, content, says in LEFT_OUT:
            with self.subTest(name):
                path = self.file(name, content)
                self.assertEqual(run(self.program, path, fails=True), f"{path}: {says}\n")

    def test_folders_of_models_name_their_option(self):
        folder = str(ROOT / "tests" / "data" / "stories")
        says = "this build has no reader for Hugging Face folders; build with -DLOOM_HF=ON"
        for more in ([], ["Once"]):
            self.assertEqual(run(self.program, folder, *more, fails=True), f"{folder}: {says}\n")

    def test_every_header_compiles_and_what_is_left_out_is_not_declared(self):
        flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DLOOM_MINIMAL=1",
                 f"-I{ROOT / 'include'}"]
        headers = sorted((ROOT / "include" / "loom").glob("*.hpp"))
        alone = "".join(f"#include <loom/{header.name}>\n" for header in headers)
        whole = Path(self.file("alone.cpp", f"{alone}struct Trainer; Trainer* none;\n".encode()))
        run(os.environ.get("CXX", "g++"), *flags, str(whole))
        asks = self.file("asks.cpp", b"#include <loom/loom.hpp>\nloom::Trainer* trainer;\n")
        error = run(os.environ.get("CXX", "g++"), *flags, asks, fails=True)
        self.assertIn("Trainer", error)

    def test_the_program_keeps_its_budget(self):
        size = (BUILD / "minimal").stat().st_size / 1e6
        print(f"size: minimal: {size:.2f} MB, budget {BUDGET:.1f} MB")
        self.assertLess(size, BUDGET)


if __name__ == "__main__":
    sys.exit(run_counted(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])))
