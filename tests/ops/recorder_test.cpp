// Recorder: barriers, shared q8 copies and memory, tested through results. The expected result is
// the same program flushed after every op on one lane.
#include "ops/recording/recorder.hpp"

#include <gtest/gtest.h>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "ops/allocations.hpp"
#include "ops/random_program.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

using test::bytes;
using test::floats;
using test::Program;
using test::Weights;
using test::World;

// The state after `length` ops of program `seed`, flushed every `flush_every` ops.
std::vector<std::byte> run_program(const Ops& ops, int lanes, ActivationMode mode, uint64_t seed,
                                   int length, int flush_every) {
  World world(seed);
  Program program(seed, world);
  ThreadPool pool(lanes, /*exact=*/true);
  Recorder recorder(ops, pool, mode);
  for (int i = 1; i <= length; ++i) {
    const Status recorded = program.record(recorder);
    EXPECT_TRUE(recorded.ok()) << recorded.error().str();
    const bool flush = i % flush_every == 0;
    EXPECT_TRUE(!flush || recorder.flush().ok());
  }
  EXPECT_TRUE(recorder.flush().ok());
  return world.state();
}

class RandomPrograms : public testing::TestWithParam<ActivationMode> {};
INSTANTIATE_TEST_SUITE_P(Activations, RandomPrograms,
                         testing::Values(ActivationMode::q8, ActivationMode::f32));

TEST_P(RandomPrograms, GiveTheSameBitsOnAnyNumberOfLanes) {
  const Ops& ops = cpu_ops(best_isa());
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const std::vector<std::byte> truth = run_program(ops, 1, GetParam(), seed, 60, 1);
    for (int lanes : {1, 2, 3, 7}) {
      EXPECT_TRUE(run_program(ops, lanes, GetParam(), seed, 60, 1000) == truth)
          << "seed " << seed << ", lanes " << lanes;
    }
  }
}

TEST_P(RandomPrograms, GiveTheBitsOfTheReference) {
  for (uint64_t seed = 21; seed <= 22; ++seed) {
    const std::vector<std::byte> truth = run_program(reference_ops(), 1, GetParam(), seed, 30, 1);
    EXPECT_TRUE(run_program(reference_ops(), 3, GetParam(), seed, 30, 1000) == truth) << seed;
    EXPECT_TRUE(run_program(cpu_ops(best_isa()), 3, GetParam(), seed, 30, 1000) == truth) << seed;
  }
}

// A recorder with matrices of one size and weights on the integer path.
struct Bench {
  static constexpr int64_t kRows = 9, kWidth = 96;
  explicit Bench(int lanes = 3)
      : memory(bytes(8 * kRows * kWidth * 4)),
        w1(DType::q8_0, kWidth, kWidth, 1),
        w2(DType::q4_0, kWidth, kWidth, 2),
        threads(lanes, true),
        recorder(cpu_ops(best_isa()), threads) {
    const Rng rng(4, 4);
    for (int64_t i = 0; i < memory.size() / 4; ++i) {
      floats(memory)[i] = rng.uniform(static_cast<uint64_t>(i)) - 0.5f;
    }
    recorder.set_profile(&profile);
  }
  Tensor at(int64_t slot) {
    return f32_matrix(floats(memory) + slot * kRows * kWidth, kRows, kWidth);
  }
  void matmul(const Tensor& x, const Weights& w, const Tensor& y) {
    MatmulArgs args;
    args.x = x, args.w = w.tensor, args.y = y;
    ASSERT_TRUE(recorder.matmul(args).ok());
  }
  void negate(const Tensor& x) {
    ASSERT_TRUE(recorder.unary(UnaryArgs{x, x, UnaryKind::neg}).ok());
  }
  void flush() { ASSERT_TRUE(recorder.flush().ok()); }
  int64_t quantizations() const { return profile.calls[static_cast<int>(OpId::quantize_rows)]; }
  std::vector<float> read(int64_t slot) {
    const float* p = at(slot).f32();
    return {p, p + kRows * kWidth};
  }

  Buffer memory;
  Weights w1, w2;
  ThreadPool threads;
  Recorder recorder;
  OpProfile profile;
};

TEST(RecorderQ8, MatmulsOverOneInputShareItsCopy) {
  Bench bench;
  bench.matmul(bench.at(0), bench.w1, bench.at(1));
  bench.matmul(bench.at(0), bench.w2, bench.at(2));
  bench.flush();
  EXPECT_EQ(bench.quantizations(), 1);
  bench.matmul(bench.at(0), bench.w1, bench.at(1));
  bench.flush();
  EXPECT_EQ(bench.quantizations(), 2) << "the caller may have changed x between two flushes";
}

TEST(RecorderQ8, AnInputOverwrittenInBetweenIsQuantizedAgain) {
  Bench bench, plain;
  bench.matmul(bench.at(0), bench.w1, bench.at(1));
  bench.negate(bench.at(0));
  bench.matmul(bench.at(0), bench.w1, bench.at(2));
  bench.flush();
  EXPECT_EQ(bench.quantizations(), 2);
  const std::vector<float> before = bench.read(1), after = bench.read(2);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(after[i], -before[i]) << i;
}

TEST(RecorderQ8, APartlyOverwrittenInputIsQuantizedAgain) {
  Bench bench;
  bench.matmul(bench.at(0), bench.w1, bench.at(1));
  bench.negate(bench.at(0).slice_rows(3, 1));
  bench.matmul(bench.at(0), bench.w1, bench.at(2));
  bench.flush();
  EXPECT_EQ(bench.quantizations(), 2);
  const std::vector<float> before = bench.read(1), after = bench.read(2);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool changed = i / Bench::kWidth == 3;
    ASSERT_EQ(after[i], changed ? -before[i] : before[i]) << i;
  }
}

TEST(RecorderQ8, ASliceOfAnInputHasItsOwnCopy) {
  Bench bench;
  bench.matmul(bench.at(0), bench.w1, bench.at(1));
  bench.matmul(bench.at(0).slice_rows(0, 2), bench.w1, bench.at(2).slice_rows(0, 2));
  bench.matmul(bench.at(0).slice_rows(2, 2), bench.w1, bench.at(2).slice_rows(2, 2));
  bench.flush();
  EXPECT_EQ(bench.quantizations(), 3);
  const std::vector<float> full = bench.read(1), parts = bench.read(2);
  for (size_t i = 0; i < 4 * Bench::kWidth; ++i) ASSERT_EQ(full[i], parts[i]) << i;
}

TEST(RecorderQ8, MoreInputsThanCopiesAreStillRight) {
  for (int lanes : {1, 3}) {
    Bench bench(lanes), flushed(1);
    for (int round = 0; round < 3; ++round) {
      for (int64_t x = 0; x < 7; ++x) {
        bench.matmul(bench.at(x), bench.w1, bench.at((x + 1 + round) % 8));
        flushed.matmul(flushed.at(x), flushed.w1, flushed.at((x + 1 + round) % 8));
        flushed.flush();
      }
    }
    bench.flush();
    for (int64_t slot = 0; slot < 8; ++slot)
      EXPECT_EQ(bench.read(slot), flushed.read(slot)) << slot;
  }
}

TEST(RecorderQ8, FloatModeQuantizesNothing) {
  Bench bench;
  Recorder recorder(cpu_ops(best_isa()), bench.threads, ActivationMode::f32);
  recorder.set_profile(&bench.profile);
  MatmulArgs args;
  args.x = bench.at(0), args.w = bench.w1.tensor, args.y = bench.at(1);
  ASSERT_TRUE(recorder.matmul(args).ok());
  ASSERT_TRUE(recorder.flush().ok());
  EXPECT_EQ(bench.quantizations(), 0);
  EXPECT_EQ(bench.profile.calls[static_cast<int>(OpId::matmul)], 1);
}

TEST(Recorder, ARefusedCommandLeavesTheListAsItWas) {
  Bench bench;
  bench.negate(bench.at(0));
  const Status refused = bench.recorder.unary(UnaryArgs{bench.at(0), bench.at(1).slice_rows(0, 2)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "unary: x [9, 96] and y [2, 96] do not agree: both must have the same shape");
  const float before = bench.read(0)[5];
  bench.flush();
  EXPECT_EQ(bench.read(0)[5], -before);
  bench.flush();
  EXPECT_EQ(bench.read(0)[5], -before) << "a list runs once";
}

// The commands of a decoder for one token, for several layers.
void record_layers(Bench& bench, int layers) {
  for (int layer = 0; layer < layers; ++layer) {
    bench.matmul(bench.at(0), bench.w1, bench.at(1));
    bench.matmul(bench.at(0), bench.w2, bench.at(2));
    ASSERT_TRUE(bench.recorder.gated(GatedArgs{bench.at(1), bench.at(2), bench.at(1)}).ok());
    bench.matmul(bench.at(1), bench.w1, bench.at(3));
    ASSERT_TRUE(bench.recorder.norm(NormArgs{bench.at(3), {}, {}, bench.at(0)}).ok());
  }
}

TEST(RecorderMemory, NothingIsAllocatedAfterReserve) {
  Bench bench;
  ASSERT_TRUE(bench.recorder.reserve(600, Bench::kRows, Bench::kWidth, 64).ok());
  const int64_t workspace = bench.recorder.workspace_bytes();
  const int64_t before = test::allocations();
  for (int pass = 0; pass < 3; ++pass) {
    record_layers(bench, 10);
    bench.flush();
  }
  EXPECT_EQ(test::allocations() - before, 0);
  EXPECT_EQ(bench.recorder.workspace_bytes(), workspace);
}

TEST(RecorderMemory, LongListsOfSmallCommandsAllocateNothingEither) {
  Bench bench;
  ASSERT_TRUE(bench.recorder.reserve(600, Bench::kRows, Bench::kWidth, 64).ok());
  const int64_t before = test::allocations();
  for (int i = 0; i < 600; ++i) bench.negate(bench.at(i % 8));
  bench.flush();
  EXPECT_EQ(test::allocations() - before, 0);
}

// Attention needs little scratch if the cache is short; the matmul kernels need more.
TEST(RecorderMemory, AShortAttentionFirstStillLeavesMatmulItsScratch) {
  Bench bench;
  World world(1);
  const Tensor q = world.matrix(0).slice_rows(0, 1), y = world.matrix(1).slice_rows(0, 1);
  ASSERT_TRUE(bench.recorder
                  .attention(AttentionArgs{q, y, world.cache(), World::kHeads, 0, 1, 0, 1.0f, true})
                  .ok());
  EXPECT_GE(bench.recorder.workspace_bytes(), bench.recorder.lanes() * kMatmulScratch);
}

TEST(RecorderMemory, WorksWithoutReserve) {
  Bench bench, reserved;
  ASSERT_TRUE(reserved.recorder.reserve(100, Bench::kRows, Bench::kWidth, 64).ok());
  record_layers(bench, 2);
  record_layers(reserved, 2);
  bench.flush();
  reserved.flush();
  EXPECT_EQ(bench.read(0), reserved.read(0));
}

TEST(RecorderProfile, CountsEveryCommandOnce) {
  Bench bench;
  record_layers(bench, 4);
  bench.flush();
  EXPECT_EQ(bench.profile.calls[static_cast<int>(OpId::matmul)], 12);
  EXPECT_EQ(bench.profile.calls[static_cast<int>(OpId::gated)], 4);
  EXPECT_EQ(bench.profile.calls[static_cast<int>(OpId::norm)], 4);
}

}  // namespace
}  // namespace loom::core
