"""Generated code matches api/. The header is clean in every dialect of C and C++, and ctypes uses
the layouts that C asserts."""

import ctypes
import importlib.util
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import api_csharp
import api_dart
import api_rust
import generate_api

ROOT = generate_api.ROOT
HEADER = ROOT / "include" / "loom.h"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
# C89 has no <stdint.h> and no long long, which compilers take as extensions.
DIALECTS = [["c", "-std=c89", "-Wno-long-long"], ["c", "-std=c99"], ["c", "-std=c11"],
            ["c++", "-std=c++11"], ["c++", "-std=c++20"]]  # fmt: skip


def description() -> generate_api.Api:
    return generate_api.described()


class GeneratedFiles(unittest.TestCase):
    def test_the_files_of_the_tree_are_what_the_generator_writes(self):
        for path, text in generate_api.generated().items():
            with self.subTest(path):
                self.assertEqual((ROOT / path).read_text(), text, "run tools/generate_api.py")

    def test_every_function_of_the_description_is_defined_once_and_no_other(self):
        defined = []
        for file in sorted((ROOT / "src" / "capi").rglob("*.cpp")):
            code = file.read_text()
            defined += re.findall(r"^\w[\w *]*?\b(loom_\w+)\([^;]*?\) \{$", code, re.M | re.S)
        self.assertEqual(sorted(defined), sorted([*description().functions, "loom_get_api"]))

    def test_keywords_of_a_language_are_escaped(self):
        for module, word, escaped in (
            (api_csharp, "event", "@event"),
            (api_csharp, "is", "@is"),
            (api_dart, "with", "with_"),
            (api_rust, "where", "r#where"),
        ):
            self.assertEqual(module._name(word), escaped)
            self.assertEqual(module._name("rows"), "rows")

    def test_comments_say_whose_memory_it_is(self):
        for name, call in description().functions.items():
            out = [a for a in call["arguments"] if a.type.count("*") == 2 and a.name != "names"]
            if out and call["returns"] == "loom_status":
                with self.subTest(name):
                    self.assertRegex(call["doc"], "transferred|[Bb]orrowed|The same")

    def test_ctypes_has_the_layout_that_c_asserts(self):
        spec = importlib.util.spec_from_file_location(
            "_ffi", ROOT / "bindings/python/loom/_ffi.py"
        )
        ffi = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(ffi)
        api = description()
        self.assertEqual(ctypes.sizeof(ctypes.c_void_p), 8, "these numbers are for 64 bits")
        for name in api.structs:
            offsets, size = api.layout(name)
            struct = getattr(ffi, name)
            found = {field: getattr(struct, field).offset for field, _ in struct._fields_}
            with self.subTest(name):
                self.assertEqual((found, ctypes.sizeof(struct)), (offsets, size))


class Header(unittest.TestCase):
    def compilers(self) -> list[str]:
        return [c for c in ("gcc", "clang-19", "clang-14", "clang") if shutil.which(c)]

    def check(self, compiler: str, dialect: list[str], code: str) -> str:
        language, *flags = dialect
        return subprocess.run(
            [compiler, "-x", language, *flags, *WARNINGS, f"-I{ROOT / 'include'}", "-"],
            input=code, capture_output=True, text=True,
        ).stderr  # fmt: skip

    def test_alone_it_is_clean_in_every_dialect(self):
        if not self.compilers():
            self.skipTest("no C compiler is installed")
        sized = [name for name, s in description().structs.items() if s["kind"] != "plain"]
        inits = "".join(f"{name} a_{name} = {name.upper()}_INIT;\n" for name in sized)
        use = '#include "loom.h"\n#include "loom.h"\nint x = LOOM_OK;\n'
        for compiler in self.compilers():
            for dialect in DIALECTS:
                code = use + (inits if dialect[0] == "c" else "")
                with self.subTest(compiler=compiler, dialect=dialect):
                    self.assertEqual(self.check(compiler, dialect, code), "")

    def test_a_wrong_offset_does_not_compile(self):
        if not self.compilers():
            self.skipTest("no C compiler is installed")
        layout = (ROOT / "tests" / "capi" / "layout.c").read_text()
        wrong = re.sub(r"(offsetof\(loom_tensor, data\) == )\d+", r"\g<1>25", layout)
        self.assertNotEqual(layout, wrong)
        self.assertEqual(self.check(self.compilers()[0], ["c", "-std=c11"], layout), "")
        self.assertIn("loom_tensor.data", self.check(self.compilers()[0], ["c", "-std=c11"], wrong))


if __name__ == "__main__":
    unittest.main()
