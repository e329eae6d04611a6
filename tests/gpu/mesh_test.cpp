// Meshes on the GPU: ticks against those of the CPU, equal runs, few submissions; training through
// ticks, by back-propagation and by rules.
#include <cstring>

#include "base/text.hpp"
#include "e2e/program.hpp"
#include "mesh/mesh_rig.hpp"

#include "gpu/training_rig.hpp"
#include "mesh/mesh_trainer.hpp"

namespace loom::core::mesh_test {
namespace {

using test::gpu;
using test::threads;

constexpr int64_t kTicks = 48;

// The results of a mesh: the last cell's output in each tick, the activity of cells, and all slots.
struct Streamed {
  std::vector<float> y, activity, slots;
  int64_t submits = 0, dispatches = 0;
  int64_t stale = 0;
};

// Random meshes, with few cells if a CPU emulates the GPU.
std::vector<MeshCase> some_meshes(size_t small, size_t large) {
  const size_t num_cases = test::all_cases() ? large : small;
  const int64_t most = gpu()->adapter().software ? 6 : 24;
  std::vector<MeshCase> meshes;
  for (uint64_t seed = 0; meshes.size() < num_cases; ++seed) {
    MeshCase mesh = random_mesh(seed, seed % 2 == 1);
    int64_t cells = 0;
    for (int64_t i = 0; i < mesh.grid.size(); ++i) cells += mesh.grid.cell(i) != nullptr ? 1 : 0;
    if (cells > 1 && cells <= most && packed_network(mesh, DType::f32, threads()).ok())
      meshes.push_back(std::move(mesh));
  }
  return meshes;
}

std::vector<float> floats(const Shape& shape, int64_t t, size_t port) {
  const std::vector<double> values = port_values(shape, t, port);
  return {values.begin(), values.end()};
}

Tensor flat(std::vector<float>& values) {
  return f32_matrix(values.data(), 1, static_cast<int64_t>(values.size()));
}

// `ticks` samples at once, after a few ticks on the input alone; other ports are set first.
Result<Streamed> stream(const MeshCase& mesh, const Network& network, const Ops& ops,
                        int64_t block) {
  MeshRunOptions run{ActivationMode::f32, block, true, {}};
  if (ops.device != nullptr) run.gather = [](bool on) { gpu()->gather(on); };
  LOOM_ASSIGN(Mesh made, Mesh::create(network, mesh.grid, mesh.options, run, ops, threads()));
  const std::vector<MeshPort>& ports = made.topology().ports();
  for (size_t p = 0; p < ports.size(); ++p) {
    std::vector<float> x = floats(ports[p].shape, 0, p);
    LOOM_TRY(made.set_input(flat(x), static_cast<int>(p)));
  }
  LOOM_TRY(made.tick(3));
  std::vector<float> x;
  for (int64_t t = 0; t < kTicks; ++t) {
    const std::vector<float> one = floats(ports[0].shape, t + 1, 0);
    x.insert(x.end(), one.begin(), one.end());
  }
  Streamed s;
  const auto out = static_cast<size_t>(made.topology().output());
  const std::vector<MeshSlot>& slots = made.topology().slots();
  s.y.resize(static_cast<size_t>(kTicks * slots[out].out.count()), -1.0f);
  s.activity.resize(static_cast<size_t>(kTicks) * slots.size(), -1.0f);
  // Ensures that no other work is pending.
  if (ops.device != nullptr) LOOM_TRY(ops.device->wait());
  const webgpu::Counts before = ops.device != nullptr ? gpu()->counts() : webgpu::Counts{};
  LOOM_TRY(made.stream(flat(x), kTicks, flat(s.y), flat(s.activity)));
  if (ops.device != nullptr) {
    s.submits = gpu()->counts().submits - before.submits;
    s.dispatches = gpu()->counts().dispatches - before.dispatches;
  }
  s.stale = made.stale();
  for (size_t k = 0; k < slots.size(); ++k) {
    LOOM_ASSIGN(const Tensor t, made.output(static_cast<int>(k)));
    s.slots.insert(s.slots.end(), t.f32(), t.f32() + t.shape.count());
  }
  return s;
}

// Compares values pairwise; both may be NaN.
void expect_near(const std::vector<float>& want, const std::vector<float>& got, double bound) {
  ASSERT_EQ(want.size(), got.size());
  std::vector<float> a, b;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(std::isnan(want[i]), std::isnan(got[i])) << i;
    if (std::isnan(want[i])) continue;
    a.push_back(want[i]);
    b.push_back(got[i]);
  }
  EXPECT_LT(test::distance(a, b), bound);
}

TEST(GpuMesh, RandomMeshesTickAsOnTheCpuInOneSubmissionAndRepeat) {
  LOOM_NEEDS_GPU();
  for (const MeshCase& mesh : some_meshes(6, 60)) {
    SCOPED_TRACE(mesh.str());
    const Result<Network> network = packed_network(mesh, DType::f32, threads());
    ASSERT_TRUE(network.ok());
    const auto cpu = stream(mesh, *network, cpu_ops(best_isa()), -1);
    ASSERT_TRUE(cpu.ok()) << cpu.error().str();
    const int64_t fallbacks = gpu()->counts().total_fallbacks();
    const auto got = stream(mesh, *network, gpu()->ops(), -1);
    ASSERT_TRUE(got.ok()) << got.error().str();
    expect_near(cpu->y, got->y, 1e-4);
    expect_near(cpu->activity, got->activity, 1e-4);
    expect_near(cpu->slots, got->slots, 1e-4);
    EXPECT_EQ(cpu->stale, got->stale);
    EXPECT_EQ(gpu()->counts().total_fallbacks(), fallbacks) << "ops ran on the CPU";
    // One submission holds 8,192 dispatches.
    EXPECT_EQ(got->submits, got->dispatches < 8000 ? 1 : 2) << got->dispatches << " dispatches";
    const auto again = stream(mesh, *network, gpu()->ops(), -1);
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_EQ(std::memcmp(again->y.data(), got->y.data(), got->y.size() * 4), 0);
    EXPECT_EQ(std::memcmp(again->slots.data(), got->slots.data(), got->slots.size() * 4), 0);
  }
}

// ---- training through ticks ----

struct Taught {
  std::vector<double> losses;
  std::vector<float> weights, y;
};

// Windows of random samples and targets; gradients reach back over the ticks of each.
Result<Taught> teach(const MeshCase& mesh, const Ops& ops, const MeshTrainOptions& options) {
  LOOM_ASSIGN(Network network, packed_network(mesh, DType::f32, threads()));
  LOOM_ASSIGN(MeshTrainer trainer,
              MeshTrainer::create(network, mesh.grid, mesh.options, options, ops, threads()));
  Taught t;
  const auto fill = [](const Tensor& to, uint64_t seed) {
    const std::vector<double> values = outside::numbers(to.shape.count(), seed);
    std::copy(values.begin(), values.end(), to.f32());
  };
  for (uint64_t w = 0; w < 3; ++w) {
    for (size_t p = 0; p < trainer.topology().ports().size(); ++p)
      fill(trainer.x(static_cast<int>(p)), 31 * w + p);
    fill(trainer.target(), 700 + w);
    const int64_t rows = trainer.weight().shape.count();
    std::fill_n(trainer.weight().f32(), rows, 1.0f / static_cast<float>(rows));
    LOOM_ASSIGN(const StepResult result, trainer.run(0.05));
    t.losses.push_back(result.loss);
  }
  LOOM_TRY(to_host(ops, {trainer.y()}));
  LOOM_TRY(trainer.step().fetch());
  t.y.assign(trainer.y().f32(), trainer.y().f32() + trainer.y().shape.count());
  for (const StateTensor& s : trainer.step().state()) {
    const float* values = s.tensor.f32();
    t.weights.insert(t.weights.end(), values, values + s.tensor.shape.count());
  }
  return t;
}

void expect_same_lessons(const MeshCase& mesh, const MeshTrainOptions& options, bool twice) {
  const auto cpu = teach(mesh, cpu_ops(best_isa()), options);
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  const int64_t fallbacks = gpu()->counts().total_fallbacks();
  const auto got = teach(mesh, gpu()->ops(), options);
  ASSERT_TRUE(got.ok()) << got.error().str();
  for (size_t i = 0; i < cpu->losses.size(); ++i)
    EXPECT_NEAR(got->losses[i], cpu->losses[i], 1e-3 * std::abs(cpu->losses[i])) << "window " << i;
  EXPECT_LT(test::distance(cpu->weights, got->weights), 1e-3);
  EXPECT_LT(test::distance(cpu->y, got->y), 1e-3);
  EXPECT_EQ(gpu()->counts().total_fallbacks(), fallbacks) << "ops ran on the CPU";
  if (!twice) return;
  const auto again = teach(mesh, gpu()->ops(), options);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(again->weights, got->weights);
}

TEST(GpuMesh, RandomMeshesLearnThroughTicksAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  int compared = 0, number = 0;
  for (const MeshCase& mesh : some_meshes(3, 40)) {
    SCOPED_TRACE(mesh.str());
    MeshTrainOptions options;
    options.step.optimizer.kind = loom::OptimizerKind::sgd;
    options.window = 5;
    options.stride = number++ % 2 == 0 ? 2 : 0;
    // A cell without any input, or a mesh that no pass could run.
    if (!teach(mesh, cpu_ops(best_isa()), options).ok()) continue;
    expect_same_lessons(mesh, options, compared == 0);
    ++compared;
  }
  EXPECT_GT(compared, 1);
}

TEST(GpuMesh, RulesThroughTicksLearnAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  MeshCase mesh;
  mesh.grid = GridSpec(3, 1, 1, 1);
  mesh.input = Shape{2, 4};
  for (int64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(mesh.grid.put({i, 0, 0, 0}, {linear(4, i < 2 ? "tanh" : "linear")}).ok());
  mesh.options.links = {{{1, 0, 0, 0}, MeshLink::From::as_is, {}, {}, 2, false}};
  for (const Rule rule : {Rule::chain, Rule::dfa, Rule::drtp, Rule::diff_project}) {
    SCOPED_TRACE(std::string(rule_name(rule)));
    MeshTrainOptions options;
    options.step.optimizer.kind = loom::OptimizerKind::sgd;
    options.step.rule.kind = rule;
    options.window = 6;
    expect_same_lessons(mesh, options, false);
  }
}

// ---- the program ----

std::vector<float> numbers_of(const std::string& csv) {
  std::vector<float> numbers;
  for (const char* at = csv.c_str(); *at != 0;) {
    char* end = nullptr;
    numbers.push_back(std::strtof(at, &end));
    if (end == at) return {};
    at = *end == 0 ? end : end + 1;
  }
  return numbers;
}

TEST(GpuMesh, TheProgramGivesWhatItGivesOnTheCpu) {
  LOOM_NEEDS_GPU();
  const test::TempFolder folder;
  std::string stream;
  for (int i = 0; i < 90; ++i) stream += cat(std::sin(0.7 * i), ",", std::cos(1.3 * i), "\n");
  const std::string data = folder.write("stream.csv", stream), net = folder.path() + "/net.json",
                    run = cat("mesh run ", net, " ", data, " --quiet --threads 1 --seed 5 ");
  ASSERT_EQ(test::run_loom("new mlp --in 2 --hidden 6,4 --out 2 --activation tanh -o " + net).code,
            0);
  std::vector<float> ys[2];
  for (const std::string device : {"cpu", "gpu"}) {
    const std::string out = cat(folder.path(), "/", device, ".csv");
    const test::Ran ran = test::run_loom(cat(run, "--device ", device, " -o ", out));
    ASSERT_EQ(ran.code, 0) << ran.err;
    ys[device == "gpu" ? 1 : 0] = numbers_of(folder.read(device + ".csv"));
  }
  EXPECT_EQ(ys[0].size(), 92u * 3);
  expect_near(ys[0], ys[1], 1e-4);
}

}  // namespace
}  // namespace loom::core::mesh_test
