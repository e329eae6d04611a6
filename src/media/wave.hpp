// Sound from WAV files: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64, any number of channels,
// which become one by their mean. Our own checked reader of RIFF; nothing is taken on trust from
// its sizes. Compressed forms (A-law, ADPCM, ...) are refused by name: sound.hpp reads them.
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
  std::vector<float> samples;  // whole numbers of b bits divided by 2^(b - 1); floats as they are
};

bool is_wave(std::span<const std::byte> head);

// Errors: bad_file (cut, damaged, a value that is not finite), unsupported (a form of samples),
// out_of_memory.
Result<Wave> decode_wave(std::span<const std::byte> bytes, const std::string& where,
                         const MemoryBudget& memory);

// At another rate: band-limited interpolation by a sinc with a Hann window over 6 of its zeros to
// either side, cut off at 0.99 of the lower of the two half rates; the formula and the numbers of
// torchaudio.functional.resample. rate: at least 1.
Wave resampled(const Wave& wave, int64_t rate);

}  // namespace loom::core
