// NEAT in the public interface: loom/evolve.hpp on tasks, samples and files.
#include "loom/evolve.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>

#include "io/bytes/hash.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "io/json/json.hpp"
#include "loom/network.hpp"

namespace loom::test {
namespace {

// 4 - the sum of distances to the table of XOR, squared, as in the paper. It exceeds 16 once all
// four answers are on the right side of 0.5, which the paper calls solved.
Result<double> xor_fitness(Genome& genome) {
  double distance = 0;
  bool right = true;
  for (int i = 0; i < 4; ++i) {
    const float x[] = {static_cast<float>(i & 1), static_cast<float>(i >> 1)};
    const Result<std::span<const float>> y = genome.step(x);
    if (!y.ok()) return y.error();
    const int desired = (i & 1) ^ (i >> 1);
    distance += std::fabs(desired - static_cast<double>((*y)[0]));
    right = right && ((*y)[0] > 0.5f) == (desired == 1);
  }
  return (4 - distance) * (4 - distance) + (right ? 16 : 0);
}

bool solves_xor(Genome genome) {
  for (int i = 0; i < 4; ++i) {
    const float x[] = {static_cast<float>(i & 1), static_cast<float>(i >> 1)};
    if (((*genome.step(x))[0] > 0.5f) != (((i & 1) ^ (i >> 1)) == 1)) return false;
  }
  return true;
}

TEST(Neat, SolvesXorFromNetworksWithoutHiddenNodes) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Population p = *Population::create({.inputs = 2, .outputs = 1, .seed = seed});
    const Result<Evolution> e = evolve(p, xor_fitness, {.generations = 150, .goal = 16.0});
    ASSERT_TRUE(e.ok()) << e.error().str();
    EXPECT_TRUE(e->reached) << seed << ": " << e->best;
    EXPECT_TRUE(solves_xor(*p.best())) << seed;
    EXPECT_GE(p.best()->hidden(), 1);
  }
}

TEST(Neat, GivesEqualBitsWithAnyNumberOfThreads) {
  std::string first;
  for (const int threads : {1, 2, 3, 7}) {
    Population p = *Population::create({.inputs = 2, .outputs = 1, .seed = 9});
    ASSERT_TRUE(evolve(p, xor_fitness, {.generations = 15, .threads = threads}).ok());
    const core::test::TemporaryFolder folder;
    const std::string path = folder.path("neat.json");
    ASSERT_TRUE(p.save(path).ok());
    const std::string text = *core::read_file(path);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads;
  }
}

TEST(Neat, WritesNetworksWithTheBitsOfTheirGenomes) {
  std::mt19937 draw(1);
  int64_t hidden = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    NeatOptions options{.inputs = 1 + static_cast<int64_t>(seed % 4),
                        .outputs = 1 + static_cast<int64_t>(seed % 3),
                        .population = 20,
                        .seed = seed};
    options.connected = seed % 2 == 0;
    options.hidden = {Activation::sigmoid, Activation::tanh, Activation::relu};
    options.add_node = 0.3;
    options.add_connection = 0.4;
    Population p = *Population::create(options);
    for (int g = 0; g < 15; ++g) {
      std::vector<double> fitness;
      for (int i = 0; i < 20; ++i) fitness.push_back(draw() % 100);
      ASSERT_TRUE(p.tell(fitness).ok());
    }
    for (int64_t i = 0; i < p.size(); ++i) {
      Genome genome = *p.genome(i);
      hidden += genome.hidden();
      const Result<Network> net = genome.network();
      ASSERT_TRUE(net.ok()) << net.error().str();
      std::vector<float> x;
      for (int64_t k = 0; k < 5 * genome.inputs(); ++k)
        x.push_back(static_cast<float>(static_cast<int>(draw() % 2001) - 1000) / 500.0f);
      const Tensor y = *net->predict(Tensor::view(x.data(), {5, genome.inputs()}));
      const std::span<const float> all = *y.values<float>();
      for (size_t row = 0; row < 5; ++row) {
        const auto in = static_cast<size_t>(genome.inputs());
        const auto out = static_cast<size_t>(genome.outputs());
        const std::span<const float> one = *genome.step(std::span(x).subspan(row * in, in));
        for (size_t o = 0; o < out; ++o) EXPECT_EQ(all[row * out + o], one[o]) << seed << " " << i;
      }
    }
  }
  EXPECT_GT(hidden, 12 * 20);
}

// Samples of random numbers: half of the sets have labels, half have targets.
struct RandomSamples {
  int64_t inputs, outputs, samples;
  std::vector<float> x, targets;
  std::vector<int32_t> labels;

  explicit RandomSamples(std::mt19937& draw)
      : inputs(1 + draw() % 5), outputs(2 + draw() % 3), samples(5 + draw() % 20) {
    std::normal_distribution<float> normal(3.0f, 5.0f);
    for (int64_t i = 0; i < samples * inputs; ++i) x.push_back(normal(draw));
    const bool labelled = draw() % 2 == 0;
    for (int64_t i = 0; i < samples; ++i) {
      if (labelled) labels.push_back(static_cast<int32_t>(draw() % outputs));
      for (int64_t k = 0; k < outputs && !labelled; ++k) targets.push_back(normal(draw));
    }
  }
  loom::Dataset dataset() const {
    const loom::Tensor y = labels.empty() ? *loom::Tensor::copy(targets, {samples, outputs})
                                          : *loom::Tensor::copy(labels, {samples});
    return *loom::Dataset::from_arrays(*loom::Tensor::copy(x, {samples, inputs}), y);
  }
};

TEST(Neat, ScoresSamplesAsTheTrainerScoresTheNetworkOfTheGenome) {
  std::mt19937 draw(6);
  for (int i = 0; i < 60; ++i) {
    const RandomSamples samples(draw);
    const loom::Dataset data = samples.dataset();
    const auto normalize = static_cast<Normalize>(draw() % 3);
    const Result<SampleFitness> fitness =
        SampleFitness::create(data, samples.inputs, samples.outputs, normalize);
    ASSERT_TRUE(fitness.ok()) << fitness.error().str();
    Population p = *Population::create({.inputs = samples.inputs,
                                        .outputs = samples.outputs,
                                        .population = 20,
                                        .seed = draw(),
                                        .output = loom::Activation::linear});
    ASSERT_TRUE(evolve(p, *fitness, {.generations = 6}).ok());
    Trainer trainer = *Trainer::create(*fitness->network(*p.best()), {});
    const Evaluation e = *trainer.evaluate(data);
    const double expected = samples.labels.empty() ? 1 / (1 + e.loss) : std::exp(-e.loss);
    EXPECT_NEAR(p.best_fitness(), expected, 1e-5 * expected) << i;
  }
}

TEST(Neat, RefusesSamplesThatItCannotScore) {
  const std::vector<float> x = {1, 2, 3, 4};
  const loom::Tensor inputs = *loom::Tensor::copy(x, {2, 2});
  const auto says = [&](const loom::Tensor& y, int64_t in, int64_t out,
                        const loom::ArrayOptions& how = {}) {
    const auto made = SampleFitness::create(*loom::Dataset::from_arrays(inputs, y, how), in, out);
    return made.ok() ? "made" : made.error().str();
  };
  const std::vector<int32_t> labels = {0, 2}, large = {0, 1, 1, 0};
  const loom::Tensor y = *loom::Tensor::copy(labels, {2});
  EXPECT_EQ(says(y, 2, 3), "made");
  EXPECT_THAT(says(y, 3, 3), testing::HasSubstr("a sample has 2 numbers, the genomes take 3"));
  EXPECT_THAT(says(y, 2, 2), testing::HasSubstr("there is a label 2"));
  EXPECT_THAT(says(*loom::Tensor::copy(large, {2, 2}), 2, 2), testing::HasSubstr("several labels"));
  EXPECT_THAT(says(inputs, 2, 3), testing::HasSubstr("a sample has 2 targets"));
  EXPECT_THAT(says({}, 2, 3), testing::HasSubstr("inputs alone"));
  EXPECT_THAT(says(y, 2, 3, {.ignore_label = -1}), testing::HasSubstr("ignores no labels"));
  EXPECT_THAT(
      SampleFitness::create(*loom::Dataset::from_arrays(inputs, y), 2, 3, Normalize::as_trained)
          .error()
          .str(),
      testing::HasSubstr("choose none, standard or range"));
  Population cyclic = *Population::create({.inputs = 2, .outputs = 3, .recurrent = true});
  Genome genome = *cyclic.genome(0);
  const auto fitness = *SampleFitness::create(*loom::Dataset::from_arrays(inputs, y), 2, 3);
  EXPECT_THAT(fitness(genome).error().str(), testing::HasSubstr("recurrent"));
}

std::vector<float> random_input(std::mt19937& draw, int64_t n) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>(static_cast<int>(draw() % 2001) - 1000) / 500.0f);
  return x;
}

// The formula of docs/evolution.md applied to Genome::json(), one step after `values`.
std::map<int64_t, double> stepped(const core::JsonValue& json, std::map<int64_t, double> values,
                                  const std::vector<float>& x) {
  const double slope = *json.find("slope")->as_double("slope");
  const bool recurrent = *json.find("recurrent")->as_bool("recurrent");
  const auto& nodes = json.find("nodes")->elements();
  for (const core::JsonValue& n : nodes) {
    const int64_t id = *n.find("id")->as_int("id");
    if (n.find("role")->text() == "input")
      values[id] = static_cast<double>(x[static_cast<size_t>(id)]);
    if (n.find("role")->text() == "bias") values[id] = 1;
  }
  // Without cycles, one round per node determines every value.
  for (size_t round = 0; round < (recurrent ? 1 : nodes.size()); ++round) {
    std::map<int64_t, double> next = values;
    for (const core::JsonValue& n : nodes) {
      const int64_t id = *n.find("id")->as_int("id");
      if (n.find("activation") == nullptr) continue;
      double sum = 0;
      for (const core::JsonValue& c : json.find("connections")->elements()) {
        if (*c.find("enabled")->as_bool("enabled") && *c.find("to")->as_int("to") == id)
          sum += *c.find("weight")->as_double("weight") * values[*c.find("from")->as_int("from")];
      }
      EXPECT_EQ(n.find("activation")->text(), "sigmoid");
      next[id] = 1 / (1 + std::exp(-slope * sum));
    }
    values = std::move(next);
  }
  return values;
}

TEST(Neat, WritesGenomesAsJsonThatTellsAllItTakesToRunThem) {
  std::mt19937 draw(12);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    NeatOptions options{.inputs = 2, .outputs = 2, .population = 20, .seed = seed};
    options.recurrent = seed % 2 == 0;
    options.slope = seed % 3 == 0 ? 1.0 : 4.9;
    options.add_node = options.add_connection = 0.4;
    Population p = *Population::create(options);
    for (int g = 0; g < 8; ++g) {
      std::vector<double> fitness;
      for (int64_t i = 0; i < p.size(); ++i) fitness.push_back(draw() % 100);
      ASSERT_TRUE(p.tell(fitness).ok());
    }
    for (int64_t i = 0; i < p.size(); ++i) {
      Genome genome = *p.genome(i);
      const Result<core::JsonValue> json = core::parse_json(genome.json(), "the genome");
      ASSERT_TRUE(json.ok());
      std::map<int64_t, double> values;
      for (int step = 0; step < 3; ++step) {
        const std::vector<float> x = random_input(draw, 2);
        values = stepped(*json, values, x);
        const std::span<const float> y = *genome.step(x);
        for (int64_t o = 0; o < 2; ++o)
          ASSERT_NEAR(y[static_cast<size_t>(o)], values[3 + o], 1e-3) << seed;
      }
    }
  }
}

// Sigmoid, tanh and ReLU, cycles, crossing and all kinds of mutation, and fitness of samples: the
// hash holds for every processor, compiler and number of threads.
TEST(Neat, GivesTheSameBitsEverywhere) {
  std::string all;
  for (const bool recurrent : {false, true}) {
    NeatOptions options{.inputs = 2, .outputs = 1, .population = 60, .seed = 5};
    options.recurrent = recurrent;
    options.hidden = {loom::Activation::sigmoid, loom::Activation::tanh, loom::Activation::relu};
    options.enable = options.change_activation = 0.1;
    Population p = *Population::create(options);
    ASSERT_TRUE(evolve(p, xor_fitness, {.generations = 20}).ok());
    const core::test::TemporaryFolder folder;
    const std::string path = folder.path("neat.json");
    ASSERT_TRUE(p.save(path).ok());
    all += *core::read_file(path);
  }
  std::vector<float> x;
  std::vector<int32_t> labels;
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 3; ++k) x.push_back(static_cast<float>((i * 37 + k * 11) % 23) / 4.0f);
    labels.push_back(i * i % 3);
  }
  const loom::Dataset data =
      *loom::Dataset::from_arrays(*Tensor::copy(x, {30, 3}), *Tensor::copy(labels, {30}));
  Population p = *Population::create(
      {.inputs = 3, .outputs = 3, .population = 40, .output = loom::Activation::linear});
  const auto fitness = *SampleFitness::create(data, 3, 3, Normalize::standard);
  ASSERT_TRUE(evolve(p, fitness, {.generations = 10}).ok());
  all += p.best()->json();
  EXPECT_EQ(core::hash_hex(std::as_bytes(std::span(all))), "856eb6f0d417a1f75fb7403c622f0a2b");
}

TEST(Neat, EndsWithTheErrorOfAFitnessAndKeepsThePopulation) {
  Population p = *Population::create({.inputs = 2, .outputs = 1, .population = 30, .seed = 1});
  ASSERT_TRUE(evolve(p, xor_fitness, {.generations = 2}).ok());
  int64_t calls = 0;
  const Result<Evolution> e =
      evolve(p,
             [&](Genome&) -> Result<double> {
               if (++calls == 17) return Error{Code::invalid_argument, "no number came", {}, -1};
               return 1.0;
             },
             {.generations = 5, .threads = 1});
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().message, "no number came");
  EXPECT_EQ(p.generation(), 2);
  EXPECT_EQ(calls, 17);
}

TEST(Neat, RefusesWhatItCannotDoByName) {
  Population p = *Population::create({.inputs = 2, .outputs = 1, .recurrent = true});
  EXPECT_FALSE(p.best().ok());
  EXPECT_FALSE(p.genome(150).ok());
  Genome genome = *p.genome(0);
  EXPECT_THAT(genome.step(std::vector<float>(3)).error().message,
              testing::HasSubstr("3 numbers for a genome of 2 inputs"));
  EXPECT_EQ(genome.network().error().code, Code::unsupported);
  EXPECT_FALSE(evolve(p, nullptr).ok());
  EXPECT_FALSE(evolve(p, xor_fitness, {.generations = -1}).ok());
}

}  // namespace
}  // namespace loom::test
