// Recipes: the mixtures of number types that llama.cpp's quantize has, by their names there
// ("q4_k_m"). Matrices that matter more have more bits: values, down projections of some layers,
// the head. Source: llama_tensor_get_type_impl of llama.cpp (src/llama-quant.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "llm/decoder_role.hpp"

namespace loom::core {

struct Recipe {
  std::string_view name;
  DType base = DType::f32;  // of matrices that no rule names
};

std::vector<std::string> recipe_names();
// Case-insensitive. The Error lists the names.
Result<const Recipe*> parse_recipe(std::string_view name);

// The type of a matrix. `stored`: that of routers and tables of positions.
DType recipe_dtype(const Recipe& recipe, const Param& param, const DecoderConfig& config,
                   DType stored);
// The type that llama.cpp takes if rows of `cols` are not a multiple of the type's blocks.
DType narrower_blocks(DType dtype, int64_t cols);

}  // namespace loom::core
