// Training through ticks: it learns, has the same bits for any number of threads, and respects its
// budget. Also the refusals of a mesh, in one line each.
#include <cstring>

#include "mesh/mesh_rig.hpp"
#include "mesh/mesh_trainer.hpp"

namespace loom::core::mesh_test {
namespace {

// The input, and the memory of its loop, through two layers.
MeshCase memory_task(int64_t batch, bool zero_fill = false) {
  MeshCase c;
  c.grid = GridSpec(3, 1, 1, 1);
  c.input = Shape{batch, 8};
  c.options.zero_fill = zero_fill;
  Cell adds{made(LayerKind::residual, {})};
  adds.link = Link{{1, 0, 0, 0}, true};
  EXPECT_TRUE(c.grid.put({0, 0, 0, 0}, std::move(adds)).ok());
  EXPECT_TRUE(c.grid.put({1, 0, 0, 0}, {linear(8, "tanh")}).ok());
  EXPECT_TRUE(c.grid.put({2, 0, 0, 0}, {linear(8)}).ok());
  return c;
}

struct Learned {
  std::vector<double> losses;
  std::vector<uint32_t> bits;  // of the parameters
};

// Value 1 of a sample must be output two samples later as value 0: only the loop can store it.
Learned learn(const MeshCase& mesh, MeshTrainOptions options, int threads, int windows,
              DType dtype = DType::f32) {
  Learned learned;
  ThreadPool pool(threads, true);
  Result<Network> network = packed_network(mesh, dtype, pool);
  EXPECT_TRUE(network.ok());
  options.step.optimizer = *parse_optimizer("adam");
  Result<MeshTrainer> trainer =
      MeshTrainer::create(*network, mesh.grid, mesh.options, options, cpu_ops(best_isa()), pool);
  EXPECT_TRUE(trainer.ok()) << trainer.error().str();
  if (!trainer.ok()) return learned;
  const auto signal = [&](int64_t b, int64_t t) {
    return t < 0 ? 0.0f
                 : static_cast<float>(outside::numbers(1, static_cast<uint64_t>(97 * b + t))[0]);
  };
  const int64_t batch = mesh.input[0], k = trainer->window();
  for (int w = 0; w < windows; ++w) {
    const int64_t first = trainer->position();
    std::fill_n(trainer->x().f32(), trainer->x().shape.count(), 0.0f);
    std::fill_n(trainer->target().f32(), trainer->target().shape.count(), 0.0f);
    for (int64_t t = 0; t < k; ++t) {
      for (int64_t b = 0; b < batch; ++b) {
        trainer->x().f32()[(t * batch + b) * 8 + 1] = signal(b, first + t);
        trainer->target().f32()[(t * batch + b) * 8] = signal(b, first + t - trainer->lag() - 2);
        const bool counts = first == 0 ? t >= trainer->lag() : t >= k - trainer->stride();
        trainer->weight().f32()[t * batch + b] =
            counts ? 1.0f / static_cast<float>(k * batch) : 0.0f;
      }
    }
    const Result<StepResult> result = trainer->run(0.01);
    EXPECT_TRUE(result.ok()) << result.error().str();
    if (!result.ok()) return learned;
    EXPECT_TRUE(result->finite);
    learned.losses.push_back(result->loss);
  }
  for (const StateTensor& s : trainer->step().state()) {
    if (s.tensor.dtype != DType::f32) continue;
    const size_t at = learned.bits.size();
    learned.bits.resize(at + static_cast<size_t>(s.tensor.shape.count()));
    std::memcpy(&learned.bits[at], s.tensor.data, static_cast<size_t>(s.tensor.shape.count()) * 4);
  }
  return learned;
}

double last_of(const Learned& l) {
  double sum = 0;
  for (size_t i = l.losses.size() - 10; i < l.losses.size(); ++i) sum += l.losses[i] / 10;
  return sum;
}

TEST(MeshTraining, LearnsToRememberWhatOnlyGradientsThroughTicksReach) {
  struct Case {
    const char* what;
    int64_t window, stride;
    bool zero_fill;
    DType dtype;
    double at_most;
  };
  // An answer of zero has a loss of 1/24: a value in [-1, 1] among eight. A window of one tick
  // cannot train the loop. The last layer still learns from what its initial weights happen to
  // store. Its loss must stay at twenty times that of longer windows.
  const Case cases[] = {{"eight ticks", 8, 0, false, DType::f32, 0.001},
                        {"windows that overlap", 8, 4, false, DType::f32, 0.001},
                        {"zero-fill", 8, 0, true, DType::f32, 0.001},
                        {"eight-bit weights", 8, 0, false, DType::i8, 0.001}};
  double best = 1, worst = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    MeshTrainOptions options;
    options.window = c.window;
    options.stride = c.stride;
    const Learned learned = learn(memory_task(4, c.zero_fill), options, 2, 400, c.dtype);
    ASSERT_EQ(learned.losses.size(), 400u);
    EXPECT_GT(learned.losses[0], 2 * c.at_most);
    EXPECT_LT(last_of(learned), c.at_most);
    best = std::min(best, last_of(learned));
    worst = std::max(worst, last_of(learned));
  }
  RecordProperty("best", std::to_string(best));
  RecordProperty("worst", std::to_string(worst));
  MeshTrainOptions blind;
  blind.window = 1;
  EXPECT_GT(last_of(learn(memory_task(4), blind, 2, 400)), 20 * worst);
}

TEST(MeshTraining, HasTheSameBitsForAnyNumberOfThreads) {
  MeshTrainOptions options;
  options.window = 6;
  options.stride = 3;
  const Learned want = learn(memory_task(5), options, 1, 20);
  ASSERT_FALSE(want.bits.empty());
  for (const int threads : {2, 3, 7}) {
    const Learned got = learn(memory_task(5), options, threads, 20);
    EXPECT_EQ(got.bits, want.bits) << threads << " threads";
    EXPECT_EQ(got.losses, want.losses) << threads << " threads";
  }
}

// The second of two BatchNorms is reached in the second of four ticks.
TEST(MeshTraining, MovesBuffersInTheTicksInWhichTheirSlotFires) {
  MeshCase c;
  c.grid = GridSpec(3, 1, 1, 1);
  c.input = Shape{2, 8};
  const std::vector<Field> fields = {{"channels", 8}, {"momentum", 0.5}, {"affine", false}};
  EXPECT_TRUE(c.grid.put({0, 0, 0, 0}, {made(LayerKind::batch_norm, fields)}).ok());
  EXPECT_TRUE(c.grid.put({1, 0, 0, 0}, {made(LayerKind::batch_norm, fields)}).ok());
  EXPECT_TRUE(c.grid.put({2, 0, 0, 0}, {linear(8)}).ok());
  ThreadPool pool(2, true);
  Result<Network> network = packed_network(c, DType::f32, pool);
  ASSERT_TRUE(network.ok());
  for (const Param& p : network->params()) {
    if (!p.spec.trained) std::fill_n(p.tensor.f32(), 8, p.spec.name == "running_var" ? 1.0f : 0.0f);
  }
  MeshTrainOptions options;
  options.window = 4;
  Result<MeshTrainer> trainer =
      MeshTrainer::create(*network, c.grid, c.options, options, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(trainer.ok()) << trainer.error().str();
  ASSERT_EQ(trainer->window(), 4);
  for (int64_t i = 0; i < trainer->x().shape.count(); ++i)
    trainer->x().f32()[i] = i / 8 % 2 == 0 ? 10.0f : -30.0f;
  ASSERT_TRUE(trainer->run(0.0).ok());
  // The unbiased variance of -1 and 1 is 2: each update halves the distance to it.
  for (const Param& p : network->params()) {
    if (p.spec.name != "running_var") continue;
    const bool first = p.cell == Coord{0, 0, 0, 0};
    const float want = first ? 800.0f - 799.0f / 16.0f : 2.0f - 1.0f / 8.0f;
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(p.tensor.f32()[i], want, 1e-3f * want) << p.path;
  }
}

TEST(MeshTraining, TakesNoMoreThanItsPlanAndAsksTheBudgetFirst) {
  const MeshCase mesh = memory_task(4);
  ThreadPool pool(1, true);
  Result<Network> network = packed_network(mesh, DType::f32, pool);
  ASSERT_TRUE(network.ok());
  const Ops& ops = cpu_ops(best_isa());
  MeshTrainOptions options;
  int64_t before = 0;
  for (const int64_t window : {2, 16, 128}) {
    options.window = window;
    options.budget = 0;
    const Result<int64_t> planned =
        MeshTrainer::planned_bytes(*network, mesh.grid, mesh.options, options, ops);
    ASSERT_TRUE(planned.ok());
    EXPECT_GT(*planned, before);
    before = *planned;
    options.budget = static_cast<uint64_t>(*planned);
    const Result<MeshTrainer> fits =
        MeshTrainer::create(*network, mesh.grid, mesh.options, options, ops, pool);
    ASSERT_TRUE(fits.ok()) << fits.error().str();
    // Commands and lanes' scratch do not grow with the values.
    EXPECT_LT(fits->bytes(), *planned + (int64_t{4} << 20));
    options.budget = static_cast<uint64_t>(*planned) - 1;
    const Result<MeshTrainer> no =
        MeshTrainer::create(*network, mesh.grid, mesh.options, options, ops, pool);
    ASSERT_FALSE(no.ok());
    EXPECT_EQ(no.error().code, Code::out_of_memory);
    EXPECT_NE(no.error().message.find(cat("through ", window, " ticks takes")), std::string::npos);
    EXPECT_EQ(no.error().message.find('\n'), std::string::npos);
  }
}

TEST(MeshTraining, RefusesWindowsThatCannotBe) {
  const MeshCase mesh = memory_task(1);
  ThreadPool pool(1, true);
  Result<Network> network = packed_network(mesh, DType::f32, pool);
  ASSERT_TRUE(network.ok());
  struct Case {
    int64_t window, stride;
    std::optional<Coord> output;
    const char* message;
  };
  const Case cases[] = {{0, 0, {}, "a window of 0 ticks"},
                        {4, 5, {}, "a stride of 5 ticks"},
                        {4, -1, {}, "a stride of -1 ticks"},
                        {4, 0, Coord{9, 0, 0, 0}, "the mesh has no cell (9, 0, 0, 0)"}};
  for (const Case& c : cases) {
    MeshTrainOptions options;
    options.window = c.window;
    options.stride = c.stride;
    options.output = c.output;
    const Result<MeshTrainer> no =
        MeshTrainer::create(*network, mesh.grid, mesh.options, options, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(no.ok()) << c.message;
    EXPECT_NE(no.error().message.find(c.message), std::string::npos) << no.error().message;
  }
}

struct Refused {
  const char* what;
  std::function<void(MeshOptions&)> change;
  const char* message;
};

TEST(MeshTopologies, RefuseWhatDoesNotMeetInOneLine) {
  MeshCase mesh;
  mesh.grid = GridSpec(3, 1, 1, 1);
  mesh.input = Shape{2, 3};
  const auto dense = [](int64_t in, int64_t out) {
    return made(LayerKind::dense, {{"in", in}, {"out", out}});
  };
  ASSERT_TRUE(mesh.grid.put({0, 0, 0, 0}, {dense(3, 5)}).ok());
  ASSERT_TRUE(mesh.grid.put({1, 0, 0, 0}, {dense(5, 3)}).ok());
  ASSERT_TRUE(mesh.grid.put({2, 0, 0, 0}, {dense(3, 3)}).ok());
  ThreadPool pool(1, true);
  Result<Network> network = packed_network(mesh, DType::f32, pool);
  ASSERT_TRUE(network.ok());
  using From = MeshLink::From;
  const auto link = [](Coord to, From from, Coord cell, std::string port, int64_t delay,
                       bool second = false) {
    return [=](MeshOptions& o) { o.links = {{to, from, cell, port, delay, second}}; };
  };
  const Coord a{0, 0, 0, 0}, b{1, 0, 0, 0}, c{2, 0, 0, 0}, nowhere{7, 0, 0, 0};
  const Refused cases[] = {
      {"to nowhere", link(nowhere, From::cell, a, "", 1), "a link goes to (7, 0, 0, 0)"},
      {"from nowhere", link(c, From::cell, nowhere, "", 1),
       "cell (2, 0, 0, 0) is linked to (7, 0, 0, 0), where the mesh has no cell"},
      {"widths", link(c, From::cell, a, "", 1), "cell (2, 0, 0, 0) does not fit cell (0, 0, 0, 0)"},
      {"widths after a delay", link(c, From::cell, a, "", 3),
       "cell (2, 0, 0, 0) does not fit the delayed cell (0, 0, 0, 0)"},
      {"no delay", link(c, From::cell, b, "", 0), "has a delay of 0 ticks"},
      {"no such port", link(b, From::port, {}, "eye", 1), "the port 'eye'"},
      {"a second input of a layer without", link(b, From::cell, a, "", 1, true),
       "takes no second input"},
      {"a port twice",
       [](MeshOptions& o) {
         o.ports = {{"input", Shape{3}}};
       },
       "needs a name of its own"},
      {"a port without a shape",
       [](MeshOptions& o) {
         o.ports = {{"eye", Shape{}}};
       },
       "needs the shape of one sample"},
  };
  for (const Refused& r : cases) {
    SCOPED_TRACE(r.what);
    MeshOptions options;
    r.change(options);
    const Result<Mesh> no =
        Mesh::create(*network, mesh.grid, options, {}, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(no.ok());
    EXPECT_EQ(no.error().code, Code::invalid_argument);
    EXPECT_NE(no.error().message.find(r.message), std::string::npos) << no.error().message;
    EXPECT_EQ(no.error().message.find('\n'), std::string::npos);
  }
  Result<Mesh> made_mesh = Mesh::create(*network, mesh.grid, {}, {}, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(made_mesh.ok());
  std::vector<float> x(8);
  const Status wide = made_mesh->set_input(f32_matrix(x.data(), 2, 4));
  ASSERT_FALSE(wide.ok());
  EXPECT_NE(wide.error().message.find("the port 'input' takes [2, 3] in float32, got [2, 4]"),
            std::string::npos)
      << wide.error().message;
  EXPECT_FALSE(made_mesh->stream(f32_matrix(x.data(), 2, 4), 2, {}).ok());
}

}  // namespace
}  // namespace loom::core::mesh_test
