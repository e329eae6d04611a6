// Embeddings whose gradient is kept for the rows that a batch names: what an update does to those,
// and that it does nothing to the others.
#include <cstring>
#include <numeric>

#include "base/threads/thread_pool.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kVocab = 50, kWidth = 6, kBatch = 4, kTime = 5;
constexpr const char* kTable = "(0, 0, 0, 0)/weight";

LayerConfig embedding(bool sparse, int64_t padding = -1, int64_t vocab = kVocab) {
  return layer(LayerKind::embedding,
               {{"vocab", vocab}, {"width", kWidth}, {"padding_id", padding}, {"sparse", sparse}});
}

TrainStepOptions with(const char* optimizer) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(optimizer);
  return o;
}

// Ids of a step: few of the vocabulary, many of them twice. Other ids in other steps.
int32_t id_of(int64_t step, int64_t i) {
  return static_cast<int32_t>((step * 11 + i * i) % 9 + (step % 3) * 13);
}

struct Training {
  Training(std::vector<LayerConfig> layers, const TrainStepOptions& options,
           DType dtype = DType::f32, const Ops& ops = cpu_ops(best_isa()), int threads = 1)
      : rig(row_of(std::move(layers)), Shape{kBatch, kTime}, DType::f32, options, ops, threads,
            dtype) {}

  TrainStep& step() { return rig.step(); }
  const Tensor& state(const std::string& name) {
    for (const StateTensor& s : step().state()) {
      if (s.name == name) return s.tensor;
    }
    ADD_FAILURE() << "no state " << name;
    return step().x();
  }
  std::vector<float> values(const std::string& name) {
    const Tensor& t = state(name);
    return {t.f32(), t.f32() + t.shape.count()};
  }
  const Param& table() { return rig.network().params()[0]; }
  std::vector<std::byte> packed() {
    return {table().memory.data(), table().memory.data() + table().memory.size()};
  }
  StepResult run(int64_t at, double rate) {
    for (int64_t i = 0; i < step().x().shape.count(); ++i) step().x().i32()[i] = id_of(at, i);
    const Result<StepResult> result = step().run(rate);
    EXPECT_TRUE(result.ok()) << result.error().str();
    return result.ok() ? *result : StepResult{};
  }
  TrainRig rig;
};

// ---- what it does to rows that are named ----

class SparseType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, SparseType,
                         ::testing::Values(DType::f32, DType::bf16, DType::f8e4m3, DType::i8,
                                           DType::u4, DType::ternary, DType::binary, DType::i64,
                                           DType::nf4, DType::q4_0, DType::mxfp4, DType::nvfp4),
                         [](const auto& c) { return std::string(dtype_name(c.param)); });

TEST_P(SparseType, SgdEqualsDenseSgdBitForBitOver20StepsWithDuplicateIds) {
  for (const Clip clip : {Clip::none, Clip::value}) {
    TrainStepOptions o = with("sgd");
    o.clip = {clip, 0.002f};
    Training all({embedding(false, 3), dense(kWidth, 4)}, o, GetParam());
    Training sparse({embedding(true, 3), dense(kWidth, 4)}, o, GetParam());
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(all.run(i, 0.5).loss, sparse.run(i, 0.5).loss) << i;
    }
    EXPECT_EQ(all.values(kTable), sparse.values(kTable));
    EXPECT_EQ(all.packed(), sparse.packed());
    EXPECT_EQ(all.rig.hash(), sparse.rig.hash());
  }
}

TEST_P(SparseType, GivesTheSameBitsOnAnyThreadsAndInstructions) {
  for (const bool native : {false, true}) {
    if (native && !r16_can_dither(GetParam())) continue;
    const auto trained = [&](const Ops& ops, int threads) {
      TrainStepOptions o = with("adam");
      o.clip = {Clip::norm, 0.1f};
      o.native = native;
      Training run({embedding(true, 3), dense(kWidth, 4)}, o, GetParam(), ops, threads);
      for (int64_t i = 0; i < 12; ++i) run.run(i, 0.01);
      return std::pair(run.rig.hash(), run.packed());
    };
    const auto golden = trained(reference_ops(), 1);
    for (const Isa isa : available_isas()) {
      for (int threads : {1, 2, 3, 7}) {
        EXPECT_TRUE(trained(cpu_ops(isa), threads) == golden) << isa_name(isa) << ", " << threads;
      }
    }
  }
}

// y is the rows themselves, and the loss is their mean squared distance from the targets. So the
// gradient of a row is a simple sum.
TEST(SparseAdam, IsADoubleLoopInWhichRowsThatNoIdNamesDoNotMoveOrDecayAsInPyTorchsSparseAdam) {
  constexpr double kRate = 0.05, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  Training run({embedding(true)}, with("adam"));
  const std::vector<float> start = run.values(kTable);
  std::vector<double> p(start.begin(), start.end()), m(p.size()), v(p.size());
  const Tensor target = run.step().target();
  constexpr int64_t kPlaces = kBatch * kTime;
  for (int64_t t = 1; t <= 15; ++t) {
    run.run(t, kRate);
    std::vector<double> g(p.size());
    std::vector<bool> named(kVocab);
    for (int64_t r = 0; r < kPlaces; ++r) {
      const int64_t id = id_of(t, r);
      named[static_cast<size_t>(id)] = true;
      for (int64_t c = 0; c < kWidth; ++c) {
        const auto i = static_cast<size_t>(id * kWidth + c);
        const double d = p[i] - static_cast<double>(target.f32()[r * kWidth + c]);
        g[i] += 2 * d / kWidth / kPlaces;
      }
    }
    for (int64_t row = 0; row < kVocab; ++row) {
      if (!named[static_cast<size_t>(row)]) continue;
      for (int64_t c = 0; c < kWidth; ++c) {
        const auto i = static_cast<size_t>(row * kWidth + c);
        m[i] = kBeta1 * m[i] + (1 - kBeta1) * g[i];
        v[i] = kBeta2 * v[i] + (1 - kBeta2) * g[i] * g[i];
        const double up = m[i] / (1 - std::pow(kBeta1, static_cast<double>(t)));
        const double down = v[i] / (1 - std::pow(kBeta2, static_cast<double>(t)));
        p[i] -= kRate * up / (std::sqrt(down) + kEps);
      }
    }
  }
  const std::vector<float> got = run.values(kTable), got_m = run.values(std::string(kTable) + "/m");
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), p[i], 2e-5) << i;
    EXPECT_NEAR(static_cast<double>(got_m[i]), m[i], 1e-6) << i;
  }
  EXPECT_NE(got, start);
}

TEST(Sparse, ClipsByANormThatCountsEachRowOnce) {
  for (const char* clip : {"norm", "layer"}) {
    TrainStepOptions o = with("sgd");
    o.clip = {*parse_clip(clip), 1e-4f};
    Training all({embedding(false)}, o), sparse({embedding(true)}, o);
    const StepResult a = all.run(1, 100.0), b = sparse.run(1, 100.0);
    EXPECT_NEAR(a.norm, b.norm, 1e-6 * a.norm);
    const std::vector<float> x = all.values(kTable), y = sparse.values(kTable);
    double moved = 0;
    const std::vector<float> start = Training({embedding(true)}, o).values(kTable);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(x[i]), static_cast<double>(y[i]), 1e-6);
      moved += std::pow(static_cast<double>(y[i] - start[i]), 2);
    }
    EXPECT_NEAR(std::sqrt(moved), 1e-2, 1e-4) << "rate times limit";
  }
}

TEST(Sparse, LearnsWithEveryOptimizer) {
  for (const char* name : {"sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw", "lion"}) {
    const bool plain = std::string(name) == "sgd";
    TrainRig rig(row_of({embedding(true), dense(kWidth, 4)}), Shape{kBatch, kTime}, DType::f32,
                 with(name), cpu_ops(best_isa()), 1);
    const std::vector<double> losses = rig.run(60, plain ? 0.3 : 0.01);
    EXPECT_LT(losses.back(), 0.5 * losses.front()) << name;
  }
}

TEST(Sparse, KeepsItsBitsUnderGradientCheckpointing) {
  const auto hash = [](int64_t cells) {
    TrainStepOptions o = with("adam");
    o.checkpoint_cells = cells;
    Training run({embedding(true), dense(kWidth, 8, "silu"), dense(8, 8, "gelu_tanh"), dense(8, 4)},
                 o);
    for (int64_t i = 0; i < 5; ++i) run.run(i, 0.01);
    return run.rig.hash();
  };
  EXPECT_EQ(hash(1), hash(0));
  EXPECT_EQ(hash(2), hash(0));
}

TEST(Sparse, ResumesWithTheSameBits) {
  TrainStepOptions o = with("adam");
  Training a({embedding(true), dense(kWidth, 4)}, o, DType::i8);
  Training b({embedding(true), dense(kWidth, 4)}, o, DType::i8);
  for (int64_t i = 0; i < 6; ++i) a.run(i, 0.01);
  for (size_t i = 0; i < a.step().state().size(); ++i) {
    const Tensor& to = b.step().state()[i].tensor;
    std::memcpy(to.data, a.step().state()[i].tensor.data,
                static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
  }
  ASSERT_TRUE(b.step().restored(a.step().updates()).ok());
  EXPECT_EQ(a.packed(), b.packed());
  for (int64_t i = 6; i < 12; ++i) EXPECT_EQ(a.run(i, 0.01).loss, b.run(i, 0.01).loss);
  EXPECT_EQ(a.packed(), b.packed());
  EXPECT_EQ(a.rig.hash(), b.rig.hash());
}

// ---- what it does to the others ----

// Rows that no id names hold what no arithmetic survives; a step must neither read nor write them.
TEST_P(SparseType, TouchesNoMemoryOfRowsThatNoIdNames) {
  if (!r16_packs_rows(GetParam())) return;
  for (const bool native : {false, true}) {
    if (native && !r16_can_dither(GetParam())) continue;
    TrainStepOptions o = with("adamw");
    o.clip = {Clip::norm, 1.0f};
    o.native = native;
    constexpr int64_t kPadding = 21;
    Training run({embedding(true, kPadding), dense(kWidth, 4)}, o, GetParam(), cpu_ops(best_isa()),
                 3);
    std::vector<bool> named(kVocab);
    for (int64_t i = 0; i < kBatch * kTime; ++i) named[static_cast<size_t>(id_of(4, i))] = true;
    ASSERT_TRUE(named[kPadding]);
    named[kPadding] = false;
    ASSERT_LT(std::accumulate(named.begin(), named.end(), 0), 10);
    std::vector<std::pair<float*, int64_t>> poisoned;
    for (const StateTensor& s : run.step().state()) {
      if (!s.name.starts_with(kTable) || s.name.ends_with("/packed")) continue;
      const int64_t each = s.tensor.shape.count() / kVocab;
      for (int64_t row = 0; row < kVocab; ++row) {
        if (named[static_cast<size_t>(row)]) continue;
        poisoned.emplace_back(s.tensor.f32() + row * each, each);
        std::fill_n(poisoned.back().first, each, NAN);
      }
    }
    EXPECT_GE(poisoned.size(), 80u) << "moments, and a master where there is one";
    const Tensor& weight = run.table().tensor;
    const std::vector<std::byte> before = run.packed();
    const StepResult result = run.run(4, 0.01);
    EXPECT_TRUE(std::isfinite(result.loss) && result.updated);
    for (const auto& [at, count] : poisoned) {
      for (int64_t i = 0; i < count; ++i) EXPECT_TRUE(std::isnan(at[i]));
    }
    const std::vector<std::byte> after = run.packed();
    const R16 g = r16_geometry(weight.dtype, kVocab, kWidth);
    std::vector<double> old_row(kWidth), new_row(kWidth);
    int moved = 0;
    for (int64_t row = 0; row < kVocab; ++row) {
      r16_decode_f64(g, before.data(), row, 0, kWidth, old_row.data());
      r16_decode_f64(g, after.data(), row, 0, kWidth, new_row.data());
      moved += old_row != new_row ? 1 : 0;
      EXPECT_TRUE(named[static_cast<size_t>(row)] || old_row == new_row) << row;
    }
    EXPECT_TRUE(g.bits < 8 || moved > 0);
  }
}

// The memory of a step is that of the batch and one number per row of the table.
TEST(Sparse, NeedsNoGradientOfTheSizeOfTheTable) {
  const auto arena = [](bool sparse, int64_t vocab) {
    TrainRig rig(row_of({embedding(sparse, -1, vocab), dense(kWidth, 4)}), Shape{kBatch, kTime},
                 DType::f32, with("adam"), cpu_ops(best_isa()), 1);
    return rig.step().arena_bytes();
  };
  const int64_t more = 100000;
  EXPECT_LT(arena(true, kVocab + more) - arena(true, kVocab), more * 4 + 4096);
  EXPECT_GE(arena(false, kVocab + more) - arena(false, kVocab), more * kWidth * 4);
}

// ---- where it cannot be ----

std::string refusal(const GridSpec& grid, const TrainStepOptions& options) {
  ThreadPool pool(1, true);
  Result<Network> network = Network::finalize(grid, Shape{kBatch, kTime});
  EXPECT_TRUE(network.ok());
  EXPECT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
  const Result<TrainStep> step = TrainStep::create(*network, options, reference_ops(), pool);
  return step.ok() ? "" : step.error().str();
}

constexpr const char* kOneReader =
    ": a table [50, 6] with a sparse gradient may have one reader; set sparse to false where it "
    "is shared or tied";

TEST(Sparse, IsRefusedForATableThatIsTied) {
  const LayerConfig head =
      layer(LayerKind::dense, {{"in", kWidth}, {"out", kVocab}, {"bias", false}});
  GridSpec grid = row_of({embedding(true), dense(kWidth, kWidth), head});
  ASSERT_TRUE(grid.put({0, 0, 2, 0}, {head, Coord{0, 0, 0, 0}}).ok());
  EXPECT_EQ(refusal(grid, with("adam")), std::string("gradient of gather_rows") + kOneReader);
}

TEST(Sparse, IsRefusedWhereGradientsAreKept) {
  constexpr const char* kKept =
      "gradient of gather_rows: a sparse gradient is not added up over batches, nor kept for "
      "L-BFGS; set accumulate to 1 and take another optimizer, or set sparse to false";
  TrainStepOptions twice = with("adam");
  twice.accumulate = 2;
  EXPECT_EQ(refusal(row_of({embedding(true), dense(kWidth, 4)}), twice), kKept);
  EXPECT_EQ(refusal(row_of({embedding(true), dense(kWidth, 4)}), with("lbfgs")), kKept);
}

}  // namespace
}  // namespace loom::core::test
