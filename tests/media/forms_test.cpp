// Sounds of every form beside plain WAV, against soundfile, and PNG files of 16 bits
// (tools/goldens/sound_forms.py); random ones are in tests/outside/sounds.py.
#include <gmock/gmock.h>

#include <cstring>

#include "base/text.hpp"
#include "io/arrays/array_file.hpp"
#include "media/decoders.hpp"
#include "media/fit.hpp"
#include "media/sound.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using ::testing::HasSubstr;

ArrayFile golden(std::string_view name) {
  return ArrayFile::open(loom_test::source_path(cat("tests/media/golden/", name))).or_exit();
}
std::span<const std::byte> bytes_of(ArrayFile& file, std::string_view name) {
  return file.find(name).or_exit().data;
}
std::vector<float> floats_of(ArrayFile& file, std::string_view name) {
  return array_f32(file.find(name).or_exit()).or_exit();
}

bool library_is_here(ArrayFile& forms) {
  const auto wave = decode_sound(bytes_of(forms, "i0"), "a", {});
  EXPECT_TRUE(wave.ok() || wave.error().code == Code::unsupported);
  return wave.ok();
}

TEST(SoundForms, HaveTheSamplesOfSoundfile) {
  ArrayFile forms = golden("forms.npz");
  if (!library_is_here(forms)) GTEST_SKIP() << "libsndfile is not here";
  const int32_t count = array_i32(forms.find("count").or_exit()).or_exit()[0];
  for (int32_t i = 0; i < count; ++i) {
    const auto bytes = bytes_of(forms, cat("i", i));
    EXPECT_TRUE(is_sound(bytes)) << i;
    const Result<Wave> wave = decode_sound(bytes, cat("sound ", i), {});
    ASSERT_TRUE(wave.ok()) << wave.error().str();
    const auto rate = array_i32(forms.find(cat("r", i)).or_exit()).or_exit();
    const std::vector<float> want = floats_of(forms, cat("w", i));
    EXPECT_EQ(wave->rate, rate[0]);
    ASSERT_EQ(wave->samples.size(), want.size()) << i;
    for (size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(wave->samples[k], want[k], rate[1] != 0 ? 1e-3 : 0) << i << " sample " << k;
  }
}

TEST(SoundForms, OfOurOwnReaderHaveTheBitsOfTheLibrary) {
  ArrayFile forms = golden("forms.npz"), sounds = golden("sounds.npz");
  if (!library_is_here(forms)) GTEST_SKIP() << "libsndfile is not here";
  const int32_t count = array_i32(sounds.find("count").or_exit()).or_exit()[0];
  for (int32_t i = 0; i < count; ++i) {
    const auto bytes = bytes_of(sounds, cat("i", i));
    EXPECT_EQ(decode_wave(bytes, "a", {}).or_exit().samples,
              decode_by_library(bytes, "a", {}).or_exit().samples)
        << i;
  }
}

TEST(SoundForms, ThatAreCutAreErrorsAndMemoryIsAskedFor) {
  ArrayFile forms = golden("forms.npz");
  if (!library_is_here(forms)) GTEST_SKIP() << "libsndfile is not here";
  for (const int i : {0, 2, 3, 4, 5, 7, 8, 9}) {
    const auto bytes = bytes_of(forms, cat("i", i));
    const Result<Wave> cut = decode_sound(bytes.first(bytes.size() * 2 / 3), "a.snd", {});
    ASSERT_FALSE(cut.ok()) << i;
    EXPECT_EQ(cut.error().code, Code::bad_file) << cut.error().str();
    EXPECT_EQ(cut.error().str().find('\n'), std::string::npos);
    const Result<Wave> large = decode_sound(bytes, "a.snd", MemoryBudget(64));
    ASSERT_FALSE(large.ok()) << i;
    EXPECT_EQ(large.error().code, Code::out_of_memory) << large.error().str();
  }
}

// A program that writes to a pipe does not know how long its sound becomes.
TEST(SoundForms, OfAPipeLastUntilTheEndOfTheFile) {
  ArrayFile sounds = golden("sounds.npz");
  const auto bytes = bytes_of(sounds, "i1");
  std::vector<std::byte> piped(bytes.begin(), bytes.end());
  const std::string_view text(reinterpret_cast<const char*>(piped.data()), piped.size());
  const size_t data = text.find("data");
  ASSERT_NE(data, text.npos);
  std::fill_n(piped.begin() + static_cast<int64_t>(data) + 4, 4, std::byte{0xff});
  EXPECT_EQ(decode_sound(piped, "a.wav", {}).or_exit().samples, floats_of(sounds, "w1"));
}

TEST(SoundForms, AreKnownByTheEndingsOfTheirNames) {
  for (const char* name :
       {"a.wav", "b.FLAC", "c.ogg", "d.opus", "e.Mp3", "f.aiff", "g.au", "h.caf"})
    EXPECT_TRUE(is_sound_name(name)) << name;
  for (const char* name : {"a.txt", "wav", "a.wav.txt", "a.png"})
    EXPECT_FALSE(is_sound_name(name)) << name;
}

TEST(Pictures16, KeepTheirValues) {
#ifdef LOOM_WITHOUT_PICTURES
  GTEST_SKIP() << "this build has no libpng and libjpeg";
#endif
  ArrayFile forms = golden("forms.npz");
  for (const int i : {0, 1}) {
    const Result<Image> image = decode_picture(bytes_of(forms, cat("p", i)), "a.png", {});
    ASSERT_TRUE(image.ok()) << image.error().str();
    EXPECT_TRUE(image->pixels.empty());
    const PictureShape shape{i == 0 ? 1 : 3, image->height, image->width};
    std::vector<float> values(static_cast<size_t>(shape.count()));
    fit_picture(*image, PictureFit::stretch, shape, values);
    EXPECT_EQ(values, floats_of(forms, cat("q", i)));
  }
}

TEST(PictureForms, ThatAreNotReadAreNamedWithWhatToDo) {
#ifdef LOOM_WITHOUT_PICTURES
  GTEST_SKIP() << "this build has no libpng and libjpeg";
#endif
  const auto message = [](std::string text) {
    return decode_picture(std::as_bytes(std::span(text)), "a", {}).error().str();
  };
  EXPECT_THAT(message("RIFF\x10\0\0\0WEBPVP8 ...."), HasSubstr("neither"));
  EXPECT_THAT(message(std::string("RIFF\x10\x01\x01\x01WEBPVP8 ", 16)),
              HasSubstr("this is a WebP image, which Loom does not read; save it as PNG"));
  EXPECT_THAT(message("BM6\x01............"), HasSubstr("a BMP image"));
  EXPECT_THAT(message(std::string("II*\0aaaaaaaaaaaaa", 16)), HasSubstr("a TIFF image"));
  EXPECT_TRUE(is_unread_picture_name("a.WebP"));
}

TEST(PnmForms, OfEightAndSixteenBitsKeepTheirValuesAndDamageIsNamed) {
  const auto read = [](const std::string& text) {
    return decode_picture(std::as_bytes(std::span(text)), "a.ppm", {});
  };
  const Image color = read("P6\n# a comment\n2 1\n255\nabcdef").or_exit();
  EXPECT_EQ(color.channels, 3);
  EXPECT_EQ(color.pixels, (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  const Image deep = read(std::string("P5 2 1 65535 \1\2\3\4", 17)).or_exit();
  EXPECT_EQ(deep.deep, (std::vector<uint16_t>{0x102, 0x304}));
  const std::pair<const char*, const char*> wrong[] = {
      {"P6 2 1 255\nabcde", "ends before its last pixel"},
      {"P6 2 1 254\nabcdef", "has values to 254"},
      {"P6 2 0 255\n", "has no size"},
      {"P6 2 ", "has no size"},
      {"P6 70000 1 255\n", "has no size"},
      {"P6 60000 60000 255\nab", "ends before its last pixel"},
      {"P6 2 1 255", "has no size"},
      {"P6 2 1 255,abcdef", "has no size"}};
  for (const auto& [text, message] : wrong)
    EXPECT_THAT(read(text).error().str(), HasSubstr(message)) << text;
  for (const char* name : {"a.ppm", "b.PGM", "c.pnm"}) EXPECT_TRUE(is_picture_name(name)) << name;
}

}  // namespace
}  // namespace loom::core
