#include "formats/gguf/rope.hpp"

#include "base/numbers/dmath.hpp"

namespace loom::core {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr float kTolerance = 1e-3f;  // of a factor; writers compute in f32

}  // namespace

std::vector<float> llama3_factors(const DecoderConfig& c) {
  std::vector<float> factors(static_cast<size_t>(c.head_dim / 2));
  const auto original = static_cast<double>(c.rope_original_max_positions);
  for (size_t j = 0; j < factors.size(); ++j) {
    const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(c.head_dim);
    const double wavelength = 2 * kPi * dmath::exp(exponent * dmath::log(c.rope_theta));
    double factor = 1.0;
    if (wavelength > original / c.rope_low_freq_factor) {
      factor = c.rope_factor;
    } else if (wavelength >= original / c.rope_high_freq_factor) {
      const double smooth = (original / wavelength - c.rope_low_freq_factor) /
                            (c.rope_high_freq_factor - c.rope_low_freq_factor);
      factor = 1.0 / ((1.0 - smooth) / c.rope_factor + smooth);
    }
    factors[j] = static_cast<float>(factor);
  }
  return factors;
}

std::vector<GgufOutput> rope_tensors(const DecoderConfig& c) {
  std::vector<GgufOutput> tensors;
  const auto add = [&](const char* name, std::vector<float> values) {
    const auto count = static_cast<int64_t>(values.size());
    tensors.push_back({name, "F32", {count}, [values](const GgufSink& sink) {
                         return sink(std::as_bytes(std::span(values)));
                       }});
  };
  if (c.rope == RopeKind::llama3) add("rope_freqs.weight", llama3_factors(c));
  if (c.rope == RopeKind::longrope) {
    add("rope_factors_long.weight", {c.rope_long.begin(), c.rope_long.end()});
    add("rope_factors_short.weight", {c.rope_short.begin(), c.rope_short.end()});
  }
  return tensors;
}

std::optional<DecoderConfig> recognize_llama3(DecoderConfig config,
                                              std::span<const float> factors) {
  if (factors.empty() || static_cast<int64_t>(factors.size()) != config.head_dim / 2) return {};
  config.rope = RopeKind::llama3;
  config.rope_factor = static_cast<double>(factors.back());
  config.rope_low_freq_factor = 1.0;
  config.rope_high_freq_factor = 4.0;
  if (!(config.rope_factor >= 1.0 && config.rope_factor <= 1e6)) return {};
  for (const int64_t original : {8192, 4096, 2048, 1024, 16384, 32768}) {
    config.rope_original_max_positions = original;
    const std::vector<float> want = llama3_factors(config);
    bool same = true;
    for (size_t j = 0; j < want.size() && same; ++j) {
      const float error = factors[j] - want[j], bound = kTolerance * want[j];
      same = error <= bound && -error <= bound;
    }
    if (same) return config;
  }
  return {};
}

}  // namespace loom::core
