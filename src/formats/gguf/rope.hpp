// The frequency factors of Llama 3.1 as GGUF has them: a tensor of divisors, rope_freqs.weight, in
// the place of the four numbers they were made from.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "llm/decoder_config.hpp"

namespace loom::core {

// What the frequency of each rotary pair is divided by; config.rope is llama3.
std::vector<float> llama3_factors(const DecoderConfig& config);

// The numbers that make these factors (rope_factor, rope_low_freq_factor, ...), written into a copy
// of `config`, whose rope_theta and head_dim count. Empty: not a scaling of Llama 3's form with the
// bounds that its models use.
std::optional<DecoderConfig> recognize_llama3(DecoderConfig config, std::span<const float> factors);

}  // namespace loom::core
