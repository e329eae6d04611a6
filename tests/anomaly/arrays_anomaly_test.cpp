// Damage to NPY and NPZ files: cut at every byte, every single bit flipped. A cut file is refused.
// A flipped bit in an NPY's data changes only that value (the format has no checksum); one in the
// packed data of an NPZ is always refused. Nothing crashes, and no read is out of bounds.
#include <algorithm>

#include "anomaly/damage.hpp"
#include "io/arrays/npy.hpp"
#include "io/zip_testing.hpp"

namespace loom::core {
namespace {

using test::expect_error_inside;
using test::flip;

using test::bytes_of;
using test::ZipFile;
using test::ZipMember;
using Arrays = std::vector<std::pair<std::string, ArrayView>>;

struct Sample {
  std::string bytes;
  size_t data_start;
};

Sample npy_sample() {
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(127 - 10 - header.size(), ' ') + "\n";
  std::string file = "\x93NUMPY" + test::le(1, 2) + test::le(header.size(), 2) + header;
  const size_t start = file.size();
  for (int i = 0; i < 12; ++i) file += static_cast<char>(i * 37);
  return {file, start};
}

// One stored and one deflated member (a stored block of deflate).
std::string npz_sample() {
  const std::string array = npy_sample().bytes;
  ZipFile file;
  file.members.resize(2);
  file.members[0].data = array;
  ZipMember& packed = file.members[1];
  packed.name = "b/y.npy";
  packed.method = 8;
  packed.size = static_cast<int64_t>(array.size());
  packed.crc = static_cast<int64_t>(crc32_of(bytes_of(array)));
  packed.data = test::le(1, 1) + test::le(array.size(), 2) + test::le(~array.size(), 2);
  packed.data += array;
  return file.bytes();
}

void expect_bad_file(const Error& error) {
  EXPECT_EQ(error.code, Code::bad_file) << error.str();
  expect_error_inside(error);
}

// The shape and type take all the data, and every value can be read.
void expect_consistent(const ArrayView& array) {
  const auto size = array_bytes(array.shape, array.type);
  ASSERT_TRUE(size.has_value());
  EXPECT_EQ(*size, array.data.size());
  (void)array_f32(array);
  (void)array_i32(array);
}

bool same(const ArrayView& a, const ArrayView& b) {
  return a.type == b.type && a.big_endian == b.big_endian && a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
}

TEST(NpyAnomaly, EveryTruncationIsRefused) {
  const Sample whole = npy_sample();
  ASSERT_TRUE(parse_npy(bytes_of(whole.bytes), "f").ok());
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    // A separate copy: a sanitizer sees a read past its end.
    const std::string cut(whole.bytes.data(), size);
    const auto array = parse_npy(bytes_of(cut), "f");
    ASSERT_FALSE(array.ok()) << size;
    expect_bad_file(array.error());
  }
}

TEST(NpyAnomaly, EveryFlippedBitIsRefusedOrLeavesAConsistentArray) {
  const Sample whole = npy_sample();
  const auto good = parse_npy(bytes_of(whole.bytes), "f");
  ASSERT_TRUE(good.ok()) << good.error().str();
  size_t refused = 0;
  for (size_t i = 0; i < whole.bytes.size() * 8; ++i) {
    const std::string flipped = flip(whole.bytes, i);
    const auto array = parse_npy(bytes_of(flipped), "f");
    if (!array.ok()) {
      ++refused;
      EXPECT_LT(i / 8, whole.data_start) << "a bit of the data was refused";
      expect_bad_file(array.error());
      continue;
    }
    expect_consistent(*array);
    EXPECT_GE(i / 8, 10u) << "a wrong magic, version or length was accepted";
    EXPECT_EQ(array->data.size(), good->data.size());
    if (i / 8 < whole.data_start) continue;
    EXPECT_EQ(array->shape, good->shape);
    EXPECT_FALSE(same(*array, *good)) << i;
  }
  // In the header, only byte order, signedness, the form of its spaces and a swap of two equal
  // products can change undetected.
  EXPECT_GT(refused, whole.data_start * 8 * 9 / 10);
}

TEST(NpyAnomaly, EveryByteReplacedByEveryOtherIsRefusedOrConsistent) {
  const Sample whole = npy_sample();
  for (size_t at = 0; at < whole.data_start; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole.bytes;
      changed[at] = static_cast<char>(value);
      const auto array = parse_npy(bytes_of(changed), "f");
      if (array.ok()) expect_consistent(*array);
    }
  }
}

TEST(NpzAnomaly, EveryTruncationIsRefused) {
  const std::string whole = npz_sample();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut(whole.data(), size);
    std::deque<std::string> storage;
    const auto arrays = parse_npz(bytes_of(cut), "f", storage);
    ASSERT_FALSE(arrays.ok()) << size;
    expect_bad_file(arrays.error());
  }
}

TEST(NpzAnomaly, EveryFlippedBitIsRefusedOrLeavesTheSameArrays) {
  const std::string whole = npz_sample();
  std::deque<std::string> storage;
  const auto good = parse_npz(bytes_of(whole), "f", storage);
  ASSERT_TRUE(good.ok()) << good.error().str();
  ASSERT_EQ(good->size(), 2u);
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    const std::string flipped = flip(whole, i);
    std::deque<std::string> unpacked;
    const Result<Arrays> arrays = parse_npz(bytes_of(flipped), "f", unpacked);
    if (!arrays.ok()) {
      expect_bad_file(arrays.error());
      continue;
    }
    // Versions, times, attributes and the sizes of local headers change nothing.
    ASSERT_EQ(arrays->size(), 2u) << i;
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ((*arrays)[k].first, (*good)[k].first) << i;
      EXPECT_TRUE(same((*arrays)[k].second, (*good)[k].second)) << i;
    }
  }
}

TEST(NpzAnomaly, EveryByteReplacedByEveryOtherIsRefusedOrTheSame) {
  const std::string whole = npz_sample();
  std::deque<std::string> storage;
  const auto good = parse_npz(bytes_of(whole), "f", storage);
  ASSERT_TRUE(good.ok());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      std::deque<std::string> unpacked;
      const auto arrays = parse_npz(bytes_of(changed), "f", unpacked);
      if (!arrays.ok()) continue;
      ASSERT_EQ(arrays->size(), 2u) << at;
      for (size_t k = 0; k < 2; ++k)
        EXPECT_TRUE(same((*arrays)[k].second, (*good)[k].second)) << at << " " << value;
    }
  }
}

}  // namespace
}  // namespace loom::core
