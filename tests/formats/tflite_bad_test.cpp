// Bad TFLite files, each with the exact text of its refusal: values that are not in the file, what
// names something that is not there, what contradicts itself, and what means nothing to us.
#include "base/text.hpp"
#include "formats/tflite_testing.hpp"
#include "io/io_testing.hpp"

namespace loom::core::test {
namespace {

// x [1, 4] -> RELU -> y
TfliteMaker tflite_good() {
  TfliteMaker m;
  const int32_t x = m.tensor({1, 4}), y = m.tensor({1, 4});
  m.ops.push_back({kRelu, {x}, {y}});
  m.inputs = {x};
  m.outputs = {y};
  return m;
}

// Bytes at a multiple of 8, as files are mapped.
struct TfliteAligned {
  explicit TfliteAligned(const std::string& bytes)
      : words((bytes.size() + 7) / 8), size(bytes.size()) {
    if (size > 0) std::memcpy(words.data(), bytes.data(), size);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words)).first(size); }
  std::vector<uint64_t> words;
  size_t size;
};

Result<ImportedNetwork> tflite_opened(const std::string& file) {
  const TfliteAligned aligned(file);
  return import_tflite(aligned.bytes(), "f");
}

template <class Change>
std::string tflite_changed(Change change) {
  TfliteMaker m = tflite_good();
  change(m);
  return m.file();
}

struct BadTfliteRow {
  std::string file, error;
  Code code = Code::bad_file;
};
void check_tflite(const std::vector<BadTfliteRow>& rows) {
  for (const BadTfliteRow& row : rows)
    expect_error(tflite_opened(row.file), row.code, "f: " + row.error);
}

TEST(BadTflite, TheFileTheTestsStartFromIsGood) {
  const auto made = tflite_opened(tflite_good().file());
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->network.input.after(1), (Shape{1, 4}));
}

TEST(BadTflite, IsRefusedForItsFraming) {
  std::string far = tflite_good().file(), magic = far, no_table = far;
  far[3] = '\x7f';
  magic[4] = 'X';
  no_table[0] = no_table[1] = no_table[2] = no_table[3] = 0;
  check_tflite({
      {"", "at byte 4: is not a TFLite file: bytes 4 to 7 are not TFL3"},
      {"TFL3TFL", "at byte 4: is not a TFLite file: bytes 4 to 7 are not TFL3"},
      {magic, "at byte 4: is not a TFLite file: bytes 4 to 7 are not TFL3"},
      {far, "does not begin with a table of a TFLite model"},
      {no_table, "does not begin with a table of a TFLite model"},
      {std::string("\x08\0\0\0TFL3", 8), "does not begin with a table of a TFLite model"},
      {tflite_changed([](TfliteMaker& m) { m.version = 2; }), "schema version 2; version 3 is read",
       Code::unsupported},
      {tflite_changed([](TfliteMaker& m) { m.graphs = 0; }), "holds no graph", Code::unsupported},
  });
}

// Found by fuzz_tflite: an extent of a billion, four times. TILE also takes an extent of 0.
TEST(BadTflite, IsRefusedForConstantsBeyondMemory) {
  const auto shaped = [](int32_t code, std::vector<int32_t> dims) {
    return tflite_changed([&](TfliteMaker& m) {
      for (TfliteMadeTensor& t : m.tensors) t.dims = dims;
      m.ops = {{code, {0}, {1}}};
      if (code == kTile)
        m.ops[0].inputs.push_back(m.integers(std::vector<int32_t>(dims.size(), 1)));
    });
  };
  const int32_t most = 1 << 30;
  expect_error(tflite_opened(shaped(kZerosLike, {most, most, most, most})), Code::unsupported,
               "f: operator 0 (ZEROS_LIKE): a constant that is far too large");
  EXPECT_FALSE(tflite_opened(shaped(kTile, {1, 0})).ok());
}

TEST(BadTflite, IsRefusedForIndexesOfNothing) {
  check_tflite({
      {tflite_changed([](TfliteMaker& m) { m.inputs = {7}; }),
       "the graph names tensor 7, the file has 2"},
      {tflite_changed([](TfliteMaker& m) { m.outputs = {-1}; }),
       "the graph names tensor -1, the file has 2"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].inputs = {-2}; }),
       "operator 0 names tensor -2, the file has 2"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].outputs = {2}; }),
       "operator 0 names tensor 2, the file has 2"},
      {tflite_changed([](TfliteMaker& m) { m.tensors[1].buffer = 9; }),
       "tensor 1: names buffer 9, the file has 1"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].inputs = {-1}; }),
       "operator 0 (RELU): its input 0 is absent"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].inputs = {}; }), "operator 0 (RELU): 0 inputs"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].outputs = {}; }),
       "operator 0 (RELU): 0 outputs"},
  });
}

TEST(BadTflite, IsRefusedForOperatorsThatReadEachOtherInACircle) {
  check_tflite({
      {tflite_changed([](TfliteMaker& m) { m.ops[0].inputs = {1}; }),
       "operator 0 (RELU): reads tensor 1, which no operator before it makes"},
      {tflite_changed([](TfliteMaker& m) { m.ops[0].outputs = {0}; }),
       "operator 0 (RELU): its output, tensor 0, is made twice"},
      {tflite_changed([](TfliteMaker& m) { m.ops.push_back(m.ops[0]); }),
       "operator 1 (RELU): its output, tensor 1, is made twice"},
      {tflite_changed([](TfliteMaker& m) { m.ops.clear(); }),
       "output 't1': reads tensor 1, which no operator before it makes"},
      {tflite_changed([](TfliteMaker& m) {
         m.inputs = {0, 0};
       }),
       "input 't0' occurs twice, or is a constant"},
  });
}

TEST(BadTflite, IsRefusedForShapesAndValuesThatContradictEachOther) {
  const auto constant = [](std::vector<int32_t> dims, size_t bytes, TfliteType type) {
    return tflite_changed([&](TfliteMaker& m) {
      m.tensor(std::move(dims), type);
      m.tensors.back().data.assign(bytes, 0);
    });
  };
  check_tflite({
      {constant({3}, 8, TfliteType::f32),
       "tensor 2: 8 bytes that are not what its shape and type need"},
      {constant({3}, 3, TfliteType::i4),
       "tensor 2: 3 bytes that are not what its shape and type need"},
      {constant({1 << 30, 1 << 30, 1 << 30}, 8, TfliteType::f32),
       "tensor 2: 8 bytes that are not what its shape and type need"},
      {tflite_changed([](TfliteMaker& m) {
         m.tensors[0].dims = {1, -4};
       }),
       "tensor 0: an extent below 0"},
      {tflite_changed([](TfliteMaker& m) { m.tensors[0].dims.assign(9, 1); }),
       "tensor 0: its shape is not in the file, or is too long"},
      {tflite_changed([](TfliteMaker& m) { m.tensors[0].scale = {0}; }),
       "tensor 0: a scale that is not a number above 0"},
      {tflite_changed([](TfliteMaker& m) {
         m.tensors[0].scale = {1, 1};
       }),
       "tensor 0: scales or zero points that do not fit its shape"},
      {tflite_changed([](TfliteMaker& m) {
         m.tensors[0].scale = {1};
         m.tensors[0].zero = {1, 2, 3};
       }),
       "tensor 0: scales or zero points that do not fit its shape"},
  });
}

TEST(BadTflite, IsRefusedForSparseConstantsThatContradictThemselves) {
  const auto sparse = [](std::vector<int32_t> segments, std::vector<int32_t> indices) {
    return tflite_changed([&](TfliteMaker& m) {
      const int32_t w = m.floats({2, 4}, {1, 2});
      m.tensors.back().segments = std::move(segments);
      m.tensors.back().indices = std::move(indices);
      m.ops[0] = {kFullyConnected, {0, w}, {1}};
      m.tensors[1].dims = {1, 2};
    });
  };
  EXPECT_TRUE(tflite_opened(sparse({0, 1, 2}, {3, 0})).ok());
  const std::string why = "operator 0 (FULLY_CONNECTED): a sparse constant that contradicts itself";
  for (const std::string& file :
       {sparse({0, 1}, {3, 0}), sparse({0, 1, 3}, {3, 0}), sparse({1, 0, 2}, {3, 0}),
        sparse({0, 1, 2}, {4, 0}), sparse({0, 1, 2}, {-1, 0}), sparse({0, 1, 1}, {3, 0})})
    expect_error(tflite_opened(file), Code::bad_file, "f: " + why);
}

TEST(BadTflite, IsRefusedByTheNameOfWhatIsNotRead) {
  const auto op = [](int32_t code, std::string custom = {}) {
    return tflite_changed(
        [&](TfliteMaker& m) { m.ops[0] = {code, {0}, {1}, 0, {}, std::move(custom)}; });
  };
  check_tflite({
      {op(kCustom, "TFLite_Detection_PostProcess"),
       "operator 0 (CUSTOM): 'TFLite_Detection_PostProcess' is not an operator of TFLite itself, "
       "and "
       "what it "
       "computes is not in the file",
       Code::unsupported},
      {op(kCustom, "FlexErf"),
       "operator 0 (CUSTOM): 'FlexErf' is an operator of TensorFlow; convert the model with "
       "TFLite's own "
       "alone",
       Code::unsupported},
      {op(119), "operator 0 (WHILE): is not read; docs/tflite.md lists the operators that are",
       Code::unsupported},
      {op(5000),
       "operator 0 (operator number 5000): is not read; docs/tflite.md lists the operators that "
       "are",
       Code::unsupported},
      {tflite_changed([](TfliteMaker& m) { m.tensors[0].type = TfliteType::text; }),
       "input 't0': holds string values", Code::unsupported},
      {tflite_changed([](TfliteMaker& m) { m.tensors[0].variable = true; }),
       "input 't0': is a state that is kept between runs", Code::unsupported},
      {tflite_changed([](TfliteMaker& m) {
         m.tensors[0].dims = {1, 0};
       }),
       "input 't0': has no values", Code::unsupported},
      {tflite_changed([](TfliteMaker& m) { m.inputs.clear(); }),
       "takes no input, or gives no output", Code::unsupported},
  });
}

TEST(BadTflite, IsRefusedForOptionsThatCannotBe) {
  const auto conv = [](std::vector<TfliteMadeOption> options,
                       std::vector<int32_t> kernel = {1, 1, 1, 1}) {
    TfliteMaker m;
    const int32_t x = m.tensor({1, 3, 3, 1});
    size_t count = 1;
    for (const int32_t k : kernel) count *= static_cast<size_t>(k);
    const int32_t w = m.floats(std::move(kernel), std::vector<float>(count, 1));
    const int32_t y = m.tensor({1, 3, 3, 1});
    m.ops.push_back({kConv, {x, w}, {y}, 1, std::move(options)});
    m.inputs = {x};
    m.outputs = {y};
    return m.file();
  };
  const std::string at = "operator 0 (CONV_2D): ";
  check_tflite({
      {conv({}), at + "kernels, strides or dilations below 1", Code::unsupported},
      {conv({{1, 'i', 1}, {2, 'i', -1}}), at + "kernels, strides or dilations below 1",
       Code::unsupported},
      {conv({{0, 'b', 2}, {1, 'i', 1}, {2, 'i', 1}}), at + "a padding that is not known",
       Code::unsupported},
      {conv({{0, 'b', 1}, {1, 'i', 1}, {2, 'i', 1}}, {1, 4, 1, 1}),
       at + "a kernel that is larger than its input", Code::unsupported},
      {conv({{1, 'i', 1}, {2, 'i', 1}}, {1, 1, 1, 2}),
       at + "weights that do not fit the channels of its input", Code::unsupported},
      {conv({{1, 'i', 1}, {2, 'i', 1}, {3, 'b', 5}}), at + "fused activation number 5 is not read",
       Code::unsupported},
  });
}

// A file that was cut or has a flipped bit is refused in one line, or read: it never ends the
// process.
TEST(BadTflite, CutAtEveryByteOrWithAnyBitFlippedItIsRefusedOrRead) {
  TfliteMaker m;
  const int32_t x = m.tensor({1, 3, 3, 2});
  m.tensors[0].scale = {0.5f};
  m.tensors[0].type = TfliteType::u8;
  const int32_t w = m.floats({2, 1, 1, 2}, {1, 2, 3, 4});
  const int32_t y = m.tensor({1, 3, 3, 2}), z = m.tensor({1, 18});
  m.ops.push_back({kConv, {x, w}, {y}, 1, {{1, 'i', 1}, {2, 'i', 1}, {3, 'b', 1}}});
  m.ops.push_back({kReshape, {y, m.integers({1, -1})}, {z}});
  m.inputs = {x};
  m.outputs = {z};
  const std::string file = m.file();
  ASSERT_TRUE(tflite_opened(file).ok()) << tflite_opened(file).error().str();
  const auto one_line = [](const Result<ImportedNetwork>& made) {
    if (made.ok()) return true;
    return !made.error().message.empty() && made.error().str().find('\n') == std::string::npos;
  };
  for (size_t size = 0; size < file.size(); ++size)
    ASSERT_TRUE(one_line(tflite_opened(file.substr(0, size)))) << size;
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(one_line(tflite_opened(flipped))) << bit;
  }
}

}  // namespace
}  // namespace loom::core::test
