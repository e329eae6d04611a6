// Sound from WAV files: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64, any number of channels,
// which are averaged to one. It is our own checked reader of RIFF; its sizes are not trusted.
// Compressed forms (A-law, ADPCM, ...) give an error that names them: sound.hpp reads them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.hpp"

namespace loom::core {

struct Wave {
  int64_t rate = 0;            // samples per second
  std::vector<float> samples;  // integers of b bits divided by 2^(b - 1); floats unchanged
};

bool is_wave(std::span<const std::byte> head);

// Errors: bad_file (truncated, damaged, a value that is not finite), unsupported (a sample format),
// out_of_memory.
Result<Wave> decode_wave(std::span<const std::byte> bytes, const std::string& where,
                         const MemoryBudget& memory);

// The sound at another rate: band-limited interpolation by a sinc with a Hann window over 6 of its
// zeros to either side. The cutoff is 0.99 of the lower of the two half rates. Formula and numbers
// are those of torchaudio.functional.resample. rate: at least 1.
Wave resampled(const Wave& wave, int64_t rate);

}  // namespace loom::core
