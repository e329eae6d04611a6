// Learning rules through ticks: one window on random meshes of Dense cells (links, delays, loops,
// disabled cells) against their formulas in doubles. Checks equal bits, learning, and refusals.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

#include "base/numbers/rng.hpp"
#include "learn/rules/tick_signals.hpp"
#include "mesh/mesh_rig.hpp"
#include "mesh/mesh_trainer.hpp"

namespace loom::core::mesh_test {
namespace {

int rule_cases() {
  const char* setting = std::getenv("LOOM_RANDOM_GRIDS");
  return setting != nullptr ? std::atoi(setting) : 60;
}

using Matrix = std::vector<std::vector<double>>;  // rows of the batch, or of a weight

// ---- the oracle: a slot for every cell and every tick of delay ----------------------------------

struct RuleSlot {
  int source = -1;  // -1 means the port
  bool dense = false;
  std::string activation;
  Matrix w;
  std::vector<double> b;
  int64_t fill = -1;
  std::vector<int> readers;
};

struct RuleMesh {
  MeshCase mesh;
  size_t cells = 0;
  int64_t width = 0, batch = 0;
  std::vector<RuleSlot> slots;  // cells first
};

double applied(const std::string& f, double z) {
  if (f == "tanh") return std::tanh(z);
  if (f == "sigmoid") return 1 / (1 + std::exp(-z));
  return z;
}
double slope(const std::string& f, double y) {
  if (f == "tanh") return 1 - y * y;
  if (f == "sigmoid") return y * (1 - y);
  return 1;
}

RuleMesh random_rule_mesh(uint64_t seed) {
  std::mt19937_64 draw(0x51ed2701u * (seed + 3));
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(draw() % n); };
  RuleMesh m;
  m.cells = static_cast<size_t>(2 + below(4));
  m.width = 2 + below(3);
  m.batch = 1 + below(3);
  m.mesh.grid = GridSpec(static_cast<int64_t>(m.cells), 1, 1, 1);
  m.mesh.input = Shape{m.batch, m.width};
  m.slots.resize(m.cells);
  const char* const kNames[] = {"linear", "tanh", "sigmoid"};
  std::vector<int64_t> delay(m.cells, 1);
  for (size_t k = 0; k < m.cells; ++k) {
    RuleSlot& slot = m.slots[k];
    const auto z = static_cast<int64_t>(k);
    slot.activation = kNames[below(3)];
    slot.dense = k == 0 || k + 1 == m.cells || below(6) > 0;
    Cell cell{linear(m.width, slot.activation)};
    cell.layer.disabled = !slot.dense;
    EXPECT_TRUE(m.mesh.grid.put({z, 0, 0, 0}, std::move(cell)).ok());
    slot.source = static_cast<int>(k) - 1;
    if (k == 0 || below(100) >= 45) continue;
    // A disabled cell reads an earlier one, so that it has a shape.
    const int64_t from =
        below(static_cast<uint64_t>(slot.dense ? static_cast<int64_t>(m.cells) : z));
    delay[k] = 1 + below(3);
    slot.source = static_cast<int>(from);
    MeshLink link;
    link.to = {z, 0, 0, 0};
    link.from = MeshLink::From::cell;
    link.cell = {from, 0, 0, 0};
    link.delay = delay[k];
    m.mesh.options.links.push_back(link);
  }
  std::map<std::pair<int, int64_t>, int> chains;  // source and delay in ticks
  for (size_t k = 0; k < m.cells; ++k) {
    int source = m.slots[k].source;
    for (int64_t d = 1; d < delay[k]; ++d) {
      int& next = chains.try_emplace({m.slots[k].source, d}, -1).first->second;
      if (next < 0) {
        next = static_cast<int>(m.slots.size());
        RuleSlot chain;
        chain.source = source;
        m.slots.push_back(chain);
      }
      source = next;
    }
    if (delay[k] > 1) m.slots[k].source = source;
  }
  for (size_t round = 0; round < m.slots.size(); ++round) {
    for (RuleSlot& slot : m.slots) {
      const int64_t before = slot.source < 0 ? 0 : m.slots[static_cast<size_t>(slot.source)].fill;
      if (slot.source < 0 || before > 0) slot.fill = before + 1;
    }
  }
  for (size_t k = 0; k < m.slots.size(); ++k) {
    if (m.slots[k].source >= 0)
      m.slots[static_cast<size_t>(m.slots[k].source)].readers.push_back(static_cast<int>(k));
  }
  return m;
}

Matrix zeros(int64_t rows, int64_t cols) {
  return Matrix(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(cols)));
}

struct RuleRun {
  const RuleMesh& m;
  int64_t ticks;
  std::vector<std::vector<Matrix>> u, s;              // [tick][slot]
  std::vector<std::vector<std::optional<Matrix>>> g;  // signals

  size_t out() const { return m.cells - 1; }
  bool fires(size_t k, int64_t t) const { return m.slots[k].fill > 0 && t >= m.slots[k].fill; }

  void forward(const std::vector<Matrix>& x) {
    u.assign(static_cast<size_t>(ticks) + 1,
             std::vector<Matrix>(m.slots.size(), zeros(m.batch, m.width)));
    s = u;
    for (int64_t t = 1; t <= ticks; ++t) {
      const auto now = static_cast<size_t>(t);
      for (size_t k = 0; k < m.slots.size(); ++k) {
        if (!fires(k, t)) continue;
        const RuleSlot& slot = m.slots[k];
        u[now][k] = slot.source < 0 ? x[now] : s[now - 1][static_cast<size_t>(slot.source)];
        for (size_t r = 0; r < u[now][k].size(); ++r) {
          for (size_t o = 0; o < static_cast<size_t>(m.width); ++o) {
            if (!slot.dense) {
              s[now][k][r][o] = u[now][k][r][o];
              continue;
            }
            double z = slot.b[o];
            for (size_t i = 0; i < static_cast<size_t>(m.width); ++i)
              z += slot.w[o][i] * u[now][k][r][i];
            s[now][k][r][o] = applied(slot.activation, z);
          }
        }
      }
    }
  }

  Matrix times(const Matrix& a, const Matrix& b) const {
    Matrix out = zeros(static_cast<int64_t>(a.size()), static_cast<int64_t>(b[0].size()));
    for (size_t r = 0; r < a.size(); ++r)
      for (size_t k = 0; k < b.size(); ++k)
        for (size_t c = 0; c < b[0].size(); ++c) out[r][c] += a[r][k] * b[k][c];
    return out;
  }
  static Matrix scaled(Matrix a, double by) {
    for (auto& row : a)
      for (double& v : row) v *= by;
    return a;
  }
  static void add(Matrix& to, const Matrix& a) {
    for (size_t r = 0; r < a.size(); ++r)
      for (size_t c = 0; c < a[r].size(); ++c) to[r][c] += a[r][c];
  }

  Matrix projected(const RuleSlot& slot, const Matrix& above) const {
    if (!slot.dense) return above;
    Matrix below = times(above, slot.w);
    for (size_t i = 0; i < static_cast<size_t>(m.width); ++i) {
      double size = 0;
      for (size_t o = 0; o < static_cast<size_t>(m.width); ++o) size += std::abs(slot.w[o][i]);
      for (auto& row : below)
        row[i] *= size > 0.01 ? std::sqrt(static_cast<double>(m.width)) / size : 0;
    }
    return below;
  }

  // e: [tick], dL/dS of the last cell; t: -w target.
  void signals(Rule rule, bool steady, const std::vector<Matrix>& e,
               const std::vector<Matrix>& minus, uint64_t seed) {
    g.assign(static_cast<size_t>(ticks) + 1, std::vector<std::optional<Matrix>>(m.slots.size()));
    for (int64_t t = ticks; t >= 1; --t) {
      const auto now = static_cast<size_t>(t);
      for (size_t k = 0; k < m.slots.size(); ++k) {
        const RuleSlot& slot = m.slots[k];
        if (rule == Rule::chain) {
          Matrix sum = k == out() ? e[now] : zeros(m.batch, m.width);
          for (const int j : slot.readers) {
            if (t < ticks) add(sum, through(static_cast<size_t>(j), now + 1));
          }
          g[now][k] = sum;
        } else if (k == out()) {
          g[now][k] = scaled(e[now], rule == Rule::diff_project ? 0.6 : 1.0);
        } else if (slot.fill < 0) {
          continue;
        } else if (rule == Rule::diff_project) {
          if (t == ticks) continue;
          Matrix sum = zeros(m.batch, m.width);
          double count = 0;
          for (const int j : slot.readers) {
            const auto& above = g[now + 1][static_cast<size_t>(j)];
            if (!above) continue;
            add(sum, projected(m.slots[static_cast<size_t>(j)], *above));
            ++count;
          }
          if (count > 0) g[now][k] = scaled(sum, 1 / count);
        } else if (slot.dense) {
          const int64_t then = steady ? t : t + m.slots[out()].fill - slot.fill;
          if (then < 1 || then > ticks) continue;
          const auto at = static_cast<size_t>(then);
          g[now][k] =
              times(rule == Rule::dfa ? e[at] : minus[at], random_for(seed, enabled_before(k)));
        }
      }
    }
  }

  // dL/dS of the source of slot j, from that of its output in tick `now`.
  Matrix through(size_t j, size_t now) const {
    if (!fires(j, static_cast<int64_t>(now))) return zeros(m.batch, m.width);
    Matrix d = *g[now][j];
    if (!m.slots[j].dense) return d;
    for (size_t r = 0; r < d.size(); ++r)
      for (size_t o = 0; o < d[r].size(); ++o)
        d[r][o] *= slope(m.slots[j].activation, s[now][j][r][o]);
    return times(d, m.slots[j].w);
  }

  // Matrices are drawn by the index of a cell among the enabled ones.
  size_t enabled_before(size_t k) const {
    size_t count = 0;
    for (size_t i = 0; i < k; ++i) count += m.slots[i].dense ? 1 : 0;
    return count;
  }

  Matrix random_for(uint64_t seed, size_t cell) const {
    const Rng rng(seed, (uint64_t{1} << 51) + cell);
    Matrix b = zeros(m.width, m.width);
    uint64_t i = 0;
    for (auto& row : b) {
      for (double& v : row)
        v = (2.0 * static_cast<double>(rng.uniform(i++)) - 1.0) *
            std::sqrt(3.0 / static_cast<double>(m.width));
    }
    return b;
  }

  // dW and, in its last column, db.
  Matrix gradient(size_t k) const {
    Matrix dw = zeros(m.width, m.width + 1);
    for (int64_t t = 1; t <= ticks; ++t) {
      const auto now = static_cast<size_t>(t);
      if (!fires(k, t) || !g[now][k]) continue;
      for (size_t r = 0; r < static_cast<size_t>(m.batch); ++r) {
        for (size_t o = 0; o < static_cast<size_t>(m.width); ++o) {
          const double dz = (*g[now][k])[r][o] * slope(m.slots[k].activation, s[now][k][r][o]);
          for (size_t i = 0; i < static_cast<size_t>(m.width); ++i)
            dw[o][i] += dz * u[now][k][r][i];
          dw[o][static_cast<size_t>(m.width)] += dz;
        }
      }
    }
    return dw;
  }

  double factor(size_t k, double gate) const {
    const double step = 0.1 * static_cast<double>(ticks * m.batch);
    double hh = 0, tt = 0, ht = 0;
    for (int64_t t = 1; t <= ticks; ++t) {
      const auto now = static_cast<size_t>(t);
      for (size_t r = 0; r < static_cast<size_t>(m.batch); ++r) {
        for (size_t o = 0; o < static_cast<size_t>(m.width); ++o) {
          const double h = s[now][k][r][o], target = h - step * (*g[now][k])[r][o];
          hh += h * h;
          tt += target * target;
          ht += h * target;
        }
      }
    }
    const double budget = 0.5 + 0.5 * (hh > 0 && tt > 0 ? ht / std::sqrt(hh * tt) : 0.0);
    return budget >= gate ? 0.5 + budget / 2 : 0.0;
  }
};

// ---- one window of the engine against it -------------------------------------------------------

struct RuleOptions {
  Rule rule = Rule::dfa;
  bool steady = false;
  float gate = 0;
};

MeshTrainOptions window_options(const RuleOptions& o, int64_t ticks) {
  MeshTrainOptions t;
  t.window = ticks;
  t.steady = o.steady;
  t.step.rule.kind = o.rule;
  t.step.rule.gate = o.gate;
  t.step.optimizer.kind = *parse_optimizer("sgd");
  t.step.seed = 5;
  return t;
}

const float* master_of(MeshTrainer& trainer, size_t cell, const char* name) {
  const std::string path = cat(Coord{static_cast<int64_t>(cell), 0, 0, 0}.str(), "/", name);
  for (const StateTensor& s : trainer.step().state()) {
    if (s.name == path) return s.tensor.f32();
  }
  return nullptr;
}

void compare_window(uint64_t seed, const RuleOptions& o) {
  RuleMesh m = random_rule_mesh(seed);
  SCOPED_TRACE(cat("mesh ", seed, ": ", m.mesh.str()));
  const int64_t ticks = 4 + static_cast<int64_t>(seed % 5);
  ThreadPool pool(1, true);
  Result<Network> network = packed_network(m.mesh, DType::f32, pool);
  ASSERT_TRUE(network.ok()) << network.error().str();
  Result<MeshTrainer> trainer = MeshTrainer::create(
      *network, m.mesh.grid, m.mesh.options, window_options(o, ticks), cpu_ops(best_isa()), pool);
  const bool reached = m.slots[m.cells - 1].fill > 0;
  ASSERT_EQ(trainer.ok(), reached) << (trainer.ok() ? "" : trainer.error().str());
  if (!reached) return;
  const auto width = static_cast<size_t>(m.width);
  for (size_t k = 0; k < m.cells; ++k) {
    const float *w = master_of(*trainer, k, "weight"), *b = master_of(*trainer, k, "bias");
    if (!m.slots[k].dense) continue;
    m.slots[k].w = zeros(m.width, m.width);
    for (size_t i = 0; i < width * width; ++i)
      m.slots[k].w[i / width][i % width] = static_cast<double>(w[i]);
    m.slots[k].b.assign(b, b + width);
  }
  std::mt19937_64 draw(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<Matrix> x(static_cast<size_t>(ticks) + 1, zeros(m.batch, m.width)), target = x;
  std::vector<std::vector<double>> weight(static_cast<size_t>(ticks) + 1,
                                          std::vector<double>(static_cast<size_t>(m.batch)));
  for (int64_t t = 1; t <= ticks; ++t) {
    const auto now = static_cast<size_t>(t);
    for (size_t r = 0; r < static_cast<size_t>(m.batch); ++r) {
      const size_t row = (now - 1) * static_cast<size_t>(m.batch) + r;
      for (size_t i = 0; i < width; ++i) {
        const float in = normal(draw), setting = normal(draw);
        trainer->x().f32()[row * width + i] = in;
        trainer->target().f32()[row * width + i] = setting;
        x[now][r][i] = static_cast<double>(in);
        target[now][r][i] = static_cast<double>(setting);
      }
      const bool counts = t >= m.slots[m.cells - 1].fill;
      const float share = counts ? 0.05f + 0.1f * static_cast<float>(draw() % 3) : 0.0f;
      trainer->weight().f32()[row] = share;
      weight[now][r] = static_cast<double>(share);
    }
  }
  RuleRun run{m, ticks, {}, {}, {}};
  run.forward(x);
  std::vector<Matrix> e = x, minus = x;
  for (size_t now = 1; now < e.size(); ++now) {
    for (size_t r = 0; r < e[now].size(); ++r) {
      for (size_t i = 0; i < width; ++i) {
        const double gap = run.s[now][run.out()][r][i] - target[now][r][i];
        e[now][r][i] = weight[now][r] * 2 * gap / static_cast<double>(m.width);
        minus[now][r][i] = -weight[now][r] * target[now][r][i];
      }
    }
  }
  run.signals(o.rule, o.steady, e, minus, 5);
  constexpr double kRate = 0.5;
  ASSERT_TRUE(trainer->run(kRate).ok());
  for (size_t k = 0; k < m.cells; ++k) {
    if (!m.slots[k].dense || m.slots[k].fill < 0) continue;
    const Matrix dw = run.gradient(k);
    const double factor = o.gate > 0 ? run.factor(k, static_cast<double>(o.gate)) : 1.0;
    const float *w = master_of(*trainer, k, "weight"), *b = master_of(*trainer, k, "bias");
    for (size_t r = 0; r < width; ++r) {
      for (size_t i = 0; i < width; ++i)
        EXPECT_NEAR(static_cast<double>(w[r * width + i]),
                    m.slots[k].w[r][i] - kRate * factor * dw[r][i], 5e-5 * (1 + std::abs(dw[r][i])))
            << "cell " << k;
      EXPECT_NEAR(static_cast<double>(b[r]), m.slots[k].b[r] - kRate * factor * dw[r][width],
                  5e-5 * (1 + std::abs(dw[r][width])))
          << "cell " << k;
    }
  }
}

TEST(MeshRules, StepRandomMeshesAsTheirFormulasSay) {
  const RuleOptions kinds[] = {{Rule::dfa, false, 0},          {Rule::dfa, true, 0},
                               {Rule::drtp, false, 0},         {Rule::drtp, true, 0},
                               {Rule::diff_project, false, 0}, {Rule::chain, false, 0},
                               {Rule::chain, false, 0.2f},     {Rule::chain, false, 0.45f}};
  for (const RuleOptions& o : kinds) {
    SCOPED_TRACE(cat(rule_name(o.rule), o.steady ? " steady" : "", " gate ", o.gate));
    for (int i = 0; i < rule_cases() && !testing::Test::HasFailure(); ++i)
      compare_window(static_cast<uint64_t>(i), o);
  }
}

// ---- bits, learning, refusals -------------------------------------------------------------------

struct Taught {
  std::vector<double> losses;
  std::vector<float> weights;
};

// Three sequential cells read points of a plane; the last predicts sin(2 a) + b.
Taught teach(Rule rule, int threads, Isa isa, int windows, int64_t window) {
  Taught out;
  MeshCase c;
  c.grid = GridSpec(3, 1, 1, 1);
  c.input = Shape{8, 2};
  const auto dense = [&](int64_t in, int64_t width, const char* f) {
    return Cell{made(LayerKind::dense, {{"in", in}, {"out", width}, {"activation", f}})};
  };
  EXPECT_TRUE(c.grid.put({0, 0, 0, 0}, dense(2, 24, "tanh")).ok());
  EXPECT_TRUE(c.grid.put({1, 0, 0, 0}, dense(24, 24, "tanh")).ok());
  EXPECT_TRUE(c.grid.put({2, 0, 0, 0}, dense(24, 1, "linear")).ok());
  ThreadPool pool(threads, true);
  Result<Network> network = packed_network(c, DType::f32, pool);
  EXPECT_TRUE(network.ok());
  MeshTrainOptions o;
  o.window = window;
  o.step.rule.kind = rule;
  o.step.optimizer.kind = *parse_optimizer("adam");
  Result<MeshTrainer> trainer =
      MeshTrainer::create(*network, c.grid, c.options, o, cpu_ops(isa), pool);
  EXPECT_TRUE(trainer.ok()) << trainer.error().str();
  if (!trainer.ok()) return out;
  const auto point = [&](int64_t b, int64_t t, size_t i) {
    return outside::numbers(2, 1000 + static_cast<uint64_t>(8 * std::max<int64_t>(t, 0) + b))[i];
  };
  for (int w = 0; w < windows; ++w) {
    const int64_t first = trainer->position();
    for (int64_t t = 0; t < window; ++t) {
      for (int64_t b = 0; b < 8; ++b) {
        const int64_t due = first + t - trainer->lag(), row = t * 8 + b;
        for (int64_t i = 0; i < 2; ++i)
          trainer->x().f32()[row * 2 + i] =
              static_cast<float>(point(b, first + t, static_cast<size_t>(i)));
        trainer->target().f32()[row] =
            static_cast<float>(std::sin(2 * point(b, due, 0)) + point(b, due, 1));
        trainer->weight().f32()[row] = due >= 0 ? 1.0f / static_cast<float>(8 * window) : 0.0f;
      }
    }
    const Result<StepResult> result = trainer->run(0.005);
    EXPECT_TRUE(result.ok() && result->finite);
    out.losses.push_back(result.ok() ? result->loss : NAN);
  }
  for (const StateTensor& s : trainer->step().state())
    out.weights.insert(out.weights.end(), s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  return out;
}

TEST(MeshRules, LearnAFunctionThroughTicks) {
  // An answer of 0 has a loss of 0.93. drtp pushes hidden cells by the target for any answer, so
  // they do not converge if the target is a number: a third of that loss is required.
  const std::pair<Rule, double> cases[] = {{Rule::back_propagation, 0.02},
                                           {Rule::chain, 0.02},
                                           {Rule::diff_project, 0.02},
                                           {Rule::dfa, 0.02},
                                           {Rule::drtp, 0.31}};
  for (const auto& [rule, most] : cases) {
    SCOPED_TRACE(std::string(rule_name(rule)));
    const Taught taught = teach(rule, 2, best_isa(), 300, 8);
    ASSERT_EQ(taught.losses.size(), 300u);
    double last = 0;
    for (size_t i = 280; i < 300; ++i) last += taught.losses[i] / 20;
    RecordProperty(std::string(rule_name(rule)), std::to_string(last));
    EXPECT_LT(last, most);
  }
}

TEST(MeshRules, GiveEqualBitsOverThreadsAndInstructionSets) {
  for (const Rule rule : {Rule::chain, Rule::dfa, Rule::drtp, Rule::diff_project}) {
    const Taught first = teach(rule, 1, Isa::scalar, 6, 5);
    ASSERT_FALSE(first.weights.empty());
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 2, 3, 7}) {
        const Taught other = teach(rule, threads, isa, 6, 5);
        EXPECT_EQ(other.weights, first.weights)
            << rule_name(rule) << " " << isa_name(isa) << " " << threads;
        EXPECT_EQ(other.losses, first.losses);
      }
    }
  }
}

TEST(MeshRules, OfAChainWithoutBudgetsHaveTheBitsOfBackPropagation) {
  const RuleMesh m = random_rule_mesh(4);
  std::vector<std::vector<float>> bits;
  for (const Rule rule : {Rule::back_propagation, Rule::chain}) {
    ThreadPool pool(1, true);
    Result<Network> network = packed_network(m.mesh, DType::f32, pool);
    ASSERT_TRUE(network.ok());
    Result<MeshTrainer> trainer =
        MeshTrainer::create(*network, m.mesh.grid, m.mesh.options,
                            window_options({rule, false, 0}, 6), cpu_ops(best_isa()), pool);
    ASSERT_TRUE(trainer.ok()) << trainer.error().str();
    for (int64_t i = 0; i < trainer->x().shape.count(); ++i)
      trainer->x().f32()[i] = std::sin(static_cast<float>(i));
    std::fill_n(trainer->weight().f32(), trainer->weight().shape.count(), 0.1f);
    ASSERT_TRUE(trainer->run(0.1).ok());
    auto& all = bits.emplace_back();
    for (const StateTensor& s : trainer->step().state())
      all.insert(all.end(), s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  }
  EXPECT_EQ(bits[0], bits[1]);
}

TEST(MeshRules, RefuseWhatHasNoFormThroughTicks) {
  const RuleMesh m = random_rule_mesh(4);
  ThreadPool pool(1, true);
  const auto message = [&](const RuleOptions& o) {
    Result<Network> network = packed_network(m.mesh, DType::f32, pool);
    EXPECT_TRUE(network.ok());
    const auto made = MeshTrainer::create(*network, m.mesh.grid, m.mesh.options,
                                          window_options(o, 4), cpu_ops(best_isa()), pool);
    return made.ok() ? std::string() : made.error().str();
  };
  for (const Rule rule : {Rule::dtp, Rule::fixed_dtp, Rule::forward_forward, Rule::hebb})
    EXPECT_NE(message({rule, false, 0}).find("no form through ticks"), std::string::npos);
  EXPECT_NE(message({Rule::diff_project, true, 0}).find("steady is for"), std::string::npos);
  EXPECT_NE(message({Rule::chain, false, 1.5f}).find("gate is 1.5"), std::string::npos);
}

}  // namespace
}  // namespace loom::core::mesh_test
