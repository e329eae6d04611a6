// The frequency factors in GGUF. For Llama 3.1 there is a tensor of divisors, rope_freqs.weight,
// instead of the four numbers that they are computed from. For longrope there are two.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/gguf/write.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// The divisor of each rotary pair's frequency; config.rope is llama3.
std::vector<float> llama3_factors(const DecoderConfig& config);

// Finds the numbers that give these factors (rope_factor, rope_low_freq_factor, ...) and writes
// them into a copy of `config`, whose rope_theta and head_dim are used. Unset if this is not Llama
// 3's scaling with its usual bounds.
std::optional<DecoderConfig> recognize_llama3(DecoderConfig config, std::span<const float> factors);

// The tensors of the rotary positions; none for most models.
std::vector<GgufOutput> rope_tensors(const DecoderConfig& config);

}  // namespace loom::core
