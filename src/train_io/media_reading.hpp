// The conversion of image and sound files to the values of an input. A network that was trained on
// them stores it (section "model", "media"), so later files are read the same way.
#pragma once

#include "io/json/json.hpp"
#include "media/fit.hpp"
#include "media/mel.hpp"

namespace loom::core {

struct MediaReading {
  PictureFit fit = PictureFit::crop;
  // For sound: the bands of the input, or 1 if it is samples alone. For images: 0.
  MelSpec mel;
  bool time_first = false;  // [frames, bands] instead of [bands, frames]
};

// Settings that a user may leave open. They default to those of the trained network, if it has any.
struct MediaWishes {
  std::optional<PictureFit> fit;
  std::optional<MelRecipe> recipe;
  std::optional<bool> time_first;
  int64_t rate = 0, window = 0, hop = 0;  // 0 leaves it open
  double low = -1, high = -1;             // Hz; below 0: open
};
MediaReading reading_of(const MediaWishes& wishes, const std::optional<MediaReading>& trained);

JsonValue media_json(const MediaReading& reading);
// Errors: bad_file.
Result<MediaReading> read_media(const JsonValue& json, const std::string& where);

}  // namespace loom::core
