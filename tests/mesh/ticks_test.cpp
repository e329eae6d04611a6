// Ticks: the outputs of a mesh, tick for tick, against hand-written cases and against a mesh in
// doubles that stores its whole history.
#include <cmath>
#include <cstring>

#include "mesh/mesh_rig.hpp"

namespace loom::core::mesh_test {
namespace {

// A mesh of one row of cells over [1, width] with given matrices.
struct Row {
  explicit Row(MeshCase c, int64_t block = 0, int threads = 1) : mesh_case(std::move(c)) {
    pool = std::make_unique<ThreadPool>(threads, true);
    Result<Network> made_network = packed_network(mesh_case, DType::f32, *pool);
    EXPECT_TRUE(made_network.ok()) << made_network.error().str();
    if (!made_network.ok()) return;
    network = std::make_unique<Network>(std::move(*made_network));
    Result<Mesh> made_mesh = Mesh::create(*network, mesh_case.grid, mesh_case.options,
                                          {ActivationMode::f32, block}, cpu_ops(best_isa()), *pool);
    EXPECT_TRUE(made_mesh.ok()) << made_mesh.error().str();
    if (made_mesh.ok()) mesh = std::make_unique<Mesh>(std::move(*made_mesh));
  }
  // Every matrix becomes `scale` times the identity, every bias 0.
  void set(float scale) {
    for (size_t i = 0; i < network->params().size(); ++i) {
      const ParamSpec& spec = network->params()[i].spec;
      const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
        const int64_t cols = spec.matrix() ? spec.shape[1] : 1;
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t c = 0; c < cols; ++c)
            out[r * cols + c] = spec.matrix() && first + r == c ? scale : 0.0f;
        }
        return {};
      };
      EXPECT_TRUE(network->load_param(static_cast<int>(i), DType::f32, rows, *pool).ok());
    }
    Result<Mesh> again = Mesh::create(*network, mesh_case.grid, mesh_case.options,
                                      {ActivationMode::f32, 0}, cpu_ops(best_isa()), *pool);
    ASSERT_TRUE(again.ok()) << again.error().str();
    mesh = std::make_unique<Mesh>(std::move(*again));
  }
  float first(int slot) const { return mesh->output(slot)->f32()[0]; }

  MeshCase mesh_case;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Network> network;
  std::unique_ptr<Mesh> mesh;
};

MeshCase chain(int64_t cells, int64_t width = 2) {
  MeshCase c;
  c.grid = GridSpec(cells, 1, 1, 1);
  c.input = Shape{1, width};
  for (int64_t i = 0; i < cells; ++i) EXPECT_TRUE(c.grid.put({i, 0, 0, 0}, {linear(width)}).ok());
  return c;
}

Tensor sample(std::vector<float>& values) {
  return f32_matrix(values.data(), 1, static_cast<int64_t>(values.size()));
}

TEST(Ticks, AnImpulseCrossesFiveLayersInFiveTicksAndNotBefore) {
  Row row(chain(5));
  row.set(1.0f);
  std::vector<float> x = {3, 4}, zero = {0, 0};
  for (int t = 1; t <= 8; ++t) {
    ASSERT_TRUE(row.mesh->set_input(sample(t == 1 ? x : zero)).ok());
    ASSERT_TRUE(row.mesh->tick().ok());
    EXPECT_EQ(row.first(4), t == 5 ? 3.0f : 0.0f) << "tick " << t;
    EXPECT_EQ(row.mesh->holds(4), t >= 5) << "tick " << t;
    EXPECT_EQ(row.mesh->stale(), std::max(0, 5 - t)) << "tick " << t;
  }
}

TEST(Ticks, EverySampleOfAStreamComesOutOnceAndInOrder) {
  for (const int64_t block : {0, 4, 8}) {
    SCOPED_TRACE(cat("block ", block));
    Row row(chain(5), block);
    if (block == 0) row.set(1.0f);
    constexpr int64_t kTicks = 30;
    std::vector<float> x(kTicks * 2), y(kTicks * 2, -1.0f);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
    ASSERT_TRUE(
        row.mesh->stream(f32_matrix(x.data(), kTicks, 2), kTicks, f32_matrix(y.data(), kTicks, 2))
            .ok());
    if (block > 0) {  // other weights: the same stream a sample at a time
      Row single(chain(5), 0);
      for (size_t t = 0; t < kTicks; ++t) {
        std::vector<float> one = {x[2 * t], x[2 * t + 1]};
        ASSERT_TRUE(single.mesh->set_input(sample(one)).ok());
        ASSERT_TRUE(single.mesh->tick().ok());
        EXPECT_EQ(single.first(4), y[2 * t]) << "tick " << t + 1;
      }
      continue;
    }
    for (size_t t = 0; t < kTicks; ++t)
      EXPECT_EQ(y[2 * t], t < 4 ? 0.0f : x[2 * (t - 4)]) << "tick " << t + 1;
  }
}

// Layer 0 adds the input and layer 2's last output: y_t = f(x_{t-2} + y_{t-3}).
TEST(Ticks, AFeedbackLinkBringsTheOutputOfTheTickBefore) {
  MeshCase c;
  c.grid = GridSpec(3, 1, 1, 1);
  c.input = Shape{1, 2};
  Cell adds{made(LayerKind::residual, {})};
  adds.link = Link{{2, 0, 0, 0}, true};
  ASSERT_TRUE(c.grid.put({0, 0, 0, 0}, std::move(adds)).ok());
  ASSERT_TRUE(c.grid.put({1, 0, 0, 0}, {linear(2)}).ok());
  ASSERT_TRUE(c.grid.put({2, 0, 0, 0}, {linear(2)}).ok());
  Row row(std::move(c));
  row.set(0.5f);
  std::vector<float> xs, ys;
  const auto before = [](const std::vector<float>& all, int64_t t) {  // from tick 1
    return t < 1 ? 0.0f : all[static_cast<size_t>(t - 1)];
  };
  for (int64_t t = 1; t <= 40; ++t) {
    std::vector<float> x = {static_cast<float>(t % 7) - 3.0f, 1.0f};
    xs.push_back(x[0]);
    ASSERT_TRUE(row.mesh->set_input(sample(x)).ok());
    ASSERT_TRUE(row.mesh->tick().ok());
    ys.push_back(0.25f * (before(xs, t - 2) + before(ys, t - 3)));
    EXPECT_EQ(row.first(2), ys.back()) << "tick " << t;
  }
}

TEST(Ticks, DelaysDisabledCellsAndZeroFillTakeTheirTicks) {
  struct Case {
    const char* what;
    int64_t delay;
    bool disabled, zero_fill;
    int64_t fill;
  };
  const Case cases[] = {{"a chain", 1, false, false, 3},
                        {"a delay of four", 4, false, false, 6},
                        {"a disabled cell takes its tick", 1, true, false, 3},
                        {"zero-fill fires at once", 1, false, true, 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    MeshCase mesh = chain(3);
    if (c.disabled) {
      Cell cell{linear(2)};
      cell.layer.disabled = true;
      ASSERT_TRUE(mesh.grid.put({1, 0, 0, 0}, std::move(cell)).ok());
    }
    mesh.options.zero_fill = c.zero_fill;
    mesh.options.links = {{{2, 0, 0, 0}, MeshLink::From::as_is, {}, {}, c.delay, false}};
    Row row(std::move(mesh));
    row.set(1.0f);
    EXPECT_EQ(row.mesh->topology().slots()[2].fill, c.fill);
    std::vector<float> x = {5, 5}, zero = {0, 0};
    for (int64_t t = 1; t <= 9; ++t) {
      ASSERT_TRUE(row.mesh->set_input(sample(t == 1 ? x : zero)).ok());
      ASSERT_TRUE(row.mesh->tick().ok());
      EXPECT_EQ(row.first(2), t == 2 + c.delay ? 5.0f : 0.0f) << "tick " << t;
      EXPECT_EQ(row.mesh->holds(2), t >= c.fill) << "tick " << t;
    }
  }
}

TEST(Ticks, ResetForgetsSlotsInputsAndStates) {
  for (const bool carry : {false, true}) {
    MeshCase c;
    c.grid = GridSpec(2, 1, 1, 1);
    c.input = Shape{1, 1, 3};
    c.options.carry = carry;
    const std::vector<Field> fields = {{"in", 3}, {"hidden", 3}, {"return_sequence", true}};
    ASSERT_TRUE(c.grid.put({0, 0, 0, 0}, {made(LayerKind::lstm, fields)}).ok());
    ASSERT_TRUE(c.grid.put({1, 0, 0, 0}, {linear(3)}).ok());
    Row row(std::move(c));
    std::vector<float> x = {0.5f, -1.0f, 0.25f};
    std::vector<std::vector<float>> runs;
    for (int run = 0; run < 2; ++run) {
      std::vector<float>& all = runs.emplace_back();
      for (int t = 0; t < 5; ++t) {
        ASSERT_TRUE(row.mesh->set_input(sample(x)).ok());
        ASSERT_TRUE(row.mesh->tick().ok());
        all.push_back(row.first(1));
      }
      ASSERT_TRUE(row.mesh->reset().ok());
      EXPECT_EQ(row.mesh->ticks(), 0);
      EXPECT_FALSE(row.mesh->holds(1));
      EXPECT_EQ(row.first(1), 0.0f);
    }
    EXPECT_EQ(runs[0], runs[1]);
    // The same input repeatedly: only a carried state changes the output.
    EXPECT_EQ(runs[0][3] == runs[0][4], !carry);
  }
}

// All bits of every slot over `ticks` ticks.
std::vector<uint32_t> tick_bits(const MeshCase& mesh, DType dtype, int threads, int64_t block,
                                int64_t ticks, Isa isa = best_isa()) {
  std::vector<uint32_t> bits;
  ThreadPool pool(threads, true);
  Result<Network> network = packed_network(mesh, dtype, pool);
  if (!network.ok()) return bits;
  Result<Mesh> made_mesh = Mesh::create(*network, mesh.grid, mesh.options,
                                        {ActivationMode::q8, block}, cpu_ops(isa), pool);
  EXPECT_TRUE(made_mesh.ok()) << made_mesh.error().str() << mesh.str();
  if (!made_mesh.ok()) return bits;
  const std::vector<MeshPort>& ports = made_mesh->topology().ports();
  for (int64_t t = 0; t < ticks;) {
    for (size_t p = 0; p < ports.size(); ++p) {
      const std::vector<double> values = port_values(ports[p].shape, t, p);
      std::vector<float> x(values.begin(), values.end());
      EXPECT_TRUE(made_mesh->set_input(sample(x), static_cast<int>(p)).ok());
    }
    const int64_t some = std::min<int64_t>(ticks - t, 1 + t % 23);
    EXPECT_TRUE(made_mesh->tick(some).ok());
    t += some;
    for (size_t k = 0; k < made_mesh->topology().slots().size(); ++k) {
      const Tensor y = *made_mesh->output(static_cast<int>(k));
      const size_t at = bits.size();
      bits.resize(at + static_cast<size_t>(y.shape.count()));
      std::memcpy(&bits[at], y.data, static_cast<size_t>(y.shape.count()) * 4);
    }
  }
  return bits;
}

TEST(Ticks, TwoHundredTicksHaveTheSameBitsForAnyThreadsBlocksAndInstructionSets) {
  MeshCase mesh;
  mesh.grid = GridSpec(2, 2, 2, 1);
  mesh.input = Shape{3, 40};
  int64_t n = 0;
  for (int64_t i = 0; i < 8; ++i) {
    Cell cell{linear(40, n++ % 2 == 0 ? "tanh" : "silu")};
    if (i == 3) cell.link = Link{{1, 1, 1, 0}, true};
    if (i == 6) cell.link = Link{{0, 0, 0, 0}, false};
    ASSERT_TRUE(mesh.grid.put(mesh.grid.coord(i), std::move(cell)).ok());
  }
  ASSERT_TRUE(mesh.grid.put({1, 0, 0, 0}, {made(LayerKind::residual, {})}).ok());
  mesh.options.links = {{{1, 1, 1, 0}, MeshLink::From::cell, {0, 1, 0, 0}, {}, 3, false}};
  for (const DType dtype : {DType::f32, DType::i8, DType::ternary}) {
    const std::vector<uint32_t> want = tick_bits(mesh, dtype, 1, 0, 200);
    ASSERT_FALSE(want.empty());
    for (const int threads : {1, 2, 3, 7, 8}) {
      EXPECT_EQ(tick_bits(mesh, dtype, threads, threads % 2 == 0 ? 0 : 6, 200), want)
          << threads << " threads, " << dtype_name(dtype);
    }
    for (const Isa isa : available_isas())
      EXPECT_EQ(tick_bits(mesh, dtype, 2, -1, 200, isa), want)
          << isa_name(isa) << ", " << dtype_name(dtype);
  }
}

// The results of stream() on a random mesh: outputs and activity of slots. They must equal those of
// single ticks, computed from the slots.
void expect_stream(const MeshCase& mesh, const Network& network, int64_t block, ThreadPool& pool) {
  constexpr int64_t kTicks = 21;
  const MeshRunOptions run{ActivationMode::f32, block, true, {}};
  const Ops& ops = cpu_ops(best_isa());
  Result<Mesh> whole = Mesh::create(network, mesh.grid, mesh.options, run, ops, pool);
  Result<Mesh> single = Mesh::create(network, mesh.grid, mesh.options, run, ops, pool);
  ASSERT_TRUE(whole.ok() && single.ok());
  const std::vector<MeshPort>& ports = whole->topology().ports();
  const std::vector<MeshSlot>& slots = whole->topology().slots();
  const auto out = static_cast<size_t>(whole->topology().output());
  std::vector<float> x;
  for (size_t p = 0; p < ports.size(); ++p) {
    const std::vector<double> values = port_values(ports[p].shape, 0, p);
    std::vector<float> one(values.begin(), values.end());
    ASSERT_TRUE(whole->set_input(sample(one), static_cast<int>(p)).ok());
    ASSERT_TRUE(single->set_input(sample(one), static_cast<int>(p)).ok());
  }
  for (int64_t t = 1; t <= kTicks; ++t) {
    const std::vector<double> values = port_values(ports[0].shape, t, 0);
    x.insert(x.end(), values.begin(), values.end());
  }
  const auto n = static_cast<size_t>(slots[out].out.count());
  std::vector<float> y(static_cast<size_t>(kTicks) * n),
      active(static_cast<size_t>(kTicks) * slots.size());
  ASSERT_TRUE(whole->stream(sample(x), kTicks, sample(y), sample(active)).ok());
  const size_t each = x.size() / static_cast<size_t>(kTicks);
  for (size_t t = 0; t < static_cast<size_t>(kTicks); ++t) {
    std::vector<float> one(&x[t * each], &x[t * each] + each);
    ASSERT_TRUE(single->set_input(sample(one)).ok());
    ASSERT_TRUE(single->tick().ok());
    ASSERT_EQ(std::memcmp(single->output(static_cast<int>(out))->data, &y[t * n], n * 4), 0);
    for (size_t k = 0; k < slots.size(); ++k) {
      const float got = active[t * slots.size() + k];
      const bool empty = slots[k].delay || !single->holds(static_cast<int>(k));
      ASSERT_EQ(std::isnan(got), empty) << "tick " << t + 1 << ", " << slots[k].str();
      if (empty) continue;
      const Tensor values = *single->output(static_cast<int>(k));
      double sum = 0;
      for (int64_t i = 0; i < values.shape.count(); ++i)
        sum += std::abs(static_cast<double>(values.f32()[i]));
      const double mean = sum / static_cast<double>(values.shape.count());
      ASSERT_NEAR(static_cast<double>(got), mean, 1e-5 * std::max(mean, 1.0));
    }
  }
}

TEST(Ticks, StreamsOfRandomMeshesAreTheirTicksAndTellHowActiveSlotsAre) {
  int compared = 0;
  for (uint64_t seed = 0; seed < outside::grid_count(40) && !HasFailure(); ++seed) {
    const MeshCase mesh = random_mesh(seed, seed % 2 == 1, seed % 4 == 2);
    SCOPED_TRACE(cat("seed ", seed, "\n", mesh.str()));
    ThreadPool pool(2, true);
    const Result<Network> network = packed_network(mesh, DType::f32, pool);
    if (!network.ok()) continue;
    expect_stream(mesh, *network, seed % 3 == 0 ? 0 : 4, pool);
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST(Ticks, StreamsRefuseWhatDoesNotFit) {
  Row row(chain(2));
  std::vector<float> x(6), y(6), active(6);
  const auto says = [&](int64_t count, const Tensor& to, const Tensor& activity) {
    const Status status = row.mesh->stream(sample(x), count, to, activity);
    return status.ok() ? std::string("nothing") : status.error().message;
  };
  EXPECT_NE(says(0, {}, {}).find("0 ticks take"), std::string::npos);
  EXPECT_NE(says(4, {}, {}).find("4 ticks take"), std::string::npos);
  EXPECT_NE(says(3, {}, sample(active)).find("without a record"), std::string::npos);
  EXPECT_EQ(says(3, sample(y), {}), "nothing");
}

TEST(Ticks, RandomMeshesHaveTheSameBitsForAnyThreadsAndBlocks) {
  int made_meshes = 0;
  for (uint64_t seed = 0; seed < outside::grid_count(40); ++seed) {
    const MeshCase mesh = random_mesh(seed, seed % 2 == 1);
    const std::vector<uint32_t> want = tick_bits(mesh, DType::f32, 1, 0, 60);
    if (want.empty()) continue;
    ++made_meshes;
    for (const int threads : {2, 3, 7}) {
      ASSERT_EQ(tick_bits(mesh, DType::f32, threads, 2 * threads, 60), want)
          << "seed " << seed << ", " << threads << " threads\n"
          << mesh.str();
    }
  }
  EXPECT_GT(made_meshes, 20);
}

// Every slot of every tick, in doubles.
void expect_history(const MeshCase& mesh, const Network& network, uint64_t seed) {
  constexpr int64_t kTicks = 12;
  ThreadPool pool(1, true);
  Result<Mesh> engine = Mesh::create(network, mesh.grid, mesh.options, {ActivationMode::f32, 4},
                                     reference_ops_f64(), pool);
  ASSERT_TRUE(engine.ok()) << engine.error().str() << "\nseed " << seed << "\n" << mesh.str();
  ScalarMesh truth(mesh, network, nullptr);
  const std::vector<MeshPort>& ports = engine->topology().ports();
  for (int64_t t = 1; t <= kTicks; ++t) {
    std::vector<Array> given;
    for (size_t p = 0; p < ports.size(); ++p) {
      std::vector<double> values = port_values(ports[p].shape, t, p);
      given.push_back(outside::array_from(ports[p].shape, values));
      Tensor x;
      x.dtype = DType::f64;
      x.shape = ports[p].shape;
      x.row_stride = x.cols();
      x.data = reinterpret_cast<std::byte*>(values.data());
      ASSERT_TRUE(engine->set_input(x, static_cast<int>(p)).ok());
    }
    ASSERT_TRUE(engine->tick().ok());
    truth.tick(given);
    for (int64_t i = 0; i < mesh.grid.size(); ++i) {
      if (mesh.grid.cell(i) == nullptr) continue;
      const int slot = *engine->topology().find(mesh.grid.coord(i));
      const std::optional<Array>& want = truth.at(t, i);
      ASSERT_EQ(engine->holds(slot), want.has_value())
          << "seed " << seed << ", tick " << t << ", cell " << mesh.grid.coord(i).str() << "\n"
          << mesh.str();
      if (!want.has_value()) continue;
      const Tensor y = *engine->output(slot);
      const std::span<const double> got(y.values<double>(), want->v.size());
      ASSERT_EQ(y.shape.count(), static_cast<int64_t>(want->v.size()));
      ASSERT_LT(outside::distance(got, outside::values_of(*want), 1.0), 1e-6)
          << "seed " << seed << ", tick " << t << ", cell " << mesh.grid.coord(i).str() << "\n"
          << mesh.str();
    }
  }
}

TEST(Ticks, RandomMeshesAgreeWithTheFormulas) {
  uint64_t agreed = 0;
  const uint64_t count = outside::grid_count(400);
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    const MeshCase mesh = random_mesh(seed, seed % 2 == 1);
    const Result<Network> network = f64_network(mesh);
    if (!network.ok()) continue;  // a feedback link that a pass cannot have
    expect_history(mesh, *network, seed);
    ++agreed;
  }
  EXPECT_GT(agreed, count * 8 / 10);
}

}  // namespace
}  // namespace loom::core::mesh_test
