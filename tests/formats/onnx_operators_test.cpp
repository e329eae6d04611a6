// Operators that are imported as several nodes: their values, by the text of the standard.
// tests/outside/onnx_places.py compares random ones with ONNX Runtime.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"
#include "onnx/file/model.hpp"

namespace loom::core::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Step {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<OnnxAttribute> attributes;
};

OnnxAttribute number(const std::string& name, int64_t value) {
  return onnx_attribute(name, value);
}

OnnxValue value(const std::string& name, const std::vector<int64_t>& dims, OnnxType type) {
  OnnxValue v;
  v.name = name;
  v.type = type;
  v.has_shape = true;
  for (const int64_t d : dims) v.shape.push_back({d, d < 0 ? "open" : ""});
  return v;
}

OnnxTensor floats(const std::string& name, std::vector<int64_t> dims, std::vector<float> values) {
  return onnx_tensor(name, std::move(dims), std::span<const float>(values));
}
OnnxTensor integers(const std::string& name, std::vector<int64_t> dims,
                    std::vector<int64_t> values) {
  return onnx_tensor(name, std::move(dims), std::span<const int64_t>(values));
}

// x [batch, ...] -> the steps, whose outputs are v0, v1 ... -> the last one, of that type.
struct Chain {
  std::vector<Step> steps;
  std::vector<OnnxTensor> constants;
  OnnxType type = OnnxType::f32;
  std::vector<int64_t> sample = {4};
  int64_t opset = 20;
  int64_t batch = -1;  // -1 means open
};

OnnxModel model_of(const Chain& chain) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", chain.opset}};
  std::vector<int64_t> dims = chain.sample;
  dims.insert(dims.begin(), chain.batch);
  m.graph.inputs = {value("x", dims, OnnxType::f32)};
  for (size_t i = 0; i < chain.steps.size(); ++i) {
    OnnxNode n;
    n.name = cat("n", i);
    n.op = chain.steps[i].op;
    n.inputs = chain.steps[i].inputs;
    n.outputs = {cat("v", i)};
    n.attributes = chain.steps[i].attributes;
    m.graph.nodes.push_back(std::move(n));
  }
  m.graph.outputs = {value(cat("v", chain.steps.size() - 1), {-1, -1}, chain.type)};
  m.graph.initializers = chain.constants;
  return m;
}

std::vector<float> computed(const Chain& chain, const std::vector<float>& x) {
  auto made = import_onnx(model_of(chain), "f");
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().str());
  if (!made.ok()) return {};
  int64_t size = 1;
  for (const int64_t d : chain.sample) size *= d;
  auto network = Network::finalize(
      made->network.grid, made->network.input.after(static_cast<int64_t>(x.size()) / size));
  EXPECT_TRUE(network.ok()) << (network.ok() ? "" : network.error().str());
  if (!network.ok()) return {};
  ThreadPool pool(1);
  const Status filled = made->fill(*network, pool, DType::f32);
  EXPECT_TRUE(filled.ok());
  std::vector<std::byte> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return run_network(*network, pool, std::move(bytes));
}

void expect_values(const Chain& chain, const std::vector<float>& x, const std::vector<float>& want,
                   float tolerance = 0) {
  const std::vector<float> got = computed(chain, x);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i]) || tolerance == 0)
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
          << "at " << i << ": " << got[i] << ", must be " << want[i];
    else
      EXPECT_NEAR(got[i], want[i], tolerance) << "at " << i;
  }
}

TEST(OnnxOperators, CompareAsTheStandardDoesWithInfinitiesAndNaN) {
  const std::vector<float> x = {-kInf, -1, 2, kNan, kInf, 3e38f, 2.5f, kNan};
  struct Row {
    std::string op;
    std::vector<float> want;
  };
  // Compared with -inf, 2, 2, NaN.
  const std::vector<Row> rows = {{"Equal", {1, 0, 1, 0, 0, 0, 0, 0}},
                                 {"Greater", {0, 0, 0, 0, 1, 1, 1, 0}},
                                 {"GreaterOrEqual", {1, 0, 1, 0, 1, 1, 1, 0}},
                                 {"Less", {0, 1, 0, 0, 0, 0, 0, 0}},
                                 {"LessOrEqual", {1, 1, 1, 0, 0, 0, 0, 0}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op);
    expect_values(
        {{{row.op, {"x", "c"}, {}}}, {floats("c", {4}, {-kInf, 2, 2, kNan})}, OnnxType::boolean}, x,
        row.want);
  }
}

TEST(OnnxOperators, ChooseWithoutWhatIsNotChosen) {
  // log x is a NaN or -inf where x <= 0, and is not taken there.
  const Chain chain = {
      {{"Greater", {"x", "zero"}, {}}, {"Log", {"x"}, {}}, {"Where", {"v0", "v1", "other"}, {}}},
      {floats("zero", {}, {0}), floats("other", {4}, {5, -kInf, 7, 8})}};
  expect_values(chain, {-1, 0, 1, kInf}, {5, -kInf, 0, kInf});
}

// x if x < 0, else x + 1: x + 1 alone would be mistaken for x if x were not next to it.
TEST(OnnxOperators, ChooseBetweenAValueAndAFunctionOfIt) {
  const Chain chain = {
      {{"Less", {"x", "zero"}, {}}, {"Add", {"x", "one"}, {}}, {"Where", {"v0", "x", "v1"}, {}}},
      {floats("zero", {1}, {0}), floats("one", {1}, {1})}};
  expect_values(chain, {-2, -0.5f, 0, 3}, {-2, -0.5f, 1, 4});
}

TEST(OnnxOperators, RoundToWholeNumbersHalvesToTheEvenOne) {
  const std::vector<float> x = {-2.5f,      -1.5f, -0.4f, 0.5f,        1.5f,        2.5f,
                                8388609.0f, 3e30f, -0.5f, 0.49999997f, -8388607.5f, kInf};
  struct Row {
    std::string op;
    float (*f)(float);
  };
  const Row rows[] = {
      {"Round", [](float v) { return std::nearbyint(v); }},
      {"Floor", [](float v) { return std::floor(v); }},
      {"Ceil", [](float v) { return std::ceil(v); }},
      {"Sign", [](float v) { return v > 0   ? 1.0f
                                    : v < 0 ? -1.0f
                                            : 0.0f; }},
      {"Softsign", [](float v) { return std::isinf(v) ? kNan : v / (1 + std::abs(v)); }}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op);
    std::vector<float> want;
    for (const float v : x) want.push_back(row.f(v));
    expect_values({{{row.op, {"x"}, {}}}, {}}, x, want);
  }
}

TEST(OnnxOperators, SinesAreThoseOfDoublePrecision) {
  std::vector<float> x(4000);
  const Rng rng(7, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const float reach = i % 2 == 0 ? 7.0f : 1e5f;
    x[i] = reach * (2 * rng.uniform(i) - 1);
  }
  x[0] = 0;
  std::vector<float> sines, cosines;
  for (const float v : x) {
    sines.push_back(static_cast<float>(std::sin(static_cast<double>(v))));
    cosines.push_back(static_cast<float>(std::cos(static_cast<double>(v))));
  }
  expect_values({{{"Sin", {"x"}, {}}}, {}}, x, sines, 2.5e-7f);
  expect_values({{{"Cos", {"x"}, {}}}, {}}, x, cosines, 2.5e-7f);
}

TEST(OnnxOperators, CastToWholeNumbersTowardsZeroAndToTruths) {
  expect_values({{{"Cast", {"x"}, {number("to", 7)}}}, {}, OnnxType::i64}, {-2.7f, -0.5f, 0.9f, 3},
                {-2, 0, 0, 3});
  expect_values({{{"Cast", {"x"}, {number("to", 9)}}}, {}, OnnxType::boolean}, {-2.7f, 0, kNan, 3},
                {1, 0, 1, 1});
}

TEST(OnnxOperators, FindTheFirstOrTheLastOfEqualPlaces) {
  const std::vector<float> x = {1, 5, 5, 0, -1, -7, -7, -2};
  const auto found = [&](const std::string& op, int64_t last, std::vector<float> want) {
    expect_values(
        {{{op,
           {"x"},
           {number("axis", 1), number("keepdims", 1), number("select_last_index", last)}}},
         {},
         OnnxType::i64},
        x, want);
  };
  found("ArgMax", 0, {1, 0});
  found("ArgMax", 1, {2, 0});
  found("ArgMin", 0, {3, 1});
  found("ArgMin", 1, {3, 2});
}

TEST(OnnxOperators, FindTheInfinityOfARow) {
  const Chain chain = {
      {{"ArgMax", {"x"}, {number("axis", 1), number("keepdims", 0)}}}, {}, OnnxType::i64};
  expect_values(chain, {0, 3, kInf, 1, -kInf, -kInf, -5, -kInf}, {2, 2});
}

TEST(OnnxOperators, LookUpRowsByComputedPlaces) {
  const Chain chain = {{{"ArgMax", {"x"}, {number("axis", 1), number("keepdims", 0)}},
                        {"Gather", {"table", "v0"}, {}}},
                       {floats("table", {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31})}};
  expect_values(chain, {0, 0, 9, 0, 0, 3, 0, 0}, {20, 21, 10, 11});
}

TEST(OnnxOperators, HotPlacesBeyondTheDepthAreOff) {
  const Chain chain = {{{"ArgMax", {"x"}, {number("axis", 1), number("keepdims", 0)}},
                        {"OneHot", {"v0", "depth", "values"}, {}}},
                       {integers("depth", {}, {3}), floats("values", {2}, {-1, 2})}};
  expect_values(chain, {0, 0, 9, 0, 0, 0, 0, 1}, {-1, -1, 2, -1, -1, -1});
}

// The node tests of the standard have these: test_resize_upsample_scales_linear and others.
TEST(OnnxOperators, ResizeByTheCoordinatesOfTheStandard) {
  struct Row {
    std::string mode, coordinates;
    std::vector<float> scales, want;
    std::string rounding = "round_prefer_floor";
  };
  const std::vector<Row> rows = {
      {"nearest", "half_pixel", {1, 1, 2}, {1, 1, 2, 2, 3, 3, 4, 4}},
      {"nearest", "asymmetric", {1, 1, 0.5}, {1, 3}, "floor"},
      {"nearest", "half_pixel", {1, 1, 0.5}, {2, 4}, "ceil"},
      {"linear", "half_pixel", {1, 1, 2}, {1, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4}},
      {"linear", "asymmetric", {1, 1, 2}, {1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4}},
      {"linear", "half_pixel", {1, 1, 0.6f}, {1.3333334f, 3}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(cat(row.mode, " ", row.coordinates));
    const Chain chain = {{{"Resize",
                           {"x", "", "scales"},
                           {onnx_attribute("mode", row.mode),
                            onnx_attribute("coordinate_transformation_mode", row.coordinates),
                            onnx_attribute("nearest_mode", row.rounding)}}},
                         {floats("scales", {3}, row.scales)},
                         OnnxType::f32,
                         {1, 4}};
    expect_values(chain, {1, 2, 3, 4}, row.want, 1e-6f);
  }
}

TEST(OnnxOperators, RunRecurrencesBackwardsAsForwardsOverWhatIsTurnedAround) {
  const std::vector<OnnxTensor> constants = {floats("w", {2, 1, 1}, {1, 1}),
                                             floats("r", {2, 1, 1}, {0.5f, 0.5f}),
                                             integers("one", {1}, {1})};
  const Chain chain = {
      {{"Transpose", {"x"}, {onnx_attribute("perm", std::vector<int64_t>{1, 0, 2})}},
       {"RNN",
        {"v0", "w", "r"},
        {number("hidden_size", 1), onnx_attribute("direction", std::string("bidirectional"))}},
       {"Transpose", {"v1"}, {onnx_attribute("perm", std::vector<int64_t>{2, 0, 1, 3})}}},
      constants,
      OnnxType::f32,
      {3, 1}};
  const float x[] = {0.3f, -0.7f, 1.1f};
  float forwards[3], backwards[3], h = 0, k = 0;
  for (int i = 0; i < 3; ++i) forwards[i] = h = std::tanh(x[i] + 0.5f * h);
  for (int i = 3; i-- > 0;) backwards[i] = k = std::tanh(x[i] + 0.5f * k);
  std::vector<float> want;
  for (int i = 0; i < 3; ++i) want.insert(want.end(), {forwards[i], backwards[i]});
  expect_values(chain, {x[0], x[1], x[2]}, want, 1e-6f);
}

TEST(OnnxOperators, CastAsAnotherValueIsTyped) {
  expect_values(
      {{{"CastLike", {"whole", "x"}, {}}, {"Mul", {"x", "v0"}, {}}}, {integers("whole", {1}, {3})}},
      {1, -2, 0.5f, 4}, {3, -6, 1.5f, 12});
}

// Lists are known while the file is read: SplitToSequence, changes, one item, the join of all.
TEST(OnnxOperators, TakeListsApartAndJoinThem) {
  const std::vector<OnnxTensor> constants = {integers("one", {}, {1}),
                                             integers("widths", {2}, {1, 3}),
                                             integers("last", {}, {-1}), integers("two", {}, {2})};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const Step split = {"SplitToSequence", {"x", "widths"}, {number("axis", 1)}};
  expect_values({{split, {"SequenceAt", {"v0", "last"}, {}}}, constants}, x, {2, 3, 4, 6, 7, 8});
  // [1 .. 4] -> 1, 2, 3, 4 -> without the third -> x after the first -> side by side.
  expect_values({{{"SplitToSequence", {"x", "one"}, {number("axis", 1)}},
                  {"SequenceErase", {"v0", "two"}, {}},
                  {"SequenceInsert", {"v1", "x", "one"}, {}},
                  {"ConcatFromSequence", {"v2"}, {number("axis", -1)}}},
                 constants},
                x, {1, 1, 2, 3, 4, 2, 4, 5, 5, 6, 7, 8, 6, 8});
  // The same without kept axes, along a new one.
  expect_values({{{"SplitToSequence", {"x"}, {number("axis", 1), number("keepdims", 0)}},
                  {"ConcatFromSequence", {"v0"}, {number("axis", 1), number("new_axis", 1)}}},
                 constants},
                x, x);
}

TEST(OnnxOperators, RefuseListsWhereValuesAreRead) {
  const Step split = {"SplitToSequence", {"x"}, {number("axis", 1)}};
  const auto list = import_onnx(model_of({{split, {"Relu", {"v0"}, {}}}, {}}), "f");
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().str(), "f: node 'n1' (Relu): input 0 is a list");
  const auto far = import_onnx(
      model_of({{split, {"SequenceAt", {"v0", "nine"}, {}}}, {integers("nine", {}, {9})}}), "f");
  ASSERT_FALSE(far.ok());
  EXPECT_EQ(far.error().str(), "f: node 'n1' (SequenceAt): item 9 of a list of 4");
}

// Constant places of any shape, and of several axes at once.
TEST(OnnxOperators, GatherConstantPlacesOfAnyShape) {
  const std::vector<float> x = {0, 1, 2, 3, 10, 11, 12, 13};
  expect_values(
      {{{"Gather", {"x", "at"}, {number("axis", 1)}}}, {integers("at", {2, 2}, {3, 0, -2, 1})}}, x,
      {3, 0, 2, 1, 13, 10, 12, 11});
  expect_values(
      {{{"Transpose", {"x"}, {}}, {"GatherND", {"v0", "at"}, {}}, {"Transpose", {"v1"}, {}}},
       {integers("at", {3, 1}, {2, 2, -4})}},
      x, {2, 2, 0, 12, 12, 10});
}

// A row that every sample of an open batch gets in front of its own: the class token of a ViT.
TEST(OnnxOperators, ExpandConstantsForEverySample) {
  const std::vector<OnnxTensor> constants = {floats("row", {1, 2}, {7, 8}),
                                             integers("at", {1}, {0}), integers("two", {1}, {2})};
  expect_values({{{"Shape", {"x"}, {}},
                  {"Gather", {"v0", "at"}, {}},
                  {"Concat", {"v1", "two"}, {number("axis", 0)}},
                  {"Expand", {"row", "v2"}, {}},
                  {"Concat", {"v3", "x"}, {number("axis", 1)}}},
                 constants},
                {1, 2, 3, 4, 5, 6, 7, 8}, {7, 8, 1, 2, 3, 4, 7, 8, 5, 6, 7, 8});
}

// Samples of a file for two, which are side by side in rows, one after the other, or mixed. Three
// go through the network.
TEST(OnnxOperators, FindABatchThatTheFileFixesInItsShapes) {
  const std::vector<OnnxTensor> constants = {
      integers("six", {2}, {6, 2}),      integers("four", {2}, {4, 3}),
      integers("back", {3}, {3, 2, 2}),  integers("two", {3}, {2, 2, 3}),
      integers("rest", {3}, {2, -1, 2}), floats("k", {2}, {10, 20})};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  std::vector<float> want;
  for (const float v : x) want.push_back(10 * v * (std::lround(v) % 2 == 0 ? 2 : 1));
  const OnnxAttribute turn = onnx_attribute("perm", std::vector<int64_t>{1, 0, 2});
  expect_values({{{"Transpose", {"x"}, {turn}},
                  {"Reshape", {"v0", "six"}, {}},  // rows of three steps, two samples each
                  {"Mul", {"v1", "k"}, {}},
                  {"Reshape", {"v2", "back"}, {}},
                  {"Transpose", {"v3"}, {turn}}},
                 constants,
                 OnnxType::f32,
                 {3, 2},
                 20,
                 2},
                x, want);
  expect_values({{{"Reshape", {"x", "six"}, {}},  // rows of two samples, three steps each
                  {"Mul", {"v0", "k"}, {}},
                  {"Reshape", {"v1", "rest"}, {}}},
                 constants,
                 OnnxType::f32,
                 {3, 2},
                 20,
                 2},
                x, want);
  const auto sums = [](float v) { return 3 * v + 3; };
  expect_values({{{"Reshape", {"x", "four"}, {}},
                  {"Reshape", {"v0", "two"}, {}},
                  {"ReduceSum", {"v1"}, {onnx_attribute("axes", std::vector<int64_t>{2})}}},
                 constants,
                 OnnxType::f32,
                 {6},
                 11,
                 2},
                x, {sums(1), sums(4), sums(7), sums(10), sums(13), sums(16)});
  const auto mixed = import_onnx(model_of({{{"Reshape", {"x", "mixed"}, {}}},
                                           {integers("mixed", {2}, {3, 4})},
                                           OnnxType::f32,
                                           {3, 2},
                                           20,
                                           2}),
                                 "f");
  ASSERT_FALSE(mixed.ok());
}

TEST(OnnxOperators, SumProductsByTheLettersOfAnEquation) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};  // two samples of [[a, b], [c, d]]
  struct Row {
    std::string equation;
    std::vector<std::string> inputs;
    std::vector<float> want;
  };
  const std::vector<Row> rows = {
      {"bij,bjk->bik", {"x", "x"}, {7, 10, 15, 22, 67, 78, 91, 106}},
      {"bij, bkj -> bki", {"x", "x"}, {5, 11, 11, 25, 61, 83, 83, 113}},
      {"bij,bij->bj", {"x", "x"}, {10, 20, 74, 100}},
      {"bij,bij->bi", {"x", "x"}, {5, 25, 61, 113}},
      {"bij,jk->bk", {"x", "w"}, {4, 6, 18, 12, 14, 50}},
      {"bij->bj", {"x"}, {4, 6, 12, 14}},
      {"bij->bji", {"x"}, {1, 3, 2, 4, 5, 7, 6, 8}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.equation);
    expect_values({{{"Einsum", row.inputs, {onnx_attribute("equation", row.equation)}}},
                   {floats("w", {2, 3}, {1, 0, 3, 0, 1, 1})},
                   OnnxType::f32,
                   {2, 2}},
                  x, row.want);
  }
  for (const char* equation : {"bii->bi", "b...->b", "bij,bjk,bkl->bil", "bij->q", "bij->"}) {
    const auto made = import_onnx(
        model_of({{{"Einsum", {"x"}, {onnx_attribute("equation", std::string(equation))}}},
                  {},
                  OnnxType::f32,
                  {2, 2}}),
        "f");
    ASSERT_FALSE(made.ok()) << equation;
    EXPECT_EQ(made.error().str(),
              "f: node 'n0' (Einsum): an equation other than of one or two "
              "inputs with letters that differ");
  }
}

// With a scale of 0 all keys that a query sees weigh the same.
Chain attention(std::vector<OnnxAttribute> more, std::vector<std::string> masks,
                std::vector<OnnxTensor> constants) {
  more.insert(more.end(),
              {number("q_num_heads", 2), number("kv_num_heads", 1), onnx_attribute("scale", 0.0f)});
  std::vector<std::string> inputs = {"v0", "x", "x"};
  inputs.insert(inputs.end(), masks.begin(), masks.end());
  return {{{"Concat", {"x", "x"}, {number("axis", 2)}}, {"Attention", inputs, more}},
          std::move(constants),
          OnnxType::f32,
          {2, 2},
          23};
}

TEST(OnnxOperators, AttendByHeadsThatShareKeysUnderMasks) {
  const std::vector<float> x = {1, 2, 3, 4};
  expect_values(attention({}, {}, {}), x, {2, 3, 2, 3, 2, 3, 2, 3});
  expect_values(attention({number("is_causal", 1)}, {}, {}), x, {1, 2, 1, 2, 2, 3, 2, 3});
  expect_values(attention({}, {"mask"}, {floats("mask", {2, 2}, {-kInf, 0, 0, -kInf})}), x,
                {3, 4, 3, 4, 1, 2, 1, 2});
  const auto blind = import_onnx(
      model_of(attention({}, {"mask"}, {floats("mask", {2, 2}, {0, 0, -kInf, -kInf})})), "f");
  ASSERT_FALSE(blind.ok());
  EXPECT_EQ(blind.error().str(), "f: node 'n1' (Attention): a mask with a query that sees no key");
}

// The importer asks the folder for constants that no row makes: here a determinant.
TEST(OnnxOperators, AskTheFolderOfTheOptionsForConstants) {
  const OnnxModel model = model_of(
      {{{"Det", {"c"}, {}}, {"Mul", {"x", "v0"}, {}}}, {floats("c", {2, 2}, {0, 1, 2, 3})}});
  EXPECT_FALSE(import_onnx(model, "f").ok());
  int asked = 0;
  const auto made = import_onnx(
      model, "f",
      {.folder = [&](const OnnxNode& n, int64_t,
                     std::span<const OnnxTensor* const> in) -> Result<std::vector<OnnxTensor>> {
        ++asked;
        EXPECT_EQ(n.op, "Det");
        EXPECT_EQ(in.size(), 1u);
        return std::vector<OnnxTensor>{floats("", {4}, {1, 2, 3, 4})};
      }});
  EXPECT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(asked, 1);
}

TEST(OnnxOperators, RefuseWholeNumbersThatAFloatDoesNotCount) {
  const auto made =
      import_onnx(model_of({{{"ArgMax", {"x"}, {number("axis", 1)}}, {"Mul", {"v0", "large"}, {}}},
                            {integers("large", {}, {16777216})},
                            OnnxType::i64}),
                  "f");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().str(),
            "f: node 'n1' (Mul): computes int64 values that may be beyond what a float counts "
            "exactly");
}

}  // namespace
}  // namespace loom::core::test
