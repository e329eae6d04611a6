// DType: the number types of tensors and of weights.
//
// Plain types are the types of arrays. Weights may also have types with scales, which take less
// memory. Those below 16 bits, and integers, have a scale per row or per block of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// The numbers are frozen: files hold them.
enum class DType : uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  fp8e4m3 = 4,
  fp8e5m2 = 5,
  int64 = 6,
  int32 = 7,
  int16 = 8,
  int8 = 9,
  uint64 = 10,
  uint32 = 11,
  uint16 = 12,
  uint8 = 13,
  int4 = 14,
  uint4 = 15,
  fp4 = 16,
  int2 = 17,
  uint2 = 18,
  ternary = 19,  // -1, 0, 1
  binary = 20,   // -1, 1
  nf4 = 21,      // blocks of 64 (Dettmers et al., 2023)
  e3m0 = 22,
  q4_0 = 23,   // blocks of 32, as in GGUF
  q8_0 = 24,   // the same with 8 bits
  mxfp4 = 25,  // OCP microscaling, blocks of 32
  nvfp4 = 26,  // blocks of 16
  q2_k = 27,   // super-blocks of 256, as in GGUF: small integer scales for blocks of 16 or 32
  q3_k = 28,
  q4_k = 29,
  q5_k = 30,
  q6_k = 31,
  q4_1 = 32,  // blocks of 32 with an offset, as in GGUF
  q5_0 = 33,
  q5_1 = 34,
  uint4_g64 = 35,   // blocks of 64 with an offset, as MLX has them
  uint4_g128 = 36,  // blocks of 128 with a zero point, as AWQ and GPTQ have them
};

// "float32", "q4_0".
LOOM_API std::string_view dtype_name(DType dtype);
// A name, or a short form such as "f32" and "i8". Errors: invalid_argument, listing what there is.
LOOM_API Result<DType> parse_dtype(std::string_view name);
// Bits that a value takes, without its share of a scale.
LOOM_API int dtype_bits(DType dtype);
// Names of all.
LOOM_API std::vector<std::string> dtype_names();

// A number type for the parameters whose path matches; * matches any text.
struct DTypeRule {
  std::string pattern;
  DType dtype = DType::float32;
};

}  // namespace loom
