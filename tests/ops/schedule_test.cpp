// schedule(): the order of commands on a device. The expected result is that of the recorded order.
#include "ops/recording/schedule.hpp"

#include <gtest/gtest.h>

#include "backend/reference/reference.hpp"
#include "ops/random_program.hpp"
#include "ops/recording/program.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {
namespace {

using test::Program;
using test::World;

std::vector<OpId> ops_of(const Trace& trace) {
  std::vector<OpId> ids;
  for (const Command& command : trace.commands()) ids.push_back(command.op);
  return ids;
}

// The state after a random program, in the order that schedule() gives it, or as recorded.
std::vector<std::byte> run_program(uint64_t seed, bool scheduled, int* moved) {
  World world(seed);
  Program program(seed, world);
  Trace trace(DType::f32);
  Recorder recorder(trace);
  for (int i = 0; i < 80; ++i) {
    const Status recorded = program.record(recorder);
    EXPECT_TRUE(recorded.ok()) << recorded.error().str();
  }
  const std::vector<OpId> before = ops_of(trace);
  if (scheduled) schedule(trace.commands());
  const std::vector<OpId> after = ops_of(trace);
  for (size_t i = 0; i < before.size(); ++i) *moved += before[i] != after[i] ? 1 : 0;
  std::vector<std::byte> scratch(1 << 20);
  const Lane lane{0, 1, scratch.data(), static_cast<int64_t>(scratch.size())};
  for (const Command& command : trace.commands()) run_command(reference_ops(), command, lane);
  return world.state();
}

TEST(Schedule, GivesTheBitsOfTheRecordedOrder) {
  int moved = 0, still = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    EXPECT_TRUE(run_program(seed, true, &moved) == run_program(seed, false, &still)) << seed;
  }
  EXPECT_GT(moved, 0);
  EXPECT_EQ(still, 0);
}

// Three gradients, after a loss that one of them needs, its sum, and a number of the caller's.
TEST(Schedule, LetsLargeCommandsPassSmallOnesThatTheyDoNotNeed) {
  Trace trace(DType::f32);
  Recorder r(trace);
  const auto fresh = [&](int64_t rows, int64_t cols) { return trace.fresh(Shape{rows, cols}); };
  const Tensor pred = fresh(8, 8), target = fresh(8, 8), dpred = fresh(8, 8), x = fresh(8, 600);
  const Tensor w = fresh(8, 600), dw = fresh(8, 600), dx = fresh(8, 600), other = fresh(8, 600);
  const Tensor line = fresh(1, 8);
  Tensor rows = line;
  rows.shape = Shape{8};
  rows.row_stride = 8;
  const Tensor sum = fresh(1, 1);
  LossArgs gradient{pred, target, {}, {}, dpred}, loss{pred, target, {}, rows, {}};
  ASSERT_TRUE(r.loss(gradient).ok());
  ASSERT_TRUE(r.loss(loss).ok());
  ASSERT_TRUE(r.reduce({line, sum, ReduceKind::sum}).ok());
  ASSERT_TRUE(r.gemm({dpred, w, dx}).ok());
  ASSERT_TRUE(r.gemm({dpred, x, dw, true}).ok());
  ASSERT_TRUE(r.unary({x, other, UnaryKind::neg}).ok());
  schedule(trace.commands());
  const std::vector<OpId> expected = {OpId::loss,  OpId::gemm, OpId::gemm,
                                      OpId::unary, OpId::loss, OpId::reduce};
  std::vector<OpId> got = ops_of(trace);
  got.resize(expected.size());
  EXPECT_EQ(got, expected);
}

// The sum over positions and that over samples are one kernel on a device.
TEST(Schedule, LeavesSmallCommandsBehindWhatTheyTakeTheirValuesFrom) {
  Trace trace(DType::f32);
  Recorder r(trace);
  const auto fresh = [&](int64_t rows, int64_t cols) { return trace.fresh(Shape{rows, cols}); };
  const Tensor dz = fresh(40, 100), sums = fresh(5, 8), a = fresh(64, 64);
  Tensor flat = sums, columns = fresh(1, 8);
  flat.shape = Shape{40};
  columns.shape = Shape{8};
  ASSERT_TRUE(r.reduce({dz, flat, ReduceKind::sum}).ok());
  ASSERT_TRUE(r.reduce_cols({sums, columns}).ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(r.unary({a, fresh(64, 64), UnaryKind::neg}).ok());
  const std::vector<OpId> before = ops_of(trace);
  schedule(trace.commands());
  EXPECT_EQ(ops_of(trace), before);
}

}  // namespace
}  // namespace loom::core
