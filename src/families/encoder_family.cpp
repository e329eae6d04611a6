// See encoder_family.hpp.
#include "families/encoder_family.hpp"

namespace loom::core {

EncoderClass find_encoder_class(std::string_view hf_class) {
  for (const EncoderFamily* family : encoder_families()) {
    if (!hf_class.starts_with(family->name)) continue;
    const std::string_view kind = hf_class.substr(family->name.size());
    const bool scores = kind == "ForSequenceClassification";
    if (scores || kind == "Model" || kind == "ForMaskedLM") return {family, scores};
  }
  return {};
}

const EncoderFamily* find_encoder_of_type(std::string_view model_type) {
  for (const EncoderFamily* family : encoder_families())
    if (family->model_type == model_type) return family;
  return nullptr;
}

}  // namespace loom::core
