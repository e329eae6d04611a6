// The number types as data: one DTypeInfo per row of dtypes.def. Only this room may switch on a
// dtype; other code reads the table. Ids 0-20 are written in files and never change meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

enum class DType : uint8_t {
#define LOOM_DTYPE(id, enumerator, ...) enumerator = id,
#include "dtype/dtypes.def"
#undef LOOM_DTYPE
};

// Rows from here on are in development. No release has them, so lists of released types (hashes,
// frozen names) omit them.
constexpr int kReleasedDTypes = 37;
constexpr bool released(DType dtype) {
  return static_cast<int>(dtype) < kReleasedDTypes;
}

enum class NumberKind : uint8_t { ieee, fp, sint, uint, ternary, binary, codebook };
enum class ComputeType : uint8_t { f32, f64 };
enum class ScaleRule : uint8_t {
  none,
  row,
  affine,
  absmean,
  meanabs,
  f16,
  e8m0,
  e4m3,
  absmax64,
  u4,
  u6,
  i6,
  i8
};
// The value of a level of 0: see dtypes.def.
enum class ZeroRule : uint8_t { none, row, code, f16, small };
// How a stored code u of an integer-valued type maps to its integer level (the q8 path of matmul):
// direct: u - bias; twice: 2u - 1; e2m1, e3m0: a 16-entry table. The level times
// DTypeInfo::level_unit is the value.
enum class Levels : uint8_t { none, direct, twice, e2m1, e3m0 };

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
  NumberKind kind;
  ComputeType compute;
  ScaleRule scale;
  ZeroRule zero;
  Levels levels;
  int block;                     // values per block scale; 0 means per row
  int super_block;               // values per super-block; 0 means none
  std::string_view safetensors;  // name in safetensors files, or ""
  std::string_view aliases;      // comma list
  int code_bias;     // stored code = level + bias (direct levels of signed types), else 0
  float level_unit;  // value of one level before scaling: 1, or 0.5 (e2m1), 0.25 (e3m0)
  int low_bits;      // bits of a code in the low plane of R16: all, or 2 of 3, 4 of 5 and 6

  constexpr bool integer_path() const { return levels != Levels::none; }
  constexpr bool affine() const { return zero == ZeroRule::row; }
  // A value is level * step + a number of the block.
  constexpr bool shifted() const { return zero == ZeroRule::f16 || zero == ZeroRule::small; }
};

std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) {
  return dtype_info(dtype).name;
}

// "int8", "I8", "Q4_0": names and aliases, case-insensitive. The Error lists the names.
Result<DType> parse_dtype(std::string_view name);

}  // namespace loom::core
