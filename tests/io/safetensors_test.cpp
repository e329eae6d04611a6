// SafeTensors: good files in the forms of the format and of the Python library.
#include "io/weights/safetensors.hpp"

#include "io/io_testing.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::safetensors_file;
using test::TemporaryFolder;

Result<SafeTensors> parse(const std::string& file) {
  return SafeTensors::parse(bytes_of(file), "f");
}

TEST(SafeTensors, AnEmptyHeaderIsAnEmptyFile) {
  const std::string text = safetensors_file("{}");
  const auto file = parse(text);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_TRUE(file->metadata().empty());
  EXPECT_EQ(file->find("a"), nullptr);
}

TEST(SafeTensors, TensorsAreSortedByNameWhateverTheirPlace) {
  const std::string text =
      safetensors_file(R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                       R"("__metadata__":{"format":"pt","empty":""},)"
                       R"("a":{"shape":[1,3],"data_offsets":[4,7],"dtype":"U8"}}  )",
                       "\x01\x00\x02\x00xyz");
  // The string literal ends at its first NUL; the file needs all seven bytes.
  const std::string whole =
      text.substr(0, text.find('\x01')) + std::string("\x01\x00\x02\x00xyz", 7);
  const auto file = parse(whole);
  ASSERT_TRUE(file.ok()) << file.error().str();
  ASSERT_EQ(file->tensors().size(), 2u);
  const SafeTensor& a = file->tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, SafeDType::u8);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(a.count(), 3);
  EXPECT_EQ(a.data.size(), 3u);
  EXPECT_EQ(static_cast<char>(a.data[0]), 'x');
  EXPECT_EQ(a.file_offset, whole.size() - 3);
  EXPECT_EQ(file->find("b")->data.size(), 4u);
  EXPECT_EQ(file->find("c"), nullptr);
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"},
                                                                     {"empty", ""}};
  EXPECT_EQ(file->metadata(), metadata);
}

TEST(SafeTensors, TensorsOfNoBytesMayShareAnOffset) {
  const std::string text = safetensors_file(
      R"({"e1":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
      R"("e2":{"dtype":"F64","shape":[9223372036854775807,0],"data_offsets":[0,0]},)"
      R"("e3":{"dtype":"F16","shape":[2,0],"data_offsets":[4,4]},)"
      R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
      "abcd");
  const auto file = parse(text);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->find("e1")->count(), 0);
  EXPECT_EQ(file->find("e2")->count(), 0);
  EXPECT_EQ(file->find("scalar")->count(), 1);
}

TEST(SafeTensors, TypesBelowAByteAreListed) {
  const std::string text =
      safetensors_file(R"({"f4":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]},)"
                       R"("f6":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[3,6]},)"
                       R"("g6":{"dtype":"F6_E3M2","shape":[8],"data_offsets":[6,12]}})",
                       "abcdefghijkl");
  const auto file = parse(text);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_EQ(file->find("f4")->count(), 6);
}

TEST(SafeTensors, EveryDTypeHasItsNameAndSize) {
  const std::vector<std::pair<std::string, uint64_t>> expected = {
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"U16", 16},    {"I16", 16},
      {"U32", 32},    {"I32", 32}, {"U64", 64},    {"I64", 64},    {"F16", 16},
      {"BF16", 16},   {"F32", 32}, {"F64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = parse_safe_dtype(expected[i].first);
    ASSERT_TRUE(dtype.ok()) << expected[i].first;
    EXPECT_EQ(static_cast<size_t>(*dtype), i);
    EXPECT_EQ(safe_dtype_name(*dtype), expected[i].first);
    EXPECT_EQ(safe_dtype_bits(*dtype), expected[i].second);
  }
  expect_error(parse_safe_dtype("f32"), Code::unsupported, "unknown dtype \"f32\"");
}

TEST(SafeTensors, ReadsAFileOfThePythonLibrary) {
  const std::string path = loom_test::source_path("tests/io/golden/python_types.safetensors");
  const auto file = SafeTensors::open(path);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_EQ(file->tensors().size(), 14u);
  EXPECT_EQ(file->metadata().size(), 2u);
  const std::vector<float> expected = {0, 1, 2, 3, 100, 127};
  for (const char* name :
       {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64"}) {
    const SafeTensor* tensor = file->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3})) << name;
    std::vector<float> values(6);
    ASSERT_TRUE(SafeTensors::to_f32(*tensor, 0, 6, values.data()).ok()) << name;
    EXPECT_EQ(values, expected) << name;
  }
  std::vector<float> truths(3);
  ASSERT_TRUE(SafeTensors::to_f32(*file->find("bool"), 0, 3, truths.data()).ok());
  EXPECT_EQ(truths, (std::vector<float>{1, 0, 1}));
  float scalar = 0;
  ASSERT_TRUE(SafeTensors::to_f32(*file->find("scalar"), 0, 1, &scalar).ok());
  EXPECT_EQ(scalar, -1.5f);
  EXPECT_EQ(file->find("empty")->count(), 0);
}

TEST(SafeTensors, OpensAFileAndReleasesItsPages) {
  const TemporaryFolder folder;
  const std::string data(40'000, '\x3f');
  folder.write(
      "m.safetensors",
      safetensors_file(R"({"a":{"dtype":"F32","shape":[10000],"data_offsets":[0,40000]}})", data));
  const auto file = SafeTensors::open(folder.path("m.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().str();
  ASSERT_EQ(file->files().size(), 1u);
  std::vector<float> before(10'000), after(10'000);
  const SafeTensor& tensor = file->tensors()[0];
  ASSERT_TRUE(SafeTensors::to_f32(tensor, 0, 10'000, before.data()).ok());
  file->release(tensor);
  ASSERT_TRUE(SafeTensors::to_f32(tensor, 0, 10'000, after.data()).ok());
  EXPECT_EQ(before, after);
}

TEST(SafeTensors, OpensTheSharedCheckpoint) {
  const std::string path = test::shared_data("models/shakespeare-llama");
  if (path.empty()) GTEST_SKIP() << "no shared data beside this checkout";
  const auto model = SafeTensors::open(path);
  ASSERT_TRUE(model.ok()) << model.error().str();
  // 8 layers of 9 tensors, the embedding, the last norm; the output is tied.
  EXPECT_EQ(model->tensors().size(), 8u * 9 + 2);
  const SafeTensor* embedding = model->find("model.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->dtype, SafeDType::bf16);
  EXPECT_EQ(embedding->shape, (std::vector<int64_t>{4096, 192}));
}

}  // namespace
}  // namespace loom::core
