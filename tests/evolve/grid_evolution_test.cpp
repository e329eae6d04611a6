// Evolution of whole networks: functions that mutations keep, invariants of a population, and that
// threads, files and resumes change no bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <span>

#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "evolve/networks/architectures.hpp"
#include "evolve/networks/pareto.hpp"
#include "io/io_testing.hpp"
#include "loom/loom.hpp"
#include "ops/args.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

int grid_cases() {
  const char* expected = std::getenv("LOOM_GRID_CASES");
  return expected != nullptr ? std::atoi(expected) : 200;
}

// A chain of Dense layers with new weights.
GridGenome small_genome(uint64_t seed, std::vector<int64_t> hidden = {6, 5}) {
  const NetworkSpec spec = build_mlp({.in = 4, .out = 3, .hidden = std::move(hidden)}).value();
  GridGenome genome = GridGenome::of(spec).value();
  ThreadPool pool(1);
  const Network network = genome.network(1, DType::f32, seed, pool).value();
  std::mt19937 draw(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal(0, 0.7f);
  for (const Param& p : network.params()) {
    std::vector<float> values(static_cast<size_t>(p.spec.shape.count()));
    for (float& v : values) v = normal(draw);
    const GenePosition gene = gene_position(p);
    genome.cells[gene.cell].values[gene.name] = std::move(values);
  }
  return genome;
}

std::vector<float> answers(const GridGenome& genome) {
  loom::Network network = loom::Network::from_json(write_network(genome.spec().value())).or_exit();
  const Network row = genome.finalized(1).value();
  for (const Param& p : row.params()) {
    const GenePosition gene = gene_position(p);
    const std::vector<float>& values = genome.cells[gene.cell].values.at(gene.name);
    loom::Shape shape;
    for (int i = 0; i < p.spec.shape.rank(); ++i) shape.push_back(p.spec.shape[i]);
    network.set_parameter(p.path, loom::Tensor::view(values.data(), shape)).or_exit();
  }
  std::vector<float> x;
  for (int i = 0; i < 20; ++i) x.push_back(std::sin(static_cast<float>(i)));
  const loom::Tensor y = network.predict(loom::Tensor::copy(x, {5, 4}).or_exit()).or_exit();
  const std::span<const float> all = y.values<float>().or_exit();
  return {all.begin(), all.end()};
}

double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

std::string bits_of(const GridGenome& genome) {
  std::string out = write_network(genome.spec().value());
  for (const GeneCell& cell : genome.cells) {
    for (const auto& [name, values] : cell.values)
      out.append(name).append(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(float));
  }
  return out;
}

TEST(GridChanges, KeepTheFunctionAtBirthWhereTheySaySo) {
  std::map<GridChange, int> made;
  for (int c = 0; c < grid_cases(); ++c) {
    GridGenome genome = small_genome(static_cast<uint64_t>(c));
    Draws draws(static_cast<uint64_t>(c), 3);
    const std::vector<float> before = answers(genome);
    GridRates rates;
    rates.changes = {GridChange::widen, GridChange::deepen, GridChange::block, GridChange::connect};
    for (int k = 0; k < 3; ++k) {
      const ChangeReport report = change_genome(genome, rates, draws);
      if (!report.change) continue;
      ++made[*report.change];
      EXPECT_TRUE(keeps_function(*report.change));
      EXPECT_LT(max_difference(answers(genome), before), 2e-5) << report.what;
    }
  }
  EXPECT_EQ(made.size(), 4U);
}

TEST(GridChanges, ThatAddAWayWithWeightsZeroChangeNoBit) {
  for (const GridChange change : {GridChange::block, GridChange::connect}) {
    GridGenome genome = small_genome(3);
    const std::vector<float> before = answers(genome);
    GridRates rates;
    rates.changes = {change};
    Draws draws(1, 1);
    ASSERT_TRUE(change_genome(genome, rates, draws).change.has_value());
    EXPECT_EQ(answers(genome), before) << change_name(change);
  }
}

TEST(GridChanges, GiveNetworksThatRunAndRepeatWithTheirSeed) {
  std::map<GridChange, int> made;
  for (int c = 0; c < grid_cases() / 4; ++c) {
    GridGenome first = small_genome(1), second = small_genome(1);
    const GridGenome kept = first;
    GridRates rates;
    for (int i = 0; i < kGridChanges; ++i) rates.changes.push_back(static_cast<GridChange>(i));
    Draws one(static_cast<uint64_t>(c), 5), two(static_cast<uint64_t>(c), 5);
    for (int k = 0; k < 8; ++k) {
      const ChangeReport report = change_genome(first, rates, one);
      EXPECT_EQ(change_genome(second, rates, two).what, report.what);
      if (report.change) ++made[*report.change];
      const Result<Network> network = first.finalized(1);
      ASSERT_TRUE(network.ok());
      EXPECT_EQ(network->output().last(), 3);
    }
    EXPECT_EQ(bits_of(first), bits_of(second));
    for (const float v : answers(first)) EXPECT_TRUE(std::isfinite(v));
    EXPECT_EQ(bits_of(kept), bits_of(small_genome(1)));
  }
  EXPECT_EQ(made.size(), static_cast<size_t>(kGridChanges));
}

TEST(GridChanges, StayBelowTheLimitOfParameters) {
  GridGenome genome = small_genome(1);
  GridRates rates;
  rates.most_parameters = genome.finalized(1)->param_count();
  Draws draws(2, 2);
  for (int i = 0; i < 40; ++i) {
    change_genome(genome, rates, draws);
    EXPECT_LE(genome.finalized(1)->param_count(), rates.most_parameters);
  }
}

TEST(GridCrossings, TakeHeadAndTailWhereShapesMeetOrBlendEqualCells) {
  int spliced = 0, blended = 0;
  for (uint64_t c = 0; c < 60; ++c) {
    const GridGenome a = small_genome(c),
                     b = small_genome(c + 500, c % 2 == 0 ? std::vector<int64_t>{6, 5}
                                                          : std::vector<int64_t>{9, 6, 5});
    Draws draws(c, 9);
    CrossReport report;
    const GridGenome child = cross_genomes(a, b, 0.4, draws, report);
    ASSERT_TRUE(child.finalized(1).ok());
    EXPECT_EQ(static_cast<int64_t>(child.cells.size()), report.from_a + report.from_b);
    spliced += report.from_b > 0 ? 1 : 0;
    blended += report.blended > 0 ? 1 : 0;
  }
  EXPECT_GT(spliced, 5);
  EXPECT_GT(blended, 0);
}

TEST(GridGenomes, RefuseNetworksThatAreNoRow) {
  const auto with = [](const char* cells) {
    return parse_network(
               std::string(R"({"loom": 1, "grid": [2, 1, 1, 1], "input": [4], "cells": [)") +
                   cells + "]}",
               "x")
        .value();
  };
  const NetworkSpec linked = with(
      R"({"at": [0,0,0,0], "type": "Dense", "in": 4, "out": 4},
         {"at": [1,0,0,0], "type": "Dense", "in": 4, "out": 4,
          "link": {"from": [0,0,0,0], "feedback": false}})");
  EXPECT_THAT(GridGenome::of(linked).error().message, HasSubstr("link"));
  const NetworkSpec shared = with(
      R"({"at": [0,0,0,0], "type": "Dense", "in": 4, "out": 4},
         {"at": [1,0,0,0], "type": "Dense", "in": 4, "out": 4, "shared_with": [0,0,0,0]})");
  EXPECT_THAT(GridGenome::of(shared).error().message, HasSubstr("shares"));
}

TEST(Fronts, AgreeWithTheirDefinitionOnRandomPoints) {
  std::mt19937 draw(5);
  for (int c = 0; c < grid_cases(); ++c) {
    std::vector<Aims> all(1 + draw() % 20);
    for (Aims& a : all) {
      a.resize(1 + static_cast<size_t>(c) % 3);
      for (double& v : a) v = draw() % 17 == 0 ? std::nan("") : static_cast<double>(draw() % 6);
    }
    const std::vector<int> ranks = front_ranks(all);
    for (size_t i = 0; i < all.size(); ++i) {
      // A rank is one more than the largest of the dominating members.
      int expected = 0;
      for (size_t j = 0; j < all.size(); ++j) {
        if (dominates(all[j], all[i])) expected = std::max(expected, ranks[j] + 1);
      }
      EXPECT_EQ(ranks[i], expected);
    }
    EXPECT_EQ(select_best(all, 3).size(), std::min<size_t>(3, all.size()));
  }
}

TEST(Fronts, PreferThoseWhoseNeighboursAreFar) {
  const std::vector<Aims> all = {{0, 4}, {1, 3}, {1.1, 2.9}, {4, 0}};
  const std::vector<double> space = crowding(all, front_ranks(all));
  EXPECT_TRUE(std::isinf(space[0]) && std::isinf(space[3]));
  EXPECT_GT(space[2], space[1]);
}

loom::Dataset spirals() {
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int i = 0; i < 240; ++i) {
    const float t = 0.15f + 0.02f * static_cast<float>(i / 2);
    const float turn = 4 * t + (i % 2 == 0 ? 0.0f : 3.14159f);
    for (const float v : {t * std::cos(turn), t * std::sin(turn)}) x.push_back(v);
    y.push_back(i % 2);
  }
  return loom::Dataset::from_arrays(loom::Tensor::copy(x, {240, 2}).or_exit(),
                                    loom::Tensor::copy(y, {240}).or_exit())
      .or_exit();
}

loom::Network spiral_seed() {
  return loom::Network::sequential({Dense{.in = 2, .out = 6, .activation = loom::Activation::relu},
                                    Dense{.in = 6, .out = 2}},
                                   {.input = {2}, .seed = 3})
      .or_exit();
}

std::string state_of(const ArchitectureSearch& search) {
  std::string out;
  for (const ArchitectureInfo& m : search.members())
    out += m.form + " " + std::to_string(m.loss) + " " + m.birth + "\n";
  return out;
}

ArchitectureOptions spiral_options() {
  ArchitectureOptions o;
  o.population = 6;
  o.epochs = 2;
  o.rate = 0.02;
  return o;
}

TEST(ArchitectureSearches, DoNotDependOnThreadsAndGoOnFromAFileWithTheSameBits) {
  const loom::Dataset data = spirals();
  ArchitectureSearch one =
      ArchitectureSearch::create(spiral_seed(), data, spiral_options()).or_exit();
  ArchitectureSearch more =
      ArchitectureSearch::create(spiral_seed(), data, spiral_options()).or_exit();
  const core::test::TemporaryFolder folder;
  const std::string path = folder.path("architectures.json");
  for (int g = 0; g < 4; ++g) {
    ASSERT_TRUE(one.step(1).ok());
    ASSERT_TRUE(more.step(3).ok());
    ASSERT_TRUE(more.save(path).ok());
    more = ArchitectureSearch::load(path, data).or_exit();
    EXPECT_EQ(state_of(one), state_of(more)) << g;
  }
}

TEST(ArchitectureSearches, NeverLoseTheirBestAndHandOutNetworksWithTheScoresTheySay) {
  const loom::Dataset data = spirals();
  ArchitectureOptions o = spiral_options();
  o.objectives = {"loss", "parameters"};
  ArchitectureSearch search = ArchitectureSearch::create(spiral_seed(), data, o).or_exit();
  double best = 1e9;
  for (int g = 0; g < 5; ++g) {
    const ArchitectureReport r = search.step().or_exit();
    EXPECT_LE(r.best_loss, best);
    best = r.best_loss;
  }
  EXPECT_LT(best, search.seed().loss);
  const ArchitectureInfo top = search.front()[0];
  const loom::Network network = search.network(top.id).or_exit();
  EXPECT_EQ(network.info().parameters, top.parameters);
  const loom::Dataset::Parts parts = data.split(0.75, {.seed = o.seed}).or_exit();
  loom::Trainer scorer = loom::Trainer::create(network).or_exit();
  const loom::Evaluation scores = scorer.evaluate(parts.second).or_exit();
  EXPECT_NEAR(scores.loss, top.loss, 1e-6);
  EXPECT_NEAR(*scores.accuracy, top.accuracy, 1e-9);
  EXPECT_FALSE(search.network(1 << 30).ok());
}

TEST(ArchitectureSearches, RefuseOptionsAndFilesThatCannotBe) {
  const loom::Dataset data = spirals();
  const auto refused = [&](auto&& change) {
    ArchitectureOptions o = spiral_options();
    change(o);
    return !ArchitectureSearch::create(spiral_seed(), data, o).ok();
  };
  EXPECT_TRUE(refused([](auto& o) { o.population = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.objectives = {}; }));
  EXPECT_TRUE(refused([](auto& o) { o.objectives = {"beauty"}; }));
  EXPECT_TRUE(refused([](auto& o) { o.validation = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.epochs = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.cross = 2; }));
  for (const char* text :
       {"", "{}", "[]", R"({"loom_architectures": 2})", R"({"loom_architectures": 1, "spec": {}})"})
    EXPECT_FALSE(Architectures::from_text(text, "x.json").ok()) << text;
}

TEST(ArchitectureSearches, FilesThatAreCutOrTurnedEndInAPopulationOrAnError) {
  const GridGenome seed = small_genome(1);
  ArchitectureSpec spec;
  spec.population = 2;
  Architectures all = Architectures::create(seed, spec).value();
  ASSERT_TRUE(all.advance(all.breed()).ok());
  const std::string whole = all.text();
  ASSERT_TRUE(Architectures::from_text(whole, "x").ok());
  for (size_t n = 0; n < whole.size(); n += 37)
    EXPECT_FALSE(Architectures::from_text(whole.substr(0, n), "x").ok());
  for (size_t i = 0; i < whole.size(); i += 11) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ (1 << (i % 7)));
    const Result<Architectures> read = Architectures::from_text(text, "x");
    if (!read.ok()) {
      EXPECT_EQ(read.error().str().find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace loom::core::test
