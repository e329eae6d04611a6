// Well-formed GGUF files: the reader compared with the `gguf` package for Python
// (golden/gguf_quants.bin, made by tools/goldens/gguf_quants.py) and with Loom's writer.
#include "formats/gguf/file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/numbers/bits.hpp"
#include "formats/gguf/write.hpp"
#include "formats/gguf_bytes.hpp"
#include "io/io_testing.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::GgufBytes;

bool same_value(float a, float b) {
  return f32_bits(a) == f32_bits(b) || (std::isnan(a) && std::isnan(b));
}

TEST(GgufQuants, DecodeWhatThePythonPackageDecodes) {
  const auto golden = read_file(loom_test::source_path("tests/io/golden/gguf_quants.bin"));
  ASSERT_TRUE(golden.ok());
  ByteReader reader(bytes_of(*golden), "golden");
  int types = 0;
  while (reader.remaining() > 0) {
    const auto name = reader.take(8, "name");
    ASSERT_TRUE(name.ok());
    const auto* type =
        find_ggml_type(std::string_view(reinterpret_cast<const char*>(name->data())));
    ASSERT_NE(type, nullptr);
    ASSERT_NE(type->decode, nullptr) << type->name;
    const uint32_t blocks = *reader.u32("blocks");
    const uint32_t size = *reader.u32("size");
    EXPECT_EQ(size, blocks * type->bytes) << type->name;
    const auto data = *reader.take(size, "data");
    const auto want = *reader.take(uint64_t{4} * blocks * type->values, "values");
    std::vector<float> got(size_t{blocks} * type->values);
    type->decode(data.data(), blocks, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const auto value = load_le<float>(want.data() + 4 * i);
      ASSERT_TRUE(same_value(got[i], value))
          << type->name << " value " << i << ": " << got[i] << ", the package says " << value;
    }
    ++types;
  }
  EXPECT_EQ(types, 17);
}

TEST(GgufQuants, HaveUniqueIdsAndNames) {
  for (const GgmlType& type : ggml_types()) {
    EXPECT_EQ(find_ggml_type(type.id), &type);
    EXPECT_EQ(find_ggml_type(type.name), &type);
    EXPECT_LE(type.values, kMaxGgmlBlock);
  }
  EXPECT_EQ(find_ggml_type(4u), nullptr);  // Q4_2, removed
  EXPECT_EQ(find_ggml_type("Q4_2"), nullptr);
}

TEST(Gguf, ReadsValuesOfEveryType) {
  const std::string file = GgufBytes(0, 15)
                               .key("u8", GgufType::u8)
                               .u8(200)
                               .key("i8", GgufType::i8)
                               .u8(0xFF)
                               .key("u16", GgufType::u16)
                               .raw("\x34\x12")
                               .key("i16", GgufType::i16)
                               .raw("\xFE\xFF")
                               .key("u32", GgufType::u32)
                               .u32(70000)
                               .key("i32", GgufType::i32)
                               .u32(0xFFFFFFFD)
                               .key("f32", GgufType::f32)
                               .f32(1.5f)
                               .key("bool", GgufType::boolean)
                               .u8(1)
                               .key("string", GgufType::string)
                               .text("text")
                               .array("array", GgufType::i16, 2)
                               .u32(0xFFFF0001)
                               .array("strings", GgufType::string, 3)
                               .text("a")
                               .text("")
                               .text("bc")
                               .array("none", GgufType::string, 0)
                               .key("u64", GgufType::u64)
                               .u64(uint64_t{1} << 40)
                               .key("i64", GgufType::i64)
                               .u64(UINT64_MAX)
                               .key("f64", GgufType::f64)
                               .u64(0x4004000000000000);
  const auto gguf = Gguf::parse(bytes_of(file), "f");
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  EXPECT_EQ(gguf->metadata().size(), 15u);
  EXPECT_EQ(*gguf->u32("u32"), 70000u);
  EXPECT_EQ(*gguf->f32("f32"), 1.5f);
  EXPECT_EQ(*gguf->boolean("bool"), true);
  EXPECT_EQ(*gguf->string("string"), "text");
  const std::pair<const char*, double> numbers[] = {
      {"u8", 200},  {"i8", -1},  {"u16", 0x1234}, {"i16", -2},     {"u32", 70000}, {"i32", -3},
      {"f32", 1.5}, {"bool", 1}, {"array", 1},    {"u64", 0x1p40}, {"i64", -1},    {"f64", 2.5}};
  for (const auto& [key, value] : numbers) {
    ASSERT_TRUE(gguf->has(key)) << key;
    EXPECT_EQ(gguf->find_value(key)->number(0), value) << key;
  }
  const auto array = gguf->array("array", GgufType::i16);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ((*array)->count(), 2u);
  EXPECT_EQ((*array)->number(1), -1);
  const auto strings = gguf->array("strings", GgufType::string);
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ((*strings)->strings, (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ((*gguf->array("none", GgufType::string))->count(), 0u);
}

TEST(Gguf, SaysWhatAKeyIsAndShouldBe) {
  const std::string file = GgufBytes(0, 2)
                               .key("llama.block_count", GgufType::string)
                               .text("8")
                               .array("a", GgufType::u8, 1)
                               .u8(1);
  const auto gguf = Gguf::parse(bytes_of(file), "f");
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  expect_error(gguf->u32("llama.block_count"), Code::bad_file,
               "f: at byte 53: gguf key 'llama.block_count' must be u32, is string");
  expect_error(gguf->u32("b"), Code::bad_file, "f: gguf key 'b' is missing");
  expect_error(gguf->u32("a"), Code::bad_file,
               "f: at byte 87: gguf key 'a' must be u32, is an array of u8");
  expect_error(gguf->array("a", GgufType::string), Code::bad_file,
               "f: at byte 87: gguf key 'a' must be an array of string, is an array of u8");
}

TEST(Gguf, ReadsTensorsWithTheFastestAxisLast) {
  const std::string file = GgufBytes(4, 0)
                               .tensor("a", {3, 2}, 0, 0)
                               .tensor("q", {32, 1, 2}, 8, 32)
                               .tensor("none", {0, 5}, 0, 128)
                               .tensor("scalar", {}, 24, 128)
                               .pad()
                               .data(24)
                               .pad()
                               .data(68)
                               .pad()
                               .data(1)
                               .pad();
  const auto gguf = Gguf::parse(bytes_of(file), "f");
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  const auto entries = gguf->entries();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(entries[0].dtype, "F32");
  EXPECT_EQ(entries[1].shape, (std::vector<int64_t>{2, 1, 32}));
  EXPECT_EQ(entries[1].bytes, 68u);
  EXPECT_EQ(entries[2].count(), 0);
  EXPECT_EQ(entries[3].count(), 1);
  EXPECT_EQ(gguf->find_tensor("q"), 1);
  EXPECT_EQ(gguf->find("q"), 1);
  EXPECT_EQ(gguf->find_tensor("p"), -1);
  EXPECT_EQ(gguf->bytes(0).data(), bytes_of(file).data() + entries[0].offset);
  // Any range of values, independent of blocks.
  std::vector<float> all(64), some(64);
  ASSERT_TRUE(gguf->to_f32(1, 0, 64, all.data()).ok());
  for (int64_t first = 0; first < 64; first += 5) {
    for (int64_t count = 0; count <= 64 - first; ++count) {
      ASSERT_TRUE(gguf->to_f32(1, first, count, some.data()).ok());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(some[static_cast<size_t>(i)], all[static_cast<size_t>(first + i)]);
    }
  }
  EXPECT_EQ(gguf->to_f32(1, 60, 5, some.data()).error().code, Code::out_of_range);
  EXPECT_EQ(gguf->to_f32(1, -1, 1, some.data()).error().code, Code::out_of_range);
}

TEST(Gguf, ReadsWhatThePythonPackageWrote) {
  // The corpus of the fuzzer: files of the `gguf` package for Python, and three bad ones.
  const std::filesystem::path folder =
      std::filesystem::path(loom_test::source_path("fuzz/corpus/gguf"));
  const std::vector<std::string> bad = {"big", "empty", "huge_array", "v1"};
  int read = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    const bool is_bad = std::find(bad.begin(), bad.end(), name) != bad.end();
    const auto gguf = Gguf::open(file.path().string());
    EXPECT_EQ(gguf.ok(), !is_bad) << name << (gguf.ok() ? "" : gguf.error().str());
    if (!gguf.ok()) continue;
    ++read;
    EXPECT_EQ(*gguf->string("general.architecture"), "llama");
    for (size_t i = 0; i < gguf->entries().size(); ++i) {
      std::vector<float> values(static_cast<size_t>(gguf->entries()[i].count()));
      EXPECT_TRUE(gguf->to_f32(i, 0, gguf->entries()[i].count(), values.data()).ok()) << name;
    }
  }
  EXPECT_EQ(read, 19);
}

TEST(Gguf, ListsTypesWhoseValuesItDoesNotRead) {
  const std::string file = GgufBytes(1, 0).tensor("t", {256}, 16, 0).pad().data(66).pad();
  const auto gguf = Gguf::parse(bytes_of(file), "f");
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  EXPECT_EQ(gguf->entries()[0].dtype, "IQ2_XXS");
  float value = 0;
  const Status status = gguf->to_f32(0, 0, 1, &value);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::unsupported);
  EXPECT_EQ(status.error().str(), "f: tensor 't' has type IQ2_XXS, whose values are not read");
}

TEST(Gguf, ReadsVersionTwoAlignmentsAndAnUnpaddedEnd) {
  const std::string two = GgufBytes(1, 0, 2).tensor("t", {3}, 0, 0).pad().data(12);
  EXPECT_TRUE(Gguf::parse(bytes_of(two), "f").ok());
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    const std::string file = GgufBytes(2, 1)
                                 .key("general.alignment", GgufType::u32)
                                 .u32(alignment)
                                 .tensor("a", {1}, 0, 0)
                                 .tensor("b", {1}, 0, alignment)
                                 .pad(alignment)
                                 .data(4)
                                 .pad(alignment)
                                 .data(4)
                                 .pad(alignment);
    const auto gguf = Gguf::parse(bytes_of(file), "f");
    ASSERT_TRUE(gguf.ok()) << gguf.error().str();
    EXPECT_EQ(gguf->alignment(), alignment);
    EXPECT_EQ(gguf->entries()[1].offset % alignment, 0u);
  }
}

std::string written(const GgufMetadata& metadata, const std::vector<GgufOutput>& tensors) {
  std::string out;
  const Status status = write_gguf_to(
      [&](std::span<const std::byte> bytes) -> Status {
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return {};
      },
      metadata, tensors);
  EXPECT_TRUE(status.ok()) << status.error().str();
  return out;
}

GgufOutput tensor_of(std::string name, std::string_view type, std::vector<int64_t> shape,
                     std::string data) {
  return {std::move(name), type, std::move(shape),
          [data = std::move(data)](const GgufSink& sink) -> Status {
            const auto bytes = bytes_of(data);
            LOOM_TRY(sink(bytes.first(bytes.size() / 2)));
            return sink(bytes.subspan(bytes.size() / 2));
          }};
}

GgufMetadata sample_metadata() {
  GgufMetadata metadata;
  metadata.string("general.architecture", "test");
  metadata.u32("n", 7);
  metadata.f32("eps", 1e-5f);
  metadata.boolean("yes", true);
  metadata.strings("words", {"a", "b c"});
  const int32_t types[] = {1, -2};
  const float scores[] = {0.5f};
  metadata.i32s("types", types);
  metadata.f32s("scores", scores);
  return metadata;
}

TEST(GgufWriter, WritesWhatTheReaderReads) {
  const std::string q(34 * 3, 'q');
  const std::vector<GgufOutput> tensors = {tensor_of("m", "Q8_0", {3, 32}, q),
                                           tensor_of("v", "F32", {2}, "abcdefgh")};
  const std::string file = written(sample_metadata(), tensors);
  EXPECT_EQ(file, written(sample_metadata(), tensors));
  const auto gguf = Gguf::parse(bytes_of(file), "f");
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  EXPECT_EQ(*gguf->string("general.architecture"), "test");
  EXPECT_EQ(*gguf->u32("n"), 7u);
  EXPECT_EQ(*gguf->f32("eps"), 1e-5f);
  EXPECT_TRUE(*gguf->boolean("yes"));
  EXPECT_EQ((*gguf->array("words", GgufType::string))->strings[1], "b c");
  EXPECT_EQ((*gguf->array("types", GgufType::i32))->number(1), -2);
  EXPECT_EQ((*gguf->array("scores", GgufType::f32))->number(0), 0.5);
  EXPECT_EQ(gguf->entries()[0].shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(gguf->bytes(0).data()), q.size()), q);
  EXPECT_EQ(file.size() % 32, 0u);
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_gguf_file(folder.path("x.gguf"), sample_metadata(), tensors).ok());
  EXPECT_EQ(*read_file(folder.path("x.gguf")), file);
  const auto opened = Gguf::open(folder.path("x.gguf"));
  ASSERT_TRUE(opened.ok());
  opened->release(0);
  EXPECT_EQ(opened->bytes(0)[0], std::byte{'q'});
}

TEST(GgufWriter, RefusesWhatNoReaderWouldTake) {
  const struct {
    GgufOutput tensor;
    const char* error;
  } rows[] = {
      {tensor_of("t", "Q9", {1}, ""), "t: no ggml type Q9"},
      {tensor_of("t", "Q8_0", {2, 31}, ""),
       "t: has rows of 31 values; Q8_0 needs a multiple of 32"},
      {tensor_of("t", "F32", {1, 1, 1, 1, 1}, ""), "t: has more than 4 dimensions"},
      {tensor_of("t", "F32", {-1}, ""), "t: the shape is too large"},
      {tensor_of("t", "F32", {INT64_MAX, 4}, ""), "t: the shape is too large"},
      {tensor_of(std::string(64, 'n'), "F32", {1}, "abcd"),
       "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: a tensor name has fewer "
       "than 64 bytes"},
      {tensor_of("t", "F32", {1}, "abc"), "t: wrote 3 of its 4 bytes"},
      {tensor_of("t", "F32", {1}, "abcde"), "t: writes more bytes than it has"},
  };
  const auto ignore = [](std::span<const std::byte>) -> Status { return {}; };
  for (const auto& row : rows) {
    const Status status = write_gguf_to(ignore, {}, {row.tensor});
    ASSERT_FALSE(status.ok()) << row.error;
    EXPECT_EQ(status.error().str(), row.error);
  }
  const GgufOutput t = tensor_of("t", "F32", {1}, "abcd");
  EXPECT_EQ(write_gguf_to(ignore, {}, {t, t}).error().str(), "t: occurs twice");
  GgufMetadata twice;
  twice.u32("k", 1);
  twice.u32("k", 2);
  EXPECT_EQ(write_gguf_to(ignore, twice, {}).error().str(), "k: occurs twice");
}

}  // namespace
}  // namespace loom::core
