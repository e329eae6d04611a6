// How files of pictures and sound become the values of an input. A network that was trained on them
// keeps it (section "model", "media"), so that later files are read the same way.
#pragma once

#include "io/json/json.hpp"
#include "media/fit.hpp"
#include "media/mel.hpp"

namespace loom::core {

struct MediaReading {
  PictureFit fit = PictureFit::crop;
  // Of sound, with the bands of the input; 1 where it is samples alone. Of pictures they are 0.
  MelSpec mel;
  bool time_first = false;  // [frames, bands] instead of [bands, frames]
};

// What a person may leave open: it is then as the network was trained, or the default.
struct MediaWishes {
  std::optional<PictureFit> fit;
  std::optional<MelRecipe> recipe;
  std::optional<bool> time_first;
  int64_t rate = 0, window = 0, hop = 0;  // 0: open
  double low = -1, high = -1;             // Hz; below 0: open
};
MediaReading reading_of(const MediaWishes& wishes, const std::optional<MediaReading>& trained);

JsonValue media_json(const MediaReading& reading);
// Errors: bad_file.
Result<MediaReading> read_media(const JsonValue& json, const std::string& where);

}  // namespace loom::core
