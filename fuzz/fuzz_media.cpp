// Any bytes as an image or a sound. They are refused in one line, or become pixels and samples that
// fit an input. The target also covers libpng, libjpeg and libsndfile, as far as our use of them
// reaches.
#include <string>

#include "check.hpp"
#include "media/fit.hpp"
#include "media/mel.hpp"
#include "media/picture.hpp"
#include "media/sound.hpp"

namespace {

using loom::core::MemoryBudget;

constexpr uint64_t kMax = uint64_t{1} << 22;

template <class T>
bool usable(const loom::Result<T>& result) {
  if (result.ok()) return true;
  CHECK(!result.error().message.empty());
  CHECK(result.error().str().find('\n') == std::string::npos);
  return false;
}

void check_picture(std::span<const std::byte> bytes) {
  const auto image = loom::core::decode_picture(bytes, "f", MemoryBudget(kMax));
  if (!usable(image)) return;
  CHECK(image->width >= 1 && image->height >= 1);
  CHECK(static_cast<int64_t>(image->pixels.size() + image->deep.size()) ==
        image->width * image->height * image->channels);
  const loom::core::PictureShape shape{3, 4, 5};
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (const auto fit : {loom::PictureFit::crop, loom::PictureFit::pad}) {
    loom::core::fit_picture(*image, fit, shape, values);
    for (const float v : values) CHECK(v >= 0 && v <= 1.0001F);
  }
}

void check_sound(std::span<const std::byte> bytes) {
  const auto wave = loom::core::decode_sound(bytes, "f", MemoryBudget(kMax));
  if (!usable(wave)) return;
  static const loom::core::MelReader reader({.rate = 100, .window = 8, .hop = 3, .bands = 2});
  std::vector<float> mel(2 * 9);
  reader.read(wave->samples, 9, mel);
  for (const float v : mel) CHECK(v >= -100.001F);
  if (wave->rate <= 48000) CHECK(loom::core::resampled(*wave, 100).rate == 100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  loom::core::is_sound(bytes) ? check_sound(bytes) : check_picture(bytes);
  return 0;
}
