// Concurrent works in one dispatch, and lists that repeat.
#include "backend/webgpu/wgsl/work.hpp"
#include "base/text.hpp"
#include "webgpu/sheet.hpp"

namespace loom::core::test {
namespace {

TEST(GpuBeside, NamesOfASecondTextAreItsOwn) {
  EXPECT_EQ(
      webgpu::renamed("const n: u32 = 4u;\n"
                      "var<workgroup> sums: array<f32, n>;\n"
                      "struct Pair { n: u32, b: f32 }\n"
                      "fn add(a: f32, sums_: f32) -> f32 { return a + sums[n] + p.n; }  // n\n"
                      "fn run(i: u32) { let q = Pair(n, add(1.0, 2.0)); y_set(i, q.b); }\n"
                      "fn y_set(i: u32, v: f32) { b0[p.y_o + i] = bitcast<u32>(v); }\n",
                      "two_"),
      "const two_n: u32 = 4u;\n"
      "var<workgroup> two_sums: array<f32, two_n>;\n"
      "struct two_Pair { n: u32, b: f32 }\n"
      "fn two_add(a: f32, sums_: f32) -> f32 { return a + two_sums[two_n] + p.two_n; }  \n"
      "fn two_run(i: u32) { let q = two_Pair(two_n, two_add(1.0, 2.0)); two_y_set(i, q.b); }\n"
      "fn two_y_set(i: u32, v: f32) { b0[p.two_y_o + i] = bitcast<u32>(v); }\n");
}

TEST(GpuBeside, IndependentCommandsShareADispatch) {
  check("gradients of a layer", 1, [](Sheet& s) -> Status {
    const Tensor dy = s.matrix(24, 20), x = s.matrix(24, 30), w = s.packed(20, 30);
    const Tensor dw = s.matrix(20, 30), dx = s.matrix(24, 30), columns = s.matrix(1, 20);
    for (int i = 0; i < 32 * 30; ++i) reinterpret_cast<float*>(w.data)[i] = 0.01f * float(i % 13);
    LOOM_TRY(s.ops().matmul_dx({dy, w, dx}));
    LOOM_TRY(s.ops().gemm({dy, x, dw, true}));
    Tensor out = columns;
    out.shape = Shape{20};
    return s.ops().reduce_cols({dy, out});
  });
}

TEST(GpuBeside, CommandsThatReadWhatOthersWriteDoNot) {
  check("chain", 3, [](Sheet& s) -> Status {
    const Tensor a = s.matrix(20, 20), b = s.matrix(20, 20), c = s.matrix(20, 20);
    const Tensor d = s.matrix(20, 20);
    LOOM_TRY(s.ops().gemm({a, b, c}));
    LOOM_TRY(s.ops().gemm({c, b, d}));  // reads c
    return s.ops().gemm({b, b, c});     // writes what the second reads
  });
  check("same result", 2, [](Sheet& s) -> Status {
    const Tensor a = s.matrix(20, 20), b = s.matrix(20, 20), c = s.matrix(20, 20);
    LOOM_TRY(s.ops().gemm({a, b, c}));
    return s.ops().gemm({b, a, c});
  });
}

// A list with tables and a last dispatch that stays open; its results feed its next run.
Status training_like(Sheet& s) {
  const Tensor w = s.matrix(18, 12), x = s.matrix(9, 12), y = s.matrix(9, 18);
  const Tensor g = s.matrix(18, 12), sum = s.matrix(1, 1), half = s.matrix(1, 1);
  const Tensor line = s.matrix(1, 9);
  Tensor rows = line, hyper = s.matrix(1, 4);
  rows.shape = Shape{9};
  hyper.shape = Shape{4};
  hyper.f32()[0] = 0.01f;
  LOOM_TRY(s.ops().gemm({x, w, y, false, true}));
  LOOM_TRY(s.ops().reduce({y, rows, ReduceKind::mean}));
  LOOM_TRY(s.ops().reduce({line, sum, ReduceKind::mean}));
  LOOM_TRY(s.ops().fill({half, 0.5f}));
  LOOM_TRY(s.ops().binary({sum, half, sum, BinaryKind::mul}));
  LOOM_TRY(s.ops().gemm({y, x, g, true}));
  for (int i = 0; i < 2; ++i) {
    OptimizeArgs o;
    o.p = w.slice_rows(i * 9, 9);
    o.g = g.slice_rows(i * 9, 9);
    o.hyper = hyper;
    o.scale = sum;
    LOOM_TRY(s.ops().optimize(o));
  }
  return {};
}

TEST(GpuReplay, AListThatComesAgainDoesTheSame) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  Sheet expected(reference_ops(), 8192), got(gpu()->ops(), 8192);
  ASSERT_TRUE(training_like(expected).ok());
  ASSERT_TRUE(training_like(got).ok());
  int64_t first = 0;
  // Alone, then several in one submission.
  for (const int times : {1, 1, 1, 2, 5}) {
    const int64_t before = gpu()->counts().dispatches, commands = gpu()->counts().commands;
    expect_near(cat(times, " times"), expected.run(times), got.run(times));
    const int64_t dispatches = gpu()->counts().dispatches - before;
    if (first == 0) first = dispatches;
    EXPECT_EQ(dispatches, first * times);
    EXPECT_EQ(gpu()->counts().commands - commands, 8 * times);
  }
}

TEST(GpuReplay, CommandsThatChangedAreSeen) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  Sheet expected(reference_ops(), 8192), got(gpu()->ops(), 8192);
  for (int i = 0; i < 6; ++i) {
    const auto list = [&](Sheet& s) -> Status {
      const Tensor x = s.matrix(5, 7), y = s.matrix(5, 7), z = s.matrix(5, 7);
      LOOM_TRY(s.ops().fill({y, static_cast<float>(i / 2)}));
      return s.ops().binary({x, i == 5 ? x : y, z, BinaryKind::add});
    };
    ASSERT_TRUE(list(expected).ok());
    ASSERT_TRUE(list(got).ok());
    expect_near(cat("list ", i), expected.run_and_forget(), got.run_and_forget());
  }
}

// float16 values that begin inside a word have no kernel.
TEST(GpuReplay, WhatTheCpuComputesIsComputedEachTime) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const bool alone : {true, false}) {
    Sheet expected(reference_ops(), 8192), got(gpu()->ops(), 8192);
    const auto list = [&](Sheet& s, Tensor& x) -> Status {
      x = s.matrix(1, 4);
      const Tensor y = s.matrix(1, 3), z = s.matrix(1, 3);
      x.dtype = DType::f16;
      x.shape = Shape{1, 3};
      x.row_stride = 3;
      x.data += 2;
      LOOM_TRY(s.ops().convert({x, y}));
      return alone ? Status{} : s.ops().unary({y, z, UnaryKind::neg});
    };
    Tensor mine, theirs;
    ASSERT_TRUE(list(expected, mine).ok());
    ASSERT_TRUE(list(got, theirs).ok());
    for (uint16_t i = 0; i < 5; ++i) {
      for (const Tensor& x : {mine, theirs}) {
        const uint16_t values[3] = {static_cast<uint16_t>(0x3c00 + i), 0x4000, 0};
        std::memcpy(x.data, values, sizeof(values));
      }
      const int64_t before = gpu()->counts().total_fallbacks();
      expect_near(cat("run ", i), expected.run(), got.run());
      EXPECT_EQ(gpu()->counts().total_fallbacks() - before, 1);
    }
  }
}

// A sum in parts is two works; the second waits for the first. Small numbers make it exact.
TEST(GpuProfile, ListsThatFillSubmissionsLoseNothing) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  if (!gpu()->adapter().timestamps) GTEST_SKIP() << "the adapter has no timestamps";
  int odd = 0;
  const auto list = [&](Sheet& s) -> Status {
    const Tensor a = s.matrix(4, 512), b = s.matrix(512, 4), y = s.matrix(4, 4);
    const Tensor z = s.matrix(4, 4);
    for (int i = 0; i < 2048; ++i) a.f32()[i] = b.f32()[i] = static_cast<float>(i % 3);
    std::fill_n(y.f32(), 16, 0.0f);
    for (int i = 0; i < 1300; ++i) {
      LOOM_TRY(s.ops().gemm({a, b, y, false, false, true}));
      // Another dispatch, for submissions to fill at either of the two works.
      if (i != odd) continue;
      LOOM_TRY(s.ops().unary({y, z, UnaryKind::neg}));  // with a table
      LOOM_TRY(s.ops().binary({z, z, z, BinaryKind::add}));
    }
    return Status{};
  };
  ASSERT_TRUE(gpu()->set_profile(true).ok());
  for (odd = 0; odd < 1300; odd += 1299) {
    Sheet expected(reference_ops(), 8192), got(gpu()->ops(), 8192);
    ASSERT_TRUE(list(expected).ok());
    ASSERT_TRUE(list(got).ok());
    expect_near(cat("odd ", odd), expected.run(), got.run());
  }
  EXPECT_TRUE(gpu()->set_profile(false).ok());
  gpu()->take_profile();
}

TEST(GpuProfile, CountsTheDispatchesOfEveryKernel) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  if (!gpu()->adapter().timestamps) GTEST_SKIP() << "the adapter has no timestamps";
  Sheet expected(reference_ops(), 8192), got(gpu()->ops(), 8192);
  ASSERT_TRUE(training_like(expected).ok());
  ASSERT_TRUE(training_like(got).ok());
  ASSERT_TRUE(gpu()->set_profile(true).ok());
  gpu()->take_profile();
  const int64_t before = gpu()->counts().dispatches;
  expect_near("profiled", expected.run(3), got.run(3));
  ASSERT_TRUE(gpu()->set_profile(false).ok());
  int64_t dispatches = 0, updates = 0;
  for (const webgpu::KernelTime& time : gpu()->take_profile()) {
    dispatches += time.dispatches;
    if (time.name.find("optimize") != std::string::npos) updates += time.dispatches;
    EXPECT_GE(time.microseconds, 0.0) << time.name;
  }
  EXPECT_EQ(dispatches, gpu()->counts().dispatches - before);
  EXPECT_EQ(updates, 3);
  EXPECT_TRUE(gpu()->take_profile().empty());
}

}  // namespace
}  // namespace loom::core::test
