// Row scales of packed weights in training: they stay while their range shrinks by no more than
// TrainStepOptions::scale_band, and what they were taken from is part of the state.
#include <cstring>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

using Bytes = std::vector<std::byte>;

GridSpec band_mlp() {
  return row_of({dense(8, 24, "tanh"), dense(24, 6)});
}

// SGD that lets weights shrink: scales would follow at every step.
TrainStepOptions shrinking(bool native = false) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer("sgd");
  o.optimizer.weight_decay = 0.2f;
  o.native = native;
  return o;
}

struct Trained {
  Trained(DType dtype, const TrainStepOptions& options, const Ops& ops = cpu_ops(best_isa()),
          int threads = 1)
      : rig(band_mlp(), Shape{16, 8}, DType::f32, options, ops, threads, dtype) {}

  TrainStep& step() { return rig.step(); }
  const Tensor* state(const std::string& name) {
    for (const StateTensor& s : step().state()) {
      if (s.name == name) return &s.tensor;
    }
    return nullptr;
  }
  // All weights as they are packed.
  Bytes packed() {
    Bytes all;
    for (const Param& p : rig.network().params()) {
      all.insert(all.end(), p.memory.data(), p.memory.data() + p.memory.size());
    }
    return all;
  }
  // The scales of the first sixteen rows of the first matrix, and their zero points.
  Bytes scales() {
    const Param& p = rig.network().params()[0];
    const R16 g = r16_geometry(p.tensor.dtype, p.spec.shape[0], p.spec.shape[1]);
    return Bytes(p.memory.data(), p.memory.data() + g.block_scales);
  }
  void multiply_masters(float factor) {
    const Tensor& master = *state(kMatrix);
    for (int64_t i = 0; i < master.shape.count(); ++i) master.f32()[i] *= factor;
    EXPECT_TRUE(step().restored(step().updates()).ok());
  }
  void take_state(Trained& other) {
    ASSERT_EQ(step().state().size(), other.step().state().size());
    for (size_t i = 0; i < step().state().size(); ++i) {
      const Tensor& to = step().state()[i].tensor;
      std::memcpy(to.data, other.step().state()[i].tensor.data,
                  static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
    }
    ASSERT_TRUE(step().restored(other.step().updates()).ok());
  }

  static constexpr const char* kMatrix = "(0, 0, 0, 0)/weight";
  TrainRig rig;
};

class ScaleBand : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, ScaleBand,
                         ::testing::Values(DType::f8e4m3, DType::i16, DType::i8, DType::u8,
                                           DType::i4, DType::u4, DType::f4, DType::i2,
                                           DType::ternary, DType::binary, DType::i32),
                         [](const auto& c) { return std::string(dtype_name(c.param)); });

TEST_P(ScaleBand, KeepsScalesAndMovesThemBeyondIt) {
  Trained t(GetParam(), shrinking());
  const Bytes first = t.scales();
  t.multiply_masters(0.95f);
  t.multiply_masters(0.95f);
  EXPECT_EQ(t.scales(), first);
  t.multiply_masters(0.95f);
  EXPECT_NE(t.scales(), first) << "0.857 of what it was";
  const Bytes second = t.scales();
  t.multiply_masters(1.01f);
  EXPECT_NE(t.scales(), second);
}

TEST_P(ScaleBand, ResumesWithTheSameBits) {
  Trained a(GetParam(), shrinking()), b(GetParam(), shrinking()), c(GetParam(), shrinking());
  b.take_state(a);
  EXPECT_EQ(a.packed(), b.packed()) << "before the first step";
  a.rig.run(7, 0.1);
  b.take_state(a);
  EXPECT_EQ(a.packed(), b.packed());
  EXPECT_EQ(a.rig.run(9, 0.1), b.rig.run(9, 0.1));
  EXPECT_EQ(a.packed(), b.packed());
  EXPECT_EQ(a.rig.hash(), b.rig.hash());
  // Were it not part of the state, this would go another way.
  std::memset(c.state(std::string(Trained::kMatrix) + "/scale")->data, 0, 24 * 4);
  c.rig.run(16, 0.1);
  EXPECT_NE(c.packed(), a.packed());
}

TEST_P(ScaleBand, OfZeroTakesNewScalesAtEveryStep) {
  TrainStepOptions o = shrinking();
  o.scale_band = 0;
  Trained t(GetParam(), o);
  EXPECT_EQ(t.state(std::string(Trained::kMatrix) + "/scale"), nullptr);
  const Param& p = t.rig.network().params()[0];
  const R16 g = r16_geometry(GetParam(), p.spec.shape[0], p.spec.shape[1]);
  for (int i = 0; i < 5; ++i) {
    t.rig.run(1, 0.1);
    Bytes fresh(static_cast<size_t>(g.bytes()));
    r16_pack(g, t.state(Trained::kMatrix)->f32(), 0, g.rows, ScaleScope::per_row, {}, fresh.data());
    EXPECT_EQ(std::memcmp(fresh.data(), p.memory.data(), fresh.size()), 0);
  }
}

TEST_P(ScaleBand, GivesTheSameBitsOnAnyThreadsAndInstructions) {
  for (const bool native : {false, true}) {
    if (native && !r16_can_dither(GetParam())) continue;
    Trained golden(GetParam(), shrinking(native), reference_ops());
    golden.rig.run(12, 0.1);
    for (const Isa isa : available_isas()) {
      for (int threads : {1, 2, 3, 7}) {
        Trained t(GetParam(), shrinking(native), cpu_ops(isa), threads);
        t.rig.run(12, 0.1);
        EXPECT_EQ(t.rig.hash(), golden.rig.hash()) << isa_name(isa) << ", " << threads;
        EXPECT_EQ(t.packed(), golden.packed()) << isa_name(isa) << ", " << threads;
      }
    }
  }
}

TEST_P(ScaleBand, HoldsWhenGradientsAreAddedUp) {
  TrainStepOptions o = shrinking();
  o.accumulate = 2;
  Trained t(GetParam(), o);
  const Bytes first = t.scales();
  t.multiply_masters(0.95f);
  for (const Tensor& g : t.step().gradients()) {
    std::memset(g.data, 0, static_cast<size_t>(plain_bytes(g.dtype, g.shape)));
  }
  t.rig.run(2, 1e-6);
  EXPECT_EQ(t.scales(), first);
}

TEST(ScaleBandState, IsThereForMatricesWithOneScalePerRow) {
  for (const DTypeInfo& info : dtype_table()) {
    Trained t(info.dtype, shrinking());
    const int64_t values = r16_frozen_values(info.dtype);
    const Tensor* scale = t.state(std::string(Trained::kMatrix) + "/scale");
    ASSERT_EQ(scale != nullptr, values > 0) << info.name;
    EXPECT_EQ(t.state("(0, 0, 0, 0)/bias/scale"), nullptr);
    if (scale == nullptr) continue;
    EXPECT_EQ(scale->shape, (values == 2 ? Shape{24, 2} : Shape{24})) << info.name;
    EXPECT_NE(scale->f32()[0], 0.0f) << "held from the first packing on";
  }
}

TEST(ScaleBandState, HoldsTheScalesOfTrainingWithoutAMaster) {
  Trained t(DType::i8, shrinking(true));
  const Tensor* scale = t.state(std::string(Trained::kMatrix) + "/scale");
  ASSERT_NE(scale, nullptr);
  const Bytes first = t.scales();
  t.rig.run(3, 1e-3);
  EXPECT_EQ(t.scales(), first);
}

TEST(ScaleBandState, RefusesABandThatIsNone) {
  for (const double band : {-0.1, 1.0, static_cast<double>(NAN)}) {
    ThreadPool pool(1, true);
    Result<Network> network = Network::finalize(band_mlp(), Shape{16, 8});
    ASSERT_TRUE(network.ok());
    ASSERT_TRUE(init_params(*network, DType::i8, 7, pool).ok());
    TrainStepOptions o;
    o.scale_band = band;
    const Result<TrainStep> step = TrainStep::create(*network, o, reference_ops(), pool);
    ASSERT_FALSE(step.ok());
    EXPECT_EQ(step.error().message,
              cat("scale_band is ", band, ", must be at least 0 and below 1"));
  }
}

}  // namespace
}  // namespace loom::core::test
