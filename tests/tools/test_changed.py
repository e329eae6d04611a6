"""Effects of a change: rooms, suites and checks, and the base of a comparison."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import changed
import check
from changed import Change

ROOT = Path(__file__).resolve().parent.parent.parent


WASM = {f"wasm-{part}" for part in ("build", "hashes", "package", "gpu", "browser")}


def of(*files: str) -> Change:
    return Change(known=True, base="0" * 40, files=list(files))


class Reach(unittest.TestCase):
    def test_a_room_is_reached_by_what_it_stands_on_and_by_nothing_above_it(self):
        rooms = of("src/jinja/lexer.cpp").rooms()
        self.assertLessEqual({"jinja", "llm", "convert", "api", "capi", "serve"}, set(rooms))
        self.assertFalse(
            {"text", "grammar", "learn", "grid", "onnx/import", "telemetry"} & set(rooms)
        )

    def test_a_public_header_reaches_what_stands_on_the_interface(self):
        self.assertEqual(
            set(of("include/loom/mesh.hpp").rooms()), {"api", "capi", "serve", "remote"}
        )

    def test_a_public_header_that_rooms_include_reaches_them(self):
        self.assertLessEqual(
            {"base", "dtype", "learn", "api"}, set(of("include/loom/result.hpp").rooms())
        )
        generation = set(of("include/loom/generation.hpp").rooms())
        self.assertLessEqual({"llm", "api", "serve"}, generation)
        self.assertFalse({"base", "grid", "learn"} & generation)

    def test_suites_follow_their_rooms_their_folder_and_the_headers_that_they_share(self):
        table = [  # the changed file, suites that run, suites that do not
            (
                "src/jinja/lexer.cpp",
                {"jinja", "llm", "api", "serve", "e2e"},
                {"learn", "io", "formats_onnx"},
            ),
            (
                "src/formats/gguf/names.cpp",
                {"formats_gguf", "convert"},
                {"formats_onnx", "jinja", "learn"},
            ),
            (
                "src/onnx/import/import.cpp",
                {"formats_onnx", "interpreter", "convert"},
                {"formats_config", "learn"},
            ),
            ("src/serve/dialects/openai.cpp", {"serve", "e2e"}, {"api", "llm", "remote"}),
            (
                "src/learn/optimizer/lbfgs.cpp",
                {"learn", "mesh", "api"},
                {"grid", "formats_onnx", "jinja"},
            ),
            (
                "src/ops/ops.hpp",
                {"ops", "learn", "webgpu", "conformance", "api", "e2e"},
                {"io", "text"},
            ),
            (
                "tests/formats/gguf_test.cpp",
                {"formats_gguf"},
                {"formats_onnx", "formats_config", "io"},
            ),
            ("tests/io/io_testing.hpp", {"io", "formats_gguf", "train_io"}, {"learn", "mesh"}),
            ("tests/conformance/pool_test.cpp", {"conformance", "webgpu"}, {"ops", "learn"}),
            ("tests/support/paths.hpp", {"io", "learn", "e2e"}, set()),
            ("cli/train/train.cpp", {"e2e"}, {"api", "learn"}),
            (
                "src/lab/kind_networks.cpp",
                {"learn", "learn_kinds", "bridge", "ops", "lab"},
                {"io", "grid"},
            ),
            (
                "tests/llm/golden/llama/config.json",
                {"llm", "convert", "formats_config"},
                {"io", "grid"},
            ),
            ("tests/outside/evaluator.hpp", {"outside", "mesh", "gpu"}, {"io", "learn"}),
            ("tests/hub/test_pull.py", {"e2e"}, {"api", "io"}),
            ("models/stories.entity", {"api", "serve", "e2e"}, {"io", "learn"}),
            ("fuzz/corpus/gguf/x", {"fuzz_gguf", "formats_gguf"}, {"formats_onnx"}),
            ("cli/hub/transfer.cpp", {"fuzz_pull", "e2e"}, {"fuzz_donate", "io"}),
            ("cli/shared/console.hpp", {"fuzz_pull", "e2e"}, {"fuzz_donate", "io"}),
            ("docs/training.md", set(), {"io", "e2e", "api"}),
            ("bindings/python/loom/training.py", set(), {"io", "e2e", "api"}),
        ]
        for file, run, rest in table:
            with self.subTest(file=file):
                chosen = set(check.chosen_suites(of(file)))
                self.assertLessEqual(run, chosen)
                self.assertFalse(rest & chosen)

    def test_checks_follow_their_paths_and_rooms(self):
        checks = check.read_checks()
        table = [
            (
                "docs/training.md",
                {"tools", "documents", "build"},
                {"suites", "gpu", "python", "wasm-build"},
            ),
            (
                "src/jinja/lexer.cpp",
                {"templates", "suites"},
                {"onnx", "tensorboard", "arm64"},
            ),
            (
                "src/backend/webgpu/kernels/products/pool.cpp",
                {"gpu", "suites"},
                {"onnx", "arm64", "templates"},
            ),
            (
                "bindings/python/loom/training.py",
                {"python", "languages", "absorb"},
                {"suites", "onnx", "gpu"},
            ),
            (
                "bindings/typescript/src/index.ts",
                {"wasm-package", "wasm-browser"},
                {"suites", "onnx", "gpu"},
            ),
            (
                "src/layers/dense.cpp",
                {"gpu", "golden", "onnx", "wasm-hashes", "arm64"},
                {"templates", "grammar"},
            ),
            ("cmake/rooms.cmake", set(checks) - {"format", "layering", "budgets", "extend"}, set()),
        ]
        for file, run, rest in table:
            with self.subTest(file=file):
                chosen = set(check.choose(checks, of(file), whole=False))
                self.assertLessEqual(run, chosen)
                self.assertFalse(rest & chosen)

    def test_a_comment_reaches_only_what_reads_sources_as_text(self):
        change = Change(known=True, files=[], comments=["src/ops/ops.hpp"])
        chosen = set(check.choose(check.read_checks(), change, whole=False))
        self.assertLessEqual({"layering", "budgets", "format", "tools"}, chosen)
        self.assertFalse({"suites", "gpu", "golden", "python"} & chosen)

    def test_without_a_base_everything_runs(self):
        checks, change = check.read_checks(), Change(known=False)
        self.assertEqual(set(check.choose(checks, change, whole=False)), set(checks))
        self.assertEqual(set(check.chosen_suites(change)), set(changed.suites()))
        self.assertEqual(check.unchanged_lazy(checks, change), set())

    def test_checks_that_wait_for_a_change_of_their_own_are_left_out_without_one(self):
        checks = check.read_checks()
        self.assertEqual(
            check.unchanged_lazy(checks, of("docs/training.md")), {"consumer", *WASM}
        )
        self.assertEqual(check.unchanged_lazy(checks, of("src/base/numbers/dmath.cpp")), set())
        self.assertEqual(
            check.unchanged_lazy(checks, of("web/index.html")) & WASM,
            WASM - {"wasm-browser", "wasm-package", "wasm-build"},
        )


class Code(unittest.TestCase):
    def test_comments_and_space_are_no_code_and_strings_are(self):
        table = [
            ("int a;  // one\n", "int a;\n\n// two\n", True),
            ("int a; /* x */ int b;", "int a;\n int b;", True),
            ("int a;", "int b;", False),
            ('f("// a");', 'f("// b");', False),
        ]
        for before, after, same in table:
            self.assertEqual(changed.same_code(before, after), same, after)


class Base(unittest.TestCase):
    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.git("init", "-q")
        (self.root / "src").mkdir()
        (self.root / "src" / "a.cpp").write_text("int a;  // one\n")
        (self.root / "src" / "b.cpp").write_text("int b;\n")
        (self.root / ".ci").mkdir()
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.first = self.git("rev-parse", "HEAD")

    def test_the_change_has_what_is_committed_edited_and_new_and_tells_comments_apart(self):
        (self.root / "src" / "a.cpp").write_text("int a;  // two\n")
        self.git("commit", "-qam", "a comment")
        (self.root / "src" / "b.cpp").write_text("int c;\n")
        (self.root / "new.md").write_text("new\n")
        change = changed.read_change(self.first, self.root)
        self.assertEqual((change.files, change.comments), (["new.md", "src/b.cpp"], ["src/a.cpp"]))

    def test_a_removed_file_is_a_change(self):
        self.git("rm", "-q", "src/b.cpp")
        self.assertEqual(changed.read_change(self.first, self.root).files, ["src/b.cpp"])

    def test_a_recorded_commit_counts_if_head_descends_from_it(self):
        self.assertIsNone(changed.recorded_base(self.root))
        (self.root / ".ci" / "checked").write_text(f"{self.first} 2026-11-27\n")
        self.assertEqual(changed.recorded_base(self.root), self.first)
        (self.root / ".ci" / "checked").write_text("f" * 40 + " 2026-11-27\n")
        self.assertIsNone(changed.recorded_base(self.root))

    def test_an_unknown_base_means_that_everything_counts(self):
        self.assertFalse(changed.read_change("f" * 40, self.root).known)
        self.assertFalse(changed.read_change(None, self.root).known)


if __name__ == "__main__":
    unittest.main()
