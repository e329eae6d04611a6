// Variants of tiled products: they give the same bits, and how one is chosen.
#include "backend/webgpu/tuning/variants.hpp"

#include <cmath>
#include <cstdlib>

#include "backend/webgpu/tuning/trial.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

using webgpu::Choice;
using webgpu::Product;
using webgpu::TileShape;
using webgpu::Tuner;
using webgpu::Tuning;

// ---- bits ----

// Every variant if all cases run. Otherwise one of three in turn that together cover all
// differences, because compiling takes long.
std::vector<std::string> variants_for(size_t turn) {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  if (cases != nullptr && std::string_view(cases) == "all") return webgpu::variant_names();
  const std::string some[] = {"8x16 of 8x8, k 32, ahead 1, band 8",
                              "8x8 of 4x4, k 8, ahead 2, band 8",
                              "16x16 of 8x4, k 16, ahead 2, band 8"};
  return {some[turn % std::size(some)]};
}

// Forces one variant for its lifetime.
struct Forced {
  explicit Forced(const std::string& name) : status(gpu()->force_variant(name)) {}
  ~Forced() { EXPECT_TRUE(gpu()->force_variant("").ok()); }
  Status status;
};

struct Case {
  std::string name;
  std::function<Rows(const Runner&)> run;
};

Case gemm_case(int64_t rows, int64_t cols, int64_t depth, bool a_transposed, bool b_transposed) {
  return {cat("gemm ", rows, "x", cols, "x", depth), [=](const Runner& runner) {
            const Rows a(a_transposed ? depth : rows, a_transposed ? rows : depth, 3, 1,
                         Values::smooth);
            const Rows b(b_transposed ? cols : depth, b_transposed ? depth : cols, 0, 2,
                         Values::smooth);
            Rows y(rows, cols);
            runner(&Ops::gemm,
                   GemmArgs{a.tensor(), b.tensor(), y.tensor(), a_transposed, b_transposed});
            return y;
          }};
}

Case matmul_case(DType dtype, int64_t rows, int64_t cols, int64_t depth) {
  return {cat("matmul ", dtype_name(dtype), " ", rows, "x", cols, "x", depth),
          [=](const Runner& runner) {
            const Rows x(rows, depth, 0, 1, Values::smooth), bias(1, cols, 0, 5, Values::smooth);
            const Packed w(dtype, cols, depth, 2);
            Rows y(rows, cols);
            MatmulArgs args{x.tensor(), w.tensor(), bias.tensor(), y.tensor()};
            args.bias.shape = Shape{cols};
            runner(&Ops::matmul, args);
            return y;
          }};
}

Case matmul_dx_case(DType dtype, int64_t rows, int64_t cols, int64_t depth) {
  return {cat("matmul_dx ", dtype_name(dtype), " ", rows, "x", cols, "x", depth),
          [=](const Runner& runner) {
            const Rows dy(rows, depth, 0, 1, Values::smooth);
            const Packed w(dtype, depth, cols, 2);
            Rows dx(rows, cols);
            runner(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), dx.tensor()});
            return dx;
          }};
}

Case distance_case(int64_t rows, int64_t cols, int64_t depth) {
  return {cat("squared_distance ", rows, "x", cols, "x", depth), [=](const Runner& runner) {
            const Rows x(rows, depth, 0, 1, Values::smooth);
            const Packed c(DType::f32, cols, depth, 2);
            Rows y(rows, cols);
            runner(&Ops::squared_distance, SquaredDistanceArgs{x.tensor(), c.tensor(), y.tensor()});
            return y;
          }};
}

// Ragged and aligned, transposed, with parts of a sum; outputs of matmul are many enough for tiles.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      gemm_case(70, 72, 530, false, false),   gemm_case(128, 256, 320, true, true),
      gemm_case(40, 72, 2100, false, true),   gemm_case(33, 65, 17, true, false),
      matmul_case(DType::q4_0, 705, 770, 70), matmul_dx_case(DType::f32, 70, 72, 530),
      matmul_dx_case(DType::u4, 130, 64, 96), distance_case(66, 40, 300)};
  return kCases;
}

TEST(GpuVariants, EveryOneIsRightAndHasTheBitsOfTheRule) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  size_t turn = 0;
  for (const Case& c : cases()) {
    if (!has_turn("GpuVariants", turn, cases().size())) {
      ++turn;
      continue;
    }
    const Rows expected = c.run(reference_runner()), rule = c.run(other_runners()[0]);
    EXPECT_LE(distance(expected.memory(), rule.memory()), 1e-6) << c.name;
    for (const std::string& name : variants_for(turn++)) {
      const Forced forced(name);
      if (!forced.status.ok()) {
        EXPECT_EQ(forced.status.error().code, Code::unsupported) << name;
        continue;
      }
      const Rows got = c.run(other_runners()[0]);
      EXPECT_EQ(gpu()->last_variant(), name);
      EXPECT_EQ(std::memcmp(got.memory().data(), rule.memory().data(), rule.memory().size() * 4), 0)
          << c.name << " by " << name;
    }
  }
}

TEST(GpuVariants, ANameThatNoneHasIsRefused) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  EXPECT_EQ(gpu()->force_variant("7x7 of 8x8").error().code, Code::not_found);
}

// ---- the search ----

// Seconds of each run of a candidate; -1 means that it fails. The last one repeats.
struct Timed {
  std::vector<double> seconds;
  int runs = 0;
};

// Candidates differ in their step.
std::optional<int> fastest(std::vector<Timed>& candidates, double per_look = 0) {
  std::vector<TileShape> shapes;
  for (size_t i = 0; i < candidates.size(); ++i) {
    shapes.push_back({.step = static_cast<int>(i)});
  }
  const webgpu::Run run = [&](const TileShape& shape) -> Result<double> {
    Timed& timed = candidates[static_cast<size_t>(shape.step)];
    const size_t i = std::min(static_cast<size_t>(timed.runs++), timed.seconds.size() - 1);
    if (timed.seconds[i] < 0) return invalid("it does not compile");
    return timed.seconds[i];
  };
  double clock = 0;
  const auto best = webgpu::search(shapes, run, [&] { return clock += per_look; });
  if (!best.has_value()) return {};
  return best->step;
}

TEST(VariantSearch, TheLeastOfThreeRunsAfterTheFirstDecides) {
  struct Row {
    std::string what;
    std::vector<Timed> candidates;
    std::optional<int> expected;
  };
  const Row rows[] = {
      {"the fastest of all", {{{3e-3}}, {{1e-3}}, {{2e-3}}}, 1},
      {"the first of equals", {{{1e-3}}, {{1e-3}}}, 0},
      {"a slow first run does not count", {{{9e-3, 1e-3}}, {{2e-3}}}, 0},
      {"a fast first run does not count", {{{1e-3}}, {{1e-4, 2e-3}}}, 0},
      {"the least, not the last", {{{2e-3}}, {{2e-3, 1e-3, 3e-3, 3e-3}}}, 1},
      {"one that fails is not chosen", {{{-1}}, {{2e-3}}}, 1},
      {"nor one that fails later", {{{2e-3}}, {{1e-3, 1e-3, -1}}}, 0},
      {"nothing where all fail", {{{-1}}, {{-1}}}, {}},
  };
  for (Row row : rows) EXPECT_EQ(fastest(row.candidates), row.expected) << row.what;
}

TEST(VariantSearch, OneThatIsTwiceAsSlowRunsOnce) {
  std::vector<Timed> candidates = {{{1e-3}}, {{2.1e-3}}, {{1.9e-3}}};
  EXPECT_EQ(fastest(candidates), 0);
  EXPECT_EQ(candidates[0].runs, 4);
  EXPECT_EQ(candidates[1].runs, 1);
  EXPECT_EQ(candidates[2].runs, 4);
}

TEST(VariantSearch, ItEndsWhenRunsTookLong) {
  std::vector<Timed> candidates = {{{6e-3}}, {{7e-3}}, {{1e-3}}};
  EXPECT_EQ(fastest(candidates), 0);
  EXPECT_EQ(candidates[1].runs, 4) << "what was begun is ended";
  EXPECT_EQ(candidates[2].runs, 0);
}

TEST(VariantSearch, ItEndsWhenCompilingTookLong) {
  std::vector<Timed> candidates = {{{2e-6}}, {{1e-6}}, {{1e-6}}, {{1e-7}}};
  EXPECT_EQ(fastest(candidates, 0.4), 1);
  EXPECT_EQ(candidates[2].runs, 4);
  EXPECT_EQ(candidates[3].runs, 0);
}

// ---- the tuner ----

constexpr Product kLarge{Product::Kind::matmul, 2000, 4000, 1000, DType::q4_0};

// A device on which the shape with the smallest step is the fastest.
struct Rig {
  explicit Rig(Tuning tuning, bool software = false) {
    adapter.software = software;
    adapter.max_workgroup_memory = 16384;
    adapter.max_workgroup_size = 256;
    tuner = std::make_unique<Tuner>(
        adapter, tuning,
        [this](const Product& product) -> Result<webgpu::Run> {
          ++searches;
          asked = product;
          if (fails) return make_error(Code::out_of_memory, "none left");
          return webgpu::Run([](const TileShape& shape) -> Result<double> {
            return shape.step == 8 && shape.lanes() == 64 ? 1e-6 : 2e-6;
          });
        },
        [] { return 0.0; });
  }
  TileShape shape(const Product& product) { return tuner->shape_for(product, rule); }
  webgpu::AdapterReport adapter;
  std::unique_ptr<Tuner> tuner;
  int searches = 0;
  bool fails = false;
  Product asked;
  TileShape rule;
};

TEST(VariantTuner, AClassIsSearchedOnce) {
  Rig rig(Tuning::on);
  int report = 0;
  rig.tuner->on_choice([&] { ++report; });
  EXPECT_EQ(rig.shape(kLarge).step, 8);
  Product near = kLarge;
  near.rows = 2100;
  near.dtype = DType::q8_0;
  EXPECT_EQ(rig.shape(near).step, 8);
  EXPECT_EQ(rig.searches, 1);
  EXPECT_EQ(report, 1);
  EXPECT_EQ(rig.asked.rows, 2048);
  EXPECT_EQ(rig.asked.cols, 4096);
  EXPECT_EQ(rig.asked.depth, 1024);
  Product far = kLarge;
  far.kind = Product::Kind::matmul_dx;
  EXPECT_EQ(rig.shape(far).step, 8);
  EXPECT_EQ(rig.searches, 2);
}

TEST(VariantTuner, WhatDoesNotFitTheAdapterIsNotTried) {
  Rig rig(Tuning::on);
  ASSERT_TRUE(rig.shape(kLarge).bytes() <= rig.adapter.max_workgroup_memory);
  const TileShape large{16, 16, 2, 2, 16, 2, 16};
  ASSERT_NE(webgpu::find_variant(webgpu::name_of(large)), nullptr);
  EXPECT_FALSE(webgpu::fits(large, rig.adapter));
  const Choice choice{"matmul groups 2048x4096x1024", webgpu::name_of(large)};
  Rig other(Tuning::on);
  other.tuner->choose({&choice, 1});
  EXPECT_TRUE(other.tuner->choices().empty());
}

TEST(VariantTuner, TheRuleHoldsWhereNothingIsSearched) {
  struct Row {
    std::string what;
    Tuning tuning;
    bool software;
    Product product;
    bool searched;
  };
  const Product small{Product::Kind::gemm, 500, 500, 500};
  const Row rows[] = {{"a GPU", Tuning::on, false, kLarge, true},
                      {"a small product", Tuning::on, false, small, false},
                      {"tuning that is off", Tuning::off, false, kLarge, false},
                      {"a software adapter", Tuning::on, true, kLarge, false},
                      {"a software adapter that is forced", Tuning::force, true, kLarge, true}};
  for (const Row& row : rows) {
    Rig rig(row.tuning, row.software);
    EXPECT_EQ(rig.shape(row.product) != rig.rule, row.searched) << row.what;
    EXPECT_EQ(rig.searches, row.searched ? 1 : 0) << row.what;
  }
}

TEST(VariantTuner, ASearchThatFailsLeavesTheRuleAndIsNotRepeated) {
  Rig rig(Tuning::on);
  rig.fails = true;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.shape(kLarge), rig.rule);
  EXPECT_EQ(rig.searches, 1);
  EXPECT_TRUE(rig.tuner->choices().empty());
}

TEST(VariantTuner, WhatOneFoundAnotherTakesOver) {
  Rig rig(Tuning::on), other(Tuning::on);
  rig.shape(kLarge);
  std::vector<Choice> choices = rig.tuner->choices();
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].product, "matmul groups 2048x4096x1024");
  choices.push_back({"matmul f32 2048x4096x1024", "something else"});
  other.tuner->choose(choices);
  EXPECT_EQ(other.shape(kLarge).step, 8);
  EXPECT_EQ(other.searches, 0);
  EXPECT_EQ(other.tuner->choices(), rig.tuner->choices());
}

TEST(VariantTuner, NamesAreThoseOfOneVariantEach) {
  for (const TileShape& shape : webgpu::tile_variants()) {
    const TileShape* found = webgpu::find_variant(webgpu::name_of(shape));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, shape);
    EXPECT_EQ(256 % shape.step, 0) << "sums are closed every 256 k";
  }
}

// On a device: the next run is right, and the device is unchanged.
TEST(GpuVariants, OneThatTheDeviceRefusesIsAnErrorOfItsOwn) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  auto opened = webgpu::Gpu::open({.library = gpu()->adapter().library});
  ASSERT_TRUE(opened.ok()) << opened.error().str();
  // Never closed, as the other.
  webgpu::Gpu& device = *opened->release();
  const auto run = webgpu::trial(device, {Product::Kind::gemm, 64, 64, 64});
  ASSERT_TRUE(run.ok()) << run.error().str();
  EXPECT_FALSE((*run)(TileShape{.down = 64, .across = 64}).ok());
  EXPECT_TRUE(device.check().ok());
  const Result<double> seconds = (*run)(TileShape{});
  ASSERT_TRUE(seconds.ok()) << seconds.error().str();
  EXPECT_GE(*seconds, 0);
}

}  // namespace
}  // namespace loom::core::test
