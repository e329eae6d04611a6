#include "media/mel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::array<std::string_view, 2> kRecipes = {"librosa", "torchaudio"};
constexpr double kLn10 = 2.30258509299404568402;

// Slaney's scale (Auditory Toolbox): linear up to 1000 Hz, 27 steps for each factor of 6.4 above.
constexpr double kEven = 200.0 / 3, kKnee = 1000, kFactor = 6.4, kSteps = 27;

double to_mel(MelRecipe recipe, double hz) {
  if (recipe == MelRecipe::torchaudio) return 2595 * dmath::log(1 + hz / 700) / kLn10;
  if (hz < kKnee) return hz / kEven;
  return kKnee / kEven + dmath::log(hz / kKnee) / (dmath::log(kFactor) / kSteps);
}

double to_hz(MelRecipe recipe, double mel) {
  if (recipe == MelRecipe::torchaudio) return 700 * (dmath::exp(mel / 2595 * kLn10) - 1);
  if (mel < kKnee / kEven) return mel * kEven;
  return kKnee * dmath::exp((mel - kKnee / kEven) * (dmath::log(kFactor) / kSteps));
}

double highest(const MelSpec& spec) {
  return spec.high > 0 ? spec.high : static_cast<double>(spec.rate) / 2;
}

// The samples of a sound, extended beyond its ends.
class Sound {
 public:
  Sound(std::span<const float> samples, int64_t length, bool mirrored)
      : samples_(samples), length_(length), mirrored_(mirrored) {}

  double at(int64_t i) const {
    if (mirrored_ && length_ > 1) {
      const int64_t turn = 2 * (length_ - 1);
      i = std::abs(i) % turn;
      i = std::min(i, turn - i);
    }
    const bool there = i >= 0 && i < std::min(length_, static_cast<int64_t>(samples_.size()));
    return there ? static_cast<double>(samples_[static_cast<size_t>(i)]) : 0.0;
  }

 private:
  std::span<const float> samples_;
  int64_t length_;
  bool mirrored_;
};

}  // namespace

std::string_view mel_recipe_name(MelRecipe recipe) {
  return kRecipes[static_cast<size_t>(recipe)];
}

Result<MelRecipe> parse_mel_recipe(std::string_view name) {
  const auto at = std::find(kRecipes.begin(), kRecipes.end(), name);
  if (at != kRecipes.end()) return static_cast<MelRecipe>(at - kRecipes.begin());
  return invalid(
      cat("mel spectrograms are those of librosa or torchaudio, not of ", printable(name, 40)));
}

Status check_mel(const MelSpec& spec) {
  const auto within = [](std::string_view what, int64_t value, int64_t most) -> Status {
    if (value >= 1 && value <= most) return {};
    return invalid(cat("mel spectrogram: ", what, " is ", value, ", must be from 1 to ", most));
  };
  LOOM_TRY(within("rate", spec.rate, 1 << 24));
  LOOM_TRY(within("window", spec.window, 1 << 16));
  LOOM_TRY(within("hop", spec.hop, 1 << 16));
  LOOM_TRY(within("bands", spec.bands, 1 << 12));
  if (spec.window % 2 != 0)
    return invalid(cat("mel spectrogram: window is ", spec.window, ", must be even"));
  if (spec.low >= 0 && spec.low < highest(spec) &&
      highest(spec) <= static_cast<double>(spec.rate) / 2)
    return {};
  return invalid(cat("mel spectrogram: bands from ", spec.low, " to ", highest(spec),
                     " Hz, must ascend within 0 and half the rate"));
}

std::vector<double> mel_bands(const MelSpec& spec) {
  const int64_t bins = spec.window / 2 + 1;
  std::vector<double> edges(static_cast<size_t>(spec.bands + 2));
  const double low = to_mel(spec.recipe, spec.low), high = to_mel(spec.recipe, highest(spec));
  for (size_t i = 0; i < edges.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(spec.bands + 1);
    edges[i] = to_hz(spec.recipe, low + (high - low) * share);
  }
  std::vector<double> bands(static_cast<size_t>(spec.bands * bins));
  for (int64_t b = 0; b < spec.bands; ++b) {
    const double* edge = edges.data() + b;
    const double height = spec.recipe == MelRecipe::librosa ? 2 / (edge[2] - edge[0]) : 1;
    for (int64_t k = 0; k < bins; ++k) {
      const double hz = static_cast<double>(k * spec.rate) / static_cast<double>(spec.window);
      const double up = (hz - edge[0]) / (edge[1] - edge[0]);
      const double down = (edge[2] - hz) / (edge[2] - edge[1]);
      bands[static_cast<size_t>(b * bins + k)] = height * std::max(std::min(up, down), 0.0);
    }
  }
  return bands;
}

MelReader::MelReader(const MelSpec& spec)
    : spec_(spec), fourier_(spec.window), bands_(mel_bands(spec)) {
  for (int64_t i = 0; i < spec.window; ++i) {
    const double angle = 2 * kHalfTurn * static_cast<double>(i) / static_cast<double>(spec.window);
    window_.push_back(0.5 - 0.5 * dmath::cos(angle));
  }
}

void MelReader::read(std::span<const float> samples, int64_t frames, std::span<float> out) const {
  constexpr double kMin = 1e-10;
  const auto have = static_cast<int64_t>(samples.size());
  const int64_t length = std::clamp(have, (frames - 1) * spec_.hop, frames * spec_.hop - 1);
  const Sound sound(samples, length, spec_.recipe == MelRecipe::torchaudio);
  const auto bins = static_cast<size_t>(spec_.window / 2 + 1);
  std::vector<double> frame(window_.size()), power(bins);
  std::vector<Complex> spectrum(window_.size());
  for (int64_t f = 0; f < frames; ++f) {
    const int64_t first = f * spec_.hop - spec_.window / 2;
    for (size_t i = 0; i < frame.size(); ++i)
      frame[i] = window_[i] * sound.at(first + static_cast<int64_t>(i));
    fourier_.transform(frame, spectrum);
    for (size_t k = 0; k < bins; ++k)
      power[k] = spectrum[k].re * spectrum[k].re + spectrum[k].im * spectrum[k].im;
    for (int64_t b = 0; b < spec_.bands; ++b) {
      const double* band = bands_.data() + static_cast<size_t>(b) * bins;
      double sum = 0;
      for (size_t k = 0; k < bins; ++k) sum += band[k] * power[k];
      out[static_cast<size_t>(b * frames + f)] =
          static_cast<float>(10 * dmath::log(std::max(sum, kMin)) / kLn10);
    }
  }
}

}  // namespace loom::core
