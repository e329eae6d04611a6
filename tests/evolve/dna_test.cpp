// DNA through the public interface: the vectors and promises of signatures, similarities, shifts
// and modes.
#include "loom/dna.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "evolve/networks.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

loom::Tensor row(const std::vector<float>& values) {
  return loom::Tensor::copy(values, {static_cast<int64_t>(values.size())}).value();
}

TEST(DnaSimilarity, IsTheCosineAndKnowsZeros) {
  struct Case {
    std::vector<float> a, b;
    double similarity;
  };
  const Case cases[] = {
      {{3, 4}, {4, 3}, 0.96}, {{3, 4}, {3, 4}, 1}, {{3, 4}, {-3, -4}, -1},    {{0, 0}, {0, 0}, 1},
      {{0, 0}, {1, 2}, 0},    {{1, 2}, {0, 0}, 0}, {{3, 4}, {0.3f, 0.4f}, 1}, {{1, 0}, {0, 1}, 0},
  };
  for (const Case& c : cases)
    EXPECT_NEAR(dna_similarity(row(c.a), row(c.b)).value(), c.similarity, 1e-12);
  EXPECT_EQ(dna_similarity(row({3, 4}), row({3, 4})).value(), 1.0) << "exactly";
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const std::vector<float> v = test::gaussian(static_cast<int64_t>(seed * 7), seed);
    EXPECT_EQ(dna_similarity(row(v), row(v)).value(), 1.0) << seed;
  }
}

TEST(DnaSignature, HasLengthOneAndTheWeightsInTheirOrder) {
  loom::Network net =
      loom::Network::sequential({Dense{.in = 2, .out = 1, .bias = false}}, {.input = {2}}).value();
  test::set_values(net, "(0, 0, 0, 0)/weight", {3, 4});
  const loom::Tensor signature = dna_signature(net, "0,0,0,0").value();
  const auto values = signature.values<double>().value();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_DOUBLE_EQ(values[0], 0.6);
  EXPECT_DOUBLE_EQ(values[1], 0.8);
}

TEST(DnaSignature, HasAsManyValuesAsTheLayerHasWeights) {
  struct Case {
    Layer layer;
    loom::Shape input;
    int64_t count;
  };
  const Case cases[] = {
      {Dense{.in = 32, .out = 32, .bias = false}, {32}, 1024},
      {Lstm{.in = 32, .hidden = 32}, {4, 32}, 8320},
      {SwiGlu{.width = 32, .inner = 64, .bias = true}, {32}, 6304},
      {MultiHeadAttention{.width = 32, .heads = 4, .bias = true, .out_bias = true}, {4, 32}, 4224},
      {LayerNorm{.width = 32}, {32}, 64},
      {RmsNorm{.width = 32}, {32}, 32},
      {Softmax{}, {8}, 1},
  };
  for (const Case& c : cases) {
    const auto net = loom::Network::sequential({c.layer}, {.input = c.input});
    ASSERT_TRUE(net.ok()) << net.error().str();
    EXPECT_EQ(dna_signature(*net, "0,0,0,0").value().size(), c.count);
  }
}

TEST(DnaSignature, RefusesCellsThatAreNotThere) {
  const loom::Network net = test::dense_row({2, 3});
  EXPECT_THAT(dna_signature(net, "9,0,0,0").error().str(), HasSubstr("no cell at '9,0,0,0'"));
  EXPECT_THAT(dna_similarity(row({1}), row({1, 2})).error().str(), HasSubstr("1 and 2 values"));
}

TEST(Dna, OfAModelWithItselfIsOneWithoutShifts) {
  // Weightless cells and cells that are equal are not moves.
  loom::Network net =
      loom::Network::sequential({Dense{.in = 6, .out = 6}, Softmax{}, Dense{.in = 6, .out = 6},
                                 Softmax{}, Dense{.in = 6, .out = 6}},
                                {.input = {6}})
          .value();
  for (const char* cell : {"0", "2", "4"}) {
    test::set_values(net, std::string("(0, 0, ") + cell + ", 0)/weight", test::gaussian(36, 4));
    test::set_values(net, std::string("(0, 0, ") + cell + ", 0)/bias", test::gaussian(6, 5));
  }
  for (const DnaMode mode :
       {DnaMode::strict, DnaMode::functional, DnaMode::aligned, DnaMode::permutation}) {
    const DnaComparison dna = compare_dna(net, net, {.mode = mode}).value();
    EXPECT_NEAR(dna.overall_overlap, 1, 1e-12) << dna_mode_name(mode);
    EXPECT_NEAR(dna.weighted_overlap, 1, 1e-12);
    EXPECT_EQ(dna.coverage, 1);
    EXPECT_THAT(dna.shifts, IsEmpty());
    EXPECT_EQ(dna.matrix.size(), 25u);
  }
}

TEST(Dna, MeasuresWhatANumberTypeKeeps) {
  loom::Network plain = test::dense_row({128, 256, 64});
  test::fill_gaussian(plain, 3);
  const test::EvolveFolder folder;
  plain.save(folder / "plain.entity").or_exit();
  const auto packed = [&](loom::DType dtype) {
    convert(folder / "plain.entity", folder / "packed.entity", {.dtype = dtype}).or_exit();
    const DnaComparison strict =
        compare_dna(folder / "plain.entity", folder / "packed.entity", {.mode = DnaMode::strict})
            .value();
    EXPECT_EQ(strict.overall_overlap, 0) << "another type is another thing when one is strict";
    return compare_dna(folder / "plain.entity", folder / "packed.entity").value();
  };
  EXPECT_GT(packed(loom::DType::int8).overall_overlap, 0.99);
  // The cosine of a Gaussian with its signs.
  EXPECT_NEAR(packed(loom::DType::binary).weighted_overlap, std::sqrt(2 / 3.14159265358979), 0.01);
}

TEST(Dna, FindsTwoLayersThatChangedPlaces) {
  loom::Network a = test::dense_row({8, 8, 8, 8});
  test::fill_gaussian(a, 20);
  loom::Network b = a;
  const test::EvolveFolder folder;
  a.save(folder / "a.entity").or_exit();
  b = loom::Network::load(folder / "a.entity").value();
  for (const char* name : {"weight", "bias"}) {
    const std::string first = std::string("(0, 0, 0, 0)/") + name,
                      last = std::string("(0, 0, 2, 0)/") + name;
    test::set_values(b, first, test::values_of(a, last));
    test::set_values(b, last, test::values_of(a, first));
  }
  const DnaComparison dna = compare_dna(a, b).value();
  ASSERT_EQ(dna.shifts.size(), 2u);
  EXPECT_EQ(dna.shifts[0].source, "0,0,0,0");
  EXPECT_EQ(dna.shifts[0].target, "0,0,2,0");
  EXPECT_EQ(dna.shifts[1].source, "0,0,2,0");
  EXPECT_EQ(dna.shifts[1].target, "0,0,0,0");
  EXPECT_NEAR(dna.shifts[0].overlap, 1, 1e-12);
  EXPECT_NEAR(dna.layers[1].overlap, 1, 1e-12);
  EXPECT_THAT(compare_dna(a, b, {.shift_margin = 2}).value().shifts, IsEmpty());
}

// A chain of random layers, containers among them, with `width` inputs and outputs each.
loom::Network random_row(int64_t width, uint64_t seed) {
  const Rng rng(seed, 77);
  std::vector<Layer> layers;
  const auto dense = [&] { return Dense{.in = width, .out = width}; };
  for (uint64_t i = 0; i < 7; ++i) {
    switch (rng.bits(i) % 7) {
      case 0: layers.push_back(dense()); break;
      case 1: layers.push_back(LayerNorm{.width = width}); break;
      case 2: layers.push_back(Softmax{}); break;
      case 3: layers.push_back(SwiGlu{.width = width, .inner = 2 * width}); break;
      case 4: layers.push_back(Residual{{RmsNorm{.width = width}, dense()}}); break;
      case 5:
        layers.push_back(Parallel{
            .children = {dense(), Sequential{{dense(), Softmax{}}}, Dense{.in = width, .out = 2}},
            .combine = Combine::filter});
        break;
      default: layers.push_back(Parallel{.children = {dense(), dense()}, .combine = Combine::add});
    }
  }
  loom::Network net = loom::Network::sequential(std::move(layers), {.input = {width}}).value();
  test::fill_gaussian(net, seed * 1000);
  // Some parameters are all zeros: their part of a signature has no direction.
  uint64_t draw = 100;
  for (const ParameterInfo& p : net.parameters()) {
    const std::vector<float> zeros(static_cast<size_t>(element_count(p.shape)), 0.0f);
    if (rng.bits(draw++) % 5 == 0) test::set_values(net, p.name, zeros);
  }
  return net;
}

// Sums in blocks, leaf by leaf, compared with the vectors themselves.
TEST(Dna, IsTheCosineOfSignaturesForAllPairsOfRandomNetworks) {
  int64_t compared = 0, apart = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const loom::Network a = random_row(5, seed),
                        b = random_row(5, seed % 3 == 0 ? seed : seed + 90);
    const DnaComparison dna = compare_dna(a, b).value();
    for (size_t i = 0; i < dna.a.size(); ++i) {
      for (size_t j = 0; j < dna.b.size(); ++j) {
        const double got = dna.matrix[i * dna.b.size() + j];
        if (dna.a[i].type != dna.b[j].type || dna.a[i].weights != dna.b[j].weights) {
          EXPECT_TRUE(std::isnan(got));
          ++apart;
          continue;
        }
        const loom::Tensor x = dna_signature(a, dna.a[i].at).value(),
                           y = dna_signature(b, dna.b[j].at).value();
        ASSERT_NEAR(got, dna_similarity(x, y).value(), 1e-12) << seed << " " << dna.a[i].type;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(apart, 100);
}

// b with its hidden units in another order, which changes nothing that it computes.
loom::Network shuffled(const loom::Network& a, const std::vector<int64_t>& widths, uint64_t seed) {
  loom::Network b = test::dense_row(widths);
  std::vector<size_t> order(static_cast<size_t>(widths[0]));
  std::iota(order.begin(), order.end(), 0);
  for (size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const auto in = static_cast<size_t>(widths[layer]),
               out = static_cast<size_t>(widths[layer + 1]);
    std::vector<size_t> rows(out);
    std::iota(rows.begin(), rows.end(), 0);
    const Rng rng(seed, layer);
    for (size_t i = out; layer + 2 < widths.size() && i > 1; --i)
      std::swap(rows[i - 1], rows[rng.bits(i) % i]);
    const std::string cell = "(0, 0, " + std::to_string(layer) + ", 0)/";
    const std::vector<float> w = test::values_of(a, cell + "weight"),
                             bias = test::values_of(a, cell + "bias");
    std::vector<float> nw(w.size()), nb(bias.size());
    for (size_t r = 0; r < out; ++r) {
      nb[r] = bias[rows[r]];
      for (size_t c = 0; c < in; ++c) nw[r * in + c] = w[rows[r] * in + order[c]];
    }
    test::set_values(b, cell + "weight", nw);
    test::set_values(b, cell + "bias", nb);
    order = rows;
  }
  return b;
}

TEST(Dna, SeesThroughHiddenUnitsInAnotherOrder) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::vector<int64_t> widths = {5, 12 + static_cast<int64_t>(seed), 20, 9, 3};
    loom::Network a = test::dense_row(widths);
    test::fill_gaussian(a, seed * 100);
    const loom::Network b = shuffled(a, widths, seed);
    const std::vector<float> inputs = test::gaussian(20, seed);
    const loom::Tensor x = loom::Tensor::copy(inputs, {4, 5}).value();
    const loom::Tensor ya = a.predict(x).value(), yb = b.predict(x).value();
    for (size_t i = 0; i < 12; ++i)
      ASSERT_NEAR(ya.values<float>().value()[i], yb.values<float>().value()[i], 1e-5);
    EXPECT_LT(compare_dna(a, b).value().overall_overlap, 0.6) << seed;
    const DnaComparison dna = compare_dna(a, b, {.mode = DnaMode::permutation}).value();
    for (const DnaOverlap& layer : dna.layers) EXPECT_NEAR(layer.overlap, 1, 1e-12) << layer.at;
  }
}

TEST(Dna, AlignsLayersOfOtherWidths) {
  loom::Network narrow =
      loom::Network::sequential({Dense{.in = 4, .out = 2, .bias = false}}, {.input = {4}}).value();
  loom::Network wide =
      loom::Network::sequential({Dense{.in = 6, .out = 3, .bias = false}}, {.input = {6}}).value();
  test::set_values(narrow, "(0, 0, 0, 0)/weight", {1, 2, 3, 4, 5, 6, 7, 8});
  test::set_values(wide, "(0, 0, 0, 0)/weight",
                   {1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9});
  EXPECT_EQ(compare_dna(narrow, wide).value().overall_overlap, 0);
  const DnaComparison dna = compare_dna(narrow, wide, {.mode = DnaMode::aligned}).value();
  EXPECT_NEAR(dna.overall_overlap, 2.0 * 8 / (8 + 18), 1e-12) << "2 common / (both)";
}

// The definition, written with loops: cosine of the blocks that both have, times 2 common / (both).
double aligned_by_hand(const loom::Network& a, const loom::Network& b) {
  double ab = 0, aa = 0, bb = 0, common = 0, all = 0;
  const auto add = [&](const std::vector<float>& x, const std::vector<float>& y,
                       const loom::Shape& sx, const loom::Shape& sy) {
    const int64_t cx = sx.back(), cy = sy.back();
    const int64_t rows = sx.size() == 2 ? std::min(sx[0], sy[0]) : 1, cols = std::min(cx, cy);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const auto u = static_cast<double>(x[static_cast<size_t>(r * cx + c)]),
                   v = static_cast<double>(y[static_cast<size_t>(r * cy + c)]);
        ab += u * v, aa += u * u, bb += v * v;
      }
    }
    common += static_cast<double>(rows * cols);
    all += static_cast<double>(x.size() + y.size());
  };
  const std::vector<ParameterInfo> mine = a.parameters(), others = b.parameters();
  for (const ParameterInfo& p : mine) {
    for (const ParameterInfo& q : others) {
      if (p.name == q.name)
        add(test::values_of(a, p.name), test::values_of(b, q.name), p.shape, q.shape);
    }
  }
  return ab / std::sqrt(aa * bb) * 2 * common / all;
}

TEST(Dna, AlignsShapesOfEqualCountsByTheirBlocks) {
  struct Case {
    int64_t in_a, out_a, in_b, out_b;
  };
  std::vector<Case> cases = {{9, 9, 8, 10}, {8, 10, 9, 9}, {5, 4, 3, 6}, {2, 4, 1, 6}};
  const Rng rng(8, 8);
  for (uint64_t i = 0; i < 60; ++i) {
    const auto width = [&](uint64_t at) {
      return 1 + static_cast<int64_t>(rng.bits(4 * i + at) % 12);
    };
    cases.push_back({width(0), width(1), width(2), width(3)});
  }
  for (const Case& c : cases) {
    loom::Network a = test::dense_row({c.in_a, c.out_a}), b = test::dense_row({c.in_b, c.out_b});
    test::fill_gaussian(a, 1);
    test::fill_gaussian(b, 1);
    const DnaComparison dna = compare_dna(a, b, {.mode = DnaMode::aligned}).value();
    EXPECT_NEAR(dna.overall_overlap, aligned_by_hand(a, b), 1e-9)
        << c.in_a << " to " << c.out_a << ", " << c.in_b << " to " << c.out_b;
    EXPECT_NEAR(dna.matrix[0], dna.overall_overlap, 0) << "the matrix says the same";
  }
}

TEST(Dna, CountsWhatOnlyOneOfThemHas) {
  loom::Network a = test::dense_row({4, 4, 4}), b = test::dense_row({4, 4, 4, 4});
  test::fill_gaussian(a, 1);
  test::fill_gaussian(b, 1);
  const DnaComparison dna = compare_dna(a, b).value();
  EXPECT_EQ(dna.layers.size(), 2u);
  EXPECT_NEAR(dna.coverage, 2.0 / 3, 1e-12);
  EXPECT_NEAR(dna.overall_overlap, 1, 1e-12) << "the first two have the same seeds";
}

TEST(Dna, HasTheSameBitsWithAnyNumberOfThreads) {
  loom::Network a = test::dense_row({17, 33, 33, 33, 5}),
                b = test::dense_row({17, 33, 33, 33, 5}, 2);
  test::fill_gaussian(a, 1);
  for (const DnaMode mode : {DnaMode::functional, DnaMode::aligned, DnaMode::permutation}) {
    std::string first;
    for (const int threads : {1, 2, 3, 7}) {
      const Engine engine = Engine::create({.threads = threads, .exact_threads = true}).value();
      const std::string json = compare_dna(a, b, {.mode = mode, .engine = engine}).value().json();
      if (first.empty()) first = json;
      EXPECT_EQ(json, first) << threads << " threads, " << dna_mode_name(mode);
    }
  }
}

TEST(Dna, ComparesLanguageModelsWhateverTheirFiles) {
  const test::EvolveFolder folder;
  convert(test::kStories, folder / "stories.gguf").or_exit();
  convert(test::kStories, folder / "small.entity", {.dtype = loom::DType::q4_0}).or_exit();
  const DnaComparison same = compare_dna(test::kStories, folder / "stories.gguf").value();
  EXPECT_NEAR(same.overall_overlap, 1, 1e-9);
  const DnaComparison small = compare_dna(test::kStories, folder / "small.entity").value();
  EXPECT_GT(small.overall_overlap, 0.98);
  EXPECT_LT(small.overall_overlap, 0.99999);
  EXPECT_THAT(small.a[1].type, testing::StartsWith("Residual(RMSNorm, MultiHeadAttention"));
}

TEST(Dna, WritesItsFieldsAsJson) {
  loom::Network a = test::dense_row({3, 4, 2});
  const DnaComparison dna = compare_dna(a, a).value();
  const JsonValue json = parse_json(dna.json(), "dna").value();
  EXPECT_NEAR(json.find("overall_overlap")->as_double("").value(), 1, 1e-12);
  EXPECT_EQ(json.find("layer_overlaps")->members().size(), 2u);
  EXPECT_EQ(json.find("layer_overlaps")->members()[1].first, "0,0,1,0");
  EXPECT_TRUE(json.find("logic_shifts")->elements().empty());
  EXPECT_TRUE(json.find("matrix")->elements()[0].elements()[1].is_null()) << "other lengths";
}

TEST(Dna, StopsWhenAskedAndRefusesBadInputInOneLine) {
  const loom::Network a = test::dense_row({3, 4, 2});
  EXPECT_EQ(compare_dna(a, a, {.progress = [](uint64_t, uint64_t) { return false; }}).error().code,
            Code::cancelled);
  const test::EvolveFolder folder;
  write_file(folder / "net.json", a.json()).or_exit();
  write_file(folder / "noise.bin", "noise").or_exit();
  const auto says = [](const auto& result) {
    return result.ok() ? std::string("no error") : result.error().str();
  };
  const std::pair<std::string, const char*> cases[] = {
      {says(compare_dna(a, a, {.shift_threshold = 2})), "shift_threshold must be from -1 to 1"},
      {says(compare_dna(a, a, {.shift_margin = NAN})), "shift_margin must be from 0 to 2"},
      {says(compare_dna(folder / "none", test::kStories)), "no such file"},
      {says(compare_dna(test::kStories, folder / "noise.bin")), "noise.bin"},
      {says(compare_dna(folder / "net.json", test::kStories)), "holds no weights"},
      {says(parse_dna_mode("loose")), "choose strict, functional, aligned or permutation"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace loom::core
