// Training of networks with several inputs. Each random one is compared with a network with one
// input that gets the same numbers joined: weights and losses must have the same bits. Tables of
// ids are compared with differences of losses.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "loom/graph.hpp"
#include "loom/loom.hpp"

namespace loom::extra_inputs {
namespace {

using ::testing::HasSubstr;

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  int64_t from(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<unsigned>(most - least + 1));
  }
  Tensor numbers(const Shape& shape) {
    Tensor t = Tensor::zeros(shape).or_exit();
    for (float& v : t.mutable_values<float>().or_exit())
      v = static_cast<float>(from(-1000, 1000)) / 1000.0f;
    return t;
  }
  Tensor ids(const Shape& shape, int64_t below) {
    Tensor t = Tensor::zeros(shape, DType::int64).or_exit();
    for (int64_t& v : t.mutable_values<int64_t>().or_exit()) v = from(0, below - 1);
    return t;
  }

 private:
  std::mt19937 random_;
};

std::vector<float> floats(const Tensor& t) {
  const auto v = t.values<float>().or_exit();
  return {v.begin(), v.end()};
}

// Rows of a and then of b.
Tensor joined(const Tensor& a, const Tensor& b) {
  const int64_t n = a.shape()[0], wide = a.shape()[1], more = b.shape()[1];
  Tensor t = Tensor::zeros({n, wide + more}).or_exit();
  const auto to = t.mutable_values<float>().or_exit();
  const std::vector<float> first = floats(a), second = floats(b);
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(first.begin() + i * wide, wide, to.begin() + i * (wide + more));
    std::copy_n(second.begin() + i * more, more, to.begin() + i * (wide + more) + wide);
  }
  return t;
}

// Two dense layers over a and b, which come as two inputs or in one piece.
Network network_of(int64_t a, int64_t b, int64_t hidden, bool apart, unsigned seed) {
  Graph g;
  GraphValue x = g.input();
  if (apart) {
    const GraphValue more = g.add(Input{.input = "b", .shape = {b}}, {g.input()}, "b");
    x = g.add(Concat{.axis = 1}, {x, more}, "both");
  }
  const Dense first{.in = a + b, .out = hidden, .activation = Activation::tanh};
  const GraphValue h = g.add(first, {x}, "first");
  g.output(g.add(Dense{.in = hidden, .out = 2}, {h}, "second"));
  return Network::sequential({g}, {.input = {apart ? a : a + b}, .seed = seed}).or_exit();
}

TEST(ExtraInputs, TrainToTheBitsOfTheSameNumbersInOnePiece) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const int64_t a = draw.from(1, 6), b = draw.from(1, 5), hidden = draw.from(1, 9);
    const int64_t n = draw.from(3, 20);
    Network two = network_of(a, b, hidden, true, seed), one = network_of(a, b, hidden, false, seed);
    const auto from = two.parameters(), to = one.parameters();
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i)
      ASSERT_TRUE(one.set_parameter(to[i].name, two.parameter(from[i].name).or_exit()).ok());
    const Tensor xa = draw.numbers({n, a}), xb = draw.numbers({n, b}), y = draw.numbers({n, 2});
    const Dataset apart = Dataset::from_arrays(xa, y).or_exit().with_input("b", xb).or_exit();
    const Dataset whole = Dataset::from_arrays(joined(xa, xb), y).or_exit();
    TrainerOptions options;
    options.batch = draw.from(1, 8);
    options.seed = seed;
    Trainer left = Trainer::create(two, options).or_exit();
    Trainer right = Trainer::create(one, options).or_exit();
    const Result<History> got = left.fit(apart, {.epochs = 3}),
                          want = right.fit(whole, {.epochs = 3});
    ASSERT_TRUE(got.ok()) << got.error().str();
    ASSERT_TRUE(want.ok()) << want.error().str();
    for (size_t e = 0; e < want->epochs.size(); ++e)
      EXPECT_EQ(got->epochs[e].train_loss, want->epochs[e].train_loss);
    EXPECT_EQ(left.evaluate(apart).or_exit().loss, right.evaluate(whole).or_exit().loss);
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(floats(two.parameter(from[i].name).or_exit()),
                floats(one.parameter(to[i].name).or_exit()));
    }
    // Custom steps, with the trainer's loss and with a custom one.
    const auto squares = [&](const Tensor& outputs, Tensor& gradients) -> Result<double> {
      const auto slopes = gradients.mutable_values<float>().or_exit();
      for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = outputs.values<float>().or_exit()[i];
      return 1.0;
    };
    const Dataset part = apart.split(0.5).or_exit().first, same = whole.split(0.5).or_exit().first;
    if (part.samples() <= options.batch) {
      EXPECT_EQ(left.train_step(part).or_exit().loss, right.train_step(same).or_exit().loss);
      EXPECT_TRUE(left.train_step(part, squares).ok());
      EXPECT_TRUE(right.train_step(same, squares).ok());
    }
    EXPECT_EQ(left.weights_hash().or_exit(), right.weights_hash().or_exit());
    const Dataset::Parts parts = apart.split(0.7).or_exit();
    EXPECT_EQ(parts.second.further_inputs(), std::vector<std::string>{"b"});
    EXPECT_TRUE(left.evaluate(parts.second).ok());
  }
}

// tanh(a(input)) * table(word)
Network with_words(int64_t in, int64_t out, int64_t words, unsigned seed) {
  Graph g;
  const GraphValue w =
      g.add(Input{.input = "word", .shape = {1}, .ids = words}, {g.input()}, "word");
  const GraphValue a =
      g.add(Dense{.in = in, .out = out, .activation = Activation::tanh}, {g.input()}, "a");
  const GraphValue table = g.add(Embedding{.vocab = words, .width = out}, {w}, "table");
  const GraphValue flat = g.add(Reshape{.shape = {out}}, {table}, "flat");
  g.output(g.add(Binary{.function = BinaryFunction::mul}, {a, flat}, "product"));
  return Network::sequential({g}, {.input = {in}, .seed = seed}).or_exit();
}

TEST(ExtraInputs, TablesOfIdsGetTheGradientsOfDifferences) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const int64_t in = draw.from(1, 4), out = draw.from(1, 4), words = draw.from(2, 5), n = 6;
    Network net = with_words(in, out, words, seed);
    const Dataset data = Dataset::from_arrays(draw.numbers({n, in}), draw.numbers({n, out}))
                             .or_exit()
                             .with_input("word", draw.ids({n, 1}, words))
                             .or_exit();
    TrainerOptions options;
    options.batch = n;
    options.optimizer = {.kind = OptimizerKind::sgd};
    options.rate = 0.5;
    options.schedule = {.kind = ScheduleKind::constant};
    const std::vector<ParameterInfo> parameters = net.parameters();
    std::vector<Tensor> before;
    for (const ParameterInfo& p : parameters) before.push_back(net.parameter(p.name).or_exit());
    const auto loss_of = [&](const std::string& name, size_t at, float by) {
      for (size_t i = 0; i < before.size(); ++i) {
        const std::string& p = parameters[i].name;
        std::vector<float> values = floats(before[i]);
        if (p == name) values[at] += by;
        EXPECT_TRUE(net.set_parameter(p, Tensor::copy(values, before[i].shape()).or_exit()).ok());
      }
      return Trainer::create(net, options).or_exit().evaluate(data).or_exit().loss;
    };
    std::vector<std::vector<double>> slopes;
    for (size_t i = 0; i < before.size(); ++i) {
      for (size_t at = 0; at < floats(before[i]).size(); ++at) {
        slopes.resize(i + 1);
        slopes[i].push_back(
            (loss_of(parameters[i].name, at, 0.01f) - loss_of(parameters[i].name, at, -0.01f)) /
            0.02);
      }
    }
    loss_of("", 0, 0.0f);
    ASSERT_TRUE(Trainer::create(net, options).or_exit().fit(data, {.epochs = 1}).ok());
    for (size_t i = 0; i < before.size(); ++i) {
      const std::vector<float> old = floats(before[i]),
                               now = floats(net.parameter(parameters[i].name).or_exit());
      for (size_t at = 0; at < old.size(); ++at)
        EXPECT_NEAR((old[at] - now[at]) / 0.5, slopes[i][at], 2e-3) << parameters[i].name;
    }
  }
}

TEST(ExtraInputs, ThatDoNotFitAreRefusedInOneLine) {
  const Network two = network_of(3, 2, 4, true, 1), one = network_of(3, 2, 4, false, 1);
  Draws draw(1);
  const Dataset bare = Dataset::from_arrays(draw.numbers({5, 3}), draw.numbers({5, 2})).or_exit();
  const auto message = [&](const Network& net, const Dataset& data) {
    const Result<History> done = Trainer::create(net, {}).or_exit().fit(data);
    return done.ok() ? "" : done.error().message;
  };
  EXPECT_THAT(message(two, bare), HasSubstr("say nothing of the input 'b'"));
  const auto with = [&](const char* name, const Tensor& t) {
    return bare.with_input(name, t).or_exit();
  };
  EXPECT_THAT(message(two, with("b", draw.numbers({5, 4}))), HasSubstr("is [4], must be [2]"));
  EXPECT_THAT(message(two, with("b", draw.ids({5, 2}, 3))), HasSubstr("are numbers"));
  EXPECT_THAT(
      message(two, with("b", draw.numbers({5, 2})).with_input("c", draw.numbers({5, 1})).or_exit()),
      HasSubstr("no further input 'c'"));
  const Dataset whole = Dataset::from_arrays(draw.numbers({5, 5}), draw.numbers({5, 2})).or_exit();
  EXPECT_THAT(message(one, whole.with_input("b", draw.numbers({5, 2})).or_exit()),
              HasSubstr("no further input 'b'"));
  EXPECT_THAT(bare.with_input("b", draw.numbers({4, 2})).error().message,
              HasSubstr("must be [5, sample]"));
  Tensor broken = draw.numbers({5, 2});
  broken.mutable_values<float>().or_exit()[3] = NAN;
  EXPECT_THAT(bare.with_input("b", broken).error().message,
              HasSubstr("sample 1: value 1 of the input 'b' is not finite"));
  const Network words = with_words(3, 2, 4, 1);
  EXPECT_THAT(message(words, with("word", draw.ids({5, 1}, 1).to(DType::float32).or_exit())),
              HasSubstr("are ids"));
  Tensor far = Tensor::zeros({5, 1}, DType::int64).or_exit();
  far.mutable_values<int64_t>().or_exit()[2] = 9;
  EXPECT_THAT(message(words, with("word", far)), HasSubstr("id 9 at 2 must be from 0 to 3"));
}

}  // namespace
}  // namespace loom::extra_inputs
