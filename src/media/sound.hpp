// Sound from files in common formats. Our own reader (wave.hpp) reads WAV with PCM and floats in
// every build. libsndfile reads other forms of WAV (A-law, mu-law, ADPCM), RF64, W64, AIFF, AU,
// CAF, FLAC, Ogg Vorbis, Opus and MP3. It is opened when the first such file is read. Channels are
// averaged to one.
#pragma once

#include "media/wave.hpp"

namespace loom::core {

// By the first bytes.
bool is_sound(std::span<const std::byte> head);
// By file extension, ignoring case.
bool is_sound_name(std::string_view name);

// Errors: those of decode_wave(); unsupported, with what to install, if libsndfile is needed and
// missing.
Result<Wave> decode_sound(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory);

}  // namespace loom::core
