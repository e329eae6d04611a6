"""Promises of releases are kept, and every way to break one is found, also by abidiff."""

import copy
import shutil
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

import api_frozen
import generate_api

ROOT = generate_api.ROOT
BASELINES = ROOT / "api" / "frozen"


def drop(table: str, name: str):
    return lambda now: now[table].pop(name)


def set_in(*path_and_value):
    *path, last, value = path_and_value

    def change(now):
        for step in path:
            now = now[step]
        now[last] = value

    return change


def insert_field(now):
    now["structs"]["loom_fit_options"]["fields"].insert(1, ["new", "int64_t", 8])


# Effects of a change, and words of the message about it.
BREAKS = {
    "a function is gone": (drop("functions", "loom_version"), "loom_version is gone"),
    "another argument": (
        set_in("functions", "loom_free", 0, "void (char *)"), "loom_free was void (void *)"),
    "another result": (
        set_in("functions", "loom_version", 0, "char * (void)"), "loom_version was const char *"),
    "fewer threads": (
        set_in("functions", "loom_network_predict", 1, "handle"), "from any thread"),
    "a callback is gone": (drop("callbacks", "loom_token_fn"), "loom_token_fn is gone"),
    "another callback": (set_in("callbacks", "loom_token_fn", "int32_t (void *)"), "and is int32"),
    "a handle is gone": (lambda now: now["handles"].remove("loom_model"), "loom_model is gone"),
    "a value is gone": (
        lambda now: now["enums"]["loom_stop"].pop("LOOM_STOP_LENGTH"), "LOOM_STOP_LENGTH was 2"),
    "another number": (set_in("enums", "loom_dtype", "LOOM_INT8", 99), "LOOM_INT8 was 9 and is 99"),
    "an enum is gone": (drop("enums", "loom_clip"), "loom_clip is gone"),
    "a struct is gone": (drop("structs", "loom_epoch"), "loom_epoch is gone"),
    "a field in between": (insert_field, "loom_fit_options.epochs is not where it was"),
    "a field is gone": (
        lambda now: now["structs"]["loom_epoch"]["fields"].pop(), "is not where it was"),
    "another type": (
        set_in("structs", "loom_tensor", "fields", 1, 1, "uint32_t"), "loom_tensor.rank was int32"),
    "another place": (set_in("structs", "loom_tensor", "fields", 4, 2, 40), "was void * at 24"),
    "less memory": (set_in("structs", "loom_epoch", "size", 8), "loom_epoch has 8 bytes"),
    "a frozen struct grew": (
        set_in("structs", "loom_tensor", "size", 48), "has 48 bytes and had 32"),
    "another kind": (set_in("structs", "loom_tensor", "kind", "options"), "was plain"),
    "the number went back": (set_in("abi", 0), "abi went back"),
}  # fmt: skip


def grow(now):
    now["functions"]["loom_new"] = ["void (void)", "any"]
    now["enums"]["loom_stop"]["LOOM_STOP_NEW"] = 77
    now["structs"]["loom_epoch"]["fields"].append(["new", "int64_t", 88])
    now["structs"]["loom_epoch"]["size"] += 8
    now["handles"].insert(0, "loom_new_handle")


class Promises(unittest.TestCase):
    def setUp(self):
        self.now = api_frozen.snapshot(generate_api.described())

    def test_every_release_is_kept(self):
        self.assertTrue(api_frozen.releases(), "no release is frozen")
        for release, then in api_frozen.releases().items():
            with self.subTest(release):
                self.assertEqual(api_frozen.problems(then, self.now), [])

    def test_what_is_written_is_what_is_read(self):
        self.assertEqual(tomllib.loads(api_frozen.as_toml("9.9", self.now)), self.now)

    def test_every_break_is_found(self):
        for what, (change, words) in BREAKS.items():
            with self.subTest(what):
                broken = copy.deepcopy(self.now)
                change(broken)
                self.assertIn(words, "\n".join(api_frozen.problems(self.now, broken)))

    def test_what_is_added_breaks_nothing(self):
        grown = copy.deepcopy(self.now)
        grow(grown)
        self.assertEqual(api_frozen.problems(self.now, grown), [])
        self.assertEqual(api_frozen.problems(self.now, {**grown, "abi": 2, "functions": {}}), [])

    def test_the_table_keeps_its_order_when_functions_are_added(self):
        api, frozen = generate_api.described(), api_frozen.releases()
        promised = list(frozen["0.1"]["functions"])
        api.functions = {"loom_new": api.functions["loom_version"], **api.functions}
        order = api_frozen.table_order(api, frozen)
        self.assertEqual(order[: len(promised)], promised)
        self.assertIn("loom_new", order[len(promised) :])
        self.assertEqual(sorted(order), sorted(api.functions))


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class Abidiff(unittest.TestCase):
    """The interface as libabigail sees it: of a library that has these functions and no bodies."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compiled(self, header: str) -> Path:
        (self.folder / "loom.h").write_text(header)
        (self.folder / "stub.c").write_text(api_frozen.stub(generate_api.described()))
        library = self.folder / "libloom.so"
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-w", "-I", self.folder, "-o", library,
                        self.folder / "stub.c"], check=True)  # fmt: skip
        return library

    def abidiff(self, header: str) -> "tuple[int, str]":
        """Against the oldest release; structs that grew since are not compared."""
        [baseline, *_] = sorted(BASELINES.glob("*.abi"))
        then = api_frozen.releases()[baseline.stem]["structs"]
        now = api_frozen.snapshot(generate_api.described())["structs"]
        grown = [name for name in then if now[name]["fields"] != then[name]["fields"]]
        may = self.folder / "grown.suppressions"
        may.write_text("".join(f"[suppress_type]\n  name = {name}\n" for name in grown))
        ran = subprocess.run(
            ["abidiff", "--no-added-syms", "--suppressions", may, baseline, self.compiled(header)],
            capture_output=True, text=True,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr

    @unittest.skipUnless(shutil.which("abidiff"), "abidiff (abigail-tools) is not installed")
    def test_abidiff_finds_no_change_and_finds_one_that_is_made(self):
        header = (ROOT / "include" / "loom.h").read_text()
        code, said = self.abidiff(header)
        self.assertEqual(code, 0, said)
        moved = header.replace("int32_t rank; /* number of extents", "int64_t rank; /* number of")
        self.assertNotEqual(moved, header)
        self.assertNotEqual(self.abidiff(moved)[0], 0)


if __name__ == "__main__":
    unittest.main()
