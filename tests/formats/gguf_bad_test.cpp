// Handcrafted bad GGUF files, each with the exact text of its refusal; among them every class of
// GGUF flaw that was published for another reader: counts and sizes that overflow, offsets past the
// end, arrays of a type other than the one that is read, alignments without a bound.
#include "base/text.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf_bytes.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::GgufBytes;

struct Bad {
  std::string file;
  std::string error;
};

void check_bad_gguf(const Bad& row) {
  expect_error(Gguf::parse(bytes_of(row.file), "f"), Code::bad_file, "f: " + row.error);
}

constexpr uint64_t kHuge = uint64_t{1} << 63;

const std::vector<Bad> kFraming = {
    {"", "at byte 0: the magic number needs 4 bytes, 0 remain"},
    {"GGU", "at byte 0: the magic number needs 4 bytes, 3 remain"},
    {"GGUF", "at byte 4: the version needs 4 bytes, 0 remain"},
    {"GGML\x03", "at byte 0: a GGUF file begins with 'GGUF', this one does not"},
    {GgufBytes(0, 0, 0), "at byte 4: GGUF version 0; versions 2 and 3 are read"},
    {GgufBytes(0, 0, 1), "at byte 4: GGUF version 1 is not read; convert the model again"},
    {GgufBytes(0, 0, 4), "at byte 4: GGUF version 4; versions 2 and 3 are read"},
    {GgufBytes(0, 0, 0x03000000),
     "at byte 4: a big-endian GGUF file; only little-endian ones are read"},
    {std::string(GgufBytes()).substr(0, 20),
     "at byte 16: the number of metadata values needs 8 bytes, 4 remain"},
    {GgufBytes(1, 0), "at byte 8: 1 tensors cannot be described in 0 bytes"},
    {GgufBytes(0, 1), "at byte 16: 1 values do not fit in 0 bytes"},
    {GgufBytes(UINT64_MAX, 0),
     "at byte 8: 18446744073709551615 tensors cannot be described in 0 bytes"},
    {GgufBytes(0, UINT64_MAX), "at byte 16: 18446744073709551615 values do not fit in 0 bytes"},
    {GgufBytes(kHuge, 0).data(100),
     "at byte 8: 9223372036854775808 tensors cannot be described in 100 bytes"},
    {GgufBytes(0, 8).data(100), "at byte 16: 8 values do not fit in 100 bytes"},
    {GgufBytes().data(1), "at byte 24: the data begins at 32, the file has 25 bytes"},
    {GgufBytes().raw(std::string(8, '\0')).data(8), "at byte 32: 8 bytes after the last tensor"},
};

TEST(BadGguf, IsRefusedForItsFraming) {
  for (const Bad& row : kFraming) check_bad_gguf(row);
}

GgufBytes one_value() {
  return GgufBytes(0, 1);
}

const std::vector<Bad> kValues = {
    // Sizes of strings: the classic overflow of length + 1.
    {one_value().u64(UINT64_MAX).data(16),
     "at byte 32: a metadata key needs 18446744073709551615 bytes, 16 remain"},
    {one_value().u64(UINT64_MAX - 7).data(16),
     "at byte 32: a metadata key needs 18446744073709551608 bytes, 16 remain"},
    {one_value().text("").u32(4).u32(1), "at byte 24: an empty metadata key"},
    {one_value().text(std::string(65536, 'k')).u32(4).u32(1),
     "at byte 24: a metadata key of 65536 bytes; the limit is 65535"},
    {one_value().text("k").u32(13).u32(1),
     "at byte 33: gguf key 'k' has type 13, which is not one of GGUF's"},
    {one_value().text("k").u32(UINT32_MAX).u32(1),
     "at byte 33: gguf key 'k' has type 4294967295, which is not one of GGUF's"},
    {one_value().key("k", GgufType::u32).u8(1), "at byte 37: gguf key 'k' needs 4 bytes, 1 remain"},
    {one_value().key("k", GgufType::u64).u32(1),
     "at byte 37: gguf key 'k' needs 8 bytes, 4 remain"},
    {one_value().key("k", GgufType::string).u64(1),
     "at byte 45: gguf key 'k' needs 1 bytes, 0 remain"},
    {one_value().key("k", GgufType::string).u64(UINT64_MAX),
     "at byte 45: gguf key 'k' needs 18446744073709551615 bytes, 0 remain"},
    {one_value().key("k", GgufType::boolean).u8(2), "at byte 37: gguf key 'k' holds the boolean 2"},
    {GgufBytes(0, 2).key("k", GgufType::u8).u8(1).key("k", GgufType::u8).u8(1),
     "at byte 38: gguf key 'k' occurs twice"},
    {GgufBytes(0, 2).key("a\nb", GgufType::u8).u8(1).key("a\nb", GgufType::u32).u32(1),
     "at byte 40: gguf key 'a\\x0ab' occurs twice"},
    {GgufBytes(0, 2).key("k", GgufType::u8).u8(1).data(3),
     "at byte 16: 2 values do not fit in 17 bytes"},
};

TEST(BadGguf, IsRefusedForItsValues) {
  for (const Bad& row : kValues) check_bad_gguf(row);
}

const std::vector<Bad> kArrays = {
    {one_value().key("k", GgufType::array).u8(1),
     "at byte 37: the type of the elements of gguf key 'k' needs 4 bytes, 1 remain"},
    {one_value().array("k", static_cast<GgufType>(13), 1).u8(1),
     "at byte 37: the elements of gguf key 'k' has type 13, which is not one of GGUF's"},
    {one_value().array("k", GgufType::array, 1).u32(0).u64(0),
     "at byte 37: gguf key 'k' is an array of arrays"},
    // The 43-byte file whose array has 2^63 elements.
    {one_value().array("k", GgufType::u8, kHuge).u8(1),
     "at byte 41: gguf key 'k' has 9223372036854775808 elements of type u8, 1 bytes remain"},
    {one_value().array("k", GgufType::u32, (kHuge >> 1) + 1).u32(1),
     "at byte 41: gguf key 'k' has 4611686018427387905 elements of type u32, 4 bytes remain"},
    {one_value().array("k", GgufType::string, UINT64_MAX).u64(0),
     "at byte 41: gguf key 'k' has 18446744073709551615 elements of type string, 8 bytes remain"},
    {one_value().array("k", GgufType::string, uint64_t{1} << 60).u64(0),
     "at byte 41: gguf key 'k' has 1152921504606846976 elements of type string, 8 bytes remain"},
    // Declared as four bytes each, but one byte each is stored.
    {one_value().array("k", GgufType::f32, 4).data(4),
     "at byte 41: gguf key 'k' has 4 elements of type f32, 4 bytes remain"},
    {one_value().array("k", GgufType::string, 2).text("a").u64(9).data(8),
     "at byte 66: gguf key 'k' needs 9 bytes, 8 remain"},
    {one_value().array("k", GgufType::boolean, 3).u8(0).u8(1).u8(255),
     "at byte 49: gguf key 'k' holds the boolean 255"},
};

TEST(BadGguf, IsRefusedForItsArrays) {
  for (const Bad& row : kArrays) check_bad_gguf(row);
}

std::string aligned(uint32_t alignment) {
  return GgufBytes(1, 1)
      .key("general.alignment", GgufType::u32)
      .u32(alignment)
      .tensor("t", {1}, 0, 0)
      .pad()
      .data(4)
      .pad();
}

const std::vector<Bad> kAlignments = {
    {aligned(0),
     "at byte 53: gguf key 'general.alignment' is 0; it must be a power of two from 8 to 1048576"},
    {aligned(1),
     "at byte 53: gguf key 'general.alignment' is 1; it must be a power of two from 8 to 1048576"},
    {aligned(4),
     "at byte 53: gguf key 'general.alignment' is 4; it must be a power of two from 8 to 1048576"},
    {aligned(33),
     "at byte 53: gguf key 'general.alignment' is 33; it must be a power of two from 8 to 1048576"},
    {aligned(1 << 21),
     "at byte 53: gguf key 'general.alignment' is 2097152; it must be a power of two from 8 to "
     "1048576"},
    {aligned(1u << 31),
     "at byte 53: gguf key 'general.alignment' is 2147483648; it must be a power of two from 8 to "
     "1048576"},
    {aligned(UINT32_MAX),
     "at byte 53: gguf key 'general.alignment' is 4294967295; it must be a power of two from 8 to "
     "1048576"},
    {aligned(4096), "at byte 90: the data begins at 4096, the file has 128 bytes"},
    {GgufBytes(0, 1).key("general.alignment", GgufType::u64).u64(32),
     "at byte 53: gguf key 'general.alignment' must be u32, is u64"},
    {GgufBytes(0, 1).array("general.alignment", GgufType::u32, 1).u32(32),
     "at byte 65: gguf key 'general.alignment' must be u32, is an array of u32"},
};

TEST(BadGguf, IsRefusedForItsAlignment) {
  for (const Bad& row : kAlignments) check_bad_gguf(row);
}

// One tensor "t" of these extents and this type, with this much data.
std::string one(std::initializer_list<uint64_t> extents, uint32_t type, size_t data,
                uint64_t offset = 0) {
  return GgufBytes(1, 0).tensor("t", extents, type, offset).pad().data(data).pad();
}

constexpr uint64_t k32 = uint64_t{1} << 32;

const std::vector<Bad> kTensors = {
    {GgufBytes(1, 0).tensor(std::string(65, 'n'), {1}, 0, 0).pad().data(4).pad(),
     "at byte 24: a tensor name of 65 bytes; the limit is 64"},
    {GgufBytes(1, 0).u64(UINT64_MAX).data(40),
     "at byte 32: a tensor name needs 18446744073709551615 bytes, 40 remain"},
    {GgufBytes(1, 0).text("t").u32(5).data(40),
     "at byte 33: tensor 't' has 5 dimensions; the limit is 4"},
    {GgufBytes(1, 0).text("t").u32(UINT32_MAX).data(40),
     "at byte 33: tensor 't' has 4294967295 dimensions; the limit is 4"},
    {GgufBytes(1, 0).text("t").u32(4).data(16),
     "at byte 45: tensor 't' has more values than can be counted"},
    {GgufBytes(2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad().data(36).pad(),
     "at byte 57: tensor 't' occurs twice"},
    {one({UINT64_MAX}, 24, 4), "at byte 37: tensor 't' has more values than can be counted"},
    {one({k32, k32}, 24, 4), "at byte 45: tensor 't' has more values than can be counted"},
    {one({k32, k32, 0}, 24, 4), "at byte 45: tensor 't' has more values than can be counted"},
    {one({0, k32, k32}, 24, 4), "at byte 53: tensor 't' has more values than can be counted"},
    {one({kHuge - 1}, 0, 4), "at byte 45: tensor 't' has more bytes than can be counted"},
    // Bytes, not values, overflow: 2^62 numbers of 4 bytes; 2^63 bits would have been enough once.
    {one({uint64_t{1} << 62}, 0, 4), "at byte 45: tensor 't' has more bytes than can be counted"},
    {one({uint64_t{1} << 62}, 28, 4), "at byte 45: tensor 't' has more bytes than can be counted"},
    {one({1}, 4, 4), "at byte 45: tensor 't' has the unknown type 4"},
    {one({1}, 31, 4), "at byte 45: tensor 't' has the unknown type 31"},
    {one({1}, UINT32_MAX, 4), "at byte 45: tensor 't' has the unknown type 4294967295"},
    {one({31}, 2, 18), "at byte 45: tensor 't' has rows of 31 values; Q4_0 needs a multiple of 32"},
    {one({1, 32}, 8, 34),
     "at byte 53: tensor 't' has rows of 1 values; Q8_0 needs a multiple of 32"},
    {one({128, 2}, 12, 144),
     "at byte 53: tensor 't' has rows of 128 values; Q4_K needs a multiple of 256"},
};

TEST(BadGguf, IsRefusedForItsTensors) {
  for (const Bad& row : kTensors) check_bad_gguf(row);
}

// Two tensors of four bytes each, at these offsets, over this much data.
std::string two(uint64_t first, uint64_t second, size_t data) {
  return GgufBytes(2, 0)
      .tensor("a", {1}, 0, first)
      .tensor("b", {1}, 0, second)
      .pad()
      .raw(std::string(data, '\0'));
}

const std::vector<Bad> kPlaces = {
    {two(32, 64, 96), "at byte 96: tensor 'a' has offset 32, the one before it ends at 0"},
    {two(0, 0, 64), "at byte 128: tensor 'b' has offset 0, the one before it ends at 32"},
    {two(0, 4, 64), "at byte 128: tensor 'b' has offset 4, the one before it ends at 32"},
    {two(0, 16, 64), "at byte 128: tensor 'b' has offset 16, the one before it ends at 32"},
    {two(0, 64, 96), "at byte 128: tensor 'b' has offset 64, the one before it ends at 32"},
    {two(32, 0, 64), "at byte 96: tensor 'a' has offset 32, the one before it ends at 0"},
    {two(0, UINT64_MAX, 64),
     "at byte 128: tensor 'b' has offset 18446744073709551615, the one before it ends at 32"},
    {two(UINT64_MAX - 3, 0, 64),
     "at byte 96: tensor 'a' has offset 18446744073709551612, the one before it ends at 0"},
    {two(0, 32, 0), "at byte 96: tensor 'a' needs 4 bytes, 0 remain; copy or download it again"},
    {two(0, 32, 3), "at byte 96: tensor 'a' needs 4 bytes, 3 remain; copy or download it again"},
    {two(0, 32, 4), "at byte 100: tensor 'b' needs 4 bytes, 0 remain; copy or download it again"},
    {two(0, 32, 32), "at byte 128: tensor 'b' needs 4 bytes, 0 remain; copy or download it again"},
    {two(0, 32, 35), "at byte 128: tensor 'b' needs 4 bytes, 3 remain; copy or download it again"},
    {two(0, 32, 40), "at byte 136: the last tensor is padded to 160 bytes or not at all"},
    {two(0, 32, 65), "at byte 160: 1 bytes after the last tensor"},
    {two(0, 32, 96), "at byte 160: 32 bytes after the last tensor"},
    {GgufBytes(1, 0).tensor("t", {1}, 0, 0),
     "at byte 57: the data begins at 64, the file has 57 bytes"},
    {GgufBytes(1, 0).tensor("t", {1}, 0, 0).data(3).pad().data(4).pad(),
     "at byte 57: padding that is not zero"},
    {GgufBytes(1, 0).tensor("t", {1}, 0, 0).pad().data(32), "at byte 68: padding that is not zero"},
    {one({1}, 0, 4, 32), "at byte 64: tensor 't' has offset 32, the one before it ends at 0"},
    {one({64}, 0, 32),
     "at byte 64: tensor 't' needs 256 bytes, 32 remain; copy or download it again"},
    {one({uint64_t{1} << 61}, 24, 32),
     "at byte 64: tensor 't' needs 2305843009213693952 bytes, 32 remain; copy or download it "
     "again"},
};

TEST(BadGguf, IsRefusedForThePlacesOfItsTensors) {
  for (const Bad& row : kPlaces) check_bad_gguf(row);
}

}  // namespace
}  // namespace loom::core
