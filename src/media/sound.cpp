#include "media/sound.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/left_out.hpp"
#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

using namespace std::string_view_literals;

// The signature of a format, and the location of further signature bytes.
struct Form {
  std::string_view begins;
  size_t at = 0;
  std::string_view then = {};
};
constexpr Form kForms[] = {
    {"RF64"sv, 8, "WAVE"sv},
    {"riff\x2e\x91\xcf\x11"sv},
    {"FORM"sv, 8, "AIFF"sv},
    {"FORM"sv, 8, "AIFC"sv},
    {".snd"sv},
    {"caff"sv},
    {"fLaC"sv},
    {"OggS"sv},
    {"ID3"sv},
};
constexpr std::array kEndings = {".wav"sv, ".flac"sv, ".ogg"sv,  ".oga"sv,  ".opus"sv,
                                 ".mp3"sv, ".aif"sv,  ".aiff"sv, ".aifc"sv, ".au"sv,
                                 ".snd"sv, ".caf"sv,  ".w64"sv,  ".rf64"sv};

// MPEG audio begins with 11 one bits; layer 0, rate 3 and bit rate 15 are invalid.
bool is_mpeg(std::string_view text) {
  if (text.size() < 4) return false;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  return at(0) == 0xff && at(1) >= 0xe0 && (at(1) >> 1 & 3) != 0 && (at(2) >> 2 & 3) != 3 &&
         at(2) >> 4 != 15;
}

}  // namespace

bool is_sound(std::span<const std::byte> head) {
  if (is_wave(head)) return true;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto fits = [&](const Form& f) {
    return text.starts_with(f.begins) && text.size() >= f.at + f.then.size() &&
           text.substr(f.at, f.then.size()) == f.then;
  };
  return std::ranges::any_of(kForms, fits) || is_mpeg(text);
}

bool is_sound_name(std::string_view name) {
  const std::string small = to_lower_ascii(name);
  return std::ranges::any_of(kEndings, [&](std::string_view e) { return small.ends_with(e); });
}

Result<Wave> decode_sound(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory) {
  if (!is_sound(bytes)) return bad_file("this is not a sound format that Loom reads", where, 0);
  Result<Wave> own = Wave{};
  if (is_wave(bytes)) {
    own = decode_wave(bytes, where, memory);
    if (own.ok() || own.error().code != Code::unsupported) return own;
  }
#ifdef LOOM_WITHOUT_SOUND
  if (is_wave(bytes)) return own;
  return left_out_of_build("reader of compressed sound", LOOM_BUILD_WITH("LOOM_SOUND=ON"), where);
#else
  return decode_by_library(bytes, where, memory);
#endif
}

}  // namespace loom::core
