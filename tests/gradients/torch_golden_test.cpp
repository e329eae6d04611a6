// Every layer kind in f32 against PyTorch: outputs to 1e-5, gradients of the input and of every
// parameter to 1e-4, on the reference backend and on the best one of this processor. And what no
// golden shows: samples of a batch never mix.
#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "gradients/golden_rig.hpp"
#include "ops/activation.hpp"

namespace loom::core::test {

std::ostream& operator<<(std::ostream& out, const GoldenCase& c) {
  return out << c.name;
}

namespace {

constexpr double kForward = 1e-5, kBackward = 1e-4;

const std::vector<GoldenCase>& cases() {
  static const std::vector<GoldenCase> all = [] {
    Result<std::vector<GoldenCase>> read = read_golden_index();
    return read.ok() ? std::move(*read) : std::vector<GoldenCase>{};
  }();
  return all;
}

std::vector<const Ops*> backends() {
  return {&reference_ops(), &cpu_ops(best_isa())};
}

class TorchGolden : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    Result<Golden> golden = Golden::open(GetParam());
    ASSERT_TRUE(golden.ok()) << golden.error().str();
    golden_ = std::make_unique<Golden>(std::move(*golden));
  }

  std::unique_ptr<GoldenRun> run(const Ops& ops, bool gradients) {
    Result<std::unique_ptr<GoldenRun>> made = GoldenRun::make(GetParam(), ops, gradients);
    EXPECT_TRUE(made.ok()) << made.error().str();
    if (!made.ok()) return nullptr;
    const Status ran = (*made)->run();
    EXPECT_TRUE(ran.ok()) << ran.error().str();
    return ran.ok() ? std::move(*made) : nullptr;
  }

  // Each value to kForward, absolute and relative.
  void expect_output(const std::vector<float>& y) {
    const std::vector<float> want = golden("y");
    ASSERT_EQ(y.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(y[i] - static_cast<double>(want[i]));
      const double share = error / (1.0 + std::fabs(static_cast<double>(want[i])));
      worst_forward_ = std::max(worst_forward_, share);
      ASSERT_LE(share, kForward) << "y at " << i << " is " << y[i] << ", not " << want[i];
    }
  }

  // Each value to kBackward of the tensor's largest, or of 1.
  void expect_gradient(const std::string& name, const Tensor& gradient) {
    ASSERT_FALSE(gradient.empty()) << name << ": the loss does not depend on it";
    const std::vector<float> want = golden(name);
    ASSERT_EQ(static_cast<size_t>(gradient.shape.count()), want.size()) << name;
    double scale = 1;
    for (float v : want) scale = std::max(scale, std::fabs(static_cast<double>(v)));
    for (size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(gradient.f32()[i] - static_cast<double>(want[i]));
      worst_backward_ = std::max(worst_backward_, error / scale);
      ASSERT_LE(error, kBackward * scale)
          << name << " at " << i << " is " << gradient.f32()[i] << ", not " << want[i];
    }
  }

  void TearDown() override {
    RecordProperty("worst_forward_e9", cat(std::llround(worst_forward_ * 1e9)));
    RecordProperty("worst_backward_e9", cat(std::llround(worst_backward_ * 1e9)));
  }

 private:
  std::vector<float> golden(const std::string& name) {
    Result<std::vector<float>> values = golden_->values(name);
    EXPECT_TRUE(values.ok()) << values.error().str();
    return values.ok() ? *values : std::vector<float>{};
  }

  std::unique_ptr<Golden> golden_;
  double worst_forward_ = 0, worst_backward_ = 0;
};

TEST_P(TorchGolden, OutputIsThatOfPyTorch) {
  for (const Ops* ops : backends()) {
    SCOPED_TRACE(cat(GetParam().name, " on ", ops->name));
    const std::unique_ptr<GoldenRun> forward = run(*ops, false);
    ASSERT_NE(forward, nullptr);
    expect_output(values_of(forward->y()));
  }
}

TEST_P(TorchGolden, GradientsAreThoseOfPyTorch) {
  for (const Ops* ops : backends()) {
    SCOPED_TRACE(cat(GetParam().name, " on ", ops->name));
    const std::unique_ptr<GoldenRun> both = run(*ops, true);
    ASSERT_NE(both, nullptr);
    expect_output(values_of(both->y()));  // in training activations are ops of their own
    if (both->x().dtype != DType::i32) expect_gradient("dx", both->dx());
    const std::vector<Param>& params = both->network().params();
    for (size_t i = 0; i < params.size(); ++i) {
      expect_gradient("g/" + golden_param(params[i]), both->gradient(i));
    }
  }
}

// Through a session, where attention reads its cache.
class TorchGoldenSession : public TorchGolden {};

TEST_P(TorchGoldenSession, OutputIsThatOfPyTorch) {
  for (const Ops* ops : backends()) {
    SCOPED_TRACE(cat(GetParam().name, " on ", ops->name));
    const std::unique_ptr<GoldenRun> forward = run(*ops, false);
    ASSERT_NE(forward, nullptr);
    const Result<std::vector<float>> y = forward->session_output(*ops);
    ASSERT_TRUE(y.ok()) << y.error().str();
    expect_output(*y);
  }
}

// ---- Samples of a batch -------------------------------------------------------------------------

// Sample i of the result is sample from[i] of t. Values are moved as bits.
void pick_samples(const Tensor& t, const std::vector<size_t>& from) {
  if (t.empty()) return;
  const std::vector<float> old = values_of(t);
  const size_t width = old.size() / from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    std::copy_n(old.begin() + static_cast<ptrdiff_t>(from[i] * width), width, t.f32() + i * width);
  }
}

// Sample i of `got` must be sample from[i] of `want`, bit for bit.
void expect_samples(const Tensor& got, const std::vector<float>& want,
                    const std::vector<size_t>& from, const char* what) {
  const size_t width = want.size() / from.size();
  for (size_t i = 0; i < want.size(); ++i) {
    const float expected = want[from[i / width] * width + i % width];
    ASSERT_EQ(got.f32()[i], expected) << what << " of sample " << i / width << " at " << i % width;
  }
}

// A loss that layers add couples the samples of a batch, in the gradient only.
bool adds_loss(const LayerConfig& layer) {
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    if (layer.def->fields[i].name == "balance" && layer.values[i].number > 0) return true;
  }
  return std::any_of(layer.children.begin(), layer.children.end(), adds_loss);
}

void expect_picked(const GoldenCase& c, GoldenRun& run, const std::vector<size_t>& from) {
  const std::vector<float> y = values_of(run.y());
  const std::vector<float> dx = run.dx().empty() ? std::vector<float>{} : values_of(run.dx());
  pick_samples(run.x(), from);
  pick_samples(run.mask(), from);
  pick_samples(run.r(), from);
  ASSERT_TRUE(run.run().ok());
  expect_samples(run.y(), y, from, "y");
  if (!dx.empty() && !adds_loss(c.layer)) expect_samples(run.dx(), dx, from, "dx");
}

TEST_P(TorchGolden, PermutedSamplesGivePermutedOutputs) {
  const auto batch = static_cast<size_t>(GetParam().input[0]);
  std::vector<size_t> from(batch);
  for (size_t i = 0; i < batch; ++i) from[i] = (i + 1) % batch;
  for (const Ops* ops : backends()) {
    SCOPED_TRACE(cat(GetParam().name, " on ", ops->name));
    const std::unique_ptr<GoldenRun> both = run(*ops, true);
    ASSERT_NE(both, nullptr);
    expect_picked(GetParam(), *both, from);
  }
}

TEST_P(TorchGolden, OtherSamplesDoNotMatterToASample) {
  const auto batch = static_cast<size_t>(GetParam().input[0]);
  std::vector<size_t> from(batch);
  for (size_t i = 1; i < batch; ++i) from[i] = i == 1 ? 0 : i;  // sample 1 becomes sample 0
  for (const Ops* ops : backends()) {
    SCOPED_TRACE(cat(GetParam().name, " on ", ops->name));
    const std::unique_ptr<GoldenRun> both = run(*ops, true);
    ASSERT_NE(both, nullptr);
    expect_picked(GetParam(), *both, from);
  }
}

std::string name_of(const ::testing::TestParamInfo<GoldenCase>& info) {
  return info.param.name;
}
// Sessions know no masks.
std::vector<GoldenCase> session_cases() {
  std::vector<GoldenCase> some = cases();
  std::erase_if(some, [](const GoldenCase& c) { return c.masked; });
  return some;
}
INSTANTIATE_TEST_SUITE_P(Layers, TorchGolden, ::testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Layers, TorchGoldenSession, ::testing::ValuesIn(session_cases()), name_of);

// ---- The index ----------------------------------------------------------------------------------

bool holds(const LayerConfig& layer, LayerKind kind) {
  return layer.def->kind == kind ||
         std::any_of(layer.children.begin(), layer.children.end(),
                     [&](const LayerConfig& child) { return holds(child, kind); });
}

TEST(TorchGoldens, ReadWithoutError) {
  const Result<std::vector<GoldenCase>> read = read_golden_index();
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_GE(read->size(), 100u);
}

TEST(TorchGoldens, HoldEveryReleasedLayerKindWithThreeSamplesAndEightSteps) {
  // Dropout draws other numbers than PyTorch, and BatchNorm has goldens of its own (buffers.json).
  const auto elsewhere = [](LayerKind kind) {
    return kind == LayerKind::dropout || kind == LayerKind::batch_norm;
  };
  for (const LayerDef* def : layer_table()) {
    if (!released(def->kind) || elsewhere(def->kind)) continue;
    const bool recurrent =
        def->kind == LayerKind::rnn || def->kind == LayerKind::lstm || def->kind == LayerKind::gru;
    const bool found = std::any_of(cases().begin(), cases().end(), [&](const GoldenCase& c) {
      const bool large = c.input[0] >= 3 && (!recurrent || c.input[1] >= 8);
      return large && holds(c.layer, def->kind);
    });
    EXPECT_TRUE(found) << def->name << " has no golden";
  }
}

TEST(TorchGoldens, HoldEveryActivation) {
  for (int i = 0; i < kActivations; ++i) {
    const std::string name = cat("dense_", activation_name(static_cast<Activation>(i)));
    EXPECT_TRUE(std::any_of(cases().begin(), cases().end(), [&](const GoldenCase& c) {
      return c.name == name;
    })) << name;
  }
}

}  // namespace
}  // namespace loom::core::test
