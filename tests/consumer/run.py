#!/usr/bin/env python3
"""Loom as the library of another project. The project of docs/how-to/cpp.md, is built
unchanged in a folder of its own, beside a shared library that has Loom: the parts for inference,
or all with --whole, a step of bench/nightly.sh.

Closes with "N passed, N failed, N skipped". The build stays in build/consumer for the next run.
"""

import ctypes
import json
import os
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
from markdown import block_of  # noqa: E402

PAGE, SECTION = ROOT / "docs" / "how-to" / "cpp.md", "From C++"
WORK = ROOT / "build" / "consumer"
WHOLE = "--whole" in sys.argv[1:]
STORY = "models/stories.entity"
# The project's own level of optimization and language, which Loom must leave as they are.
OWN = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -DOWN=1", "-DCMAKE_CXX_STANDARD=17"]
FETCHED = f"""cmake_minimum_required(VERSION 3.25)
project(hello LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(loom SOURCE_DIR "{ROOT}")
FetchContent_MakeAvailable(loom)
add_executable(hello hello.cpp)
target_link_libraries(hello PRIVATE loom::loom)
"""


def run(*command: str, cwd: Path = WORK) -> str:
    """The output of the command; an error with its last lines when it fails."""
    own = {name: value for name, value in os.environ.items() if name not in ("CXXFLAGS", "LDFLAGS")}
    ran = subprocess.run(
        command, cwd=cwd, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ran.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}\n{ran.stdout[-4000:]}")
    return ran.stdout


class Project:
    """A folder with CMakeLists.txt, hello.cpp and, as docs/how-to/cpp.md says, Loom in `loom`."""

    def __init__(self, name: str, cmake: str):
        self.source, self.build = WORK / name, WORK / name / "build"
        self.source.mkdir(parents=True, exist_ok=True)
        self.write("CMakeLists.txt", cmake)
        self.write("hello.cpp", block_of(PAGE, SECTION, "cpp"))
        if not (self.source / "loom").is_symlink():
            (self.source / "loom").symlink_to(ROOT)

    def write(self, name: str, text: str) -> None:
        file = self.source / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)

    def follow(self, script: str, *options: str) -> str:
        """Runs commands in the project's folder. Where they configure, `options` are added."""
        (self.build / "CMakeCache.txt").unlink(missing_ok=True)
        options += ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",)
        if shutil.which("ccache"):
            options += ("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",)
        added = f"""cmake() {{
          if [[ "$1" == --build ]]; then command cmake "$@"
          else command cmake "$@" {shlex.join(options)}; fi
        }}
        """
        return run("bash", "-euo", "pipefail", "-c", added + script, cwd=self.source)

    def cache(self) -> dict[str, str]:
        """The cache entries, without those that CMake marks as internal."""
        lines = (self.build / "CMakeCache.txt").read_text().splitlines()
        entries = [line.partition("=") for line in lines if line[:1] not in ("", "#", "/")]
        return {
            name.split(":")[0]: value
            for name, _, value in entries
            if not name.endswith((":INTERNAL", ":STATIC"))
        }

    def flags_of(self, target: str) -> list[str]:
        """The options a target is compiled with, but those that name files."""
        commands = json.loads((self.build / "compile_commands.json").read_text())
        commands = [c["command"] for c in commands if f"/{target}.dir/" in c["command"]]
        return [w for w in shlex.split(commands[0]) if w[0] == "-" and w not in ("-o", "-c")]


class Subdirectory(unittest.TestCase):
    """add_subdirectory, with a build type and a language of the project's own."""

    @classmethod
    def setUpClass(cls):
        cls.project = Project("subdirectory", block_of(PAGE, SECTION, "cmake"))
        more = f"-DCMAKE_PROJECT_hello_INCLUDE={HERE / 'more.cmake'}"
        part = f"-DLOOM_MINIMAL={'OFF' if WHOLE else 'ON'}"
        cls.options = [*OWN, "-DCMAKE_UNITY_BUILD=ON", part, more]
        cls.printed = cls.project.follow(block_of(PAGE, SECTION, "sh"), *cls.options)
        cls.cache = cls.project.cache()  # before FetchContent adds names of its own

    def test_the_commands_of_the_readme_end_in_a_story(self):
        self.assertIn("\nOnce upon a time, there was a brave boy named Jacob.", self.printed)

    def test_a_shared_library_can_hold_loom(self):
        plugin = ctypes.CDLL(str(self.project.build / "libplugin.so"))
        plugin.plugin_story.restype = ctypes.c_char_p
        story = plugin.plugin_story(str(ROOT / STORY).encode()).decode()
        self.assertEqual(story[:36], ", there was a brave boy named Jacob.")

    def test_fetch_content_builds_the_same_library_and_program(self):
        # In the same folders with the same options, so that nothing is compiled a second time.
        here = "${CMAKE_CURRENT_SOURCE_DIR}/loom\" BINARY_DIR \"${CMAKE_BINARY_DIR}/loom"
        self.project.write("CMakeLists.txt", FETCHED.replace(str(ROOT), here))
        try:
            printed = self.project.follow(block_of(PAGE, SECTION, "sh"), *self.options)
        finally:
            self.project.write("CMakeLists.txt", block_of(PAGE, SECTION, "cmake"))
        self.assertIn("\nOnce upon a time, there was a brave boy named Jacob.", printed)

    def test_sources_of_the_project_get_the_public_headers_and_no_flag_of_ours(self):
        include = f"-I{self.project.source / 'loom' / 'include'}"
        asked_for = [] if WHOLE else ["-DLOOM_MINIMAL=1"]
        self.assertEqual(
            sorted(self.project.flags_of("hello")),
            sorted(["-O0", "-DOWN=1", "-std=gnu++20", include, *asked_for]),
        )

    def test_only_the_library_is_part_of_the_build(self):
        targets = run("ninja", "-C", str(self.project.build), "-t", "targets", "all")
        for name in ("loom_cli", "test_", "fuzz_", "loom_hash", "bench"):
            self.assertNotIn(f" {name}", targets.replace("/", " "))

    def test_the_cache_keeps_the_settings_of_the_project_and_gets_names_of_ours_only(self):
        self.assertEqual(self.cache["CMAKE_BUILD_TYPE"], "Debug")
        ours = ("LOOM_", "CMAKE_")
        self.assertEqual([name for name in self.cache if not name.startswith(ours)], [])


class Fetched(unittest.TestCase):
    """FetchContent from a folder, in a project that sets no build type but loose arithmetic."""

    @classmethod
    def setUpClass(cls):
        cls.project = Project("fetched", FETCHED)
        cls.project.follow("cmake -B build -G Ninja", "-DCMAKE_CXX_FLAGS=-ffast-math")

    def test_the_program_in_the_readme_compiles_with_no_flag_of_ours(self):
        run("ninja", "-C", str(self.project.build), "CMakeFiles/hello.dir/hello.cpp.o")
        self.assertEqual(
            sorted(self.project.flags_of("hello")),
            [f"-I{ROOT / 'include'}", "-ffast-math", "-std=gnu++20"],
        )

    def test_the_build_type_of_the_project_stays_unset_and_loom_itself_is_fast(self):
        self.assertEqual(self.project.cache().get("CMAKE_BUILD_TYPE", ""), "")
        self.assertIn("-O3", self.project.flags_of("loom_base"))

    def test_loose_arithmetic_of_the_project_does_not_reach_the_kernels(self):
        flags = self.project.flags_of("loom_backend_cpu")
        self.assertLess(flags.index("-ffast-math"), flags.index("-fno-fast-math"))


if __name__ == "__main__":
    WORK.mkdir(parents=True, exist_ok=True)
    sys.exit(run_counted(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])))
