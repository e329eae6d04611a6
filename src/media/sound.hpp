// Sound from files, in any form that programs leave it in: WAV of PCM and floats by our own reader
// (wave.hpp), which every build has; other forms of WAV (A-law, mu-law, ADPCM), RF64, W64, AIFF,
// AU, CAF, FLAC, Ogg Vorbis, Opus and MP3 by libsndfile, which is opened when the first such file
// is read. Channels become one by their mean.
#pragma once

#include "media/wave.hpp"

namespace loom::core {

// By the first bytes.
bool is_sound(std::span<const std::byte> head);
// By the ending of a name, in small or capital letters.
bool is_sound_name(std::string_view name);

// Errors: those of decode_wave(); unsupported, with what to install, where libsndfile is needed and
// not there.
Result<Wave> decode_sound(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory);

}  // namespace loom::core
