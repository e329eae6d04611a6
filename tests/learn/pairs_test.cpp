// Losses of embeddings against their formulas, written out pair by pair and triplet by triplet in
// float64, and differences of those; against numbers of PyTorch; then training with them.
#include "learn/data/pairs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "grid/grid_testing.hpp"
#include "learn/scribe.hpp"
#include "learn/trainer.hpp"
#include "ops/gradients/gradient.hpp"

namespace loom::core::test {
namespace {

constexpr Loss kKinds[] = {Loss::triplet, Loss::contrastive, Loss::infonce};

// A batch with `rows_per_sample` embeddings of each sample. Some samples only fill it up.
struct Batch {
  LossSpec loss;
  Dataset data;
  int64_t rows_per_sample = 1, width = 1, rows = 0, real = 0;
  std::vector<double> y, weights;
};

Batch draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto random_integer = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Batch b;
  b.loss.kind = kKinds[seed % 3];
  b.loss.margin = 0.25f * static_cast<float>(random_integer(1, 12));
  b.loss.temperature = 0.125f * static_cast<float>(random_integer(1, 8));
  b.loss.all_triplets = random_integer(0, 1) == 1;
  b.rows_per_sample = random_integer(1, 3);
  b.loss.cross_view_only = b.rows_per_sample > 1 && random_integer(0, 1) == 1;
  b.width = random_integer(1, 6);
  b.data.samples = random_integer(1, 7);
  b.real = b.data.samples * b.rows_per_sample;
  b.rows = b.real + b.rows_per_sample * random_integer(0, 2);
  b.data.classes = random_integer(1, 4);
  const int64_t each = random_integer(0, 1) == 0 ? 1 : b.rows_per_sample;
  for (int64_t i = 0; i < b.data.samples * each; ++i)
    b.data.labels.push_back(static_cast<int32_t>(random_integer(0, b.data.classes - 1)));
  if (random_integer(0, 2) == 0) b.data.ignored = 0;
  std::uniform_real_distribution<double> number(-2, 2);
  for (int64_t i = 0; i < b.rows * b.width; ++i) b.y.push_back(number(random));
  for (int64_t i = 0; i < b.rows; ++i)
    b.weights.push_back(0.25 * static_cast<double>(random_integer(0, 8)));
  return b;
}

// ---- the formulas, written out -----------------------------------------------------------------

struct WrittenOut {
  const Batch& b;
  const std::vector<double>& y;

  int32_t label(int64_t row) const {
    const bool one = b.data.labels.size() == static_cast<size_t>(b.data.samples);
    return b.data.labels[static_cast<size_t>(one ? row / b.rows_per_sample : row)];
  }
  bool meet(int64_t i, int64_t j) const {
    if (i == j || i >= b.real || j >= b.real) return false;
    if (b.data.ignored && (label(i) == *b.data.ignored || label(j) == *b.data.ignored))
      return false;
    return !b.loss.cross_view_only || i % b.rows_per_sample != j % b.rows_per_sample;
  }
  std::vector<int64_t> of(int64_t i, bool same) const {
    std::vector<int64_t> found;
    for (int64_t j = 0; j < b.rows; ++j)
      if (meet(i, j) && (label(i) == label(j)) == same) found.push_back(j);
    return found;
  }
  double dot(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t k = 0; k < b.width; ++k)
      sum += y[static_cast<size_t>(i * b.width + k)] * y[static_cast<size_t>(j * b.width + k)];
    return sum;
  }
  double distance(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t k = 0; k < b.width; ++k) {
      const double d =
          y[static_cast<size_t>(i * b.width + k)] - y[static_cast<size_t>(j * b.width + k)];
      sum += d * d;
    }
    return std::sqrt(sum);
  }
  double similarity(int64_t i, int64_t j) const {
    return dot(i, j) / std::sqrt(dot(i, i) * dot(j, j)) / static_cast<double>(b.loss.temperature);
  }

  bool anchor(int64_t i) const {
    const bool same = !of(i, true).empty(), other = !of(i, false).empty();
    if (b.loss.kind == Loss::triplet) return same && other;
    return b.loss.kind == Loss::contrastive ? same || other : same;
  }
  double triplet(int64_t i) const {
    const double margin = static_cast<double>(b.loss.margin);
    double sum = 0, hardest = 0;
    for (const int64_t p : of(i, true)) {
      for (const int64_t n : of(i, false)) {
        const double loss = std::max(0.0, margin + distance(i, p) - distance(i, n));
        sum += loss;
        hardest = std::max(hardest, loss);
      }
    }
    const size_t count = of(i, true).size() * of(i, false).size();
    return b.loss.all_triplets ? sum / static_cast<double>(count) : hardest;
  }
  double contrastive(int64_t i) const {
    double sum = 0;
    for (const int64_t p : of(i, true)) sum += distance(i, p) * distance(i, p) / 2;
    for (const int64_t n : of(i, false)) {
      const double left = std::max(0.0, static_cast<double>(b.loss.margin) - distance(i, n));
      sum += left * left / 2;
    }
    return sum / static_cast<double>(of(i, true).size() + of(i, false).size());
  }
  double infonce(int64_t i) const {
    double all = 0, sum = 0;
    for (const bool same : {true, false})
      for (const int64_t j : of(i, same)) all += std::exp(similarity(i, j));
    for (const int64_t p : of(i, true)) sum += std::log(all) - similarity(i, p);
    return sum / static_cast<double>(of(i, true).size());
  }
  double row(int64_t i) const {
    if (!anchor(i)) return 0;
    const double loss = b.loss.kind == Loss::triplet       ? triplet(i)
                        : b.loss.kind == Loss::contrastive ? contrastive(i)
                                                           : infonce(i);
    return b.weights[static_cast<size_t>(i)] * loss;
  }
  double sum() const {
    double all = 0;
    for (int64_t i = 0; i < b.rows; ++i) all += row(i);
    return all;
  }
};

// ---- the recording, in float64 -----------------------------------------------------------------

struct Recorded {
  std::vector<double> rows, gradient;
};

template <class T>
Result<Recorded> record(const Batch& b, const Ops& ops, DType dtype, int threads = 1) {
  ThreadPool pool(threads, true);
  Trace trace(dtype, true);
  TraceBuilder s(trace);
  Tensor y = s.fresh(Shape{b.rows, b.width}), relation = s.fresh(Shape{b.rows, b.rows});
  Tensor weight = s.fresh(Shape{b.rows}), rows = s.fresh(Shape{b.rows});
  LOOM_ASSIGN(const LossSeed seed,
              loss_def(b.loss.kind).record(s, b.loss, {y, relation, weight, rows}));
  Differentiator d(trace);
  d.want(y);
  d.seed(seed.value, seed.gradient);
  LOOM_TRY(d.run());
  Tensor dy = d.gradient(y);
  Tensor* const pins[] = {&y, &relation, &weight, &rows, &dy};
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops, pool));

  std::vector<int64_t> samples(static_cast<size_t>(b.data.samples));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int64_t>(i);
  std::vector<float> related(static_cast<size_t>(b.rows * b.rows));
  const std::vector<bool> anchors =
      PairLabels(b.data, b.rows_per_sample)
          .relate(samples, b.loss, f32_matrix(related.data(), b.rows, b.rows));
  for (size_t i = 0; i < related.size(); ++i) relation.values<T>()[i] = static_cast<T>(related[i]);
  for (size_t i = 0; i < b.y.size(); ++i) y.values<T>()[i] = static_cast<T>(b.y[i]);
  for (size_t i = 0; i < b.weights.size(); ++i)
    weight.values<T>()[i] = i < anchors.size() && anchors[i] ? static_cast<T>(b.weights[i]) : T(0);
  LOOM_TRY(program.run());
  Recorded out;
  for (int64_t i = 0; i < b.rows; ++i) out.rows.push_back(static_cast<double>(rows.values<T>()[i]));
  for (int64_t i = 0; i < b.rows * b.width; ++i)
    out.gradient.push_back(static_cast<double>(dy.values<T>()[i]));
  return out;
}

TEST(Pairs, AreTheFormulasWrittenOutAndTheirDifferences) {
  int64_t counted[3] = {}, moved[3] = {};
  for (uint64_t seed = 0; seed < 360 && !HasFailure(); ++seed) {
    const Batch b = draw(seed);
    const auto got = record<double>(b, reference_ops_f64(), DType::f64);
    ASSERT_TRUE(got.ok()) << got.error().str();
    const WrittenOut want{b, b.y};
    for (int64_t i = 0; i < b.rows; ++i) {
      const double row = want.row(i);
      EXPECT_NEAR(got->rows[static_cast<size_t>(i)], row, 1e-9 * (1 + row)) << seed << " row " << i;
      counted[seed % 3] += row > 0 ? 1 : 0;
    }
    for (size_t i = 0; i < b.y.size(); ++i) {
      constexpr double kStep = 1e-6;
      std::vector<double> up = b.y, down = b.y;
      up[i] += kStep;
      down[i] -= kStep;
      const double slope = (WrittenOut{b, up}.sum() - WrittenOut{b, down}.sum()) / (2 * kStep);
      EXPECT_NEAR(got->gradient[i], slope, 2e-7 * (1 + std::fabs(slope))) << seed << " value " << i;
      moved[seed % 3] += std::fabs(slope) > 1e-3 ? 1 : 0;
    }
  }
  for (int kind = 0; kind < 3; ++kind) {
    EXPECT_GT(counted[kind], 100) << loss_name(kKinds[kind]);
    EXPECT_GT(moved[kind], 300) << loss_name(kKinds[kind]);
  }
}

struct Golden {
  Loss kind;
  const char* name;
  std::vector<int32_t> labels;
  std::string how;
  double loss;
  std::vector<double> gradient;
};

TEST(Pairs, AreThoseOfPyTorch) {
  const Golden goldens[] = {
#include "learn/pair_goldens.inc"
  };
  for (const Golden& g : goldens) {
    Batch b;
    b.loss.kind = g.kind;
    b.loss.margin = 0.75f;
    b.loss.temperature = 0.25f;
    b.loss.all_triplets = g.how == "all";
    b.loss.cross_view_only = g.how == "across";
    b.rows_per_sample = b.loss.cross_view_only ? 2 : 1;
    b.data.samples = 8 / b.rows_per_sample;
    b.rows = b.real = 8;
    b.width = 3;
    b.data.classes = 4;
    b.data.labels = g.labels;
    for (int i = 0; i < 24; ++i) b.y.push_back(std::sin(1.0 + 7.0 * i));
    b.weights.assign(8, 0.125);
    const auto got = record<double>(b, reference_ops_f64(), DType::f64);
    ASSERT_TRUE(got.ok()) << got.error().str();
    double loss = 0;
    for (const double row : got->rows) loss += row;
    EXPECT_NEAR(loss, g.loss, 1e-10) << g.name;
    ASSERT_EQ(g.gradient.size(), 24u);
    for (size_t i = 0; i < 24; ++i)
      EXPECT_NEAR(got->gradient[i], g.gradient[i], 1e-10) << g.name << " " << i;
  }
}

TEST(Pairs, HaveTheSameBitsOnEveryInstructionSetAndForAnyThreads) {
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    const Batch b = draw(seed);
    const auto want = record<float>(b, reference_ops(), DType::f32);
    ASSERT_TRUE(want.ok()) << want.error().str();
    for (const Isa isa : available_isas()) {
      const auto got = record<float>(b, cpu_ops(isa), DType::f32, 1 + static_cast<int>(seed % 3));
      ASSERT_TRUE(got.ok()) << got.error().str();
      EXPECT_EQ(got->rows, want->rows) << seed;
      EXPECT_EQ(got->gradient, want->gradient) << seed;
    }
  }
}

TEST(Pairs, StayFiniteForEqualRowsAndForRowsOfZeros) {
  for (const Loss kind : kKinds) {
    for (const double value : {0.0, 3.0}) {
      Batch b = draw(4);
      b.loss = {};
      b.loss.kind = kind;
      b.data.samples = b.rows = b.real = 4;
      b.rows_per_sample = 1;
      b.data.ignored.reset();
      b.data.classes = 2;
      b.data.labels = {0, 1, 0, 1};
      b.y.assign(static_cast<size_t>(4 * b.width), value);
      b.weights.assign(4, 1.0);
      const auto got = record<float>(b, cpu_ops(best_isa()), DType::f32);
      ASSERT_TRUE(got.ok()) << got.error().str();
      for (const double v : got->rows) EXPECT_TRUE(std::isfinite(v)) << loss_name(kind);
      for (const double v : got->gradient) EXPECT_TRUE(std::isfinite(v)) << loss_name(kind);
    }
  }
}

// ---- training -----------------------------------------------------------------------------------

// Points around the corners of a square, two opposite corners being one class, as the network sees
// them: no line parts the classes. Sorted by class, as files often are.
Dataset corners(int64_t samples, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> noise(0, 0.25f);
  Dataset data;
  data.samples = samples;
  data.sample = Shape{2};
  data.classes = 2;
  for (int64_t i = 0; i < samples; ++i) {
    const int32_t label = i < samples / 2 ? 0 : 1;
    const float x = i % 2 == 0 ? 1.0f : -1.0f, y = label == 0 ? x : -x;
    data.inputs.push_back(x + noise(random));
    data.inputs.push_back(y + noise(random));
    data.labels.push_back(label);
  }
  return data;
}

GridSpec embedder(int64_t width = 3) {
  return row_of({layer(LayerKind::dense, {{"in", 2}, {"out", 16}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 16}, {"out", width}})});
}

TrainerSpec options(Loss kind, int64_t batch = 16) {
  TrainerSpec o;
  o.step.loss.kind = kind;
  o.rate = 0.02;
  o.batch = batch;
  return o;
}

struct Outcome {
  std::vector<double> losses;
  Evaluation first, last;
  std::vector<float> weights;
};

Outcome train(const TrainerSpec& o, const Ops& ops, int threads, int epochs, const Dataset& data,
              const Dataset& other) {
  ThreadPool pool(threads, true);
  Result<Trainer> trainer = Trainer::create(embedder(), data, o, ops, pool);
  EXPECT_TRUE(trainer.ok()) << trainer.error().str();
  Outcome run;
  if (!trainer.ok()) return run;
  for (int i = 0; i < epochs; ++i) {
    const Result<EpochReport> report = trainer->epoch(data, other);
    EXPECT_TRUE(report.ok()) << report.error().str();
    if (!report.ok()) return run;
    run.losses.push_back(report->train_loss);
    run.last = *report->validation;
    if (i == 0) run.first = run.last;
  }
  for (const StateTensor& s : trainer->step().state())
    run.weights.insert(run.weights.end(), s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  return run;
}

TEST(PairsTraining, LearnsWhatBelongsTogetherWithTheSameBitsForAnyThreads) {
  const Dataset data = corners(70, 3), other = corners(50, 4);
  for (const Loss kind : kKinds) {
    TrainerSpec o = options(kind);
    const Outcome one = train(o, reference_ops(), 1, 60, data, other);
    ASSERT_FALSE(one.losses.empty());
    EXPECT_LT(one.losses.back(), 0.7 * one.losses.front()) << loss_name(kind);
    EXPECT_GT(one.last.accuracy.value_or(0), 0.95) << loss_name(kind);
    EXPECT_GT(one.first.loss, 0) << "sorted labels must not leave batches of one class";
    const Outcome more = train(o, cpu_ops(best_isa()), 3, 60, data, other);
    EXPECT_EQ(one.weights, more.weights) << loss_name(kind);
    EXPECT_EQ(one.last.loss, more.last.loss) << loss_name(kind);
  }
}

TEST(PairsTraining, SamplesThatAreIgnoredOrWeighNothingChangeNothing) {
  Dataset data = corners(24, 5);
  Dataset more = data;
  more.ignored = 7;
  more.classes = 8;
  for (int i = 0; i < 8; ++i) {  // a batch of 32 has them all
    more.inputs.insert(more.inputs.end(), {0.5f, -0.25f});
    more.labels.push_back(7);
  }
  more.samples += 8;
  for (const Loss kind : kKinds) {
    TrainerSpec o = options(kind, 32);
    o.shuffle = false;
    const Outcome without = train(o, reference_ops(), 1, 3, data, data);
    const Outcome with = train(o, reference_ops(), 1, 3, more, more);
    ASSERT_EQ(with.losses.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(with.losses[i], without.losses[i], 1e-6);
    EXPECT_NEAR(with.last.loss, without.last.loss, 1e-6) << loss_name(kind);
    EXPECT_EQ(with.last.accuracy, without.last.accuracy);
  }
}

TEST(PairsTraining, AccuracyIsTheShareWhoseNearestOtherOneHasTheirLabel) {
  const Dataset data = corners(40, 6);
  for (const Loss kind : kKinds) {
    ThreadPool pool(2, true);
    Result<Trainer> trainer =
        Trainer::create(embedder(), data, options(kind), cpu_ops(best_isa()), pool);
    ASSERT_TRUE(trainer.ok()) << trainer.error().str();
    std::vector<std::vector<double>> y;
    const Result<Evaluation> got =
        trainer->evaluate(data, [&](int64_t, int64_t count, const Tensor& rows) {
          for (int64_t i = 0; i < count; ++i)
            y.emplace_back(rows.f32_row(i), rows.f32_row(i) + rows.cols());
        });
    ASSERT_TRUE(got.ok()) << got.error().str();
    ASSERT_EQ(y.size(), 40u);
    int right = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      double best = 0;
      size_t nearest = y.size();
      for (size_t j = 0; j < y.size(); ++j) {
        double dot = 0, a = 0, b = 0, square = 0;
        for (size_t k = 0; k < y[i].size(); ++k) {
          dot += y[i][k] * y[j][k];
          a += y[i][k] * y[i][k];
          b += y[j][k] * y[j][k];
          square += (y[i][k] - y[j][k]) * (y[i][k] - y[j][k]);
        }
        const double away = kind == Loss::infonce ? -dot / std::sqrt(a * b) : square;
        if (i == j || (nearest < y.size() && away >= best)) continue;
        best = away;
        nearest = j;
      }
      right += data.labels[i] == data.labels[nearest] ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(got->accuracy.value_or(-1), right / 40.0) << loss_name(kind);
  }
}

TEST(PairsTraining, RefusesWhatDoesNotGoWithIt) {
  struct Case {
    const char* says;
    void (*change)(TrainerSpec&, Dataset&);
  };
  const Case cases[] = {
      {"needs class labels",
       [](TrainerSpec&, Dataset& d) {
         d.targets.assign(d.labels.size() * 3, 0.0f);
         d.outputs = 3;
         d.labels.clear();
       }},
      {"takes one for all of them, or one for each",
       [](TrainerSpec&, Dataset& d) {
         d.labels.insert(d.labels.end(), d.labels.begin(), d.labels.end());
       }},
      {"several heads are for softmax_ce",
       [](TrainerSpec& o, Dataset&) {
         o.step.loss.heads = {1, 2};
       }},
      {"kfac has no curvature of triplet",
       [](TrainerSpec& o, Dataset&) { o.step.optimizer.kind = *parse_optimizer("kfac"); }},
      {"the rule dfa does not go with triplet",
       [](TrainerSpec& o, Dataset&) { o.step.rule.kind = Rule::dfa; }},
      {"margin of triplet is -1", [](TrainerSpec& o, Dataset&) { o.step.loss.margin = -1; }},
      {"metric macro_f1 is not for triplet",
       [](TrainerSpec& o, Dataset&) { o.metrics = {"macro_f1"}; }},
      {"one embedding per sample",
       [](TrainerSpec& o, Dataset&) { o.step.loss.cross_view_only = true; }},
      {"no label occurs there twice",
       [](TrainerSpec&, Dataset& d) {
         d.classes = d.samples;
         for (size_t i = 0; i < d.labels.size(); ++i) d.labels[i] = static_cast<int32_t>(i);
       }},
  };
  for (const Case& c : cases) {
    TrainerSpec o = options(Loss::triplet);
    Dataset data = corners(20, 1);
    c.change(o, data);
    ThreadPool pool(1, true);
    Result<Trainer> trainer = Trainer::create(embedder(), data, o, reference_ops(), pool);
    const std::string text =
        !trainer.ok() ? trainer.error().message : trainer->epoch(data, {}).error().message;
    EXPECT_NE(text.find(c.says), std::string::npos) << c.says << ": " << text;
  }
}

}  // namespace
}  // namespace loom::core::test
