#!/usr/bin/env python3
"""Builds that leave one part out each (docs/decisions/0031): library and program compile and
link, the program runs a network, and says of a file of that part which option brings its reader.

  tests/consumer/options.py              every option
  tests/consumer/options.py GGUF HF      these

One build folder, build/options, unoptimized and in batches of files: after the first build only the
rooms that ask about a part are compiled again. A step of bench/nightly.sh. Closes with
"N passed, N failed, N skipped".
"""

import shutil
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from minimal import LEFT_OUT, ROOT, run, run_counted  # noqa: E402

BUILD = ROOT / "build" / "options"
PARTS = ["ONNX", "ORIGINAL", "GGUF", "HF", "ARRAYS", "WEBGPU", "TFLITE"]


def build(part: str) -> str:
    """The program of a build without that part."""
    options = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    options += [f"-DLOOM_{other}={'OFF' if other == part else 'ON'}" for other in PARTS]
    run("cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
        "-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12",
        "-DLOOM_BUILD_TESTS=OFF", "-DLOOM_INSTALL=OFF", *options)
    run("cmake", "--build", str(BUILD))
    return str(next(path for path in (BUILD / "cli" / "loom", BUILD / "loom") if path.is_file()))


class Options(unittest.TestCase):
    """One test for each part, made below."""

    def check(self, part: str):
        program = build(part)
        folder = BUILD / "files"
        folder.mkdir(exist_ok=True)
        net = folder / "net.json"
        net.write_text(
            '{"loom": 1, "input": [2], "layers": [{"type": "Dense", "in": 2, "out": 3}]}'
        )
        self.assertIn("Dense", run(program, "info", str(net)))
        for name, content, says in LEFT_OUT:
            if f"-DLOOM_{part}=ON" not in says:
                continue
            with self.subTest(name):
                path = folder / name
                path.write_bytes(content)
                to = str(folder / "x.entity")
                self.assertIn(says, run(program, "convert", str(path), to, fails=True))
        if part == "HF":
            says = "this build has no reader for Hugging Face folders; build with -DLOOM_HF=ON"
            self.assertIn(says, run(program, "convert", str(ROOT / "tests" / "data" / "stories"),
                                    str(folder / "x.entity"), fails=True))


for part in PARTS:
    setattr(Options, f"test_without_{part.lower()}", lambda self, part=part: self.check(part))

if __name__ == "__main__":
    asked = [name.upper() for name in sys.argv[1:]] or PARTS
    unknown = [name for name in asked if name not in PARTS]
    if unknown:
        sys.exit(f"error: unknown part '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    suite = unittest.TestSuite(Options(f"test_without_{name.lower()}") for name in asked)
    sys.exit(run_counted(suite))
