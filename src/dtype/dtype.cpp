// The table of dtypes.def as constants, and the look-up of names, without arithmetic. Invariant:
// row i has id i. Dependent columns (code_bias, level_unit) are derived here, so dtypes.def cannot
// contradict itself.
#include "dtype/dtype.hpp"

#include <iterator>
#include <string>
#include <vector>

#include "base/names.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

// Columns derived from the others. The bias makes the smallest level code 0.
constexpr int code_bias_of(NumberKind kind, Levels levels, int bits) {
  if (levels != Levels::direct) return 0;
  if (kind == NumberKind::sint) return 1 << (bits - 1);
  return kind == NumberKind::ternary ? 1 : 0;
}

constexpr float level_unit_of(Levels levels) {
  if (levels == Levels::e2m1) return 0.5f;
  return levels == Levels::e3m0 ? 0.25f : 1.0f;
}

// The planes of a code have widths that divide 8.
constexpr int low_bits_of(int bits) {
  if (bits == 3) return 2;
  return bits == 5 || bits == 6 ? 4 : bits;
}

constexpr DTypeInfo kTable[] = {
#define LOOM_DTYPE(id, enumerator, name, bits, kind, compute, scale, zero, levels, block, super, \
                   file, aliases)                                                                \
  {DType::enumerator,                                                                            \
   name,                                                                                         \
   bits,                                                                                         \
   NumberKind::kind,                                                                             \
   ComputeType::compute,                                                                         \
   ScaleRule::scale,                                                                             \
   ZeroRule::zero,                                                                               \
   Levels::levels,                                                                               \
   block,                                                                                        \
   super,                                                                                        \
   file,                                                                                         \
   aliases,                                                                                      \
   code_bias_of(NumberKind::kind, Levels::levels, bits),                                         \
   level_unit_of(Levels::levels),                                                                \
   low_bits_of(bits)},
#include "dtype/dtypes.def"
#undef LOOM_DTYPE
};

constexpr bool ids_are_indices() {
  for (size_t i = 0; i < std::size(kTable); ++i) {
    if (static_cast<size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}
static_assert(ids_are_indices(), "dtypes.def must list its rows by id, without gaps");

constexpr bool columns_agree() {
  for (const DTypeInfo& info : kTable) {
    const bool small = info.scale == ScaleRule::u4 || info.scale == ScaleRule::u6 ||
                       info.scale == ScaleRule::i6 || info.scale == ScaleRule::i8;
    if (small != (info.super_block > 0)) return false;
    if (info.zero == ZeroRule::small && !small) return false;
    if (info.affine() != (info.scale == ScaleRule::affine)) return false;
    // Kernels require that a super-block is whole blocks of 32 k, and that no panel cuts one.
    if (small && (info.super_block != 256 || (info.block != 16 && info.block != 32))) return false;
  }
  return true;
}
static_assert(columns_agree(), "a row of dtypes.def has columns that contradict each other");

bool in_list(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

std::span<const DTypeInfo> dtype_table() {
  return kTable;
}

const DTypeInfo& dtype_info(DType dtype) {
  return kTable[static_cast<size_t>(dtype)];
}

Result<DType> parse_dtype(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  for (const DTypeInfo& info : kTable) {
    if (word == info.name || in_list(info.aliases, word)) return info.dtype;
    if (!info.safetensors.empty() && word == to_lower_ascii(info.safetensors)) return info.dtype;
  }
  std::vector<std::string> names;
  for (const DTypeInfo& info : kTable) names.emplace_back(info.name);
  return unknown_word("dtype", name, names);
}

}  // namespace loom::core
