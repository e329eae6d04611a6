// Samples of different lengths in one batch beside each of them alone, in a network made for just
// its length: outputs bit by bit, losses and gradients to what sums of floats in another order
// leave. Networks, lengths and inputs are random.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu.hpp"
#include "base/numbers/rng.hpp"
#include "grid/session.hpp"
#include "layers/blocks/blocks.hpp"
#include "learn/loss/ctc_batch.hpp"
#include "learn/metrics/scores.hpp"
#include "learn/train_rig.hpp"
#include "learn/trainer.hpp"

namespace loom::core::test::sequences {
namespace {

using ::testing::HasSubstr;

// Small numbers that a seed chooses.
class Choice {
 public:
  explicit Choice(uint64_t seed) : rng_(seed, 21) {}
  int64_t from(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng_.bits(at_++) % static_cast<uint64_t>(most - least + 1));
  }
  bool yes() { return from(0, 1) == 1; }
  float number() { return static_cast<float>(from(-1000, 1000)) / 700.0f; }

 private:
  Rng rng_;
  uint64_t at_ = 0;
};

LayerConfig named(std::string_view name, const std::vector<Field>& fields) {
  Result<LayerConfig> made = make_layer(*find_layer(name), fields);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

// Layers over [steps, width] that look along the steps or at each of them.
struct Stack {
  std::vector<LayerConfig> layers;
  int64_t in = 0, out = 0;
  bool of_steps = false;  // it predicts something for each step
};

LayerConfig recurrent(Choice& choose, int64_t in, int64_t hidden, bool all) {
  const int64_t kind = choose.from(0, 2);
  std::vector<Field> fields = {{"in", in}, {"hidden", hidden}, {"return_sequence", all}};
  if (kind == 0) fields.emplace_back("activation", choose.yes() ? "relu" : "tanh");
  return named(kind == 0 ? "RNN" : kind == 1 ? "LSTM" : "GRU", fields);
}

LayerConfig recurrent_stack(Choice& choose, int64_t in, int64_t hidden, bool all) {
  const char* kinds[] = {"rnn", "lstm", "gru"};
  return named("RecurrentStack", {{"kind", kinds[choose.from(0, 2)]},
                                  {"in", in},
                                  {"hidden", hidden},
                                  {"layers", choose.from(1, 2)},
                                  {"bidirectional", true},
                                  {"return_sequence", all}});
}

LayerConfig attention(Choice& choose, int64_t width) {
  return named("MultiHeadAttention", {{"width", width},
                                      {"heads", 2},
                                      {"kv_heads", choose.from(1, 2)},
                                      {"head_dim", 4},
                                      {"causal", choose.yes()},
                                      {"window", choose.from(0, 3)}});
}

Stack random_stack(Choice& choose) {
  Stack s;
  int64_t width = s.in = choose.from(1, 5);
  for (int64_t i = choose.from(0, 2); i > 0; --i) {
    const int64_t hidden = choose.from(1, 6);
    switch (choose.from(0, 3)) {
      case 0: s.layers.push_back(recurrent(choose, width, hidden, true)); break;
      case 1:
        s.layers.push_back(recurrent_stack(choose, width, hidden, true));
        width = 2 * hidden;
        continue;
      case 2: s.layers.push_back(attention(choose, width)); continue;
      default:
        s.layers.push_back(
            named("Dense", {{"in", width}, {"out", hidden}, {"activation", "silu"}}));
        s.layers.push_back(named("LayerNorm", {{"width", hidden}}));
    }
    width = hidden;
  }
  s.of_steps = choose.yes();
  if (!s.of_steps) {
    const int64_t hidden = choose.from(1, 6);
    const bool both = choose.yes();
    s.layers.push_back(both ? recurrent_stack(choose, width, hidden, false)
                            : recurrent(choose, width, hidden, false));
    width = both ? 2 * hidden : hidden;
  }
  s.out = choose.from(2, 4);
  s.layers.push_back(named("Dense", {{"in", width}, {"out", s.out}}));
  return s;
}

// `n` samples of up to `most` steps, with random values after their ends.
Dataset random_data(Choice& choose, const Stack& s, int64_t n, int64_t most, bool classes) {
  Dataset d;
  d.samples = n;
  d.sample = Shape{most, s.in};
  const int64_t rows = s.of_steps ? most : 1;
  for (int64_t i = 0; i < n; ++i) {
    d.lengths.push_back(static_cast<int32_t>(i == 0 ? most : choose.from(1, most)));
    for (int64_t v = 0; v < most * s.in; ++v) d.inputs.push_back(choose.number());
    for (int64_t r = 0; r < rows; ++r) {
      const bool pads = d.pads(i, r, rows);
      if (classes) {
        d.labels.push_back(static_cast<int32_t>(pads ? 99 : choose.from(0, s.out - 1)));
      } else {
        for (int64_t c = 0; c < s.out; ++c)
          d.targets.push_back(pads ? std::numeric_limits<float>::quiet_NaN() : choose.number());
      }
    }
  }
  if (classes) d.classes = s.out;
  if (!classes) d.outputs = rows * s.out;
  if (choose.yes()) {
    for (int64_t i = 0; i < n; ++i) d.weights.push_back(static_cast<float>(choose.from(1, 4)));
  }
  return d;
}

// Sample i without padding, as a set of its own.
Dataset alone(const Dataset& d, const Stack& s, int64_t i) {
  const std::vector<int64_t> one = {i};
  Dataset out = d.select(one);
  const int64_t length = out.lengths[0];
  out.lengths.clear();
  out.weights.clear();
  out.sample = Shape{length, s.in};
  out.inputs.resize(static_cast<size_t>(length * s.in));
  if (!s.of_steps) return out;
  if (!out.labels.empty()) out.labels.resize(static_cast<size_t>(length));
  if (!out.targets.empty()) out.targets.resize(static_cast<size_t>(length * s.out));
  if (out.outputs > 0) out.outputs = length * s.out;
  return out;
}

Tensor input_of(std::vector<float>& values, const Shape& shape) {
  Tensor x;
  x.shape = shape;
  x.row_stride = shape.last();
  x.data = reinterpret_cast<std::byte*>(values.data());
  return x;
}

struct Sessions {
  ThreadPool pool{2, true};
  std::unique_ptr<Network> network;
  std::optional<Session> session;

  Sessions(const Stack& s, const Shape& input, bool masked, const Ops& ops) {
    network = std::make_unique<Network>(*Network::finalize(row_of(s.layers), input));
    EXPECT_TRUE(init_params(*network, DType::f32, 3, pool).ok());
    SessionOptions o;
    o.sequences = input[0];
    o.masked = masked;
    Result<Session> made = Session::create(*network, ops, pool, input, o);
    EXPECT_TRUE(made.ok()) << made.error().str();
    session.emplace(std::move(*made));
  }
  Tensor run(std::vector<float>& x, const Shape& shape) {
    const Result<Tensor> y = session->forward(input_of(x, shape), 0, network->cells().size());
    EXPECT_TRUE(y.ok()) << y.error().str();
    return y.ok() ? *y : Tensor{};
  }
};

class RandomSequences : public ::testing::TestWithParam<int> {
 protected:
  Choice choose{static_cast<uint64_t>(GetParam()) + 1};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSequences, ::testing::Range(0, 40));

TEST_P(RandomSequences, GiveTheBitsOfEachAloneOnEveryInstructionSet) {
  const Stack s = random_stack(choose);
  const int64_t n = choose.from(1, 5), most = choose.from(1, 9);
  Dataset d = random_data(choose, s, n, most, true);
  for (const Isa isa : available_isas()) {
    Sessions together(s, Shape{n, most, s.in}, true, cpu_ops(isa));
    std::vector<int64_t> lengths(d.lengths.begin(), d.lengths.end());
    ASSERT_TRUE(together.session->set_lengths(lengths).ok());
    const Tensor y = together.run(d.inputs, Shape{n, most, s.in});
    for (int64_t i = 0; i < n; ++i) {
      Dataset one = alone(d, s, i);
      Sessions single(s, Shape{1, lengths[static_cast<size_t>(i)], s.in}, false, cpu_ops(isa));
      const Tensor want = single.run(one.inputs, Shape{1, lengths[static_cast<size_t>(i)], s.in});
      const int64_t rows = s.of_steps ? most : 1;
      for (int64_t r = 0; r < want.rows(); ++r) {
        for (int64_t c = 0; c < s.out; ++c)
          ASSERT_EQ(y.f32_row(i * rows + r)[c], want.f32_row(r)[c]) << i << ' ' << r << ' ' << c;
      }
    }
  }
}

Trainer trainer_of(const Stack& s, const Dataset& d, int64_t batch, const Ops& ops,
                   ThreadPool& pool) {
  TrainerSpec o;
  o.batch = batch;
  o.step.loss.kind = d.has_labels() ? Loss::cross_entropy : Loss::mse;
  o.step.accumulate = 2;  // so that gradients are kept
  o.seed = 3;
  Result<Trainer> made = Trainer::create(row_of(s.layers), d, o, ops, pool);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

std::vector<std::vector<double>> gradients_of(Trainer& trainer) {
  std::vector<std::vector<double>> all;
  for (const Tensor& g : trainer.step().gradients())
    all.emplace_back(g.f32(), g.f32() + g.shape.count());
  return all;
}

TEST_P(RandomSequences, HaveTheLossAndTheGradientsOfEachAlone) {
  const Stack s = random_stack(choose);
  const bool classes = choose.yes();
  const int64_t n = choose.from(1, 5), most = choose.from(1, 9);
  Dataset d = random_data(choose, s, n, most, classes);
  ThreadPool pool(1, true);
  const Ops& ops = cpu_ops(best_isa());
  Trainer together = trainer_of(s, d, n + choose.from(0, 2), ops, pool);
  const Result<StepResult> step = together.train_batch(d, 0.0);
  ASSERT_TRUE(step.ok()) << step.error().str();
  const std::vector<std::vector<double>> got = gradients_of(together);
  double loss = 0, all = 0, right = 0, named = 0;
  // sizes: of what is added up, which says how much floats round.
  std::vector<std::vector<double>> want(got.size()), sizes(got.size());
  for (int64_t i = 0; i < n; ++i) {
    const Dataset one = alone(d, s, i);
    Trainer single = trainer_of(s, one, 1, ops, pool);
    const Result<Evaluation> e = single.evaluate(one);
    const Result<StepResult> here = single.train_batch(one, 0.0);
    ASSERT_TRUE(e.ok() && here.ok());
    const double rows = s.of_steps ? static_cast<double>(one.sample[0]) : 1.0;
    const double weight =
        d.weights.empty() ? 1.0 : static_cast<double>(d.weights[static_cast<size_t>(i)]);
    loss += weight * rows * e->loss;
    all += weight * rows;
    named += rows;
    right += rows * e->accuracy.value_or(0);
    const std::vector<std::vector<double>> g = gradients_of(single);
    for (size_t p = 0; p < g.size(); ++p) {
      want[p].resize(g[p].size());
      sizes[p].resize(g[p].size());
      for (size_t v = 0; v < g[p].size(); ++v) {
        want[p][v] += weight * rows * g[p][v];
        sizes[p][v] += std::fabs(weight * rows * g[p][v]);
      }
    }
  }
  EXPECT_NEAR(step->loss, loss / all, 1e-6 * (1 + loss / all));
  const Result<Evaluation> e = together.evaluate(d);
  ASSERT_TRUE(e.ok()) << e.error().str();
  EXPECT_NEAR(e->loss, loss / all, 1e-6 * (1 + loss / all));
  if (classes) {
    EXPECT_NEAR(*e->accuracy, right / named, 1e-12);
  }
  for (size_t p = 0; p < got.size(); ++p) {
    double largest = 1e-3;
    for (const double v : sizes[p]) largest = std::max(largest, v / all);
    for (size_t v = 0; v < got[p].size(); ++v)
      ASSERT_NEAR(got[p][v], want[p][v] / all, 1e-6 * largest) << p << ' ' << v;
  }
}

TEST_P(RandomSequences, TrainToTheSameBitsWhateverStandsBehindTheirEnds) {
  const Stack s = random_stack(choose);
  const int64_t n = choose.from(2, 7), most = choose.from(2, 8);
  Dataset d = random_data(choose, s, n, most, choose.yes());
  Dataset zeros = d;
  zeros.clear_padding();
  std::vector<std::vector<float>> weights;
  for (const Isa isa : available_isas()) {
    for (const Dataset* data : {&d, &zeros}) {
      ThreadPool pool(weights.size() % 2 == 0 ? 1 : 3, true);
      Trainer trainer = trainer_of(s, *data, 3, cpu_ops(isa), pool);
      ASSERT_TRUE(trainer.epoch(*data, {}).ok());
      ASSERT_TRUE(trainer.epoch(*data, {}).ok());
      std::vector<float>& all = weights.emplace_back();
      for (const StateTensor& t : trainer.step().state())
        all.insert(all.end(), t.tensor.f32(), t.tensor.f32() + t.tensor.shape.count());
    }
  }
  for (const std::vector<float>& w : weights) EXPECT_EQ(w, weights[0]);
}

// The metrics over real positions alone, written out.
TEST(Sequences, MetricsDoNotCountPadding) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Choice choose(seed + 100);
    Stack s;
    s.of_steps = true;
    s.in = 1;
    s.out = 3;
    const int64_t n = choose.from(2, 6), most = choose.from(2, 7);
    const bool classes = choose.yes();
    const Dataset d = random_data(choose, s, n, most, classes);
    std::vector<float> outputs(static_cast<size_t>(n * most * 3));
    for (float& v : outputs) v = choose.number();
    const Tensor y = input_of(outputs, Shape{n, most, 3});
    LossSpec loss;
    loss.kind = classes ? Loss::cross_entropy : Loss::mse;
    const std::vector<std::string> names = {classes ? "accuracy" : "mae"};
    MetricScores scores = *MetricScores::create(names, d, loss, 3);
    OutputScores plain(d, loss, 3);
    scores.add(0, n, y);
    plain.add(0, n, y);
    double sum = 0, count = 0;
    int64_t called = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t t = 0; t < d.lengths[static_cast<size_t>(i)]; ++t) {
        const float* row = y.f32_row(i * most + t);
        if (classes) {
          const auto label = d.labels[static_cast<size_t>(i * most + t)];
          sum += std::max_element(row, row + 3) - row == label ? 1 : 0;
          count += 1;
          continue;
        }
        for (int64_t c = 0; c < 3; ++c) {
          const float target = d.targets[static_cast<size_t>((i * most + t) * 3 + c)];
          const double weight =
              d.weights.empty() ? 1 : static_cast<double>(d.weights[static_cast<size_t>(i)]);
          sum += weight * std::fabs(static_cast<double>(row[c]) - static_cast<double>(target));
          count += weight;
        }
      }
    }
    EXPECT_NEAR(scores.values()[0].value, sum / count, 1e-9);
    for (const auto& of_class : plain.confusion()) {
      for (const int64_t c : of_class) called += c;
    }
    if (classes) {
      EXPECT_EQ(called, static_cast<int64_t>(count));
    } else {
      EXPECT_NEAR(*plain.mean_absolute_error(), sum / count, 1e-9);
    }
  }
}

TEST(Sequences, CtcReadsNoRowBehindTheEnd) {
  ThreadPool pool(1, true);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Choice choose(seed + 200);
    const int64_t n = choose.from(1, 4), most = choose.from(3, 8), classes = 4;
    Dataset d;
    d.samples = n;
    d.sample = Shape{most, classes};
    d.classes = classes;
    d.ignored = -1;
    std::vector<float> logits;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < n; ++i) {
      d.lengths.push_back(static_cast<int32_t>(choose.from(3, most)));
      for (int64_t v = 0; v < most * classes; ++v) logits.push_back(choose.number());
      d.labels.insert(d.labels.end(), {static_cast<int32_t>(choose.from(1, 3)),
                                       static_cast<int32_t>(choose.from(0, 1) == 0 ? -1 : 2)});
      order.push_back(i);
    }
    d.inputs = logits;
    const Tensor y = input_of(logits, Shape{n, most, classes});
    std::vector<float> slopes(logits.size(), 7.0f);
    const Tensor dy = input_of(slopes, Shape{n * most, classes});
    LossSpec loss;
    loss.kind = Loss::ctc;
    ASSERT_TRUE(check_ctc(d, most, classes, 0).ok());
    const std::vector<double> ones(static_cast<size_t>(n), 1.0);
    const CtcBatch batch = ctc_batch(d, order, loss, y, ones, dy, pool);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t length = d.lengths[static_cast<size_t>(i)];
      std::vector<float> own(static_cast<size_t>(length * classes));
      const double want = ctc_loss(logits.data() + i * most * classes, length, classes,
                                   ctc_labels(d, i), 0, 1.0, own.data());
      EXPECT_EQ(batch.losses[static_cast<size_t>(i)], want);
      for (int64_t v = 0; v < most * classes; ++v) {
        const float slope = v < length * classes ? own[static_cast<size_t>(v)] : 0.0f;
        EXPECT_EQ(slopes[static_cast<size_t>(i * most * classes + v)], slope);
      }
    }
  }
}

std::string refused(const Dataset& d) {
  const Status status = d.check();
  return status.ok() ? "" : status.error().str();
}

TEST(Sequences, WhatCannotBeIsRefusedInOneLine) {
  Stack s;
  s.in = 2;
  s.out = 2;
  s.layers = {named("LSTM", {{"in", 2}, {"hidden", 2}, {"return_sequence", false}})};
  Choice choose(1);
  const Dataset good = random_data(choose, s, 3, 4, true);
  EXPECT_EQ(refused(good), "");
  Dataset d = good;
  d.lengths[1] = 5;
  EXPECT_EQ(refused(d), "sample 1: its length 5 must be from 1 to 4");
  d.lengths[1] = 0;
  EXPECT_EQ(refused(d), "sample 1: its length 0 must be from 1 to 4");
  d.lengths.pop_back();
  EXPECT_EQ(refused(d), "the dataset has 2 lengths, must have 3 x 1");

  ThreadPool pool(1, true);
  Dataset full = good;
  full.lengths.clear();
  Trainer trainer = trainer_of(s, full, 2, reference_ops(), pool);
  const Result<Evaluation> e = trainer.evaluate(good);
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().message, "this trainer began with whole samples, the dataset has lengths");

  Stack strided = s;
  strided.layers = {named("Slice", {{"starts", std::vector<int64_t>{0}},
                                    {"axes", std::vector<int64_t>{1}},
                                    {"steps", std::vector<int64_t>{2}}}),
                    s.layers[0]};
  const Result<Trainer> bad =
      Trainer::create(row_of(strided.layers), good, {}, reference_ops(), pool);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message, HasSubstr("LSTM: it sees 2 steps, but the samples have lengths "
                                             "of up to 4"));
}

}  // namespace
}  // namespace loom::core::test::sequences
