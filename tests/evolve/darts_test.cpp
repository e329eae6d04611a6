// Architecture search by gradients: the gradient of alpha compared with the formulas in doubles;
// threads, instruction sets and files change no bit; the choice within a budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "evolve/networks/darts.hpp"
#include "io/io_testing.hpp"
#include "loom/loom.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

int darts_cases() {
  const char* expected = std::getenv("LOOM_DARTS_CASES");
  return expected != nullptr ? std::atoi(expected) : 40;
}

// ---- the oracle: doubles, own loops, no code of the engine -------------------------------------
// A network of mixed cells of Dense branches: x -> sum_k softmax(alpha)_k f_k(W_k x + b_k) -> ...,
// mean squared error over batch and outputs.

struct OracleBranch {
  std::vector<double> w, b;  // [out, in], [out]
  std::string activation;
};
struct OracleCell {
  size_t in = 0, out = 0;
  std::vector<OracleBranch> branches;
  std::vector<double> alpha;
};
struct OracleGradient {
  std::vector<std::vector<OracleBranch>> branches;  // as the network
  std::vector<std::vector<double>> alpha;
};
using OracleNet = std::vector<OracleCell>;
struct OracleBatch {
  std::vector<std::vector<double>> x, t;
};

double applied(const std::string& f, double z) {
  if (f == "tanh") return std::tanh(z);
  if (f == "sigmoid") return 1 / (1 + std::exp(-z));
  return z;
}
double own_slope(const std::string& f, double y) {
  if (f == "tanh") return 1 - y * y;
  if (f == "sigmoid") return y * (1 - y);
  return 1;
}
std::vector<double> mixing(const std::vector<double>& alpha) {
  double sum = 0;
  std::vector<double> p;
  for (const double a : alpha) p.push_back(std::exp(a));
  for (const double v : p) sum += v;
  for (double& v : p) v /= sum;
  return p;
}

OracleGradient gradient(const OracleNet& net, const OracleBatch& batch) {
  OracleGradient g;
  for (const OracleCell& cell : net) {
    auto& branches = g.branches.emplace_back();
    for (const OracleBranch& b : cell.branches)
      branches.push_back({std::vector<double>(b.w.size()), std::vector<double>(b.b.size()), ""});
    g.alpha.emplace_back(cell.alpha.size());
  }
  for (size_t s = 0; s < batch.x.size(); ++s) {
    std::vector<std::vector<double>> h = {batch.x[s]};
    std::vector<std::vector<std::vector<double>>> y(net.size());  // [cell][branch][out]
    for (size_t c = 0; c < net.size(); ++c) {
      const std::vector<double> p = mixing(net[c].alpha);
      std::vector<double> mixed(net[c].out);
      for (size_t k = 0; k < net[c].branches.size(); ++k) {
        const OracleBranch& b = net[c].branches[k];
        auto& out = y[c].emplace_back();
        for (size_t o = 0; o < net[c].out; ++o) {
          double z = b.b[o];
          for (size_t i = 0; i < net[c].in; ++i) z += b.w[o * net[c].in + i] * h.back()[i];
          out.push_back(applied(b.activation, z));
          mixed[o] += p[k] * out.back();
        }
      }
      h.push_back(mixed);
    }
    std::vector<double> d;
    const double share = 2.0 / static_cast<double>(batch.x.size() * h.back().size());
    for (size_t o = 0; o < h.back().size(); ++o) d.push_back(share * (h.back()[o] - batch.t[s][o]));
    for (size_t c = net.size(); c-- > 0;) {
      const std::vector<double> p = mixing(net[c].alpha);
      std::vector<double> below(net[c].in), to(p.size());
      for (size_t k = 0; k < p.size(); ++k) {
        const OracleBranch& b = net[c].branches[k];
        for (size_t o = 0; o < net[c].out; ++o) {
          to[k] += d[o] * y[c][k][o];
          const double dz = p[k] * d[o] * own_slope(b.activation, y[c][k][o]);
          g.branches[c][k].b[o] += dz;
          for (size_t i = 0; i < net[c].in; ++i) {
            g.branches[c][k].w[o * net[c].in + i] += dz * h[c][i];
            below[i] += dz * b.w[o * net[c].in + i];
          }
        }
      }
      double mean = 0;
      for (size_t k = 0; k < p.size(); ++k) mean += p[k] * to[k];
      for (size_t k = 0; k < p.size(); ++k) g.alpha[c][k] += p[k] * (to[k] - mean);
      d = below;
    }
  }
  return g;
}

void for_each_weight(OracleNet& net, const OracleGradient& g, auto&& f) {
  for (size_t c = 0; c < net.size(); ++c) {
    for (size_t k = 0; k < net[c].branches.size(); ++k) {
      for (size_t i = 0; i < net[c].branches[k].w.size(); ++i)
        f(net[c].branches[k].w[i], g.branches[c][k].w[i]);
      for (size_t i = 0; i < net[c].branches[k].b.size(); ++i)
        f(net[c].branches[k].b[i], g.branches[c][k].b[i]);
    }
  }
}
OracleNet moved(OracleNet net, const OracleGradient& g, double by) {
  for_each_weight(net, g, [&](double& w, double d) { w += by * d; });
  return net;
}

// Equations 7 and 8 of the paper.
std::vector<std::vector<double>> second_order(const OracleNet& net, const OracleBatch& train,
                                              const OracleBatch& held, double rate) {
  const OracleNet ahead = moved(net, gradient(net, train), -rate);
  const OracleGradient there = gradient(ahead, held);
  double squares = 0;
  OracleNet copy = net;
  for_each_weight(copy, there, [&](double&, double d) { squares += d * d; });
  const double near = 0.01 / std::sqrt(squares);
  const OracleGradient plus = gradient(moved(net, there, near), train);
  const OracleGradient minus = gradient(moved(net, there, -near), train);
  std::vector<std::vector<double>> out = there.alpha;
  for (size_t c = 0; c < out.size(); ++c) {
    for (size_t k = 0; k < out[c].size(); ++k)
      out[c][k] -= rate * (plus.alpha[c][k] - minus.alpha[c][k]) / (2 * near);
  }
  return out;
}

double loss_of(const OracleNet& net, const OracleBatch& batch) {
  double sum = 0;
  for (size_t s = 0; s < batch.x.size(); ++s) {
    std::vector<double> h = batch.x[s];
    for (const OracleCell& cell : net) {
      const std::vector<double> p = mixing(cell.alpha);
      std::vector<double> next(cell.out);
      for (size_t k = 0; k < p.size(); ++k) {
        for (size_t o = 0; o < cell.out; ++o) {
          double z = cell.branches[k].b[o];
          for (size_t i = 0; i < cell.in; ++i) z += cell.branches[k].w[o * cell.in + i] * h[i];
          next[o] += p[k] * applied(cell.branches[k].activation, z);
        }
      }
      h = next;
    }
    for (size_t o = 0; o < h.size(); ++o) sum += (h[o] - batch.t[s][o]) * (h[o] - batch.t[s][o]);
  }
  return sum / static_cast<double>(batch.x.size() * batch.t[0].size());
}

// ---- random cases ------------------------------------------------------------------------------

struct SearchCase {
  OracleNet net;
  GridGenome genome;
  Dataset train, held;
};

LayerConfig dense_of(size_t in, size_t out, const std::string& activation) {
  return make_layer(LayerKind::dense, {{"in", static_cast<int64_t>(in)},
                                       {"out", static_cast<int64_t>(out)},
                                       {"activation", activation}})
      .value();
}

Dataset random_data(std::mt19937& draw, int64_t samples, size_t in, size_t out) {
  std::normal_distribution<float> normal(0, 1);
  Dataset data;
  data.samples = samples;
  data.sample = Shape{static_cast<int64_t>(in)};
  data.outputs = static_cast<int64_t>(out);
  for (int64_t i = 0; i < samples * static_cast<int64_t>(in); ++i)
    data.inputs.push_back(normal(draw));
  for (int64_t i = 0; i < samples * static_cast<int64_t>(out); ++i)
    data.targets.push_back(normal(draw));
  return data;
}

OracleBatch batch_of(const Dataset& data) {
  OracleBatch out;
  const auto in = static_cast<size_t>(data.sample.count()), n = static_cast<size_t>(data.outputs);
  for (size_t s = 0; s < static_cast<size_t>(data.samples); ++s) {
    out.x.emplace_back(data.inputs.begin() + static_cast<int64_t>(s * in),
                       data.inputs.begin() + static_cast<int64_t>((s + 1) * in));
    out.t.emplace_back(data.targets.begin() + static_cast<int64_t>(s * n),
                       data.targets.begin() + static_cast<int64_t>((s + 1) * n));
  }
  return out;
}

SearchCase random_case(uint32_t seed, int64_t batch) {
  std::mt19937 draw(seed);
  const auto below = [&](size_t n) { return draw() % n; };
  const char* kFunctions[] = {"linear", "tanh", "sigmoid"};
  SearchCase out;
  std::vector<size_t> widths;
  for (size_t i = 0; i < 2 + below(3); ++i) widths.push_back(1 + below(5));
  std::normal_distribution<float> normal(0, 0.6f);
  out.genome.input = Shape{static_cast<int64_t>(widths[0])};
  for (size_t c = 0; c + 1 < widths.size(); ++c) {
    OracleCell cell{widths[c], widths[c + 1], {}, {}};
    std::vector<LayerConfig> children;
    GeneCell gene;
    for (size_t k = 0; k < 2 + below(3); ++k) {
      OracleBranch b;
      b.activation = kFunctions[below(3)];
      children.push_back(dense_of(cell.in, cell.out, b.activation));
      std::vector<float>& w = gene.values[cat(k, "/weight")];
      std::vector<float>& bias = gene.values[cat(k, "/bias")];
      for (size_t i = 0; i < cell.in * cell.out; ++i) w.push_back(normal(draw));
      for (size_t i = 0; i < cell.out; ++i) bias.push_back(normal(draw));
      b.w.assign(w.begin(), w.end());
      b.b.assign(bias.begin(), bias.end());
      cell.branches.push_back(b);
      gene.values["alpha"].push_back(normal(draw));
      cell.alpha.push_back(static_cast<double>(gene.values["alpha"].back()));
    }
    gene.layer =
        make_layer(LayerKind::parallel, {{"combine", "mixed"}}, std::move(children)).value();
    out.genome.cells.push_back(std::move(gene));
    out.net.push_back(std::move(cell));
  }
  out.train = random_data(draw, batch, widths.front(), widths.back());
  out.held = random_data(draw, batch, widths.front(), widths.back());
  return out;
}

double max_of(const std::vector<std::vector<double>>& a) {
  double most = 0;
  for (const auto& list : a) {
    for (const double v : list) most = std::max(most, std::abs(v));
  }
  return most;
}

TEST(Darts, AlphaFollowsTheGradientOfTheFirstOrder) {
  ThreadPool pool(1);
  for (int i = 0; i < darts_cases(); ++i) {
    const SearchCase c = random_case(static_cast<uint32_t>(i), 6);
    DartsSpec spec;
    spec.order = 1;
    spec.batch = 6;
    Darts darts = Darts::create(c.genome, c.train, c.held, spec, cpu_ops(best_isa()), pool).value();
    ASSERT_TRUE(darts.step(c.train, c.held, 0.1).ok());
    const auto expected = gradient(c.net, batch_of(c.held)).alpha;
    const auto got = darts.alpha_gradients();
    for (size_t k = 0; k < expected.size(); ++k) {
      for (size_t j = 0; j < expected[k].size(); ++j)
        EXPECT_NEAR(static_cast<double>(got[k][j]), expected[k][j], 2e-5 * (1 + max_of(expected)))
            << "case " << i;
    }
  }
}

TEST(Darts, AlphaFollowsTheFiniteDifferenceOfTheSecondOrder) {
  ThreadPool pool(1);
  for (int i = 0; i < darts_cases(); ++i) {
    const SearchCase c = random_case(static_cast<uint32_t>(1000 + i), 6);
    const double rate = 0.05 + 0.1 * (i % 5);
    DartsSpec spec;
    spec.batch = 6;
    Darts darts = Darts::create(c.genome, c.train, c.held, spec, cpu_ops(best_isa()), pool).value();
    ASSERT_TRUE(darts.step(c.train, c.held, rate).ok());
    const auto expected = second_order(c.net, batch_of(c.train), batch_of(c.held), rate);
    const auto got = darts.alpha_gradients();
    // Differences of floats over 2e: their rounding, about 1e-7 of the gradient, over 2 * 0.01.
    for (size_t k = 0; k < expected.size(); ++k) {
      for (size_t j = 0; j < expected[k].size(); ++j)
        EXPECT_NEAR(static_cast<double>(got[k][j]), expected[k][j], 3e-4 * (1 + max_of(expected)))
            << "case " << i;
    }
  }
}

// The formula itself: it is the slope of the loss after the step, seen from alpha.
TEST(Darts, TheSecondOrderIsTheSlopeOfTheLossOneStepAhead) {
  for (uint32_t i = 0; i < 20; ++i) {
    const SearchCase c = random_case(2000 + i, 6);
    const OracleBatch train = batch_of(c.train), held = batch_of(c.held);
    const double rate = 0.1, near = 1e-5;
    const auto ahead = [&](const OracleNet& net) {
      return loss_of(moved(net, gradient(net, train), -rate), held);
    };
    const auto expected = second_order(c.net, train, held, rate);
    for (size_t k = 0; k < expected.size(); ++k) {
      for (size_t j = 0; j < expected[k].size(); ++j) {
        OracleNet up = c.net, down = c.net;
        up[k].alpha[j] += near;
        down[k].alpha[j] -= near;
        EXPECT_NEAR((ahead(up) - ahead(down)) / (2 * near), expected[k][j], 2e-4) << "case " << i;
      }
    }
  }
}

// The weights after a step of alpha are those of plain momentum: the probe left no trace.
TEST(Darts, ProbingLeavesTheWeightsAsTheyWere) {
  ThreadPool pool(1);
  const SearchCase c = random_case(7, 6);
  std::map<int64_t, std::string> bits;
  for (const int64_t order : {1, 2}) {
    DartsSpec spec;
    spec.order = order;
    spec.batch = 6;
    spec.alpha_rate = 0;  // alpha stays, so both orders train the same network
    Darts darts = Darts::create(c.genome, c.train, c.held, spec, cpu_ops(best_isa()), pool).value();
    for (int k = 0; k < 5; ++k) ASSERT_TRUE(darts.step(c.train, c.held, 0.05).ok());
    for (const GeneCell& cell : darts.genome().cells) {
      for (const auto& [name, values] : cell.values)
        bits[order].append(name).append(reinterpret_cast<const char*>(values.data()),
                                        values.size() * sizeof(float));
    }
  }
  EXPECT_EQ(bits[1], bits[2]);
}

// ---- whole searches ----------------------------------------------------------------------------

std::vector<char> bits_of_state(const Darts& darts) {
  std::vector<char> out;
  for (const StateTensor& s : darts.state()) {
    const auto* from = reinterpret_cast<const char*>(s.tensor.data);
    out.insert(out.end(), from, from + plain_bytes(s.tensor.dtype, s.tensor.shape));
  }
  return out;
}

TEST(Darts, ThreadsAndInstructionSetsChangeNoBit) {
  const SearchCase c = random_case(11, 12);
  for (const int64_t order : {1, 2}) {
    std::vector<char> first;
    for (const Isa isa : {Isa::scalar, best_isa()}) {
      for (const int threads : {1, 2, 3, 7}) {
        ThreadPool pool(threads, true);
        DartsSpec spec;
        spec.order = order;
        spec.batch = 5;
        Darts darts = Darts::create(c.genome, c.train, c.held, spec, cpu_ops(isa), pool).value();
        for (int k = 0; k < 3; ++k) ASSERT_TRUE(darts.epoch().ok());
        if (first.empty()) first = bits_of_state(darts);
        EXPECT_EQ(bits_of_state(darts), first) << order << " " << threads;
      }
    }
  }
}

TEST(Darts, ASearchThatIsResumedHasTheBitsOfOneThatNeverStopped) {
  const core::test::TemporaryFolder folder;
  const std::string path = folder.path("darts.safetensors");
  const loom::Network net = loom::Network::from_json(
                                R"({"loom":1,"input":[4],"layers":[
         {"type":"Dense","in":4,"out":6,"activation":"relu"},{"type":"Dense","in":6,"out":3}]})")
                                .or_exit();
  std::mt19937 draw(3);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x;
  std::vector<int32_t> labels;
  for (int i = 0; i < 80 * 4; ++i) x.push_back(normal(draw));
  for (int i = 0; i < 80; ++i) labels.push_back(static_cast<int32_t>(draw() % 3));
  const loom::Dataset data = loom::Dataset::from_arrays(loom::Tensor::copy(x, {80, 4}).or_exit(),
                                                        loom::Tensor::copy(labels, {80}).or_exit())
                                 .or_exit();
  DartsOptions options;
  options.epochs = 3;
  options.batch = 10;
  const auto bytes = [](const loom::Network& of) {
    std::vector<float> all;
    for (const ParameterInfo& p : of.parameters()) {
      const loom::Tensor values = of.parameter(p.name).or_exit();
      const std::span<const float> v = values.values<float>().or_exit();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  DartsSearch whole = DartsSearch::create(net, data, options).or_exit();
  for (int e = 0; e < 3; ++e) whole.step().or_exit();
  DartsSearch half = DartsSearch::create(net, data, options).or_exit();
  half.step().or_exit();
  half.save(path).or_exit();
  DartsSearch rest = DartsSearch::load(path, data).or_exit();
  EXPECT_EQ(rest.epoch(), 1);
  while (rest.epoch() < rest.epochs()) rest.step().or_exit();
  EXPECT_EQ(bytes(rest.found().or_exit()), bytes(whole.found().or_exit()));
  EXPECT_EQ(rest.history().back().weights, whole.history().back().weights);
  EXPECT_EQ(rest.history().front().train_loss, whole.history().front().train_loss);
  EXPECT_THAT(rest.step().error().message, HasSubstr("all 3 epochs ran"));

  // Every cut of the file is refused with one line, and other samples are.
  std::string text;
  {
    std::ifstream in(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t keep = 0; keep < text.size(); keep += 1 + text.size() / 60) {
    std::ofstream(path, std::ios::binary) << text.substr(0, keep);
    const auto cut = DartsSearch::load(path, data);
    ASSERT_FALSE(cut.ok()) << keep;
    EXPECT_EQ(cut.error().message.find('\n'), std::string::npos);
  }
  std::ofstream(path, std::ios::binary) << text;
  labels[0] = (labels[0] + 1) % 3;
  const loom::Dataset other = loom::Dataset::from_arrays(loom::Tensor::copy(x, {80, 4}).or_exit(),
                                                         loom::Tensor::copy(labels, {80}).or_exit())
                                  .or_exit();
  EXPECT_THAT(DartsSearch::load(path, other).error().message, HasSubstr("other samples"));
}

// ---- alternatives of cells, and the choice -----------------------------------------------------

GridGenome genome_of_text(const std::string& text) {
  return GridGenome::of(parse_network(text, "test").value()).value();
}

TEST(DartsCells, OfEveryKindGiveNetworksThatFitAndKeepTheCellItselfFirst) {
  const char* nets[] = {
      R"({"loom":1,"input":[28,28],"layers":[{"type":"Dense","in":784,"out":16,"activation":"relu"},
          {"type":"Dense","in":16,"out":16,"activation":"tanh"},
          {"type":"Dense","in":16,"out":10}]})",
      R"({"loom":1,"input":[1,12,12],"layers":[
          {"type":"CNN2","channels":1,"filters":4,"kernel":3,"stride":2,"padding":1},
          {"type":"CNN2","channels":4,"filters":4,"kernel":3,"padding":1,"activation":"relu"},
          {"type":"Dense","in":144,"out":3}]})"};
  for (const char* text : nets) {
    const GridGenome seed = genome_of_text(text);
    const GridGenome mixed = mixed_genome(seed).value();
    const std::vector<MixedCell> cells = mixed_cells(mixed);
    ASSERT_EQ(cells.size(), seed.cells.size());
    ASSERT_TRUE(mixed.finalized(3).ok());
    std::vector<std::vector<double>> first;
    for (const MixedCell& cell : cells) {
      EXPECT_GE(cell.branches.size(), 2U);
      first.emplace_back(cell.branches.size(), 0.01)[0] = 0.9;
    }
    const BranchChoice own = choose_branches(mixed, first, 0).value();
    const GridGenome back = decided(mixed, own);
    EXPECT_EQ(write_network(back.spec().value()), write_network(seed.spec().value()));
    EXPECT_EQ(own.parameters, seed.finalized(1)->param_count());
    for (size_t c = 0; c < cells.size(); ++c) {  // each alternative works on its own as well
      for (size_t k = 0; k < cells[c].branches.size(); ++k) {
        BranchChoice one = own;
        one.branches[c] = k;
        const auto alone = decided(mixed, one).finalized(2);
        ASSERT_TRUE(alone.ok()) << cells[c].branches[k];
        std::vector<std::vector<double>> this_one = first;
        this_one[c].assign(cells[c].branches.size(), 0.01);
        this_one[c][k] = 0.9;
        EXPECT_EQ(choose_branches(mixed, this_one, 0)->parameters, alone->param_count())
            << cells[c].branches[k];
      }
    }
  }
}

TEST(DartsCells, AreChosenByTheLargestProductThatFitsTheBudget) {
  std::mt19937 draw(5);
  for (int i = 0; i < 50; ++i) {
    const SearchCase c = random_case(static_cast<uint32_t>(3000 + i), 4);
    const std::vector<MixedCell> cells = mixed_cells(c.genome);
    std::vector<std::vector<double>> weights;
    for (const MixedCell& cell : cells) {
      auto& list = weights.emplace_back();
      for (size_t k = 0; k < cell.branches.size(); ++k)
        list.push_back(0.01 + std::uniform_real_distribution<double>()(draw));
    }
    // All choices, counted by the networks that they make.
    std::vector<size_t> at(cells.size());
    std::vector<std::pair<int64_t, double>> all;
    for (bool more = true; more;) {
      BranchChoice one{at, 0, 0};
      double score = 0;
      for (size_t k = 0; k < at.size(); ++k) score += std::log(weights[k][at[k]]);
      all.emplace_back(decided(c.genome, one).finalized(1)->param_count(), score);
      more = false;
      for (size_t k = 0; k < at.size() && !more; ++k) {
        more = ++at[k] < cells[k].branches.size();
        if (!more) at[k] = 0;
      }
    }
    const int64_t budget = all[draw() % all.size()].first;
    double best = -INFINITY;
    for (const auto& [parameters, score] : all) {
      if (parameters <= budget) best = std::max(best, score);
    }
    const BranchChoice chosen = choose_branches(c.genome, weights, budget).value();
    EXPECT_LE(chosen.parameters, budget);
    EXPECT_NEAR(chosen.score, best, 1e-12);
    EXPECT_EQ(decided(c.genome, chosen).finalized(1)->param_count(), chosen.parameters);
    EXPECT_THAT(choose_branches(c.genome, weights, 1).error().message,
                HasSubstr("smallest choice"));
  }
}

TEST(Darts, RefusesWhatItCannotDo) {
  ThreadPool pool(1);
  const SearchCase c = random_case(1, 6);
  const Ops& ops = cpu_ops(best_isa());
  const auto message = [&](const GridGenome& genome, DartsSpec spec) {
    const auto made = Darts::create(genome, c.train, c.held, spec, ops, pool);
    return made.ok() ? std::string() : made.error().message;
  };
  DartsSpec large;
  EXPECT_THAT(message(c.genome, large), HasSubstr("6 samples is less than a batch of 64"));
  DartsSpec third;
  third.order = 3;
  EXPECT_THAT(message(c.genome, third), HasSubstr("order is 3"));
  DartsSpec small;
  small.batch = 6;
  GridGenome plain = c.genome;
  for (GeneCell& cell : plain.cells) {
    const LayerConfig child = cell.layer.children[0];
    cell.layer = child;
    cell.values.clear();
  }
  EXPECT_THAT(message(plain, small), HasSubstr("no mixed cell"));
  GridGenome noisy = c.genome;
  noisy.cells.push_back({make_layer(LayerKind::dropout, {}).value(), {}, {}});
  EXPECT_THAT(message(noisy, small), HasSubstr("take order 1"));
  small.order = 1;
  EXPECT_EQ(message(noisy, small), "");
  EXPECT_THAT(mixed_genome(genome_of_text(R"({"loom":1,"input":[4],"layers":[
      {"type":"LayerNorm","width":4}]})"))
                  .error()
                  .message,
              HasSubstr("no cell"));
}

}  // namespace
}  // namespace loom::core::test
