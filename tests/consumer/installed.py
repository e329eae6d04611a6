#!/usr/bin/env python3
"""Loom as it is installed: a stranger's programs, built against nothing but what
`cmake --install` put into a folder, each way that docs/how-to/cpp.md names.

  installed.py [PRESET]

Prints the sizes of what is installed and fails where one is above its budget. Closes with
"N passed, N failed, N skipped".
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))

sys.dont_write_bytecode = True
from counted import run_counted  # noqa: E402
from markdown import blocks  # noqa: E402

WORK = ROOT / "build" / "installed"
PREFIX = WORK / "prefix"
PRESET = "dev"
EXAMPLES = ROOT / "examples"
STORY = ROOT / "models" / "stories.entity"
DOCS = ROOT / "docs"
README, CPP, DEVICE = ROOT / "README.md", DOCS / "how-to/cpp.md", DOCS / "tutorials/device.md"

# Megabytes of what is installed, stripped, and of a program that only opens a network and runs it.
# Before one is raised docs/decisions says why.
BUDGETS = {"libloom.so": 15.3, "loom": 18.8, "asks alone, static": 10.8}

VERSION = re.search(r"loom VERSION (\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(Loom {version} REQUIRED)
foreach(name network chat)
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE loom::loom)
endforeach()
"""

def run(*command: str, cwd: Path = WORK, **more: str) -> str:
    environment = {**os.environ, **more}
    ran = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )
    if ran.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}\n{ran.stdout[-4000:]}")
    return ran.stdout


def mine(page: Path, language: str) -> list[str]:
    """The blocks of a page that this test runs or compares."""
    note = "run by tests/consumer/installed.py"
    return [b.text for b in blocks(page) if b.note == note and b.language == language]


def library_folder() -> Path:
    return next(PREFIX.glob("lib*/**/libloom.a")).parent


def compiler() -> str:
    return os.environ.get("CXX", "g++")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(PREFIX, ignore_errors=True)
        run("cmake", "--install", str(ROOT / "build" / PRESET), "--prefix", str(PREFIX), "--strip")

    def build(self, name: str, *options: str) -> Path:
        folder = WORK / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").write_text(PROJECT.replace("{version}", VERSION))
        for example in ("network", "chat"):
            shutil.copy(EXAMPLES / f"{example}.cpp", folder)
        run("cmake", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PREFIX}", *options,
            cwd=folder)
        run("cmake", "--build", "build", cwd=folder)
        return folder / "build"

    def check(self, folder: Path, **environment: str):
        """Both programs do what they say."""
        printed = run(str(folder / "network"), cwd=folder, **environment)
        self.assertEqual([printed], mine(README, "text"))
        story = run(str(folder / "chat"), str(STORY), cwd=folder, **environment)
        self.assertIn("40 tokens, perplexity", story)

    def with_pkg_config(self, name: str, *options: str) -> Path:
        folder = WORK / name
        folder.mkdir(parents=True, exist_ok=True)
        paths = str(library_folder() / "pkgconfig")
        flags = run("pkg-config", "--cflags", "--libs", *options, "loom", PKG_CONFIG_PATH=paths)
        words = shlex.split(flags)
        if options:  # both kinds are there, and a linker prefers the shared one
            words = ["-l:libloom.a" if word == "-lloom" else word for word in words]
        for example in ("network", "chat"):
            source = str(EXAMPLES / f"{example}.cpp")
            run(compiler(), "-std=c++20", "-O1", source, "-o", example, *words, cwd=folder)
        return folder

    def test_find_package_brings_the_shared_library(self):
        self.check(self.build("shared"))

    def test_find_package_brings_the_static_library_where_that_is_asked(self):
        folder = self.build("static", "-DBUILD_SHARED_LIBS=OFF")
        self.assertNotIn("libloom", run("ldd", str(folder / "network")))
        self.check(folder)

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_knows_the_shared_library(self):
        self.check(self.with_pkg_config("pkg-shared"), LD_LIBRARY_PATH=str(library_folder()))

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_knows_what_the_static_library_needs(self):
        self.check(self.with_pkg_config("pkg-static", "--static"))

    def test_the_pages_show_lines_of_the_example_that_is_built_here(self):
        whole = [line.strip() for line in (EXAMPLES / "network.cpp").read_text().splitlines()]
        for page in (README, CPP):
            [shown] = mine(page, "cpp")
            for line in filter(None, map(str.strip, shown.splitlines())):
                self.assertIn(line, whole)

    def test_headers_include_each_other_and_the_standard_library_only(self):
        for header in sorted((PREFIX / "include" / "loom").glob("*.hpp")):
            alone = WORK / "alone.cpp"
            alone.write_text(f"#include <loom/{header.name}>\n")
            run(compiler(), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
                "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror",
                f"-I{PREFIX / 'include'}", str(alone))

    def test_the_shared_library_shows_our_names_and_no_others(self):
        library = library_folder() / "libloom.so"
        names = run("nm", "-DC", "--defined-only", str(library)).splitlines()
        names = [line.split(" ", 2)[2] for line in names]
        self.assertTrue(any(name.startswith("loom::Network::load") for name in names))
        # Templates of the standard library over our types are shown with them.
        foreign = [n for n in names if not n.removeprefix("typeinfo for ").startswith(
            ("loom::", "loom_", "typeinfo name for loom::", "vtable for loom::"))]
        self.assertEqual(foreign, [])
        self.assertEqual([name for name in names if "loom::core::" in name.split("(")[0]], [])

    def test_what_is_installed_keeps_its_budget(self):
        folder = WORK / "asks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "asks.cpp").write_text(mine(DEVICE, "cpp")[0])
        run(compiler(), "-std=c++20", "-O2", "asks.cpp", f"-I{PREFIX / 'include'}", "-o", "asks",
            str(library_folder() / "libloom.a"), "-Wl,--gc-sections", "-s", "-lpcre2-8", "-lz",
            "-lpthread", "-ldl", cwd=folder)
        sizes = {
            "libloom.so": (library_folder() / "libloom.so").stat().st_size,
            "loom": (PREFIX / "bin" / "loom").stat().st_size,
            "asks alone, static": (folder / "asks").stat().st_size,
        }
        for name, size in sizes.items():
            print(f"size: {name}: {size / 1e6:.2f} MB, budget {BUDGETS[name]:.1f} MB")
            self.assertLess(size / 1e6, BUDGETS[name], name)
        self.check_device(folder)

    def check_device(self, folder: Path):
        """The page of devices: its first block trains, its program prints what it shows."""
        if not (folder / "examples").is_symlink():
            (folder / "examples").symlink_to(EXAMPLES)
        for name in ("sensor.json", "sensor.entity"):
            (folder / name).unlink(missing_ok=True)
        train = next(b.text for b in blocks(DEVICE) if b.language == "sh")
        path = f"{PREFIX / 'bin'}{os.pathsep}{os.environ['PATH']}"
        run("bash", "-e", "-c", train, cwd=folder, PATH=path)
        self.assertEqual([run("./asks", "sensor.entity", cwd=folder)], mine(DEVICE, "text"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PRESET = sys.argv[1]
    if not (ROOT / "build" / PRESET / "cmake_install.cmake").exists():
        print(f"skipped: build/{PRESET} is not there\n0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    WORK.mkdir(parents=True, exist_ok=True)
    sys.exit(run_counted(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])))
