// SafeTensors::to_f32: the value of every stored dtype, at any alignment and range.
#include <cmath>
#include <limits>

#include "base/numbers/bits.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Stored {
  SafeDType dtype;
  std::vector<uint64_t> codes;
  std::vector<float> values;
};

std::string pack(const Stored& stored) {
  std::string bytes;
  for (const uint64_t code : stored.codes) {
    bytes.append(reinterpret_cast<const char*>(&code), safe_dtype_bits(stored.dtype) / 8);
  }
  return bytes;
}

SafeTensor tensor_of(SafeDType dtype, std::string_view bytes, int64_t count) {
  SafeTensor tensor;
  tensor.name = "t";
  tensor.dtype = dtype;
  tensor.shape = {count};
  tensor.data = bytes_of(bytes);
  return tensor;
}

void check_safe_tensor_values(const Stored& row) {
  // One byte in front makes every value unaligned.
  const std::string bytes = "x" + pack(row);
  const auto count = static_cast<int64_t>(row.codes.size());
  const SafeTensor tensor = tensor_of(row.dtype, std::string_view(bytes).substr(1), count);
  std::vector<float> all(row.codes.size());
  ASSERT_TRUE(SafeTensors::to_f32(tensor, 0, count, all.data()).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    const float expected = row.values[i];
    float one = 0;
    ASSERT_TRUE(SafeTensors::to_f32(tensor, static_cast<int64_t>(i), 1, &one).ok());
    EXPECT_EQ(f32_bits(one), f32_bits(all[i]));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(one)) << i;
    } else {
      EXPECT_EQ(f32_bits(one), f32_bits(expected)) << i << ": " << one;
    }
  }
}

const std::vector<Stored> kSafeTensorValues = {
    {SafeDType::boolean, {0, 1, 2}, {0, 1, 1}},
    {SafeDType::u8, {0, 255}, {0, 255}},
    {SafeDType::i8, {0x80, 0xff, 0x7f}, {-128, -1, 127}},
    {SafeDType::u16, {65535}, {65535}},
    {SafeDType::i16, {0x8000}, {-32768}},
    {SafeDType::u32, {0xffffffff, 16777217, 16777219}, {0x1p32f, 16777216, 16777220}},
    {SafeDType::i32, {0x80000000, 0xffffffff}, {-0x1p31f, -1}},
    {SafeDType::u64, {UINT64_MAX, 5}, {0x1p64f, 5}},
    {SafeDType::i64, {UINT64_MAX, uint64_t{1} << 63}, {-1, -0x1p63f}},
    {SafeDType::f16,
     {0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x8000},
     {1, -2, 0x1p-24f, 0x3ffp-24f, 65504, kInf, -kInf, kNan, -0.0f}},
    {SafeDType::bf16,
     {0x3f80, 0x0001, 0x7f7f, 0x7f80, 0xff80, 0x7fc0},
     {1, 0x1p-133f, 0x1.fep127f, kInf, -kInf, kNan}},
    {SafeDType::f32, {0x3f800000, 1, 0x7f800000, 0x7fc00000}, {1, 0x1p-149f, kInf, kNan}},
    {SafeDType::f64,
     {0x3ff0000000000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x7fefffffffffffff,
      0x0000000000000001, 0x7ff8000000000000},
     {1, 1, 0x1.000004p0f, kInf, 0, kNan}},
    {SafeDType::f8_e4m3,
     {0x38, 0x01, 0x7e, 0xfe, 0x7f, 0x80},
     {1, 0x1p-9f, 448, -448, kNan, -0.0f}},
    {SafeDType::f8_e5m2,
     {0x3c, 0x01, 0x7b, 0x7c, 0xfc, 0x7f},
     {1, 0x1p-16f, 57344, kInf, -kInf, kNan}},
    {SafeDType::f8_e8m0, {0, 127, 254, 255}, {0x1p-127f, 1, 0x1p127f, kNan}},
};

TEST(SafeTensorValues, AreThoseOfTheirCodes) {
  for (const Stored& row : kSafeTensorValues) check_safe_tensor_values(row);
}

TEST(SafeTensorValues, RefusesTypesBelowAByte) {
  float out = 0;
  for (const auto dtype : {SafeDType::f4, SafeDType::f6_e2m3, SafeDType::f6_e3m2}) {
    const std::string name(safe_dtype_name(dtype));
    expect_error(SafeTensors::to_f32(tensor_of(dtype, "abc", 4), 0, 1, &out), Code::unsupported,
                 "t: values of dtype " + name + " cannot be loaded");
  }
}

TEST(SafeTensorValues, RefusesRangesOutsideTheTensor) {
  float out[4] = {};
  const SafeTensor tensor = tensor_of(SafeDType::u8, "abc", 3);
  EXPECT_TRUE(SafeTensors::to_f32(tensor, 3, 0, out).ok());
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 4},
                                     {1, 3},
                                     {4, 0},
                                     {-1, 1},
                                     {0, -1},
                                     {1, INT64_MAX},
                                     {INT64_MAX, INT64_MAX}}) {
    const Status status = SafeTensors::to_f32(tensor, first, count, out);
    ASSERT_FALSE(status.ok()) << first << " " << count;
    EXPECT_EQ(status.error().code, Code::out_of_range);
  }
  expect_error(SafeTensors::to_f32(tensor, 1, 3, out), Code::out_of_range,
               "t: values [1, +3) of a tensor of 3");
}

}  // namespace
}  // namespace loom::core
