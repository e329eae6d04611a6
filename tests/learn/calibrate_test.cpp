// Post-training quantization: narrowed ranges cost less on the data they were chosen for.
#include "learn/rules/calibrate.hpp"

#include "learn/every_kind.hpp"
#include "learn/trainer.hpp"

namespace loom::core::test {
namespace {

struct Matrix {
  Matrix(int64_t rows, int64_t cols) : values(static_cast<size_t>(rows * cols)) {
    tensor.shape = Shape{rows, cols};
    tensor.row_stride = cols;
    tensor.data = reinterpret_cast<std::byte*>(values.data());
  }
  std::vector<float> values;
  Tensor tensor;
};

// One large weight a row, whose input is always small.
Matrix with_outliers() {
  Matrix m(4, 32);
  for (size_t i = 0; i < m.values.size(); ++i) {
    m.values[i] = static_cast<float>(0.1 * std::sin(1.7 * static_cast<double>(i)));
  }
  for (size_t r = 0; r < 4; ++r) m.values[r * 32 + 5] = 0.4f;
  return m;
}

// Inputs whose column 5 is always small.
InputRange inputs(int64_t cols) {
  InputRange range;
  for (int64_t i = 0; i < 100; ++i) {
    range.add(cols, [&](float* out) {
      for (int64_t c = 0; c < cols; ++c) {
        out[c] = static_cast<float>((c == 5 ? 1e-3 : 1.0) *
                                    std::sin(2.3 * static_cast<double>(i * cols + c * c)));
      }
    });
  }
  return range;
}

TEST(RangeObserver, RefusesNetworksThatADataSetCannotFeed) {
  ThreadPool pool(1);
  for (const KindNetwork& kind : kind_networks()) {
    if (kind.kind != "Input") continue;
    const NetworkSpec& spec = kind.network;
    const Result<Network> network = Network::finalize(spec.grid, spec.input.after(kind.batch));
    ASSERT_TRUE(network.ok());
    const auto made = RangeObserver::create(*network, cpu_ops(best_isa()), pool, false);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("takes more"), std::string::npos) << made.error().str();
    return;
  }
  FAIL() << "no kind Input";
}

TEST(ClipRows, GivesUpAWeightThatItsInputsHardlyUse) {
  ThreadPool pool(1);
  Matrix m = with_outliers();
  const Result<ClipReport> report =
      clip_rows(m.tensor, DType::i4, inputs(32), cpu_ops(best_isa()), pool);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_LT(report->error, 0.7 * report->plain);
  EXPECT_LT(report->kept, 0.9);
  int num_clipped = 0;
  for (size_t r = 0; r < 4; ++r) num_clipped += m.values[r * 32 + 5] < 0.4f ? 1 : 0;
  EXPECT_GE(num_clipped, 3);
}

TEST(ClipRows, NeverCostsMoreThanPlainRounding) {
  ThreadPool pool(1);
  for (const DTypeInfo& info : dtype_table()) {
    Matrix m = with_outliers();
    const Result<ClipReport> report =
        clip_rows(m.tensor, info.dtype, {}, cpu_ops(best_isa()), pool);
    ASSERT_TRUE(report.ok()) << info.name;
    EXPECT_LE(report->error, report->plain) << info.name;
  }
}

TEST(ClipRows, RefusesInputsOfAnotherWidth) {
  ThreadPool pool(1);
  Matrix m = with_outliers();
  EXPECT_FALSE(clip_rows(m.tensor, DType::i4, inputs(31), cpu_ops(best_isa()), pool).ok());
}

TEST(InputRange, KeepsAnEvenShareOfManyInputs) {
  InputRange range;
  for (int i = 0; i < 5000; ++i) {
    range.add(1, [&](float* out) { *out = static_cast<float>(i); });
  }
  EXPECT_EQ(range.seen, 5000);
  EXPECT_GT(range.sampled, InputRange::kSamples / 2);
  EXPECT_LE(range.sampled, InputRange::kSamples);
  for (int64_t i = 0; i < range.sampled; ++i) {
    EXPECT_EQ(range.samples[static_cast<size_t>(i)], static_cast<float>(i * range.stride));
  }
}

TEST(RangeObserver, SeesTheInputsOfEveryMatrix) {
  // The identity passes its input on, so both layers see it; a convolution sees it by channel.
  ThreadPool pool(2);
  Result<Network> network = Network::finalize(row_of({dense(3, 3), dense(3, 2)}), Shape{4, 3});
  ASSERT_TRUE(network.ok());
  const Network::RowSource identity = [](int64_t first, int64_t count, float* out) -> Status {
    for (int64_t i = 0; i < count * 3; ++i) out[i] = first + i / 3 == i % 3 ? 1.0f : 0.0f;
    return {};
  };
  const Network::RowSource zero = [](int64_t, int64_t count, float* out) -> Status {
    std::fill_n(out, count, 0.0f);
    return {};
  };
  for (int i = 0; i < static_cast<int>(network->params().size()); ++i) {
    const bool matrix = network->param(i).spec.matrix();
    ASSERT_TRUE(network->load_param(i, DType::f32, matrix ? identity : zero, pool).ok());
  }
  Result<RangeObserver> observer = RangeObserver::create(*network, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(observer.ok()) << observer.error().str();
  const float first[12] = {1, 2, -3, 3, 0, 1, 9, 9, 9, 9, 9, 9};  // two samples count
  std::copy_n(first, 12, observer->x().f32());
  ASSERT_TRUE(observer->run(2).ok());
  const float second[3] = {5, 0, 2};
  std::copy_n(second, 3, observer->x().f32());
  ASSERT_TRUE(observer->run(1).ok());
  int matrices = 0;
  for (size_t i = 0; i < network->params().size(); ++i) {
    if (!network->params()[i].spec.matrix()) continue;
    const InputRange& range = observer->ranges()[i];
    EXPECT_EQ(range.samples, (std::vector<float>{1, 2, -3, 3, 0, 1, 5, 0, 2}));
    EXPECT_EQ(range.sampled, 3);
    EXPECT_EQ(range.min, -3);
    EXPECT_EQ(range.max, 5);
    ++matrices;
  }
  EXPECT_EQ(matrices, 2);
}

TEST(RangeObserver, SeesThePatchesOfConvolutions) {
  ThreadPool pool(1);
  Result<Network> network = Network::finalize(
      row_of({layer(LayerKind::cnn1,
                    {{"channels", 2}, {"filters", 3}, {"kernel", 2}, {"padding", 1}})}),
      Shape{2, 2, 3});
  ASSERT_TRUE(network.ok());
  ASSERT_TRUE(init_params(*network, DType::f32, 1, pool).ok());
  Result<RangeObserver> observer = RangeObserver::create(*network, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(observer.ok());
  const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::copy_n(x, 12, observer->x().f32());
  ASSERT_TRUE(observer->run(1).ok());
  EXPECT_EQ(observer->ranges()[0].samples,
            (std::vector<float>{0, 1, 0, 4, 1, 2, 4, 5, 2, 3, 5, 6, 3, 0, 6, 0}));
}

// A regression that a small network learns well.
Dataset waves(int64_t samples) {
  Dataset d;
  d.samples = samples;
  d.sample = Shape{6};
  d.outputs = 2;
  for (int64_t i = 0; i < samples; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < 6; ++c) {
      const double x = std::sin(0.37 * static_cast<double>(i * 6 + c * c)) * (c == 0 ? 4.0 : 0.3);
      d.inputs.push_back(static_cast<float>(x));
      sum += x * static_cast<double>(c + 1) * 0.1;
    }
    d.targets.push_back(static_cast<float>(std::tanh(sum)));
    d.targets.push_back(static_cast<float>(0.5 * sum));
  }
  return d;
}

Result<Trainer> trained(ThreadPool& pool, const Dataset& data, DType dtype, uint64_t seed = 1) {
  TrainerSpec o;
  o.seed = seed;
  o.epochs = 30;
  o.batch = 16;
  o.rate = 0.01;
  Result<Trainer> trainer = Trainer::create(row_of({dense(6, 48, "tanh"), dense(48, 2)}), data, o,
                                            cpu_ops(best_isa()), pool);
  if (!trainer.ok()) return trainer;
  for (int i = 0; i < 30; ++i) LOOM_TRY(trainer->epoch(data, {}));
  for (int64_t x = 0; x < 2; ++x) LOOM_TRY(trainer->morph({0, 0, x, 0}, dtype));
  return trainer;
}

TEST(Calibration, LowersTheLossOfFourBits) {
  ThreadPool pool(1);
  const Dataset data = waves(203);
  double before = 0, after = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Result<Trainer> trainer = trained(pool, data, DType::i4, seed);
    ASSERT_TRUE(trainer.ok()) << trainer.error().str();
    const double plain = trainer->evaluate(data)->loss;
    const Result<std::vector<ClipReport>> reports = trainer->calibrate(data);
    ASSERT_TRUE(reports.ok()) << reports.error().str();
    ASSERT_EQ(reports->size(), 2u);
    EXPECT_EQ((*reports)[0].path, "(0, 0, 0, 0)/weight");
    for (const ClipReport& r : *reports) EXPECT_LE(r.error, r.plain);
    before += plain;
    after += trainer->evaluate(data)->loss;
  }
  EXPECT_LT(after, 0.8 * before);
}

TEST(Morph, KeepsMastersAndTrainsOn) {
  ThreadPool pool(1);
  const Dataset data = waves(128);
  Result<Trainer> trainer = trained(pool, data, DType::i8);
  ASSERT_TRUE(trainer.ok()) << trainer.error().str();
  const double bytes8 = static_cast<double>(trainer->network().param_bytes());
  const double loss8 = trainer->evaluate(data)->loss;
  ASSERT_TRUE(trainer->morph({0, 0, 0, 0}, DType::binary).ok());
  EXPECT_LT(static_cast<double>(trainer->network().param_bytes()), bytes8);
  EXPECT_GT(trainer->evaluate(data)->loss, loss8);
  // Back again: nothing was lost on the way.
  ASSERT_TRUE(trainer->morph({0, 0, 0, 0}, DType::i8).ok());
  EXPECT_EQ(trainer->evaluate(data)->loss, loss8);
  ASSERT_TRUE(trainer->morph({0, 0, 0, 0}, DType::i4).ok());
  const double loss4 = trainer->evaluate(data)->loss;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainer->epoch(data, {}).ok());
  EXPECT_LT(trainer->evaluate(data)->loss, loss4);
  const Status nothing = trainer->morph({0, 0, 7, 0}, DType::i4);
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.error().message.find("(0, 0, 7, 0)"), std::string::npos);
}

}  // namespace
}  // namespace loom::core::test
