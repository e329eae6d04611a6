// The dtypes of the safetensors format as a table, and values of a tensor as f32. They are not
// Loom's dtypes (room dtype); only decoders are shared. Data may be unaligned.
#include <array>

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using Convert = void (*)(const std::byte* from, int64_t count, float* to);

template <class Stored, auto decode>
void convert_all(const std::byte* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = decode(load_le<Stored>(from + i * static_cast<int64_t>(sizeof(Stored))));
  }
}

template <class T>
float rounded(T value) {
  return static_cast<float>(value);
}

float truth_byte(uint8_t value) {
  return value == 0 ? 0.0f : 1.0f;
}

template <class T>
constexpr Convert kNumber = convert_all<T, rounded<T>>;

struct SafeTypeRow {
  SafeDType dtype;
  std::string_view name;
  uint64_t bits;
  Convert convert;  // may be null: not loadable
};

// In the order of SafeDType.
constexpr std::array kSafeTypes = {
    SafeTypeRow{SafeDType::boolean, "BOOL", 8, convert_all<uint8_t, truth_byte>},
    SafeTypeRow{SafeDType::u8, "U8", 8, kNumber<uint8_t>},
    SafeTypeRow{SafeDType::i8, "I8", 8, kNumber<int8_t>},
    SafeTypeRow{SafeDType::u16, "U16", 16, kNumber<uint16_t>},
    SafeTypeRow{SafeDType::i16, "I16", 16, kNumber<int16_t>},
    SafeTypeRow{SafeDType::u32, "U32", 32, kNumber<uint32_t>},
    SafeTypeRow{SafeDType::i32, "I32", 32, kNumber<int32_t>},
    SafeTypeRow{SafeDType::u64, "U64", 64, kNumber<uint64_t>},
    SafeTypeRow{SafeDType::i64, "I64", 64, kNumber<int64_t>},
    SafeTypeRow{SafeDType::f16, "F16", 16, convert_all<uint16_t, f32_from_f16>},
    SafeTypeRow{SafeDType::bf16, "BF16", 16, convert_all<uint16_t, f32_from_bf16>},
    SafeTypeRow{SafeDType::f32, "F32", 32, kNumber<float>},
    SafeTypeRow{SafeDType::f64, "F64", 64, kNumber<double>},
    SafeTypeRow{SafeDType::f8_e4m3, "F8_E4M3", 8, convert_all<uint8_t, f32_from_e4m3>},
    SafeTypeRow{SafeDType::f8_e5m2, "F8_E5M2", 8, convert_all<uint8_t, f32_from_e5m2>},
    SafeTypeRow{SafeDType::f8_e8m0, "F8_E8M0", 8, convert_all<uint8_t, f32_from_e8m0>},
    SafeTypeRow{SafeDType::f4, "F4", 4, nullptr},
    SafeTypeRow{SafeDType::f6_e2m3, "F6_E2M3", 6, nullptr},
    SafeTypeRow{SafeDType::f6_e3m2, "F6_E3M2", 6, nullptr},
};

const SafeTypeRow& row_of(SafeDType dtype) {
  return kSafeTypes[static_cast<size_t>(dtype)];
}

}  // namespace

std::string_view safe_dtype_name(SafeDType dtype) {
  return row_of(dtype).name;
}

uint64_t safe_dtype_bits(SafeDType dtype) {
  return row_of(dtype).bits;
}

Result<SafeDType> parse_safe_dtype(std::string_view name) {
  for (const SafeTypeRow& row : kSafeTypes) {
    if (row.name == name) return row.dtype;
  }
  return unsupported(cat("unknown dtype \"", printable(name), "\""));
}

Status SafeTensors::to_f32(const SafeTensor& tensor, int64_t first, int64_t count, float* out) {
  const SafeTypeRow& row = row_of(tensor.dtype);
  if (row.convert == nullptr) {
    return unsupported(cat("values of dtype ", row.name, " cannot be loaded"), tensor.name);
  }
  const int64_t size = tensor.count();
  if (first < 0 || count < 0 || first > size || count > size - first) {
    return make_error(Code::out_of_range,
                      cat("values [", first, ", +", count, ") of a tensor of ", size), tensor.name);
  }
  row.convert(tensor.data.data() + first * static_cast<int64_t>(row.bits / 8), count, out);
  return {};
}

}  // namespace loom::core
