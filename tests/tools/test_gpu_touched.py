"""The GPU tests that a change affects (tests/webgpu/touched.py); the sources of golden hashes."""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/webgpu"))

import touched  # noqa: E402

KERNELS = touched.KERNELS


class Touched(unittest.TestCase):
    TOUCHES = [  # a path, words that it touches, words that it does not
        (KERNELS + "products/conv_direct.cpp", {"conv", "conv_dx", "kind:cnn2"}, {"matmul"}),
        (KERNELS + "products/matmul_many.cpp", {"matmul", "GpuSpans", "GpuFusedMany"}, {"conv"}),
        (KERNELS + "codes/pack_words.cpp", {"pack"}, {"matmul", "GpuSpans"}),
        (KERNELS + "products/pool.cpp", {"pool", "pool_dx", "kind:pool"}, {"norm"}),
        (KERNELS + "kernels.hpp", {"everything"}, set()),
        ("src/backend/webgpu/fusion/fused_rope.cpp", {"GpuFusedAttention", "GpuReplay"}, {"rope"}),
        ("src/backend/webgpu/tuning/trial.cpp", {"GpuVariants", "VariantTuner"}, {"gemm"}),
        ("src/backend/webgpu/wgsl/weights.cpp", {"everything"}, set()),
        ("src/ops/args/attention.hpp", {"attention", "kv_write", "rope"}, {"conv"}),
        ("src/ops/recording/recorder.cpp", {"everything"}, set()),
        ("src/backend/reference/training/loss.cpp", {"loss"}, {"matmul"}),
        ("tests/conformance/pool_test.cpp", {"pool", "pool_dx"}, {"conv"}),
        ("tests/webgpu/spans_test.cpp", {"GpuSpans"}, {"matmul"}),
        ("tests/webgpu/sample.hpp", {"everything"}, set()),
        ("tests/gpu/rules_test.cpp", {"GpuRules", "GpuKfac"}, {"GpuMesh"}),
        ("src/layers/spatial/pool.cpp", {"kind:pool"}, {"kind:dense"}),
    ]
    TESTS = [
        "GpuSpans.Products", "GpuConformance.conv", "Kinds/GpuLayers.Train/cnn2", "GpuMesh.Ticks",
    ]  # fmt: skip

    def test_what_a_file_touches(self):
        for path, some, none in self.TOUCHES:
            with self.subTest(path):
                self.assertTrue((ROOT / path).is_file(), "the table names a file that is gone")
                words = touched.touched_by(path)
                self.assertLessEqual(some, words)
                self.assertFalse(none & words)

    def test_every_kernel_and_every_part_of_the_backend_touches_something(self):
        for path in touched.files("src/backend/webgpu"):
            self.assertTrue(touched.touched_by(path), path)

    # The same list as in tests/webgpu/conformance_test.cpp.
    ON_THE_CPU = frozenset(
        ("top_experts", "group_rows", "expert_matmul", "expert_matmul_dx", "expert_matmul_dw",
         "causal_conv", "causal_conv_dx", "selective_scan", "selective_scan_dx",
         "selective_scan_db")
    )

    def test_every_op_has_a_kernel_file_or_runs_on_the_cpu(self):
        computed = touched.union(
            touched.ops_computed(p) for p in touched.files(touched.KERNELS)
        )
        self.assertEqual(computed | self.ON_THE_CPU, frozenset(touched.ops()))
        self.assertFalse(computed & self.ON_THE_CPU)

    def test_other_rooms_touch_nothing(self):
        for path in ("src/text/normalizers/unicode.cpp", "docs/webgpu.md", "cli/main.cpp"):
            self.assertEqual(touched.touched_by(path), frozenset(), path)

    def test_tests_that_are_touched_or_always_run_are_chosen(self):
        words = frozenset({"conv", "kind:cnn2"})
        chosen = touched.choose("7", self.TESTS, words, ["GpuMesh.*"])
        self.assertLessEqual(set(self.TESTS[1:]), set(chosen))

    def test_the_seed_chooses_a_tenth_of_the_rest(self):
        tests = [f"Suite.Test{i}" for i in range(95)]
        first = touched.choose("1", tests, frozenset(), [])
        self.assertEqual(len(first), 10)
        self.assertEqual(first, touched.choose("1", tests, frozenset(), []))
        self.assertNotEqual(first, touched.choose("2", tests, frozenset(), []))

    def test_lists_of_googletest_are_read(self):
        text = (
            "Kinds/GpuLayers.  # TypeParam\n  Train/cnn1  # GetParam() = cnn1\n  Train/cnn2\n"
            "GpuMesh.\n  Ticks\n"
        )
        self.assertEqual(
            touched.listed(text.splitlines()),
            ["Kinds/GpuLayers.Train/cnn1", "Kinds/GpuLayers.Train/cnn2", "GpuMesh.Ticks"],
        )


class GoldenSources(unittest.TestCase):
    def test_they_are_the_rooms_and_files_of_the_program(self):
        printed = subprocess.run(
            [str(ROOT / "tests/golden/sources.py")], capture_output=True, text=True, check=True
        ).stdout.split()
        for path in ("src/base/", "src/backend/cpu/", "src/learn/", "src/llm/decoder_config.hpp"):
            self.assertIn(path, printed)
        self.assertFalse([p for p in printed if p.startswith(("src/serve", "src/text/t5", "cli"))])


if __name__ == "__main__":
    unittest.main()
