// Gradients through ticks, in doubles: against the derivatives of a mesh that stores its whole
// history (outside/tape.hpp), and against central differences of the ticks.
#include "mesh/mesh_rig.hpp"

namespace loom::core::mesh_test {
namespace {

constexpr double kTolerance = 1e-6;

struct LossAt {
  int64_t tick;
  Coord cell;
};

// One window of ticks: L = sum of r y over the outputs in `losses`. The slots' values at its end
// stay in the memory.
class Window {
 public:
  Window(const MeshCase& mesh, const Network& network, const MeshMemory& memory, int64_t ticks,
         std::vector<LossAt> losses, const Ops& ops, ThreadPool& pool)
      : mesh_(mesh), losses_(std::move(losses)), ops_(ops) {
    const Status built = build(network, memory, ticks, pool);
    EXPECT_TRUE(built.ok()) << built.error().str() << "\n" << mesh.str();
    ready = built.ok();
  }

  // Ticks first + 1 ... of the stream.
  void run(int64_t first, std::vector<bool>& held) {
    const int64_t ticks = window_.x[0].shape[0];
    for (size_t p = 0; p < window_.x.size(); ++p) {
      const int64_t each = window_.x[p].shape[1];
      for (int64_t t = 1; t <= ticks; ++t) {
        const std::vector<double> x = port_values(topology_.ports()[p].shape, first + t, p);
        for (int64_t i = 0; i < each; ++i)
          put(window_.x[p], (t - 1) * each + i, x[static_cast<size_t>(i)]);
      }
    }
    std::vector<float> gates(static_cast<size_t>(ticks) * topology_.slots().size());
    fill_gates(topology_, held, ticks, ticks, gates.data());
    for (size_t i = 0; i < gates.size() && !window_.gates.empty(); ++i)
      put(window_.gates, static_cast<int64_t>(i), static_cast<double>(gates[i]));
    for (int64_t i = 0; i < r_.shape.count() && !r_.empty(); ++i) put(r_, i, r(i));
    EXPECT_TRUE(program_->run().ok());
  }
  static double r(int64_t i) { return outside::numbers(1, 300 + static_cast<uint64_t>(i))[0]; }
  double loss() const {
    double sum = 0;
    for (int64_t i = 0; i < y_.shape.count(); ++i) sum += r(i) * get(y_, i);
    return sum;
  }
  static double get(const Tensor& t, int64_t i) {
    return t.dtype == DType::f64 ? t.values<double>()[i] : static_cast<double>(t.f32()[i]);
  }
  static void put(const Tensor& t, int64_t i, double v) {
    if (t.dtype == DType::f64)
      t.values<double>()[i] = v;
    else
      t.f32()[i] = static_cast<float>(v);
  }

  bool ready = false;
  std::vector<Tensor> weights, inputs;  // gradients: per parameter, per port; empty: no influence
  const MeshTopology& topology() const { return topology_; }

 private:
  Status build(const Network& network, const MeshMemory& memory, int64_t ticks, ThreadPool& pool) {
    LOOM_ASSIGN(topology_, MeshTopology::create(network, mesh_.grid, mesh_.options));
    Trace trace(ops_.compute, true);
    UnrollOptions options;
    options.ticks = ticks;
    LOOM_ASSIGN(window_, unroll(topology_, network, memory, trace, options));
    Recorder recorder(trace);
    const int64_t each = mesh_.input.count();
    std::vector<Tensor*> pins = {&window_.step};
    if (!losses_.empty()) {
      y_ = trace.fresh(Shape{static_cast<int64_t>(losses_.size()), each});
      for (size_t i = 0; i < losses_.size(); ++i) {
        const int slot = *topology_.find(losses_[i].cell);
        const Tensor& from =
            window_.slots[static_cast<size_t>(losses_[i].tick)][static_cast<size_t>(slot)];
        LOOM_TRY(
            recorder.unary({as_matrix(from, 1, each), y_.slice_rows(static_cast<int64_t>(i), 1)}));
      }
      r_ = trace.fresh(y_.shape);
      Differentiator d(trace);
      for (const Param& p : network.params()) d.want(p.tensor);
      for (const Tensor& x : window_.x) d.want(x);
      d.seed(y_, r_);
      LOOM_TRY(d.run());
      for (const Param& p : network.params()) weights.push_back(d.gradient(p.tensor));
      for (const Tensor& x : window_.x) inputs.push_back(d.gradient(x));
      pins.push_back(&y_);
      pins.push_back(&r_);
    }
    for (auto* list : {&weights, &inputs}) {
      for (Tensor& g : *list) {
        if (!g.empty()) pins.push_back(&g);
      }
    }
    for (Tensor& x : window_.x) pins.push_back(&x);
    if (!window_.gates.empty()) pins.push_back(&window_.gates);
    const auto last = static_cast<size_t>(ticks);
    for (size_t k = 0; k < memory.slots.size(); ++k)
      LOOM_TRY(recorder.unary({window_.slots[last][k], memory.slots[k]}));
    for (size_t k = 0; k < memory.states.size(); ++k) {
      if (memory.states[k].empty()) continue;
      LOOM_TRY(recorder.unary({window_.states[last][k], memory.states[k]}));
    }
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops_, pool));
    program_ = std::make_unique<Program>(std::move(program));
    return {};
  }

  const MeshCase& mesh_;
  std::vector<LossAt> losses_;
  const Ops& ops_;
  MeshTopology topology_;
  Unrolled window_;
  Tensor y_, r_;
  std::unique_ptr<Program> program_;
};

// Ticks and their derivatives from the formulas. The first `constant` ticks are constants.
struct Truth {
  Tape tape;
  std::vector<std::vector<double>> weights, inputs;

  Truth(const MeshCase& mesh, const Network& network, const MeshTopology& topology,
        int64_t constant, int64_t ticks, const std::vector<LossAt>& losses) {
    ScalarMesh truth(mesh, network, &tape);
    std::vector<std::vector<Array>> given;
    for (int64_t t = 1; t <= constant + ticks; ++t) {
      if (t == constant + 1) truth.detach();
      std::vector<Array>& now = given.emplace_back();
      for (size_t p = 0; p < topology.ports().size(); ++p) {
        const Shape& shape = topology.ports()[p].shape;
        Array& x = now.emplace_back(outside::array_from(shape, port_values(shape, t, p)));
        for (Var& v : x.v) v = Var(v.value, tape);
      }
      truth.tick(now);
    }
    Var loss(0);
    int64_t n = 0;
    for (const LossAt& at : losses) {
      const std::optional<Array>& y = truth.at(constant + at.tick, *mesh.grid.index(at.cell));
      for (int64_t i = 0; i < mesh.input.count(); ++i, ++n) {
        if (y.has_value()) loss = loss + y->v[static_cast<size_t>(i)] * Var(Window::r(n));
      }
    }
    const std::vector<double> d = tape.derivatives(loss.at);
    const auto of = [&](const std::vector<Var>& all, std::vector<double>& out) {
      for (const Var& v : all) out.push_back(d[static_cast<size_t>(v.at)]);
    };
    for (const Param& p : network.params()) of(truth.params.at(p.path), weights.emplace_back());
    for (size_t p = 0; p < topology.ports().size(); ++p) {
      std::vector<double>& all = inputs.emplace_back();
      for (int64_t t = constant; t < constant + ticks; ++t)
        of(given[static_cast<size_t>(t)][p].v, all);
    }
  }
};

void expect_equal(const std::string& what, const std::vector<Tensor>& got,
                  const std::vector<std::vector<double>>& want, double tolerance,
                  const MeshCase& mesh) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    std::vector<double> mine(want[i].size());
    for (size_t k = 0; k < mine.size() && !got[i].empty(); ++k)
      mine[k] = Window::get(got[i], static_cast<int64_t>(k));
    EXPECT_LT(outside::distance(std::span<const double>(mine), want[i], 1e-2), tolerance)
        << what << " " << i << "\n"
        << mesh.str();
  }
}

// Three layers over [1, 1, 3]; the first adds the output of the last.
MeshCase loop() {
  MeshCase c;
  c.grid = GridSpec(4, 1, 1, 1);
  c.input = Shape{1, 1, 3};
  Cell adds{made(LayerKind::residual, {})};
  adds.link = Link{{3, 0, 0, 0}, true};
  EXPECT_TRUE(c.grid.put({0, 0, 0, 0}, std::move(adds)).ok());
  for (int64_t i = 1; i < 4; ++i) EXPECT_TRUE(c.grid.put({i, 0, 0, 0}, {linear(3, "tanh")}).ok());
  return c;
}

TEST(MeshGradients, AgreeWithCentralDifferencesOfTheTicks) {
  const MeshCase mesh = loop();
  ThreadPool pool(1, true);
  Result<Network> network = f64_network(mesh);
  ASSERT_TRUE(network.ok());
  const MeshTopology topology = *MeshTopology::create(*network, mesh.grid, mesh.options);
  Result<MeshMemory> memory = MeshMemory::create(topology, *network, reference_ops_f64());
  ASSERT_TRUE(memory.ok());
  Window window(mesh, *network, *memory, 6, {{4, {3, 0, 0, 0}}, {6, {3, 0, 0, 0}}},
                reference_ops_f64(), pool);
  ASSERT_TRUE(window.ready);
  const auto run = [&] {
    EXPECT_TRUE(memory->clear(reference_ops_f64()).ok());
    std::vector<bool> held(topology.slots().size());
    window.run(0, held);
    return window.loss();
  };
  run();
  std::vector<std::vector<double>> analytic;
  for (const Tensor& g : window.weights) {
    std::vector<double>& all = analytic.emplace_back();
    for (int64_t i = 0; i < g.shape.count(); ++i) all.push_back(Window::get(g, i));
  }
  constexpr double kStep = 1e-5;
  for (size_t p = 0; p < analytic.size(); ++p) {
    for (size_t i = 0; i < analytic[p].size(); ++i) {
      double* value = value_at(network->params()[p].tensor, static_cast<int64_t>(i));
      const double kept = *value;
      *value = kept + kStep;
      const double up = run();
      *value = kept - kStep;
      const double down = run();
      *value = kept;
      EXPECT_NEAR(analytic[p][i], (up - down) / (2 * kStep), kTolerance)
          << network->params()[p].path << " " << i;
    }
  }
}

// Windows [constant] and then [ticks] of a stream, gradients of the second.
void expect_window(const MeshCase& mesh, const Network& network, int64_t constant, int64_t ticks,
                   const std::vector<LossAt>& losses, const Ops& ops, int threads,
                   double tolerance) {
  ThreadPool pool(threads, true);
  const Result<MeshTopology> topology = MeshTopology::create(network, mesh.grid, mesh.options);
  ASSERT_TRUE(topology.ok()) << topology.error().str() << "\n" << mesh.str();
  Result<MeshMemory> memory = MeshMemory::create(*topology, network, ops);
  ASSERT_TRUE(memory.ok());
  std::vector<bool> held(topology->slots().size());
  if (constant > 0) {
    Window before(mesh, network, *memory, constant, {}, ops, pool);
    ASSERT_TRUE(before.ready);
    before.run(0, held);
  }
  Window window(mesh, network, *memory, ticks, losses, ops, pool);
  ASSERT_TRUE(window.ready);
  window.run(constant, held);
  const Truth truth(mesh, network, *topology, constant, ticks, losses);
  expect_equal("parameter", window.weights, truth.weights, tolerance, mesh);
  expect_equal("port", window.inputs, truth.inputs, tolerance, mesh);
}

TEST(MeshGradients, OfATruncatedWindowAreTheTruncatedSum) {
  const MeshCase mesh = loop();
  const Result<Network> network = f64_network(mesh);
  ASSERT_TRUE(network.ok());
  expect_window(mesh, *network, 3, 3, {{1, {3, 0, 0, 0}}, {3, {3, 0, 0, 0}}}, reference_ops_f64(),
                1, kTolerance);
}

TEST(MeshGradients, OfAChainWithFourWorkersAreThoseOfTheFormulas) {
  MeshCase mesh;
  mesh.grid = GridSpec(3, 1, 1, 1);
  mesh.input = Shape{2, 2, 5};
  for (int64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(mesh.grid.put({i, 0, 0, 0}, {linear(5, "tanh")}).ok());
  ThreadPool pool(4, true);
  const Result<Network> network = packed_network(mesh, DType::f32, pool);
  ASSERT_TRUE(network.ok());
  expect_window(mesh, *network, 0, 10, {{10, {2, 0, 0, 0}}, {5, {1, 0, 0, 0}}}, cpu_ops(best_isa()),
                4, 1e-3);
}

void expect_random(uint64_t count, bool any_width) {
  uint64_t agreed = 0;
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const MeshCase mesh = random_mesh(seed, seed % 2 == 1, any_width);
    const Result<Network> network = f64_network(mesh);
    if (!network.ok()) continue;  // a feedback link that a pass cannot have
    std::mt19937_64 random(seed);
    std::vector<Coord> cells;
    for (int64_t i = 0; i < mesh.grid.size(); ++i) {
      if (mesh.grid.cell(i) != nullptr) cells.push_back(mesh.grid.coord(i));
    }
    const int64_t ticks = 2 + static_cast<int64_t>(random() % 5);
    std::vector<LossAt> losses;
    for (int i = 0; i < 3; ++i) {
      losses.push_back({1 + static_cast<int64_t>(random() % static_cast<uint64_t>(ticks)),
                        cells[random() % cells.size()]});
    }
    expect_window(mesh, *network, seed % 3 == 0 ? 0 : static_cast<int64_t>(random() % 7), ticks,
                  losses, reference_ops_f64(), 1, kTolerance);
    ++agreed;
  }
  EXPECT_GT(agreed, count * 8 / 10);
}

TEST(MeshGradients, OfRandomMeshesAreThoseOfTheFormulas) {
  expect_random(outside::grid_count(200), false);
}

TEST(MeshGradients, OfFeedbackAndPortsOfAnyWidthAreThoseOfTheFormulas) {
  expect_random(outside::grid_count(200), true);
}

}  // namespace
}  // namespace loom::core::mesh_test
