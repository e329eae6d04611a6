// ggml's number types in GGUF files: ids, block sizes, and the values of a block as f32. Reading
// only. A value has the same bits as from the `gguf` package for Python. Types without a decoder
// have their sizes checked, but no values. Layouts: https://github.com/ggml-org/ggml (block
// structs), `gguf.quants` (the reference).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loom::core {

struct GgmlType {
  uint32_t id = 0;        // in tensor infos
  std::string_view name;  // "Q4_K"
  uint32_t values = 1;    // per block; a row has an integer number of blocks
  uint32_t bytes = 0;     // per block
  // Decodes `count` blocks into out[count * values]; null if not supported.
  void (*decode)(const std::byte* blocks, int64_t count, float* out) = nullptr;
};

constexpr uint32_t kMaxGgmlBlock = 256;  // values

std::span<const GgmlType> ggml_types();
// May return null.
const GgmlType* find_ggml_type(uint32_t id);
const GgmlType* find_ggml_type(std::string_view name);

}  // namespace loom::core
