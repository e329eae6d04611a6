// Samples that are rows of documents beside each document alone, in a network made for just its
// length: predictions bit by bit, losses and gradients to what sums of floats in another order
// leave. Networks, lengths and inputs are random.
#include <cmath>

#include "base/numbers/rng.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test::documents {
namespace {

class Choice {
 public:
  explicit Choice(uint64_t seed) : rng_(seed, 22) {}
  int64_t from(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng_.bits(at_++) % static_cast<uint64_t>(most - least + 1));
  }
  bool yes() { return from(0, 1) == 1; }
  float number() { return static_cast<float>(from(-1000, 1000)) / 700.0f; }

 private:
  Rng rng_;
  uint64_t at_ = 0;
};

constexpr int64_t kClasses = 5, kVocabulary = 11;

LayerConfig attention(Choice& choose, int64_t width) {
  const int64_t heads = 2 * choose.from(1, 2);
  return layer(LayerKind::multi_head_attention,
               {{"width", width},
                {"heads", heads},
                {"kv_heads", choose.yes() ? heads : heads / 2},
                {"head_dim", 2 * choose.from(1, 9)},
                {"bias", choose.yes()},
                {"qk_norm", choose.yes()},
                {"rope", choose.yes()},
                {"window", choose.yes() ? choose.from(1, 40) : int64_t{0}},
                {"soft_cap", choose.yes() ? 1.5 : 0.0},
                {"alibi", choose.yes() ? 8.0 : 0.0},
                {"sinks", choose.yes()}});
}

GridSpec random_grid(Choice& choose, bool ids, int64_t in, int64_t length) {
  const int64_t width = 2 * choose.from(2, 6);
  std::vector<LayerConfig> layers;
  if (ids) {
    layers.push_back(layer(
        LayerKind::embedding,
        {{"vocab", kVocabulary}, {"width", width}, {"positions", choose.yes() ? length : 0}}));
  } else {
    layers.push_back(layer(LayerKind::dense, {{"in", in}, {"out", width}}));
  }
  for (int64_t i = choose.from(1, 2); i > 0; --i) {
    layers.push_back(
        layer(LayerKind::residual, {},
              {layer(LayerKind::rms_norm, {{"width", width}}), attention(choose, width)}));
    layers.push_back(layer(LayerKind::residual, {},
                           {layer(LayerKind::swiglu, {{"width", width}, {"inner", 7}})}));
  }
  layers.push_back(layer(LayerKind::dense, {{"in", width}, {"out", kClasses}}));
  return row_of(std::move(layers));
}

// Lengths of documents that fill `length` positions.
std::vector<int64_t> random_lengths(Choice& choose, int64_t length) {
  std::vector<int64_t> lengths;
  for (int64_t left = length; left > 0; left -= lengths.back())
    lengths.push_back(choose.from(1, choose.yes() ? left : std::min<int64_t>(left, 5)));
  return lengths;
}

// Inputs, labels and weights of rows; -1 labels do not count.
struct Rows {
  int64_t in = 0;
  std::vector<float> x;
  std::vector<int32_t> ids, labels;
  std::vector<float> weights;
};

Rows random_rows(Choice& choose, int64_t count, int64_t in) {
  Rows rows{in};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < in; ++k) rows.x.push_back(choose.number());
    rows.ids.push_back(static_cast<int32_t>(choose.from(0, kVocabulary - 1)));
    rows.labels.push_back(static_cast<int32_t>(choose.from(0, kClasses - 1)));
    rows.weights.push_back(choose.from(0, 3) == 0 ? 0.0f : 1.0f / static_cast<float>(count));
  }
  return rows;
}

void fill(TrainStep& step, const Rows& rows, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(first + i);
    if (step.x().dtype == DType::i32) {
      step.x().i32()[i] = rows.ids[at];
    } else {
      std::copy_n(rows.x.data() + at * static_cast<size_t>(rows.in), rows.in,
                  step.x().f32() + i * rows.in);
    }
    step.target().i32()[i] = rows.labels[at];
    step.weight().f32()[i] = rows.weights[at];
  }
}

TrainStepOptions step_options(bool documents) {
  TrainStepOptions options;
  options.loss.kind = Loss::cross_entropy;
  options.class_ids = true;
  options.accumulate = 2;  // so that gradients are kept
  options.documents = documents;
  return options;
}

class RandomDocuments : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomDocuments, ::testing::Range(0, 40));

TEST_P(RandomDocuments, PredictAndLearnAsEachAlone) {
  Choice choose(static_cast<uint64_t>(GetParam()) + 1);
  const int64_t samples = choose.from(1, 3), length = choose.from(1, GetParam() % 8 == 7 ? 90 : 20);
  const int64_t in = choose.from(1, 4);
  const bool ids = choose.yes();
  const GridSpec grid = random_grid(choose, ids, in, length);
  const auto input = [&](int64_t n, int64_t t) { return ids ? Shape{n, t} : Shape{n, t, in}; };
  const Rows rows = random_rows(choose, samples * length, in);
  std::vector<std::vector<int64_t>> lengths;
  for (int64_t s = 0; s < samples; ++s) lengths.push_back(random_lengths(choose, length));

  const std::vector<Isa> isas = available_isas();
  const Ops& ops = cpu_ops(isas[static_cast<size_t>(GetParam()) % isas.size()]);
  TrainRig together(grid, input(samples, length), DType::f32, step_options(true), ops,
                    1 + GetParam() % 3);
  ASSERT_TRUE(together.ready());
  ASSERT_TRUE(together.step().set_documents(lengths).ok());
  fill(together.step(), rows, 0, samples * length);
  const Result<StepResult> whole = together.step().run(0.0);
  ASSERT_TRUE(whole.ok()) << whole.error().str();

  std::vector<std::vector<double>> want, sizes;
  double loss = 0;
  int64_t row = 0;
  for (const std::vector<int64_t>& sample : lengths) {
    for (const int64_t count : sample) {
      TrainRig alone(grid, input(1, count), DType::f32, step_options(false), ops);
      ASSERT_TRUE(alone.ready());
      fill(alone.step(), rows, row, count);
      const Result<StepResult> one = alone.step().run(0.0);
      ASSERT_TRUE(one.ok()) << one.error().str();
      loss += one->loss;
      for (int64_t i = 0; i < count * kClasses; ++i)
        ASSERT_EQ(alone.step().y().f32()[i], together.step().y().f32()[row * kClasses + i]) << row;
      const std::vector<Tensor>& gradients = alone.step().gradients();
      want.resize(gradients.size());
      sizes.resize(gradients.size());
      for (size_t p = 0; p < gradients.size(); ++p) {
        want[p].resize(static_cast<size_t>(gradients[p].shape.count()));
        sizes[p].resize(want[p].size());
        for (size_t v = 0; v < want[p].size(); ++v) {
          want[p][v] += gradients[p].f32()[v];
          sizes[p][v] += std::fabs(gradients[p].f32()[v]);
        }
      }
      row += count;
    }
  }
  EXPECT_NEAR(whole->loss, loss, 2e-6 * (1 + std::fabs(loss)));
  // Terms cancel within a document, most of all those of a bias of keys, so rounding is that of the
  // largest gradient.
  double largest = 1e-3;
  for (const std::vector<double>& of : sizes)
    for (const double size : of) largest = std::max(largest, size);
  for (size_t p = 0; p < want.size(); ++p) {
    for (size_t v = 0; v < want[p].size(); ++v)
      ASSERT_NEAR(together.step().gradients()[p].f32()[v], want[p][v], 2e-6 * largest)
          << together.network().params()[p].path << ' ' << v;
  }
}

TEST(Documents, ADifferentNeighbourChangesNoBit) {
  Choice choose(7);
  const GridSpec grid = random_grid(choose, false, 3, 12);
  Rows rows = random_rows(choose, 12, 3);
  TrainRig rig(grid, Shape{1, 12, 3}, DType::f32, step_options(true));
  ASSERT_TRUE(rig.step().set_documents({{{4, 3, 5}}}).ok());
  fill(rig.step(), rows, 0, 12);
  ASSERT_TRUE(rig.step().run(0.0).ok());
  const std::vector<float> before(rig.step().y().f32(), rig.step().y().f32() + 12 * kClasses);
  for (int64_t k = 4 * 3; k < 7 * 3; ++k) rows.x[static_cast<size_t>(k)] = 9.0f;
  fill(rig.step(), rows, 0, 12);
  ASSERT_TRUE(rig.step().run(0.0).ok());
  for (int64_t i = 0; i < 12 * kClasses; ++i) {
    const bool changed = i >= 4 * kClasses && i < 7 * kClasses;
    EXPECT_EQ(rig.step().y().f32()[i] == before[static_cast<size_t>(i)], !changed) << i;
  }
}

TEST(Documents, WrongLengthsAreRefused) {
  Choice choose(3);
  TrainRig rig(random_grid(choose, false, 3, 6), Shape{2, 6, 3}, DType::f32, step_options(true));
  const char* sums = "the lengths of the documents of sample 1 must be above 0 and sum to 6";
  const std::pair<std::vector<std::vector<int64_t>>, const char*> cases[] = {
      {{{6}}, "documents of 1 samples, but a batch has 2"},
      {{{6}, {5}}, sums},
      {{{6}, {3, 4}}, sums},
      {{{2, 4}, {6, 0}}, sums},
      {{{2, 4}, {7, -1}}, sums},
      {{{6}, {}}, sums},
  };
  for (const auto& [lengths, message] : cases) {
    const Status status = rig.step().set_documents(lengths);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, message);
  }
}

TEST(Documents, LayersThatLookAtSeveralRowsAreRefusedByName) {
  const GridSpec grid =
      row_of({layer(LayerKind::gru, {{"in", 3}, {"hidden", 4}, {"return_sequence", true}})});
  ThreadPool pool(1, true);
  Network network = *Network::finalize(grid, Shape{1, 5, 3});
  ASSERT_TRUE(init_params(network, DType::f32, 1, pool).ok());
  TrainStepOptions options = step_options(true);
  options.class_ids = false;
  options.loss.kind = Loss::mse;
  const Result<TrainStep> step = TrainStep::create(network, options, cpu_ops(best_isa()), pool);
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().message,
            "GRU at (0, 0, 0, 0) looks at several rows of its input, so sequences cannot share a "
            "pass");
}

}  // namespace
}  // namespace loom::core::test::documents
