// TFLite files as graphs of ONNX and as networks: results of operators compared with plain loops,
// few transpositions, and constants of every kind. tests/outside/tflite_check.py compares random
// models with the TFLite interpreter.
#include "backend/reference/reference.hpp"
#include "convert/convert.hpp"
#include "formats/onnx_network_testing.hpp"
#include "formats/tflite_testing.hpp"
#include "io/io_testing.hpp"
#include "onnx/interpreter/folder.hpp"

namespace loom::core::test {
namespace {

std::string written_tflite(const TemporaryFolder& folder, const std::string& name, TfliteMaker& m) {
  const std::string path = folder.path(name), file = m.file();
  EXPECT_TRUE(write_file_atomic(path, std::as_bytes(std::span(file))).ok());
  return path;
}

// The output of a file as a network.
std::vector<float> run_tflite(TfliteMaker& m, const std::vector<float>& x, bool training = false) {
  const TemporaryFolder folder;
  OnnxImportOptions options;
  options.for_training = training;
  options.folder = evaluate::evaluating_folder(reference_ops());
  const auto made = load_tflite(written_tflite(folder, "m.tflite", m), options);
  EXPECT_TRUE(made.ok()) << made.error().str();
  if (!made.ok()) return {};
  ThreadPool pool(1);
  auto network = Network::finalize(made->network.grid, made->network.input.after(1));
  EXPECT_TRUE(network.ok() && made->fill(*network, pool, DType::f32).ok());
  const auto bytes = std::as_bytes(std::span(x));
  return run_network(*network, pool, {bytes.begin(), bytes.end()});
}

std::vector<float> drawn_values(size_t count, uint64_t seed) {
  const Rng rng(seed, 3);
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = 2 * rng.uniform(i) - 1;
  return out;
}

struct TfliteConvCase {
  int h, w, c, filters, kh, kw, sh, sw, padding;
};

// A convolution with SAME or VALID padding, as TFLite defines it.
std::vector<float> convolved_plainly(const TfliteConvCase& k, const std::vector<float>& x,
                                     const std::vector<float>& weights, int oh, int ow) {
  const int all_h = k.padding == 0 ? std::max((oh - 1) * k.sh + k.kh - k.h, 0) : 0;
  const int all_w = k.padding == 0 ? std::max((ow - 1) * k.sw + k.kw - k.w, 0) : 0;
  std::vector<float> y;
  for (int oy = 0; oy < oh; ++oy)
    for (int ox = 0; ox < ow; ++ox)
      for (int f = 0; f < k.filters; ++f) {
        double sum = 0;
        for (int i = 0; i < k.kh * k.kw * k.c; ++i) {
          const int ky = i / (k.kw * k.c), kx = i / k.c % k.kw, c = i % k.c;
          const int iy = oy * k.sh + ky - all_h / 2, ix = ox * k.sw + kx - all_w / 2;
          if (iy < 0 || iy >= k.h || ix < 0 || ix >= k.w) continue;
          sum += static_cast<double>(x[static_cast<size_t>((iy * k.w + ix) * k.c + c)]) *
                 static_cast<double>(weights[static_cast<size_t>(f * k.kh * k.kw * k.c + i)]);
        }
        y.push_back(static_cast<float>(sum));
      }
  return y;
}

TEST(Tflite, ConvolutionsPadWhatSameAddsBehind) {
  const TfliteConvCase cases[] = {
      {5, 6, 2, 3, 3, 3, 1, 1, 0}, {5, 6, 2, 3, 3, 3, 2, 2, 0}, {4, 7, 1, 2, 2, 4, 1, 2, 0},
      {6, 6, 3, 1, 2, 2, 2, 2, 1}, {5, 5, 1, 1, 4, 4, 3, 1, 0}, {7, 4, 2, 2, 3, 1, 2, 1, 1},
  };
  uint64_t seed = 0;
  for (const TfliteConvCase& k : cases) {
    const int oh = k.padding == 0 ? (k.h + k.sh - 1) / k.sh : (k.h - k.kh) / k.sh + 1;
    const int ow = k.padding == 0 ? (k.w + k.sw - 1) / k.sw : (k.w - k.kw) / k.sw + 1;
    const auto weights = drawn_values(static_cast<size_t>(k.filters * k.kh * k.kw * k.c), ++seed);
    const auto x = drawn_values(static_cast<size_t>(k.h * k.w * k.c), ++seed);
    TfliteMaker m;
    const int32_t in = m.tensor({1, k.h, k.w, k.c});
    const int32_t w = m.floats({k.filters, k.kh, k.kw, k.c}, weights);
    const int32_t out = m.tensor({1, oh, ow, k.filters});
    m.ops.push_back({kConv,
                     {in, w},
                     {out},
                     1,
                     {{0, 'b', static_cast<double>(k.padding)},
                      {1, 'i', static_cast<double>(k.sw)},
                      {2, 'i', static_cast<double>(k.sh)}}});
    m.inputs = {in};
    m.outputs = {out};
    expect_close(run_tflite(m, x), convolved_plainly(k, x, weights, oh, ow), 1e-5f);
  }
}

// No transposition between convolutions, whatever elementwise operators are between them.
TEST(Tflite, PicturesAreTransposedOnceInAndOnceOut) {
  TfliteMaker m;
  const int32_t x = m.tensor({1, 4, 4, 2});
  int32_t last = x;
  const auto conv = [&] {
    const int32_t w = m.floats({2, 3, 3, 2}, drawn_values(36, 5)), y = m.tensor({1, 4, 4, 2});
    m.ops.push_back({kConv, {last, w}, {y}, 1, {{1, 'i', 1}, {2, 'i', 1}, {3, 'b', 3}}});
    last = y;
  };
  conv();
  const int32_t bypass = last, alpha = m.floats({1, 1, 2}, {0.1f, 0.2f});
  const int32_t p = m.tensor({1, 4, 4, 2}), s = m.tensor({1, 4, 4, 2}), c = m.tensor({1, 4, 4, 4});
  m.ops.push_back({kPrelu, {last, alpha}, {p}});
  last = p;
  conv();
  m.ops.push_back({kAdd, {last, bypass}, {s}, 11});
  m.ops.push_back({kConcatenation, {s, bypass}, {c}, 10, {{0, 'i', -1}}});
  m.inputs = {x};
  m.outputs = {c};
  const std::string file = m.file();
  std::vector<uint64_t> words((file.size() + 7) / 8);
  std::memcpy(words.data(), file.data(), file.size());
  const auto read = parse_tflite(std::as_bytes(std::span(words)).first(file.size()), "f");
  ASSERT_TRUE(read.ok());
  const auto message =
      tflite_as_onnx(*read, "f", {.folder = evaluate::evaluating_folder(reference_ops())});
  ASSERT_TRUE(message.ok()) << message.error().str();
  size_t moves = 0;
  for (const OnnxNode& n : message->model.graph.nodes) moves += n.op == "Transpose";
  EXPECT_EQ(moves, 2u);
}

// A matrix of constants of a type, against the numbers that it stands for.
void expect_weights(TfliteMadeTensor w, const std::vector<float>& want) {
  TfliteMaker m;
  const int32_t x = m.tensor({1, w.dims[1]});
  m.tensors.push_back(w);
  const int32_t y = m.tensor({1, w.dims[0]});
  m.ops.push_back({kFullyConnected, {x, 1}, {y}, 8});
  m.inputs = {x};
  m.outputs = {y};
  const auto columns = static_cast<size_t>(w.dims[1]);
  for (size_t c = 0; c < columns; ++c) {
    std::vector<float> one(columns, 0), column;
    one[c] = 1;
    for (size_t r = 0; r * columns + c < want.size(); ++r) column.push_back(want[r * columns + c]);
    EXPECT_EQ(run_tflite(m, one), column) << c;
  }
}

TEST(Tflite, ConstantsOfEveryWidthAreTheNumbersTheyStandFor) {
  TfliteMadeTensor half{{1, 2}, TfliteType::f16, bytes_of_values<uint16_t>({0x3c00, 0xc100})};
  expect_weights(half, {1, -2.5f});
  TfliteMadeTensor bytes{{2, 2}, TfliteType::i8, bytes_of_values<int8_t>({-128, 127, 4, 0})};
  bytes.scale = {0.5f, 0.25f};
  expect_weights(bytes, {-64, 63.5f, 1, 0});
  TfliteMadeTensor along{{2, 2}, TfliteType::i8, bytes_of_values<int8_t>({-128, 127, 4, 1})};
  along.scale = {0.5f, 0.25f};
  along.axis = 1;
  expect_weights(along, {-64, 31.75f, 2, 0.25f});
  TfliteMadeTensor shifted{{1, 2}, TfliteType::u8, {0, 255}};
  shifted.scale = {0.5f};
  shifted.zero = {128};
  expect_weights(shifted, {-64, 63.5f});
  TfliteMadeTensor four{{1, 3}, TfliteType::i4, {0x78, 0x0f}};
  four.scale = {0.5f};
  expect_weights(four, {-4, 3.5f, -0.5f});
  TfliteMadeTensor sparse{{2, 4}, TfliteType::f32, bytes_of_values<float>({5, 6, 7})};
  sparse.segments = {0, 1, 3};
  sparse.indices = {2, 0, 3};
  expect_weights(sparse, {0, 0, 5, 0, 6, 0, 0, 7});
}

TfliteMaker stepped_tflite() {
  TfliteMaker m;
  const int32_t x = m.tensor({1, 5}), y = m.tensor({1, 5}, TfliteType::i8);
  m.tensors.back().scale = {0.5f};
  m.tensors.back().zero = {-100};
  m.ops.push_back({kQuantize, {x}, {y}});
  m.inputs = {x};
  m.outputs = {y};
  return m;
}

// -28 to 227 steps of 0.5 around 0.
TEST(Tflite, QuantizedValuesLieOnTheStepsOfTheirScale) {
  TfliteMaker m = stepped_tflite();
  EXPECT_EQ(run_tflite(m, {0.2f, 0.3f, -1.26f, -50, 1000}),
            (std::vector<float>{0, 0.5f, -1.5f, -14, 113.5f}));
}

TEST(Tflite, ForTrainingQuantizedValuesKeepTheirRangeAlone) {
  TfliteMaker m = stepped_tflite();
  EXPECT_EQ(run_tflite(m, {0.2f, 0.3f, -1.25f, -50, 1000}, true),
            (std::vector<float>{0.2f, 0.3f, -1.25f, -14, 113.5f}));
}

TEST(Tflite, AFileIsKnownByItsBytesWhateverItIsCalled) {
  const TemporaryFolder folder;
  TfliteMaker m;
  const int32_t x = m.tensor({1, 3}), y = m.tensor({1, 3});
  m.ops.push_back({kTanh, {x}, {y}});
  m.inputs = {x};
  m.outputs = {y};
  for (const char* name : {"m.tflite", "m.bin", "model"}) {
    const auto opened = open_network(written_tflite(folder, name, m));
    ASSERT_TRUE(opened.ok()) << opened.error().str();
    EXPECT_EQ(opened->format, "TFLite");
  }
  const std::string other = folder.path("other.tflite");
  ASSERT_TRUE(
      write_file_atomic(other, std::as_bytes(std::span(std::string_view("no model")))).ok());
  expect_error(open_network(other), Code::bad_file,
               other + ": at byte 4: is not a TFLite file: bytes 4 to 7 are not TFL3");
}

// Issue 37, line 29.
TEST(Tflite, ListsOfNothingAndTablesThatNobodyReadsAreNoObstacle) {
  TfliteMaker m;
  const int32_t x = m.tensor({1, 3}), none = m.tensor({0}, TfliteType::i32);
  const int32_t sum = m.tensor({1, 3}), y = m.tensor({1, 3});
  m.ops = {{kCallOnce, {}, {}}, {kSum, {x, none}, {sum}}, {kRelu, {sum}, {y}}};
  m.inputs = {x};
  m.outputs = {y};
  m.graphs = 2;
  EXPECT_EQ(run_tflite(m, {-1, 2, 3}), (std::vector<float>{0, 2, 3}));
}

TEST(Tflite, WhatHasNoPlaceInANetworkIsSaidInANote) {
  const TemporaryFolder folder;
  TfliteMaker m = stepped_tflite();
  std::swap(m.tensors[0].type, m.tensors[1].type);
  std::swap(m.tensors[0].scale, m.tensors[1].scale);
  std::swap(m.tensors[0].zero, m.tensors[1].zero);
  m.ops[0].code = kDequantize;
  const auto opened = open_network(written_tflite(folder, "m.tflite", m));
  ASSERT_TRUE(opened.ok()) << opened.error().str();
  ASSERT_FALSE(opened->notes.empty());
  EXPECT_EQ(
      opened->notes[0],
      "input 't0' holds int8 values in the file, in steps of 0.5; here the numbers that those "
      "stand for");
}

}  // namespace
}  // namespace loom::core::test
