// NEAT: genomes compared with separate references and rules, populations compared with each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "evolve/neat/genome_network.hpp"
#include "evolve/neat/neat.hpp"
#include "ops/args.hpp"

namespace loom::core::test {
namespace {

NeatSpec busy_spec(uint64_t seed, bool recurrent) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  NeatSpec s;
  s.shape.inputs = 1 + draw() % 4;
  s.shape.outputs = 1 + draw() % 3;
  s.shape.recurrent = recurrent;
  s.shape.connected = draw() % 3 != 0;
  s.shape.output = draw() % 2 ? Activation::sigmoid : Activation::linear;
  s.shape.hidden = {Activation::sigmoid, Activation::tanh, Activation::relu};
  s.rates.add_node = 0.3;
  s.rates.add_connection = 0.4;
  s.rates.enable = 0.1;
  s.rates.activation = 0.2;
  s.selection.population = 12;
  s.slope = draw() % 2 ? 4.9f : 1.0f;
  s.seed = seed;
  return s;
}

// Random fitness: what grows is then free to be anything.
void drift(NeatPopulation& p, int generations, uint64_t seed) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  for (int g = 0; g < generations; ++g) {
    std::vector<double> fitness;
    for (size_t i = 0; i < p.genomes().size(); ++i)
      fitness.push_back(draw() % 9 == 0 ? NAN : draw() % 1000 / 10.0);
    ASSERT_TRUE(p.tell(fitness).ok());
  }
}

// A value in doubles, and a bound of the float32 error: from the errors of its inputs, and from the
// rounding of its products and sums.
struct Bounded {
  double value = 0, error = 0;

  void add(double weight, const Bounded& x) {
    constexpr double kRounding = 8 * 0x1p-24;  // of product, weight times slope, and sums
    value += weight * x.value;
    error += std::fabs(weight) * (x.error + kRounding * (std::fabs(x.value) + x.error));
  }
  Bounded fire(Activation a) const {
    constexpr double kFunction = 8 * 0x1p-24;  // of the activation itself
    const auto made = [&](double y, double steepest) {
      return Bounded{y, steepest * error + kFunction * std::max(std::fabs(y), 1e-3)};
    };
    switch (a) {
      case Activation::tanh: return made(std::tanh(value), 1);
      case Activation::relu: return made(std::max(value, 0.0), 1);
      case Activation::linear: return made(value, 1);
      default: return made(1 / (1 + std::exp(-value)), 0.25);
    }
  }
};

// A feed-forward genome by recursion from its outputs.
Bounded value_of(const NeatGenome& g, int64_t id, const std::vector<double>& x, double slope,
                 std::map<int64_t, Bounded>& known) {
  if (const auto at = known.find(id); at != known.end()) return at->second;
  const NodeGene& node = *g.node(id);
  if (node.role == NodeRole::bias) return {1, 0};
  if (node.role == NodeRole::input) return {x[static_cast<size_t>(id)], 0};
  Bounded sum;
  for (const ConnectionGene& c : g.connections) {
    if (c.enabled && c.to == id)
      sum.add(slope * static_cast<double>(c.weight), value_of(g, c.from, x, slope, known));
  }
  return known[id] = sum.fire(node.activation);
}

std::vector<float> random_input(std::mt19937& draw, int64_t n) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>(static_cast<int>(draw() % 2001) - 1000) / 500.0f);
  return x;
}

TEST(Genomes, GiveWhatTheirGenesSayInDoubles) {
  int64_t hidden = 0, compared = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    NeatPopulation p = *NeatPopulation::create(busy_spec(seed, false));
    drift(p, 25, seed);
    std::mt19937 draw(static_cast<unsigned>(seed));
    for (const NeatGenome& g : p.genomes()) {
      Result<GenomeNetwork> net = GenomeNetwork::create(g, false, p.spec().slope);
      ASSERT_TRUE(net.ok()) << net.error().str();
      const std::vector<float> x = random_input(draw, p.spec().shape.inputs);
      std::vector<float> y(net->outputs());
      net->step(x, y);
      std::map<int64_t, Bounded> known;
      for (size_t o = 0; o < y.size(); ++o) {
        const Bounded expected =
            value_of(g, p.spec().shape.inputs + 1 + static_cast<int64_t>(o),
                     std::vector<double>(x.begin(), x.end()), p.spec().slope, known);
        ASSERT_NEAR(y[o], expected.value, expected.error) << seed;
        ++compared;
      }
      hidden += g.count(NodeRole::hidden);
    }
  }
  EXPECT_GT(hidden, 40 * 12 * 2) << "genomes did not grow";
  EXPECT_GT(compared, 480);
}

TEST(Genomes, OfRecurrentPopulationsFireAllNodesOnTheValuesOfTheStepBefore) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    NeatPopulation p = *NeatPopulation::create(busy_spec(seed, true));
    drift(p, 25, seed);
    std::mt19937 draw(static_cast<unsigned>(seed));
    for (const NeatGenome& g : p.genomes()) {
      GenomeNetwork net = *GenomeNetwork::create(g, true, p.spec().slope);
      std::map<int64_t, Bounded> values;
      for (int step = 0; step < 4; ++step) {
        const std::vector<float> x = random_input(draw, p.spec().shape.inputs);
        std::vector<float> y(net.outputs());
        net.step(x, y);
        for (const NodeGene& n : g.nodes) {
          if (n.role == NodeRole::input)
            values[n.id] = {static_cast<double>(x[static_cast<size_t>(n.id)]), 0};
          if (n.role == NodeRole::bias) values[n.id] = {1, 0};
        }
        std::map<int64_t, Bounded> next = values;
        for (const NodeGene& n : g.nodes) {
          if (n.role != NodeRole::hidden && n.role != NodeRole::output) continue;
          Bounded sum;
          for (const ConnectionGene& c : g.connections) {
            if (c.enabled && c.to == n.id)
              sum.add(static_cast<double>(p.spec().slope) * static_cast<double>(c.weight),
                      values[c.from]);
          }
          next[n.id] = sum.fire(n.activation);
        }
        values = std::move(next);
        for (size_t o = 0; o < y.size(); ++o) {
          const Bounded expected = values[p.spec().shape.inputs + 1 + static_cast<int64_t>(o)];
          ASSERT_NEAR(y[o], expected.value, expected.error) << seed;
        }
      }
    }
  }
}

TEST(Genomes, KeepTheirRulesThroughAnyMutationAndCrossing) {
  for (const bool recurrent : {false, true}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      NeatPopulation p = *NeatPopulation::create(busy_spec(seed, recurrent));
      std::map<int64_t, std::pair<int64_t, int64_t>> ends;  // of innovations, over all generations
      for (int g = 0; g < 20; ++g) {
        drift(p, 1, seed * 100 + static_cast<uint64_t>(g));
        ASSERT_EQ(p.genomes().size(), 12u);
        for (const NeatGenome& genome : p.genomes()) {
          const Status fits = check_genome(genome, recurrent);
          ASSERT_TRUE(fits.ok()) << fits.error().str();
          std::set<std::pair<int64_t, int64_t>> pairs;
          for (const ConnectionGene& c : genome.connections) {
            const auto [at, fresh] = ends.try_emplace(c.innovation, c.from, c.to);
            ASSERT_EQ(at->second, std::pair(c.from, c.to)) << "one number, two connections";
            ASSERT_TRUE(pairs.emplace(c.from, c.to).second) << "one connection twice";
          }
        }
      }
    }
  }
}

TEST(Genomes, AreAsFarApartAsTheFormulaSays) {
  NeatRates rates;
  NeatGenome a, b;
  EXPECT_EQ(distance(a, b, rates), 0);
  a.connections = {{0, 0, 2, 1.0f, true}, {1, 1, 2, 2.0f, true}, {3, 0, 3, 0.5f, true}};
  b.connections = {{0, 0, 2, 1.5f, true},
                   {1, 1, 2, 0.5f, true},
                   {2, 2, 2, 9.0f, true},
                   {7, 1, 3, 1.0f, true},
                   {8, 1, 4, 1.0f, true}};
  // Matching: differences 0.5 and 1.5, mean 1. Disjoint: 2 and 3. Excess: 7 and 8.
  EXPECT_DOUBLE_EQ(distance(a, b, rates), 2 + 2 + 0.4);
  EXPECT_DOUBLE_EQ(distance(b, a, rates), 2 + 2 + 0.4);
  for (int64_t i = 9; i < 29; ++i) b.connections.push_back({i, 1, i, 0.0f, true});
  EXPECT_DOUBLE_EQ(distance(a, b, rates), 2.0 / 25 + 22.0 / 25 + 0.4);
}

TEST(Populations, GoOnFromTheirTextWithTheSameBits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    NeatPopulation whole = *NeatPopulation::create(busy_spec(seed, seed % 2 == 0));
    NeatPopulation first = whole;
    drift(whole, 6, 1);
    drift(whole, 6, 2);
    drift(first, 6, 1);
    Result<NeatPopulation> second = NeatPopulation::from_text(first.text(), "the text");
    ASSERT_TRUE(second.ok()) << second.error().str();
    drift(*second, 6, 2);
    EXPECT_EQ(second->genomes(), whole.genomes());
    EXPECT_EQ(second->history(), whole.history());
    EXPECT_EQ(second->text(), whole.text());
  }
}

TEST(Populations, AreReadWholeOrRefusedInOneLineThatNamesTheFile) {
  NeatPopulation p = *NeatPopulation::create(busy_spec(3, false));
  drift(p, 4, 3);
  const std::string text = p.text();
  std::mt19937 draw(5);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = text;
    if (i % 3 == 0) {
      damaged.resize(draw() % text.size());
    } else {
      // A digit, a sign or a bracket in the place of another byte.
      constexpr std::string_view kBytes = "0123456789-.,[]{}\"enul";
      for (int k = 0; k <= i % 2; ++k)
        damaged[draw() % text.size()] = kBytes[draw() % kBytes.size()];
    }
    Result<NeatPopulation> read = NeatPopulation::from_text(damaged, "pop.json");
    if (read.ok()) {
      drift(*read, 2, 1);
      continue;
    }
    ++refused;
    EXPECT_THAT(read.error().str(), testing::HasSubstr("pop.json"));
    EXPECT_EQ(read.error().str().find('\n'), std::string::npos);
  }
  EXPECT_GT(refused, 700);
}

TEST(Populations, RefuseOptionsByName) {
  const struct {
    std::string says;
    std::function<void(NeatSpec&)> spoil;
  } cases[] = {
      {"inputs is 0", [](NeatSpec& s) { s.shape.inputs = 0; }},
      {"outputs is -1", [](NeatSpec& s) { s.shape.outputs = -1; }},
      {"population is 1", [](NeatSpec& s) { s.selection.population = 1; }},
      {"too large", [](NeatSpec& s) { s.selection.population = 1 << 20, s.shape.inputs = 4000; }},
      {"add_node is 2", [](NeatSpec& s) { s.rates.add_node = 2; }},
      {"survivors is nan", [](NeatSpec& s) { s.selection.survivors = NAN; }},
      {"threshold is inf", [](NeatSpec& s) { s.threshold = INFINITY; }},
      {"weight_step is 1e+30", [](NeatSpec& s) { s.rates.weight_step = 1e30; }},
      {"no activation", [](NeatSpec& s) { s.shape.hidden.clear(); }},
  };
  for (const auto& c : cases) {
    NeatSpec spec;
    c.spoil(spec);
    const Result<NeatPopulation> p = NeatPopulation::create(spec);
    ASSERT_FALSE(p.ok()) << c.says;
    EXPECT_THAT(p.error().message, testing::HasSubstr(c.says));
  }
  NeatPopulation p = *NeatPopulation::create(NeatSpec());
  EXPECT_FALSE(p.tell(std::vector<double>(3)).ok());
}

// The fitness depends on the genome only, so the best of a generation never falls.
TEST(Populations, TakeAnyNumbersAsFitness) {
  const double kHuge = std::numeric_limits<double>::max();
  const double kOdd[] = {NAN, INFINITY, -INFINITY, kHuge, -kHuge, 0.0, -0.0, 5e-324, 1.0};
  std::mt19937 draw(8);
  for (int i = 0; i < 300; ++i) {
    NeatPopulation p = *NeatPopulation::create(busy_spec(static_cast<uint64_t>(i), i % 2 == 1));
    const size_t kinds = 1 + draw() % std::size(kOdd), first = draw() % std::size(kOdd);
    for (int g = 0; g < 4; ++g) {
      std::vector<double> fitness;
      for (size_t m = 0; m < p.genomes().size(); ++m)
        fitness.push_back(kOdd[(first + draw() % kinds) % std::size(kOdd)]);
      ASSERT_TRUE(p.tell(fitness).ok());
      ASSERT_EQ(p.genomes().size(), fitness.size());
      const NeatGeneration& last = p.history().back();
      ASSERT_LE(last.worst, last.mean);
      ASSERT_LE(last.mean, last.best);
    }
    const Result<NeatPopulation> read = NeatPopulation::from_text(p.text(), "pop.json");
    ASSERT_TRUE(read.ok()) << read.error().str();
    ASSERT_EQ(read->text(), p.text());
  }
}

// Species of random sizes with fitness above 0, so that shares are means and nothing is shifted.
struct RandomSpecies {
  std::vector<Species> species;
  std::vector<double> fitness;
  std::vector<int64_t> sizes;
  std::vector<size_t> home;  // of a member

  explicit RandomSpecies(std::mt19937& draw) {
    const size_t count = 1 + draw() % 6;
    for (size_t s = 0; s < count; ++s) {
      species.push_back({});
      species.back().id = static_cast<int64_t>(s);
      for (size_t m = 1 + draw() % 20; m > 0; --m) {
        species.back().members.push_back(fitness.size());
        fitness.push_back(1.0 + static_cast<double>(draw() % 1000) / 100.0);
        sizes.push_back(static_cast<int64_t>(draw() % 50));
        home.push_back(s);
      }
    }
  }
  double mean(size_t s) const {
    double sum = 0;
    for (const size_t m : species[s].members) sum += fitness[m];
    return sum / static_cast<double>(species[s].members.size());
  }
  // How many of its species are fitter.
  size_t rank(size_t member) const {
    size_t above = 0;
    for (const size_t m : species[home[member]].members) above += fitness[m] > fitness[member];
    return above;
  }
};

TEST(SpeciesPlans, GiveChildrenByMeanFitnessToTheBestOfEachSpecies) {
  std::mt19937 draw(4);
  for (int i = 0; i < 300; ++i) {
    RandomSpecies random(draw);
    Selection selection;
    selection.population = 100 + static_cast<int64_t>(draw() % 100);
    selection.between = 0;
    Draws draws(draw(), 1);
    const std::vector<Birth> births =
        plan_births(random.species, random.fitness, random.sizes, selection, 1, draws);
    ASSERT_EQ(static_cast<int64_t>(births.size()), selection.population);
    double all = 0;
    std::vector<int64_t> children(random.species.size(), 0);
    for (size_t s = 0; s < children.size(); ++s) all += random.mean(s);
    std::set<size_t> copied;
    for (const Birth& b : births) {
      const size_t s = random.home[b.parent];
      ++children[s];
      if (!b.other && !b.mutated) {
        ASSERT_EQ(random.rank(b.parent), 0u) << "a copy of one that is not the best";
        ASSERT_TRUE(copied.insert(s).second) << "two copies";
        continue;
      }
      const double parents = std::ceil(0.2 * static_cast<double>(random.species[s].members.size()));
      ASSERT_LT(random.rank(b.parent), parents);
      if (b.other) {
        ASSERT_EQ(random.home[*b.other], s);
        ASSERT_LT(random.rank(*b.other), parents);
        ASSERT_GE(random.fitness[b.parent], random.fitness[*b.other]);
      }
    }
    for (size_t s = 0; s < children.size(); ++s) {
      const double share = static_cast<double>(selection.population) * random.mean(s) / all;
      // One is rounding, the rest what keeps the lowest from having nothing.
      EXPECT_NEAR(static_cast<double>(children[s]), share, 1.0 + 0.02 * share) << i;
      if (random.species[s].members.size() > 5 && children[s] > 0) {
        EXPECT_TRUE(copied.contains(s)) << "the best of a large species went";
      }
    }
  }
}

TEST(SpeciesPlans, LeaveOutWhatStagnatesAndKeepTheTwoBestInACrisis) {
  std::mt19937 draw(9);
  for (int i = 0; i < 200; ++i) {
    RandomSpecies random(draw);
    for (Species& s : random.species) s.stagnant = static_cast<int64_t>(draw() % 30);
    std::vector<double> tops;
    for (const Species& s : random.species) {
      double top = 0;
      for (const size_t m : s.members) top = std::max(top, random.fitness[m]);
      tops.push_back(top);
    }
    const bool crisis = i % 2 == 1;
    Selection selection;
    selection.between = 0;
    Draws draws(draw(), 1);
    const std::vector<Birth> births = plan_births(random.species, random.fitness, random.sizes,
                                                  selection, crisis ? 20 : 19, draws);
    const double best = *std::ranges::max_element(tops);
    for (const Birth& b : births) {
      const size_t s = random.home[b.parent];
      const auto fitter = std::ranges::count_if(tops, [&](double t) { return t > tops[s]; });
      if (crisis) {
        EXPECT_LT(fitter, 2);
        EXPECT_EQ(random.species[s].stagnant, 0);
      } else {
        EXPECT_TRUE(tops[s] == best || random.species[s].stagnant < selection.patience);
      }
    }
  }
}

TEST(Genomes, OfLongChainsTakeNoLongerThanTheirLength) {
  NeatGenome g;
  constexpr int64_t kLong = 50000;
  g.nodes = {{0, NodeRole::input}, {1, NodeRole::bias}, {2, NodeRole::output, Activation::linear}};
  for (int64_t i = 0; i < kLong; ++i)
    g.nodes.push_back({3 + i, NodeRole::hidden, Activation::linear});
  // From the end to the beginning, so that a pass over connections moves only one level.
  int64_t innovation = 0, to = 2;
  for (int64_t i = kLong; i-- > 0; to = 3 + i)
    g.connections.push_back({innovation++, 3 + i, to, 1.0f, true});
  g.connections.push_back({innovation++, 0, to, 1.0f, true});
  Result<GenomeNetwork> net = GenomeNetwork::create(g, false, 1.0f);
  ASSERT_TRUE(net.ok()) << net.error().str();
  const float x[] = {0.75f};
  float y[] = {0};
  net->step(x, y);
  EXPECT_EQ(y[0], 0.75f);
  EXPECT_TRUE(leads_to(g, 0, 2));
  EXPECT_FALSE(leads_to(g, 2, 0));
}

TEST(Populations, NeverLoseTheirBest) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    NeatSpec spec = busy_spec(seed, false);
    spec.selection.patience = 3;  // species end all the time
    spec.selection.crisis = 5;
    spec.threshold = 1.0;
    NeatPopulation p = *NeatPopulation::create(spec);
    double best = -INFINITY;
    for (int g = 0; g < 40; ++g) {
      std::vector<double> fitness;
      for (const NeatGenome& genome : p.genomes()) {
        double sum = 0;
        for (const ConnectionGene& c : genome.connections) sum -= std::fabs(c.weight - 0.7f);
        fitness.push_back(genome.connections.empty() ? NAN : sum);
      }
      ASSERT_TRUE(p.tell(fitness).ok());
      const NeatGeneration& last = p.history().back();
      if (last.failed < 12) {
        EXPECT_GE(last.best, best) << seed << " " << g;
        best = last.best;
      }
    }
    EXPECT_EQ(p.best_fitness(), best);
  }
}

TEST(Populations, SurviveAFitnessThatIsNeverANumber) {
  NeatPopulation p = *NeatPopulation::create(busy_spec(1, false));
  for (int g = 0; g < 30; ++g) ASSERT_TRUE(p.tell(std::vector<double>(12, NAN)).ok());
  EXPECT_EQ(p.genomes().size(), 12u);
  EXPECT_EQ(p.history().back().failed, 12);
}

}  // namespace
}  // namespace loom::core::test
