// Contexts beyond those of the training, by choice: another scaling of the rotary positions of a
// decoder.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// Applies "linear:F", "dynamic:F" or "yarn:F" (F times the positions, above 1), or "none". A choice
// replaces the scaling of the model and starts from the positions before it. Layers with their own
// positions (DecoderLayer::rope_theta) keep them. Errors: an unknown choice; a model without rotary
// positions.
Status choose_rope_scaling(std::string_view choice, DecoderConfig& config);

// 0.1 m ln(factor) + 1, by which YaRN multiplies cosines and sines (Peng et al., 2023); 1 up to
// factor 1.
double yarn_attention(double factor, double m = 1.0);

}  // namespace loom::core
