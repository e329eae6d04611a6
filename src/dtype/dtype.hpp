// The number types as data: one DTypeInfo per row of dtypes.def.
// Only this room may switch on a dtype; everything else asks the table.
// Ids 0-20 are written in files and never change meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace loom {

enum class DType : uint8_t {
#define LOOM_DTYPE(id, enumerator, ...) enumerator = id,
#include "dtype/dtypes.def"
#undef LOOM_DTYPE
};

enum class NumberKind : uint8_t { ieee, fp, sint, uint, ternary, binary, codebook };
enum class ComputeType : uint8_t { f32, f64 };
enum class ScaleRule : uint8_t { none, row, affine, absmean, meanabs, f16, e8m0, e4m3, absmax64 };
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
  Levels levels;
  int block;                     // values per block scale; 0 = per row
  std::string_view safetensors;  // name in safetensors files, or ""
  std::string_view aliases;      // comma list
  int code_bias;     // stored code = level + bias (direct levels of signed types), else 0
  float level_unit;  // value of one level before scaling: 1, or 0.5 (e2m1), 0.25 (e3m0)

  bool integer_path() const { return levels != Levels::none; }
  bool affine() const { return scale == ScaleRule::affine; }
};

std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) {
  return dtype_info(dtype).name;
}

// "int8", "I8", "Q4_0": names and aliases, case-insensitive. The Error lists the names.
Result<DType> parse_dtype(std::string_view name);

}  // namespace loom
