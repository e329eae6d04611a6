// Tensors of ONNX models: types, counts and values. See model.hpp.
#include <limits>

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {
namespace {

struct OnnxTypeRow {
  OnnxType type;
  std::string_view name;
  int bits;
  bool plain;  // also of networks
};
constexpr OnnxTypeRow kOnnxTypes[] = {
    {OnnxType::f32, "float", 32, true},
    {OnnxType::u8, "uint8", 8, true},
    {OnnxType::i8, "int8", 8, true},
    {OnnxType::u16, "uint16", 16, true},
    {OnnxType::i16, "int16", 16, true},
    {OnnxType::i32, "int32", 32, true},
    {OnnxType::i64, "int64", 64, true},
    {OnnxType::boolean, "bool", 8, true},
    {OnnxType::f16, "float16", 16, true},
    {OnnxType::f64, "double", 64, true},
    {OnnxType::u32, "uint32", 32, true},
    {OnnxType::u64, "uint64", 64, true},
    {OnnxType::bf16, "bfloat16", 16, true},
    {OnnxType::f8e4m3fn, "float8e4m3fn", 8, false},
    {OnnxType::f8e4m3fnuz, "float8e4m3fnuz", 8, false},
    {OnnxType::f8e5m2, "float8e5m2", 8, false},
    {OnnxType::f8e5m2fnuz, "float8e5m2fnuz", 8, false},
    {OnnxType::f8e8m0, "float8e8m0", 8, false},
    {OnnxType::u4, "uint4", 4, false},
    {OnnxType::i4, "int4", 4, false},
    {OnnxType::f4e2m1, "float4e2m1", 4, false},
    {OnnxType::u2, "uint2", 2, false},
    {OnnxType::i2, "int2", 2, false},
};

template <class T, class Out, class Convert>
std::vector<Out> converted(const OnnxTensor& t, Convert convert) {
  std::vector<Out> out(static_cast<size_t>(t.count()));
  const std::byte* at = t.data().data();
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert(load_le<T>(at + i * sizeof(T)));
  return out;
}

template <class T>
std::vector<int64_t> integers(const OnnxTensor& t) {
  return converted<T, int64_t>(t, [](T v) { return static_cast<int64_t>(v); });
}

template <class T>
OnnxTensor made(std::string name, std::vector<int64_t> shape, std::span<const T> values,
                OnnxType type) {
  OnnxTensor t;
  t.name = std::move(name);
  t.type = type;
  t.shape = std::move(shape);
  const auto bytes = std::as_bytes(values);
  t.own.assign(bytes.begin(), bytes.end());
  return t;
}

}  // namespace

std::string_view onnx_type_name(OnnxType type) {
  for (const OnnxTypeRow& row : kOnnxTypes) {
    if (row.type == type) return row.name;
  }
  return "an unknown type";
}

size_t onnx_type_bytes(OnnxType type) {
  for (const OnnxTypeRow& row : kOnnxTypes) {
    if (row.type == type) return row.plain ? static_cast<size_t>(row.bits) / 8 : 0;
  }
  return 0;
}

int onnx_type_bits(OnnxType type) {
  for (const OnnxTypeRow& row : kOnnxTypes) {
    if (row.type == type) return row.bits;
  }
  return 0;
}

int64_t OnnxTensor::count() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> shape,
                       std::span<const float> values) {
  return made(std::move(name), std::move(shape), values, OnnxType::f32);
}

OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> shape,
                       std::span<const int64_t> values) {
  return made(std::move(name), std::move(shape), values, OnnxType::i64);
}

Result<std::vector<float>> onnx_f32(const OnnxTensor& t) {
  switch (t.type) {
    case OnnxType::f32: return converted<float, float>(t, [](float v) { return v; });
    case OnnxType::f64:
      return converted<double, float>(t, [](double v) { return static_cast<float>(v); });
    case OnnxType::f16: return converted<uint16_t, float>(t, f32_from_f16);
    case OnnxType::bf16: return converted<uint16_t, float>(t, f32_from_bf16);
    default:
      return unsupported(cat("tensor '", printable(t.name), "' holds ", onnx_type_name(t.type),
                             " values where floats are needed"));
  }
}

Result<std::vector<double>> onnx_f64(const OnnxTensor& t) {
  if (t.type == OnnxType::f64) return converted<double, double>(t, [](double v) { return v; });
  LOOM_ASSIGN(const std::vector<float> narrow, onnx_f32(t));
  return std::vector<double>(narrow.begin(), narrow.end());
}

Result<std::vector<int64_t>> onnx_i64(const OnnxTensor& t) {
  switch (t.type) {
    case OnnxType::u8:
    case OnnxType::boolean: return integers<uint8_t>(t);
    case OnnxType::i8: return integers<int8_t>(t);
    case OnnxType::u16: return integers<uint16_t>(t);
    case OnnxType::i16: return integers<int16_t>(t);
    case OnnxType::u32: return integers<uint32_t>(t);
    case OnnxType::i32: return integers<int32_t>(t);
    case OnnxType::i64: return integers<int64_t>(t);
    case OnnxType::u64: {
      std::vector<int64_t> out = integers<uint64_t>(t);
      for (const int64_t v : out) {
        if (v < 0)
          return unsupported(cat("tensor '", printable(t.name), "' holds a number above ",
                                 std::numeric_limits<int64_t>::max()));
      }
      return out;
    }
    default:
      return unsupported(cat("tensor '", printable(t.name), "' holds ", onnx_type_name(t.type),
                             " values where integers are needed"));
  }
}

const OnnxAttribute* OnnxNode::find(std::string_view attribute) const {
  for (const OnnxAttribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

}  // namespace loom::core
