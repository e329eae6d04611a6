#include "convert/quantize/recipe.hpp"

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "llm/model_source.hpp"

namespace loom::core {
namespace {

using enum DType;

constexpr Recipe kRecipes[] = {
    {"q2_k", q2_k},   {"q2_k_s", q2_k}, {"q3_k_s", q3_k}, {"q3_k_m", q3_k}, {"q3_k_l", q3_k},
    {"q4_k_s", q4_k}, {"q4_k_m", q4_k}, {"q5_k_s", q5_k}, {"q5_k_m", q5_k}, {"q6_k", q6_k},
    {"q4_0", q4_0},   {"q4_1", q4_1},   {"q5_0", q5_0},   {"q5_1", q5_1},   {"q8_0", q8_0},
};

enum class Part : uint8_t { value, key, out, down, head };
// Layers of n that a rule is for.
enum class Layers : uint8_t {
  all,
  first_2,
  first_4,
  first_16th,
  first_8th,
  more,        // the first and the last eighth, and every third between
  grouped,     // all, if four or more heads share a key
  experts,     // all, if there are eight experts
  eighty_deep  // all, if there are eighty layers and heads share keys
};

// The first rule that fits decides.
struct Rule {
  std::string_view recipes;  // names between spaces; "" means every one of K types
  Part part;
  Layers layers;
  DType dtype;
};
constexpr Rule kRules[] = {
    {"", Part::value, Layers::experts, q8_0},
    {"", Part::key, Layers::experts, q8_0},
    {" q2_k q3_k_s q3_k_m q4_k_s q4_k_m ", Part::out, Layers::experts, q5_k},
    {" q2_k q2_k_s q3_k_s q3_k_m q4_k_s ", Part::value, Layers::eighty_deep, q5_k},
    {" q2_k q2_k_s ", Part::value, Layers::grouped, q4_k},
    {" q2_k ", Part::value, Layers::all, q3_k},
    {" q2_k ", Part::down, Layers::all, q3_k},
    {" q2_k ", Part::out, Layers::all, q3_k},
    {" q2_k_s ", Part::down, Layers::first_8th, q4_k},
    {" q3_k_m ", Part::value, Layers::first_2, q5_k},
    {" q3_k_m ", Part::value, Layers::all, q4_k},
    {" q3_k_m ", Part::down, Layers::first_16th, q5_k},
    {" q3_k_m ", Part::down, Layers::all, q4_k},
    {" q3_k_m ", Part::out, Layers::all, q4_k},
    {" q3_k_l ", Part::value, Layers::all, q5_k},
    {" q3_k_l ", Part::down, Layers::all, q5_k},
    {" q3_k_l ", Part::out, Layers::all, q5_k},
    {" q4_k_s ", Part::value, Layers::first_4, q5_k},
    {" q4_k_s ", Part::down, Layers::first_8th, q5_k},
    {" q4_k_m q5_k_m ", Part::value, Layers::more, q6_k},
    {" q4_k_m q5_k_m ", Part::down, Layers::more, q6_k},
    {" q4_k_m ", Part::value, Layers::eighty_deep, q5_k},
    {" q2_k q2_k_s q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m q4_0 q4_1 q5_0 q5_1 ",
     Part::head, Layers::all, q6_k},
};

bool names(const Rule& rule, const Recipe& recipe) {
  return rule.recipes.empty() || rule.recipes.find(cat(" ", recipe.name, " ")) != std::string::npos;
}

bool covers(Layers layers, int64_t i, const DecoderConfig& config) {
  const int64_t n = config.num_layers;
  const int64_t shared = config.num_kv_heads > 0 ? config.num_heads / config.num_kv_heads : 1;
  switch (layers) {
    case Layers::all: return true;
    case Layers::first_2: return i < 2;
    case Layers::first_4: return i < 4;
    case Layers::first_16th: return i < n / 16;
    case Layers::first_8th: return i < n / 8;
    case Layers::more: return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    case Layers::grouped: return shared >= 4;
    case Layers::experts: return config.experts.count == 8;
    case Layers::eighty_deep: return n == 80 && shared > 1;
  }
  return false;
}

std::optional<Part> part_of(DecoderRole role, bool tied) {
  switch (role) {
    case DecoderRole::v: return Part::value;
    case DecoderRole::k: return Part::key;
    case DecoderRole::o: return Part::out;
    case DecoderRole::down:
    case DecoderRole::expert_down:
    case DecoderRole::shared_down: return Part::down;
    case DecoderRole::head: return Part::head;
    case DecoderRole::token_embedding: return tied ? std::optional(Part::head) : std::nullopt;
    default: return {};
  }
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> out;
  for (const Recipe& recipe : kRecipes) out.emplace_back(recipe.name);
  return out;
}

Result<const Recipe*> parse_recipe(std::string_view name) {
  const std::string lower = to_lower_ascii(std::string(name));
  for (const Recipe& recipe : kRecipes)
    if (recipe.name == lower) return &recipe;
  return invalid(
      cat("unknown recipe '", printable(name), "'; choose ", join(recipe_names(), ", ")));
}

DType recipe_dtype(const Recipe& recipe, const Param& param, const DecoderConfig& config,
                   DType stored) {
  const DecoderPiece piece = decoder_piece(param, config);
  if (piece.role == DecoderRole::positions) return stored;
  if (is_router(piece.role)) return decoder_dtype(param, config, recipe.base);
  const std::optional<Part> part = part_of(piece.role, config.tie_word_embeddings);
  for (const Rule& rule : kRules) {
    if (part && rule.part == *part && names(rule, recipe) &&
        covers(rule.layers, piece.block, config))
      return rule.dtype;
  }
  return recipe.base;
}

DType narrower_blocks(DType dtype, int64_t cols) {
  constexpr std::pair<DType, DType> kNarrower[] = {
      {q2_k, q4_0}, {q3_k, q4_0}, {q4_k, q5_0}, {q5_k, q5_1}, {q6_k, q8_0}};
  const auto fits = [cols](DType type) {
    const DTypeInfo& info = dtype_info(type);
    const int values = info.super_block > 0 ? info.super_block : info.block;
    return values == 0 || cols % values == 0;
  };
  if (fits(dtype)) return dtype;
  for (const auto& [wide, narrow] : kNarrower)
    if (wide == dtype && fits(narrow)) return narrow;
  return f16;
}

}  // namespace loom::core
