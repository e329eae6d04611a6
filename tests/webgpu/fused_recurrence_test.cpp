// Steps of recurrent layers, run as a whole (one dispatch) and command by command: random sizes,
// number types and state locations. Both must leave the same values.
#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "ops/recording/recorder.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

// Step `t` of every sample; the steps of a sample are contiguous.
Tensor of_samples(const Tensor& all, int64_t batch, int64_t t) {
  Tensor rows = all;
  rows.shape = Shape{batch, all.cols()};
  rows.row_stride = all.rows() / batch * all.row_stride;
  rows.data = all.data + t * all.row_stride * static_cast<int64_t>(sizeof(float));
  return rows;
}

enum class RecurrentCell : uint8_t { rnn, lstm, gru };

struct RecurrentCase {
  RecurrentCell cell;
  DType dtype;
  int64_t batch, steps, units;
  bool bias, by_sample;  // whether steps of a sample are contiguous, or samples of a step
  UnaryKind activation;

  int64_t gates() const {
    return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
  }
  std::string str() const {
    return cat("cell ", static_cast<int>(cell), ", ", dtype_name(dtype), ", ", batch, " x ", steps,
               " x ", units, bias ? ", bias" : "", by_sample ? ", by sample" : "");
  }
};

struct RecurrentRun {
  explicit RecurrentRun(const RecurrentCase& c)
      : w(c.dtype, c.gates() * c.units, c.units, 1),
        bias(1, c.gates() * c.units, 0, 2, Values::smooth),
        before(c.batch, c.units, 0, 3, Values::smooth),
        c_before(c.batch, c.units, 0, 4, Values::smooth),
        input(c.batch * c.steps, c.gates() * c.units, 0, 5, Values::smooth),
        products(c.batch * c.steps, c.gates() * c.units),
        acts(c.batch * c.steps, c.gates() * c.units),
        cells(c.batch * c.steps, c.units),
        states(c.batch * c.steps, c.units) {}

  std::vector<const Rows*> made() const { return {&products, &acts, &cells, &states}; }
  std::vector<MemoryRange> ranges() const {
    std::vector<MemoryRange> all{{w.tensor().data, w.tensor().end() - w.tensor().data}};
    for (const Rows* r : {&bias, &before, &c_before, &input, &products, &acts, &cells, &states})
      all.push_back(range_of(r->tensor()));
    return all;
  }

  Status record(Recorder& r, const RecurrentCase& c) const {
    const auto at = [&](const Rows& rows, int64_t t) {
      return rows.tensor().slice_rows(t * c.batch, c.batch);
    };
    const auto sequence = [&](const Rows& rows, int64_t t) {
      return c.by_sample ? of_samples(rows.tensor(), c.batch, t) : at(rows, t);
    };
    Tensor h = before.tensor(), cell = c_before.tensor();
    for (int64_t t = 0; t < c.steps; ++t) {
      const Tensor x = sequence(input, t), y = sequence(states, t);
      const Tensor product = at(products, t), act = at(acts, t);
      LOOM_TRY(r.matmul({h, w.tensor(), c.bias ? bias.tensor() : Tensor{}, product}));
      if (c.cell == RecurrentCell::rnn) {
        LOOM_TRY(r.binary({x, product, act, BinaryKind::add}));
        LOOM_TRY(r.unary({act, y, c.activation}));
      } else if (c.cell == RecurrentCell::lstm) {
        LstmCellArgs args{x, cell, act, at(cells, t), y};
        args.more = product;
        LOOM_TRY(r.lstm_cell(args));
        cell = args.c;
      } else {
        LOOM_TRY(r.gru_cell({x, product, h, act, y}));
      }
      h = y;
    }
    return {};
  }

  Packed w;
  Rows bias, before, c_before, input, products, acts, cells, states;
};

// The device's copies of the results.
std::vector<std::vector<float>> fetched(const RecurrentRun& run) {
  std::vector<std::vector<float>> all;
  for (const Rows* r : run.made()) {
    EXPECT_TRUE(to_host(gpu()->ops(), {r->tensor()}).ok());
    all.push_back(r->memory());
  }
  return all;
}

void put_back(const RecurrentRun& run, const std::vector<std::vector<float>>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& t = run.made()[i]->tensor();
    std::copy(values[i].begin(), values[i].end(), t.f32());
    EXPECT_TRUE(to_device(gpu()->ops(), t).ok());
  }
}

// Runs step by step from the states of the fused run: with random weights, rounding errors grow
// from step to step.
void check(const RecurrentCase& c) {
  SCOPED_TRACE(c.str());
  ThreadPool pool(1);
  RecurrentRun run(c);
  const Ops& ops = gpu()->ops();
  const auto attached = Attached::attach(ops.device, run.ranges(), MemoryUse::scratch, true);
  ASSERT_TRUE(attached.ok()) << attached.error().str();
  Recorder recorder(ops, pool, ActivationMode::f32);
  ASSERT_TRUE(recorder.reserve(3 * c.steps + 4, c.batch, c.gates() * c.units, 16).ok());
  const Status recorded = run.record(recorder, c);
  ASSERT_TRUE(recorded.ok()) << recorded.error().str();
  put_back(run, fetched(run));
  ASSERT_TRUE(gpu()->wait().ok());
  const int64_t before = gpu()->counts().dispatches;
  Status status = recorder.run();
  if (status.ok()) status = gpu()->wait();
  ASSERT_TRUE(status.ok()) << status.error().str();
  EXPECT_EQ(gpu()->counts().dispatches - before, 1);
  const std::vector<std::vector<float>> whole = fetched(run);
  const int64_t each = recorder.commands() / c.steps;
  for (int64_t t = 0; t < c.steps; ++t) {
    for (int64_t i = 0; i < each; ++i)
      ASSERT_TRUE(recorder.run(t * each + i, t * each + i + 1).ok());
    const std::vector<std::vector<float>> apart = fetched(run);
    for (size_t i = 0; i < apart.size(); ++i)
      EXPECT_LE(distance(apart[i], whole[i]), 1e-6) << "step " << t << ", value " << i;
    put_back(run, whole);
  }
}

TEST(GpuFusedRecurrence, StepsLeaveWhatTheirCommandsLeave) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const Rng rng(11, 3);
  uint64_t at = 0;
  const auto from = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng.bits(at++) % static_cast<uint64_t>(most - least + 1));
  };
  constexpr DType kTypes[] = {DType::f32,  DType::f32,  DType::f16,
                              DType::q8_0, DType::q4_0, DType::i8};
  constexpr UnaryKind kKinds[] = {UnaryKind::tanh, UnaryKind::sigmoid, UnaryKind::relu};
  for (int i = 0; i < 24; ++i) {
    RecurrentCase c;
    c.cell = static_cast<RecurrentCell>(from(0, 2));
    c.dtype = kTypes[from(0, 5)];
    c.batch = from(1, 5);
    c.steps = from(2, 9);
    // The limit of weights that an invocation can hold.
    const int64_t most = c.cell == RecurrentCell::rnn ? 128 : 85;
    c.units = i % 12 == 0 ? most : i % 4 == 0 ? from(most / 2, most) : from(1, most / 2);
    c.bias = from(0, 1) == 1;
    c.by_sample = from(0, 1) == 1;
    c.activation = kKinds[from(0, 2)];
    if (has_turn("GpuFusedRecurrence", static_cast<size_t>(i), kOneIn)) check(c);
  }
}

TEST(GpuFusedRecurrence, WeightsThatNoRegistersHoldAreLeftApart) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  ThreadPool pool(1);
  const RecurrentCase c{RecurrentCell::gru, DType::f32, 1, 3, 86, true, true, UnaryKind::tanh};
  RecurrentRun run(c);
  const Ops& ops = gpu()->ops();
  const auto attached = Attached::attach(ops.device, run.ranges(), MemoryUse::scratch, true);
  ASSERT_TRUE(attached.ok()) << attached.error().str();
  Recorder recorder(ops, pool, ActivationMode::f32);
  ASSERT_TRUE(recorder.reserve(16, 1, 258, 16).ok());
  ASSERT_TRUE(run.record(recorder, c).ok());
  const int64_t before = gpu()->counts().dispatches;
  ASSERT_TRUE(recorder.run().ok());
  ASSERT_TRUE(gpu()->wait().ok());
  EXPECT_GE(gpu()->counts().dispatches - before, 6);
}

}  // namespace
}  // namespace loom::core::test
