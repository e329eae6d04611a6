#include "train_io/media_reading.hpp"

#include "base/text.hpp"

namespace loom::core {

MediaReading reading_of(const MediaWishes& wishes, const std::optional<MediaReading>& trained) {
  MediaReading out = trained.value_or(MediaReading{});
  out.fit = wishes.fit.value_or(out.fit);
  out.mel.recipe = wishes.recipe.value_or(out.mel.recipe);
  out.time_first = wishes.time_first.value_or(out.time_first);
  if (wishes.rate != 0) out.mel.rate = wishes.rate;
  if (wishes.window != 0) out.mel.window = wishes.window;
  if (wishes.hop != 0) out.mel.hop = wishes.hop;
  if (wishes.low >= 0) out.mel.low = wishes.low;
  if (wishes.high >= 0) out.mel.high = wishes.high;
  return out;
}

JsonValue media_json(const MediaReading& reading) {
  JsonValue out = JsonValue::object();
  out.add("fit", JsonValue::string(std::string(picture_fit_name(reading.fit))));
  out.add("mel", JsonValue::string(std::string(mel_recipe_name(reading.mel.recipe))));
  out.add("rate", JsonValue::integer(reading.mel.rate));
  out.add("window", JsonValue::integer(reading.mel.window));
  out.add("hop", JsonValue::integer(reading.mel.hop));
  out.add("bands", JsonValue::integer(reading.mel.bands));
  out.add("low", JsonValue::real(reading.mel.low));
  out.add("high", JsonValue::real(reading.mel.high));
  out.add("time_first", JsonValue::boolean(reading.time_first));
  return out;
}

Result<MediaReading> read_media(const JsonValue& json, const std::string& where) {
  for (const char* name :
       {"fit", "mel", "rate", "window", "hop", "bands", "low", "high", "time_first"}) {
    if (json.find(name) == nullptr) return bad_file(cat("media: ", name, " is absent"), where);
  }
  MediaReading out;
  LOOM_ASSIGN(out.fit, parse_picture_fit(json.find("fit")->text()));
  LOOM_ASSIGN(out.mel.recipe, parse_mel_recipe(json.find("mel")->text()));
  LOOM_ASSIGN(out.mel.rate, json.find("rate")->as_int(where));
  LOOM_ASSIGN(out.mel.window, json.find("window")->as_int(where));
  LOOM_ASSIGN(out.mel.hop, json.find("hop")->as_int(where));
  LOOM_ASSIGN(out.mel.bands, json.find("bands")->as_int(where));
  LOOM_ASSIGN(out.mel.low, json.find("low")->as_double(where));
  LOOM_ASSIGN(out.mel.high, json.find("high")->as_double(where));
  LOOM_ASSIGN(out.time_first, json.find("time_first")->as_bool(where));
  MelSpec mel = out.mel;
  if (mel.bands == 0) mel.bands = 1;  // images have none
  const Status fine = check_mel(mel);
  if (!fine.ok()) return bad_file(fine.error().message, where);
  return out;
}

}  // namespace loom::core
