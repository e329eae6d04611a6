// The safetensors writer: the strict reader accepts its files, with the same content.
#include "io/weights/safetensors_write.hpp"

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TemporaryFolder;

TEST(SafetensorsWrite, RoundTripsInNameOrderWithAlignedData) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string bytes = "xyz";
  const std::vector<SafeOutput> tensors = {
      {"b", SafeDType::f32, {2, 3}, std::as_bytes(std::span(values))},
      {"a", SafeDType::u8, {3}, bytes_of(bytes)},
      {"empty", SafeDType::f32, {0}, {}}};
  const Result<std::string> file = safetensors_bytes(tensors, {{"k", "v \"q\"\n"}, {"z", ""}});
  ASSERT_TRUE(file.ok()) << file.error().str();
  uint64_t length = 0;
  std::memcpy(&length, file->data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const Result<SafeTensors> read = SafeTensors::parse(bytes_of(*file), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  ASSERT_EQ(read->tensors().size(), 3u);
  EXPECT_EQ(read->metadata().size(), 2u);
  EXPECT_EQ(read->metadata()[0].second, "v \"q\"\n");
  const SafeTensor* b = read->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> out(6);
  ASSERT_TRUE(SafeTensors::to_f32(*b, 0, 6, out.data()).ok());
  EXPECT_EQ(out, values);
  EXPECT_EQ(read->find("a")->data[0], std::byte{'x'});
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder.path("f.safetensors"), tensors, {}).ok());
  EXPECT_TRUE(SafeTensors::open(folder.path("f.safetensors")).ok());
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(SafetensorsWrite, RefusesWhatTheReaderWould) {
  const std::string four = "abcd";
  expect_error(safetensors_bytes({{"a", SafeDType::f32, {2}, bytes_of(four)}}, {}),
               Code::invalid_argument, "a: has 4 bytes, its shape needs 8");
  expect_error(safetensors_bytes({{"a", SafeDType::f32, {1}, bytes_of(four)},
                                  {"a", SafeDType::f32, {1}, bytes_of(four)}},
                                 {}),
               Code::invalid_argument, "a: occurs twice");
  expect_error(safetensors_bytes({{"a", SafeDType::f64, {INT64_MAX, 2}, {}}}, {}),
               Code::invalid_argument, "a: the shape is too large");
}

}  // namespace
}  // namespace loom::core
