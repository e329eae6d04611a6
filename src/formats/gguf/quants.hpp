// The number types of ggml as GGUF files store them: ids, block sizes, and the values of a block as
// f32. Reading only; a value is bit-equal to what the `gguf` package for Python gives. Types that
// are listed without a decoder have their sizes checked but no values.
// Layouts: https://github.com/ggml-org/ggml (block structs), `gguf.quants` (the reference).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loom::core {

struct GgmlType {
  uint32_t id = 0;        // as tensor infos write it
  std::string_view name;  // "Q4_K"
  uint32_t values = 1;    // in a block; a row is a whole number of blocks
  uint32_t bytes = 0;     // of a block
  // The values of `count` blocks into out[count * values]; null: not read.
  void (*decode)(const std::byte* blocks, int64_t count, float* out) = nullptr;
};

constexpr uint32_t kMaxGgmlBlock = 256;  // values

std::span<const GgmlType> ggml_types();
// Null: no such type.
const GgmlType* find_ggml_type(uint32_t id);
const GgmlType* find_ggml_type(std::string_view name);

}  // namespace loom::core
