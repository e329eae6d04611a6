// Quantization during convert(): recipes, importance, calibration texts, target sizes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "api/engine/impl.hpp"
#include "convert/convert.hpp"
#include "convert/quantize/quantized_source.hpp"
#include "convert/quantize/recipe.hpp"
#include "loom/convert_options.hpp"

namespace loom::core {

// Owns what a quantized model reads while it is written.
class Quantization {
 public:
  // Replaces model.decoder by a quantized one, if the options ask for it; `how` then has no types.
  Status apply(const loom::ConvertOptions& options, const std::string& output, Engine::Impl& engine,
               OpenedModel& model, WriteOptions& how);

 private:
  Status read_text(const loom::ConvertOptions& options, Engine::Impl& engine);
  Status choose_types(const loom::ConvertOptions& options);
  Status note_fallbacks(const loom::ConvertOptions& options);
  DType chosen_type(const Param& param, DType stored) const;
  // With the fallback of formats whose rows are whole blocks.
  DType type_of(const Param& param, DType stored) const;

  std::unique_ptr<ModelSource> source_;
  std::optional<TextMoments> text_;
  std::optional<Importance> importance_;
  std::unordered_map<std::string, DType> chosen_;  // by target_bits
  const Recipe* recipe_ = nullptr;
  WriteOptions types_;
  bool gguf_ = false;
};

}  // namespace loom::core
