// The volumetric network: coordinates, finalize-time checks that name both cells, sharing, memory
// and reuse.
#include <gtest/gtest.h>

#include "backend/cpu/cpu.hpp"
#include "base/arena.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/rope_table.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

Cell dense(int in, int out) {
  return {layer(LayerKind::dense, {{"in", in}, {"out", out}}), {}};
}

TEST(GridSpec, NumbersCellsZThenYThenXThenL) {
  const GridSpec grid(2, 3, 4, 5);
  EXPECT_EQ(*grid.index({1, 2, 3, 4}), 119);
  EXPECT_EQ(*grid.index({0, 1, 0, 2}), 22);
  for (int64_t i = 0; i < grid.size(); ++i) EXPECT_EQ(*grid.index(grid.coord(i)), i);
}

TEST(GridSpec, ChecksEveryAxisOnItsOwn) {
  GridSpec grid(2, 3, 4, 5);
  const Status status = grid.put({0, 0, 4, 0}, dense(1, 1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().str(),
            "cell (0, 0, 4, 0) is outside the grid 2 x 3 x 4 x 5: x must be from 0 to 3");
}

TEST(Finalize, NamesBothCellsWhenShapesDoNotFit) {
  GridSpec grid(1, 1, 2, 1);
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, dense(4, 6)).ok());
  ASSERT_TRUE(grid.put({0, 0, 1, 0}, dense(5, 2)).ok());
  const Result<Network> network = Network::finalize(grid, Shape{1, 4});
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().str(),
            "cell (0, 0, 1, 0) does not fit cell (0, 0, 0, 0): Dense: input [1, 6] must end in 5, "
            "or have that many values per sample");
}

TEST(Finalize, RefusesAnEmptyGridABadResidualAndSharingWithNothing) {
  EXPECT_FALSE(Network::finalize(GridSpec(1, 1, 1, 1), Shape{1, 4}).ok());
  GridSpec bad(1, 1, 1, 1);
  std::vector<LayerConfig> children(1, dense(4, 6).layer);
  ASSERT_TRUE(bad.put({0, 0, 0, 0}, {layer(LayerKind::residual, {}, children), {}}).ok());
  const Result<Network> network = Network::finalize(bad, Shape{1, 4});
  ASSERT_FALSE(network.ok());
  EXPECT_NE(network.error().message.find("the shape must stay the same"), std::string::npos);
  GridSpec shared(1, 1, 1, 1);
  Cell cell = dense(4, 4);
  cell.shared_with = Coord{0, 0, 0, 0};
  ASSERT_TRUE(shared.put({0, 0, 0, 0}, cell).ok());
  EXPECT_FALSE(Network::finalize(shared, Shape{1, 4}).ok());
}

// A row of two cells; the second shares the weights of the first.
Result<Network> sharing(LayerConfig owner, LayerConfig user, const Shape& input,
                        std::optional<DType> dtype = {}) {
  GridSpec grid(1, 1, 2, 1);
  EXPECT_TRUE(grid.put({0, 0, 0, 0}, {std::move(owner), {}}).ok());
  EXPECT_TRUE(grid.put({0, 0, 1, 0}, {std::move(user), Coord{0, 0, 0, 0}, {}, dtype}).ok());
  return Network::finalize(grid, input);
}

TEST(Finalize, AllParametersOfASharedCellExistOnce) {
  const LayerConfig norm = layer(LayerKind::layer_norm, {{"width", 4}});
  const LayerConfig gated = layer(LayerKind::swiglu, {{"width", 4}, {"inner", 6}, {"bias", true}});
  const std::vector<std::pair<LayerConfig, size_t>> cases = {
      {dense(4, 4).layer, 2},
      {layer(LayerKind::rms_norm, {{"width", 4}}), 1},
      {norm, 2},
      {gated, 6},
      {layer(LayerKind::residual, {}, {norm, gated}), 8},
      {layer(LayerKind::parallel, {{"combine", "add"}}, {dense(4, 4).layer, norm}), 4},
      {layer(LayerKind::gru, {{"in", 4}, {"hidden", 4}}), 4},
  };
  for (const auto& [shared, count] : cases) {
    const Result<Network> network = sharing(shared, shared, Shape{1, 4});
    ASSERT_TRUE(network.ok()) << network.error().str();
    EXPECT_EQ(network->params().size(), count) << shared.def->name;
  }
}

TEST(Finalize, AMatrixMayBeSharedByALayerThatNeedsNothingElse) {
  const LayerConfig head = layer(LayerKind::dense, {{"in", 4}, {"out", 9}, {"bias", false}});
  const Result<Network> tied =
      sharing(layer(LayerKind::embedding, {{"vocab", 9}, {"width", 4}}), head, Shape{1, 3});
  ASSERT_TRUE(tied.ok()) << tied.error().str();
  EXPECT_EQ(tied->params().size(), 1u);
}

TEST(Finalize, RefusesACellThatCouldShareOnlyAPart) {
  const LayerConfig norm = layer(LayerKind::rms_norm, {{"width", 4}});
  const auto plain = [](int64_t in, int64_t out) {
    return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"bias", false}});
  };
  const auto in_sequence = [](std::vector<LayerConfig> children) {
    return layer(LayerKind::sequential, {}, std::move(children));
  };
  const struct {
    LayerConfig owner, user;
    std::string message;
  } cases[] = {
      {plain(4, 4), dense(4, 4).layer,
       "(0, 0, 1, 0)/bias has no counterpart in cell (0, 0, 0, 0), whose weights it shares; "
       "make the two layers alike, or share nothing"},
      {plain(4, 4), plain(4, 3),
       "cannot share (0, 0, 0, 0)/weight [4, 4] as (0, 0, 1, 0)/weight [3, 4]: the shapes differ"},
      {in_sequence({norm}), in_sequence({norm, plain(4, 4)}),
       "(0, 0, 1, 0)/1/weight has no counterpart in cell (0, 0, 0, 0), whose weights it "
       "shares; make the two layers alike, or share nothing"},
      {norm, in_sequence({norm}),
       "(0, 0, 1, 0)/0/gamma has no counterpart in cell (0, 0, 0, 0), whose weights it "
       "shares; make the two layers alike, or share nothing"},
  };
  for (const auto& c : cases) {
    const Result<Network> network = sharing(c.owner, c.user, Shape{1, 4});
    ASSERT_FALSE(network.ok());
    EXPECT_EQ(network.error().message, c.message);
  }
}

TEST(Finalize, RefusesANumberTypeForWeightsOfAnotherCell) {
  const Result<Network> network =
      sharing(dense(4, 4).layer, dense(4, 4).layer, Shape{1, 4}, DType::i8);
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().message,
            "cell (0, 0, 1, 0) shares weights with (0, 0, 0, 0) and cannot hold them in another "
            "number type; give the type there");
}

TEST(Finalize, RefusesIdsThatAreNotTheInput) {
  GridSpec grid(1, 1, 2, 1);
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, dense(4, 4)).ok());
  ASSERT_TRUE(
      grid.put({0, 0, 1, 0}, {layer(LayerKind::embedding, {{"vocab", 9}, {"width", 4}}), {}}).ok());
  const Result<Network> network = Network::finalize(grid, Shape{1, 4});
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().message,
            "cell (0, 0, 1, 0) takes integers (ids), which only the input holds; cell "
            "(0, 0, 0, 0) gives others");
}

struct FeedbackCase {
  const char* what;
  Shape input;
  std::vector<LayerConfig> layers;
  std::vector<std::pair<int64_t, int64_t>> links;  // reader and source
  std::string want;                                // shapes of outputs, or a part of the Error
};

LayerConfig wide(int64_t in, int64_t out) {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}});
}
LayerConfig cnn(int64_t channels, int64_t filters, int64_t stride = 1) {
  return layer(LayerKind::cnn2,
               {{"channels", channels}, {"filters", filters}, {"padding", 1}, {"stride", stride}});
}
LayerConfig of_any_width() {
  return layer(LayerKind::softmax, {});
}

std::vector<FeedbackCase> feedback_cases() {
  const LayerConfig flatten = layer(LayerKind::flatten, {});
  const LayerConfig residual = layer(LayerKind::residual, {});
  return {
      {"a later cell that follows from the reader",
       Shape{2, 4},
       {wide(4, 3), wide(2, 5), wide(5, 2)},
       {{1, 2}},
       "[2, 3] [2, 5] [2, 2]"},
      {"the reader itself", Shape{2, 4}, {wide(4, 3), wide(7, 7)}, {{1, 1}}, "[2, 3] [2, 7]"},
      {"the reader itself, of another width",
       Shape{2, 4},
       {wide(4, 3), wide(7, 8)},
       {{1, 1}},
       "cell (0, 0, 1, 0) takes [2, 7], but the feedback from (0, 0, 1, 0) brings [2, 8]"},
      {"a layer of any width, whose reader says it",
       Shape{2, 4},
       {wide(4, 3), of_any_width(), wide(2, 5), wide(5, 2)},
       {{1, 3}},
       "[2, 3] [2, 2] [2, 5] [2, 2]"},
      {"through a layer of any width",
       Shape{2, 4},
       {wide(4, 3), wide(2, 5), wide(5, 2), of_any_width()},
       {{1, 3}},
       "[2, 3] [2, 5] [2, 2] [2, 2]"},
      {"two loops inside of each other",
       Shape{2, 4},
       {wide(4, 3), wide(6, 2), wide(9, 6), wide(6, 9)},
       {{1, 2}, {2, 3}},
       "[2, 3] [2, 2] [2, 6] [2, 9]"},
      {"two loops that cross",
       Shape{2, 4},
       {of_any_width(), wide(5, 6), of_any_width(), wide(7, 5), wide(5, 7)},
       {{0, 3}, {2, 4}},
       "[2, 5] [2, 6] [2, 7] [2, 5] [2, 7]"},
      {"the first cell", Shape{2, 4}, {wide(3, 5), wide(5, 3)}, {{0, 1}}, "[2, 5] [2, 3]"},
      {"steps",
       Shape{2, 6, 4},
       {wide(4, 3), wide(2, 5), wide(5, 2)},
       {{1, 2}},
       "[2, 6, 3] [2, 6, 5] [2, 6, 2]"},
      {"pictures",
       Shape{2, 3, 8, 8},
       {cnn(3, 8), cnn(4, 6), cnn(6, 4)},
       {{1, 2}},
       "[2, 8, 8, 8] [2, 6, 8, 8] [2, 4, 8, 8]"},
      {"images that shrink in the loop until they are whole",
       Shape{2, 3, 8, 8},
       {cnn(3, 8), cnn(4, 6), cnn(6, 4, 2)},
       {{1, 2}},
       "[2, 8, 8, 8] [2, 6, 1, 1] [2, 4, 1, 1]"},
      {"numbers in place of images",
       Shape{2, 3, 4, 4},
       {cnn(3, 8), wide(5, 6), wide(6, 5)},
       {{1, 2}},
       "[2, 8, 4, 4] [2, 8, 4, 6] [2, 8, 4, 5]"},
      {"numbers of a flattened image",
       Shape{2, 3, 2, 2},
       {cnn(3, 2), flatten, wide(8, 5), wide(7, 9), wide(9, 7)},
       {{3, 4}},
       "[2, 2, 2, 2] [2, 8] [2, 5] [2, 9] [2, 7]"},
      {"a second input of another width",
       Shape{2, 4},
       {wide(4, 3), residual, wide(3, 2)},
       {{1, 2}},
       "cell (0, 0, 1, 0) takes [2, 3], but the feedback from (0, 0, 2, 0) brings [2, 2]"},
      {"any width, and a reader that takes two",
       Shape{2, 2, 3},
       {wide(3, 3), of_any_width(), of_any_width(), wide(12, 4)},
       {{1, 2}},
       "the feedback from cell (0, 0, 2, 0) to cell (0, 0, 1, 0) fits [2, 2, 12] and [2, 2, 6]; "
       "put "
       "a layer of one width, as a Dense, between the two"},
      {"any width, and a reader that takes one",
       Shape{2, 2, 3},
       {wide(3, 3), of_any_width(), of_any_width(), wide(7, 4)},
       {{1, 2}},
       "[2, 2, 3] [2, 2, 7] [2, 2, 7] [2, 2, 4]"},
      {"a width that no cell gives",
       Shape{2, 4},
       {wide(4, 3), wide(6, 5), wide(5, 2)},
       {{1, 2}},
       "cell (0, 0, 1, 0) takes [2, 6], but the feedback from (0, 0, 2, 0) brings [2, 2]"},
  };
}

TEST(Finalize, AFeedbackLinkBringsTheShapeOfItsSource) {
  for (const FeedbackCase& c : feedback_cases()) {
    SCOPED_TRACE(c.what);
    GridSpec grid(1, 1, std::ssize(c.layers), 1);
    for (int64_t i = 0; i < std::ssize(c.layers); ++i) {
      Cell cell{c.layers[static_cast<size_t>(i)]};
      for (const auto& [reader, source] : c.links) {
        if (reader == i) cell.link = Link{{0, 0, source, 0}, true};
      }
      ASSERT_TRUE(grid.put({0, 0, i, 0}, std::move(cell)).ok());
    }
    const Result<Network> network = Network::finalize(grid, c.input);
    std::string got = network.ok() ? "" : network.error().message;
    for (size_t i = 0; network.ok() && i < network->cells().size(); ++i)
      got += cat(i > 0 ? " " : "", network->cells()[i].out.str());
    EXPECT_EQ(got, c.want);
  }
}

// A Dense takes all values of a sample, or each step alone. With fewer steps only the latter fits,
// which would be another network.
TEST(Finalize, AShorterPassHasNoLoopOfOtherShapes) {
  GridSpec grid(1, 1, 3, 1);
  const Link back{{0, 0, 2, 0}, true};
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, Cell{wide(3, 3)}).ok());
  Cell reader{wide(6, 6)};
  reader.link = back;
  ASSERT_TRUE(grid.put({0, 0, 1, 0}, std::move(reader)).ok());
  ASSERT_TRUE(grid.put({0, 0, 2, 0},
                       Cell{layer(LayerKind::view, {{"shape", std::vector<int64_t>{0, -1, 3}}})})
                  .ok());
  const Result<Network> network = Network::finalize(grid, Shape{2, 2, 3});
  ASSERT_TRUE(network.ok()) << network.error().str();
  EXPECT_EQ(network->cells()[1].out.str(), "[2, 6]");
  const auto same = network->shapes(Shape{1, 2, 3});
  ASSERT_TRUE(same.ok()) << same.error().str();
  EXPECT_EQ((*same)[1].out.str(), "[1, 6]");
  const auto shorter = network->shapes(Shape{2, 1, 3});
  ASSERT_TRUE(shorter.ok()) << shorter.error().str();
  EXPECT_EQ((*shorter)[1].out.str(), "[2, 6]");
}

TEST(Finalize, SkipsEmptyAndDisabledCells) {
  GridSpec grid(2, 1, 1, 1);
  Cell off = dense(9, 9);
  off.layer.disabled = true;
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, off).ok());
  ASSERT_TRUE(grid.put({1, 0, 0, 0}, dense(4, 2)).ok());
  const Result<Network> network = Network::finalize(grid, Shape{1, 4});
  ASSERT_TRUE(network.ok()) << network.error().str();
  EXPECT_EQ(network->cells().size(), 1u);
}

TEST(Session, RefusesANetworkWhoseWeightsWereNotLoaded) {
  GridSpec grid(1, 1, 1, 1);
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, dense(4, 2)).ok());
  const Result<Network> network = Network::finalize(grid, Shape{1, 4});
  ThreadPool pool(1);
  const auto session = Session::create(*network, cpu_ops(best_isa()), pool, Shape{1, 4}, {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().str(), "parameter (0, 0, 0, 0)/weight was never loaded");
}

TEST(Session, RefusesAnInputLargerThanItWasMadeFor) {
  LayerRig rig(layer(LayerKind::dense, {{"in", 4}, {"out", 40}}), Shape{2, 4});
  std::vector<float> x(400 * 4);
  const Result<Tensor> y = rig.session().forward(f32_matrix(x.data(), 400, 4), 0, 1);
  ASSERT_FALSE(y.ok());
  EXPECT_NE(y.error().message.find("inputs up to [2, 4]"), std::string::npos);
}

TEST(Session, PermutingSamplesPermutesOutputsBitForBit) {
  LayerRig rig(layer(LayerKind::swiglu, {{"width", 16}, {"inner", 48}}), Shape{8, 16});
  const auto x = random_values(8 * 16, 11);
  const auto y = rig.run(x, Shape{8, 16});
  std::vector<float> reversed;
  for (int r = 7; r >= 0; --r)
    reversed.insert(reversed.end(), x.begin() + r * 16, x.begin() + (r + 1) * 16);
  const auto z = rig.run(reversed, Shape{8, 16});
  for (int r = 0; r < 8; ++r) {
    EXPECT_TRUE(std::equal(y.begin() + r * 16, y.begin() + (r + 1) * 16, z.begin() + (7 - r) * 16))
        << "row " << r;
  }
}

TEST(ArenaPlan, NeverOverlapsBuffersAliveTogetherAndReusesTheRest) {
  ArenaPlan plan;
  std::vector<std::pair<int64_t, int64_t>> lives;
  const Rng rng(3, 3);
  for (uint64_t i = 0; i < 200; ++i) {
    const int64_t first = rng.bits(3 * i) % 100, last = first + rng.bits(3 * i + 1) % 10;
    const int slot = plan.add(1 + rng.bits(3 * i + 2) % 5000, first);
    plan.use(slot, last);
    lives.push_back({first, last});
  }
  plan.solve();
  int64_t sum = 0;
  for (int a = 0; a < 200; ++a) {
    sum += plan.bytes(a);
    EXPECT_EQ(plan.offset(a) % 64, 0);
    EXPECT_LE(plan.offset(a) + plan.bytes(a), plan.total());
    for (int b = 0; b < a; ++b) {
      const bool together = lives[size_t(a)].first <= lives[size_t(b)].second &&
                            lives[size_t(b)].first <= lives[size_t(a)].second;
      const bool apart = plan.offset(a) + plan.bytes(a) <= plan.offset(b) ||
                         plan.offset(b) + plan.bytes(b) <= plan.offset(a);
      EXPECT_TRUE(!together || apart) << a << " and " << b;
    }
  }
  EXPECT_LT(plan.total(), sum / 4);
}

TEST(DoubleMath, AgreesWithLibmToFifteenDigits) {
  for (int i = 1; i < 4000; ++i) {
    const double x = 0.37 * i;
    EXPECT_NEAR(dmath::sin(x), std::sin(x), 2e-14) << x;
    EXPECT_NEAR(dmath::cos(x), std::cos(x), 2e-14) << x;
    EXPECT_NEAR(dmath::log(x), std::log(x), 1e-14 * (1 + std::fabs(std::log(x)))) << x;
    EXPECT_NEAR(dmath::exp(-x / 100) / std::exp(-x / 100), 1, 1e-14) << x;
  }
}

TEST(RopeTable, HoldsTheAnglesOfTheFormula) {
  RopeSpec spec;
  spec.width = 64;
  spec.theta = 100000;
  const Result<RopeTable> table = RopeTable::make(spec, 2000);
  ASSERT_TRUE(table.ok());
  for (int64_t p : {0, 1, 17, 1999}) {
    for (int64_t j : {0, 1, 15, 31}) {
      const double angle = double(p) * std::pow(100000.0, -2.0 * double(j) / 64);
      EXPECT_NEAR(table->table().cos.f32_row(p)[j], std::cos(angle), 2e-4) << p << " " << j;
      EXPECT_NEAR(table->table().sin.f32_row(p)[j], std::sin(angle), 2e-4) << p << " " << j;
    }
  }
}

// Press, Smith and Lewis (2022); six heads are those of four, then every second one of eight.
TEST(RopeTable, HoldsTheSlopesOfAlibi) {
  struct Slopes {
    double alibi, scale;
    std::vector<float> want;
  };
  const Slopes cases[] = {{8, 1, {0.00390625f}},
                          {8, 1, {0.0625f, 0.00390625f}},
                          {8, 1, {0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f}},
                          {4, 0.5, {0.125f, 0.03125f, 0.25f}}};
  for (const Slopes& c : cases) {
    RopeSpec spec;
    spec.slopes = static_cast<int64_t>(c.want.size());
    spec.alibi = c.alibi;
    spec.alibi_scale = c.scale;
    const Result<RopeTable> table = RopeTable::make(spec, 4);
    ASSERT_TRUE(table.ok());
    const Tensor& slopes = table->table().slopes;
    EXPECT_EQ(std::vector<float>(slopes.f32(), slopes.f32() + spec.slopes), c.want);
    EXPECT_TRUE(table->table().cos.empty());
  }
}

RopeSpec scaled(const char* kind, int64_t original, double factor) {
  RopeSpec spec;
  spec.width = 8;
  spec.scaling = kind;
  spec.original_positions = original;
  spec.factor = factor;
  return spec;
}
// The angle of a pair at position 1, by its sine and cosine.
double angle_of(const RopeSpec& spec, int64_t pair, int64_t length) {
  const Result<RopeTable> table = RopeTable::make(spec, 16, length);
  EXPECT_TRUE(table.ok()) << table.error().str();
  const PositionTable& t = table->table();
  return std::atan2(t.sin.f32_row(1)[pair], t.cos.f32_row(1)[pair]);
}

TEST(RopeTable, ChoosesTheFactorsOfLongropeByTheLength) {
  RopeSpec spec = scaled("longrope", 100, 1);
  spec.short_factors = "1 2 1 1";
  spec.long_factors = "1 8 1 1";
  spec.attention = 1.5;
  const double plain = std::pow(10000.0, -0.25);
  EXPECT_NEAR(angle_of(spec, 1, 100), plain / 2, 1e-6);
  EXPECT_NEAR(angle_of(spec, 1, 101), plain / 8, 1e-6);
  const Result<RopeTable> table = RopeTable::make(spec, 16);
  EXPECT_NEAR(std::hypot(table->table().cos.f32_row(3)[2], table->table().sin.f32_row(3)[2]), 1.5,
              1e-6);
}

TEST(RopeTable, StretchesTheBaseOfDynamicScalingBeyondTheOriginalLength) {
  const RopeSpec spec = scaled("dynamic", 100, 2);
  EXPECT_NEAR(angle_of(spec, 1, 100), std::pow(10000.0, -0.25), 1e-6);
  const double base = 10000.0 * std::pow(2 * 3 - 1, 8.0 / 6);
  EXPECT_NEAR(angle_of(spec, 1, 300), std::pow(base, -0.25), 1e-6);
}

TEST(RopeTable, BlendsTheFrequenciesOfYarn) {
  RopeSpec spec = scaled("yarn", 128, 4);
  spec.beta_fast = 8;
  const auto index = [](double turns) {
    return 8 * std::log(128 / (turns * 2 * M_PI)) / (2 * std::log(10000.0));
  };
  for (const bool truncate : {true, false}) {
    spec.truncate = truncate;
    const double low = truncate ? std::floor(index(8)) : index(8);
    const double high = truncate ? std::ceil(index(1)) : index(1);
    for (int64_t j = 0; j < 4; ++j) {
      const double plain = std::pow(10000.0, -static_cast<double>(j) / 4);
      const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
      EXPECT_NEAR(angle_of(spec, j, 0), plain / 4 * ramp + plain * (1 - ramp), 1e-6) << j;
    }
  }
}

TEST(RopeTable, RefusesScalingsItDoesNotKnow) {
  RopeSpec bad = scaled("longrope", 8, 1);
  bad.short_factors = "1 2 3";
  RopeSpec word = bad;
  word.short_factors = "1 2 x 4";
  const std::pair<RopeSpec, const char*> rows[] = {
      {scaled("warp", 8, 1),
       "rope_scaling 'warp' is not known; use linear, llama3, yarn, dynamic or longrope"},
      {bad, "rope_short has 3 numbers; longrope needs 4"},
      {word, "'x' is not a factor of longrope; they are numbers from 0 to 1000000"}};
  for (const auto& [spec, message] : rows) {
    const Result<RopeTable> table = RopeTable::make(spec, 4);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.error().str(), message);
  }
}

}  // namespace
}  // namespace loom::core::test
