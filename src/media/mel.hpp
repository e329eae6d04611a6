// Mel spectrograms: the power of sound over time, in bands spaced by perceived pitch.
//
// Two named recipes, each with the defaults of its library, in decibels, 10 log10(max(power,
// 1e-10)):
//   librosa      librosa.feature.melspectrogram and power_to_db(top_db=None): Slaney's mel scale,
//                bands of equal area, zeros beyond the ends.
//   torchaudio   torchaudio.transforms.MelSpectrogram and AmplitudeToDB: the mel scale of HTK,
//                bands of equal height, the sound mirrored beyond its ends.
// Both: frames of `window` samples around each multiple of `hop`, a periodic Hann window, squared
// magnitudes of a Fourier transform of the window's length. All in double precision.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "media/fourier.hpp"
#include "media/wave.hpp"

namespace loom::core {

enum class MelRecipe : uint8_t { librosa, torchaudio };
std::string_view mel_recipe_name(MelRecipe recipe);
Result<MelRecipe> parse_mel_recipe(std::string_view name);

struct MelSpec {
  MelRecipe recipe = MelRecipe::librosa;
  int64_t rate = 16000;             // samples per second; sound of another rate is resampled
  int64_t window = 400, hop = 160;  // samples
  int64_t bands = 64;
  double low = 0, high = 0;  // Hz; a high of 0 means half the rate
};
// Errors: invalid_argument.
Status check_mel(const MelSpec& spec);

// The bands of a recipe over the frequencies of a transform: [bands][window / 2 + 1].
std::vector<double> mel_bands(const MelSpec& spec);

class MelReader {
 public:
  // spec: one that passes check_mel().
  explicit MelReader(const MelSpec& spec);
  const MelSpec& spec() const { return spec_; }
  // out: [bands][frames] decibels of the frames [0, frames). Longer sound is cut off; shorter sound
  // is followed by silence. A sound of n samples has 1 + n / hop frames.
  void read(std::span<const float> samples, int64_t frames, std::span<float> out) const;

 private:
  MelSpec spec_;
  Fourier fourier_;
  std::vector<double> window_, bands_;
};

}  // namespace loom::core
