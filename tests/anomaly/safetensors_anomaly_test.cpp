// Damage to safetensors files: cut at every byte, every single bit flipped. A cut file is refused.
// A flipped bit in the data changes no structure (the format has no checksum); one in the header is
// refused or gives a consistent file. Nothing crashes, and no read is out of bounds.
#include <algorithm>

#include "anomaly/damage.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using test::expect_plain_error;
using test::flip;

using test::bytes_of;
using test::safetensors_file;

struct Sample {
  std::string bytes;
  size_t data_start;
};

// Five tensors of several types, one of no bytes, out of order, with metadata and padding.
Sample sample() {
  const std::string header = R"({"__metadata__":{"format":"pt","note":"a \"b\" \u00e9"},)"
                             R"("w.1":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
                             R"("w.0":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},)"
                             R"("none":{"dtype":"F16","shape":[0,3],"data_offsets":[8,8]},)"
                             R"("ids":{"dtype":"I64","shape":[1],"data_offsets":[24,32]},)"
                             R"("mask":{"dtype":"BOOL","shape":[3,1],"data_offsets":[32,35]}}   )";
  std::string data;
  for (int i = 0; i < 35; ++i) data += static_cast<char>(i * 37);
  return {safetensors_file(header, data), 8 + header.size()};
}

bool same_structure(const SafeTensors& a, const SafeTensors& b) {
  const auto equal = [](const SafeTensor& x, const SafeTensor& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
           x.file_offset == y.file_offset && x.data.size() == y.data.size();
  };
  return a.metadata() == b.metadata() && std::equal(a.tensors().begin(), a.tensors().end(),
                                                    b.tensors().begin(), b.tensors().end(), equal);
}

// Sizes match types, data tiles the file's end, and every value can be read.
void expect_consistent(const SafeTensors& file, std::span<const std::byte> bytes) {
  uint64_t total = 0;
  uint64_t first = bytes.size();
  for (const SafeTensor& tensor : file.tensors()) {
    const auto count = static_cast<uint64_t>(tensor.count());
    EXPECT_EQ(count * safe_dtype_bits(tensor.dtype), 8 * tensor.data.size());
    ASSERT_LE(tensor.file_offset, bytes.size());
    ASSERT_LE(tensor.data.size(), bytes.size() - tensor.file_offset);
    EXPECT_EQ(tensor.data.data(), bytes.data() + tensor.file_offset);
    total += tensor.data.size();
    first = std::min(first, tensor.file_offset);
    std::vector<float> values(count);
    (void)SafeTensors::to_f32(tensor, 0, tensor.count(), values.data());
  }
  EXPECT_EQ(first + total, bytes.size());
  const auto by_name = [](const SafeTensor& a, const SafeTensor& b) { return a.name < b.name; };
  EXPECT_TRUE(std::is_sorted(file.tensors().begin(), file.tensors().end(), by_name));
}

// An Error is one line that names the file.
TEST(SafeTensorsAnomaly, EveryTruncationIsRefused) {
  const Sample whole = sample();
  ASSERT_TRUE(SafeTensors::parse(bytes_of(whole.bytes), "f").ok());
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    // A separate copy: a sanitizer sees a read past its end.
    const std::string cut(whole.bytes.data(), size);
    const auto file = SafeTensors::parse(bytes_of(cut), "f");
    ASSERT_FALSE(file.ok()) << size;
    expect_plain_error(file.error());
  }
}

TEST(SafeTensorsAnomaly, EveryFlippedBitIsRefusedOrLeavesAConsistentFile) {
  const Sample whole = sample();
  const auto good = SafeTensors::parse(bytes_of(whole.bytes), "f");
  ASSERT_TRUE(good.ok()) << good.error().str();
  expect_consistent(*good, bytes_of(whole.bytes));
  size_t refused = 0;
  for (size_t i = 0; i < whole.bytes.size() * 8; ++i) {
    const std::string flipped = flip(whole.bytes, i);
    const auto file = SafeTensors::parse(bytes_of(flipped), "f");
    if (!file.ok()) {
      ++refused;
      EXPECT_LT(i / 8, whole.data_start) << "a bit of the data was refused";
      expect_plain_error(file.error());
      continue;
    }
    expect_consistent(*file, bytes_of(flipped));
    EXPECT_TRUE(i / 8 < whole.data_start || same_structure(*file, *good)) << i;
    EXPECT_GE(i, 64u) << "a wrong header length was accepted";
  }
  // Only names, metadata and dtypes of one size can change unseen; most of the header cannot.
  EXPECT_GT(refused, whole.data_start * 8 * 3 / 4);
}

TEST(SafeTensorsAnomaly, EveryByteReplacedByEveryOtherIsRefusedOrConsistent) {
  const Sample whole = sample();
  for (size_t at = 0; at < whole.data_start; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole.bytes;
      changed[at] = static_cast<char>(value);
      const auto file = SafeTensors::parse(bytes_of(changed), "f");
      if (file.ok()) expect_consistent(*file, bytes_of(changed));
    }
  }
}

class DamagedIndex : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string name : {"a", "b"}) {
      folder_.write(
          name + ".safetensors",
          safetensors_file("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                           "x"));
    }
    ASSERT_TRUE(open(kIndex).ok());
  }
  Result<SafeTensors> open(std::string_view index) {
    folder_.write("i.json", index);
    return SafeTensors::open(folder_.path("i.json"));
  }

  static constexpr std::string_view kIndex =
      R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})";
  test::TemporaryFolder folder_;
};

TEST_F(DamagedIndex, IsRefusedWhereverItIsCut) {
  for (size_t size = 0; size < kIndex.size(); ++size) {
    EXPECT_FALSE(open(kIndex.substr(0, size)).ok()) << size;
  }
}

TEST_F(DamagedIndex, IsRefusedOrNamesTheSameTensorsAfterABitFlip) {
  for (size_t i = 0; i < kIndex.size() * 8; ++i) {
    const std::string flipped = flip(std::string(kIndex), i);
    const auto model = open(flipped);
    if (!model.ok()) continue;
    EXPECT_EQ(model->tensors().size(), 2u) << flipped;
    EXPECT_TRUE(model->find("a") != nullptr && model->find("b") != nullptr) << flipped;
  }
}

}  // namespace
}  // namespace loom::core
