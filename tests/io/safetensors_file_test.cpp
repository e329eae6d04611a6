// A safetensors checkpoint through the interface that all tensor files share.
#include "io/weights/safetensors_file.hpp"

#include "io/io_testing.hpp"
#include "io/weights/safetensors_write.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::safetensors_file;

const std::string kTwo =
    safetensors_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},)"
                     R"("b":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}})",
                     std::string("\x80\x3f\0\0\x80\x3f\0\0\0\x40", 10));

TEST(SafeTensorsFile, ListsTensorsInTheOrderOfTheirBytes) {
  const auto parsed = SafeTensors::parse(bytes_of(kTwo), "f");
  ASSERT_TRUE(parsed.ok()) << parsed.error().str();
  const SafeTensorsFile file(*SafeTensors::parse(bytes_of(kTwo), "f"));
  ASSERT_EQ(file.entries().size(), 2u);
  EXPECT_EQ(file.entries()[0].name, "b");
  EXPECT_EQ(file.entries()[0].dtype, "BF16");
  EXPECT_EQ(file.entries()[0].shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(file.entries()[0].bytes, 2u);
  EXPECT_EQ(file.entries()[1].name, "a");
  EXPECT_EQ(file.entries()[1].offset, kTwo.size() - 8);
  EXPECT_EQ(file.entries()[1].count(), 2);
  EXPECT_EQ(file.find("a"), 1);
  EXPECT_EQ(file.find("c"), -1);
}

TEST(SafeTensorsFile, ReadsValuesAndBytes) {
  const SafeTensorsFile file(*SafeTensors::parse(bytes_of(kTwo), "f"));
  float values[2] = {};
  ASSERT_TRUE(file.to_f32(1, 0, 2, values).ok());
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 2.0f);
  EXPECT_EQ(file.bytes(0).size(), 2u);
  EXPECT_EQ(file.bytes(7).size(), 0u);
  file.release(0);
  file.release(7);
  expect_error(file.to_f32(2, 0, 1, values), Code::out_of_range, "tensor 2 of 2");
  expect_error(file.to_f32(1, 1, 2, values), Code::out_of_range,
               "a: values [1, +2) of a tensor of 2");
}

TEST(SafeTensorsFile, OpensAPath) {
  const test::TemporaryFolder folder;
  folder.write("x.safetensors", kTwo);
  const auto file = SafeTensorsFile::open(folder.path("x.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_EQ((*file)->entries().size(), 2u);
  EXPECT_EQ(SafeTensorsFile::open(folder.path("y.safetensors")).ok(), false);
}

}  // namespace
}  // namespace loom::core
