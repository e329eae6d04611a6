// Sound against soundfile, scipy and librosa (tools/goldens/sounds.py), and files that are damaged.
// LOOM_SOUNDS_GOLDEN names a larger file of the same kind.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "io/arrays/array_file.hpp"
#include "media/mel.hpp"
#include "media/wave.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using ::testing::HasSubstr;

class SoundGoldens {
 public:
  SoundGoldens() {
    const char* other = std::getenv("LOOM_SOUNDS_GOLDEN");
    const std::string own = loom_test::source_path("tests/media/golden/sounds.npz");
    file_ = ArrayFile::open(other != nullptr ? std::string(other) : own).or_exit();
    count_ = array_i32(file_.find("count").or_exit()).or_exit()[0];
  }
  int32_t count() const { return count_; }
  std::span<const std::byte> file(int32_t i) { return file_.find(cat("i", i)).or_exit().data; }
  std::vector<float> floats(std::string_view name, int32_t i) {
    return array_f32(file_.find(cat(name, i)).or_exit()).or_exit();
  }
  Wave wave(int32_t i) { return decode_wave(file(i), cat("sound ", i), {}).or_exit(); }

 private:
  ArrayFile file_;
  int32_t count_ = 0;
};

TEST(Sounds, HaveTheSamplesOfSoundfile) {
  SoundGoldens goldens;
  for (int32_t i = 0; i < goldens.count(); ++i) {
    ASSERT_TRUE(is_wave(goldens.file(i)));
    EXPECT_EQ(goldens.wave(i).samples, goldens.floats("w", i)) << i;
  }
}

TEST(Sounds, AreResampledByTheFilterOfTorchaudio) {
  SoundGoldens goldens;
  for (int32_t i = 0; i < goldens.count(); ++i) {
    const std::vector<float> want = goldens.floats("r", i);
    const Wave got = resampled(goldens.wave(i), static_cast<int64_t>(goldens.floats("to", i)[0]));
    ASSERT_EQ(got.samples.size(), want.size()) << i;
    for (size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(got.samples[k], want[k], 1e-6) << i << " sample " << k;
  }
}

TEST(Sounds, HaveTheMelSpectrogramOfLibrosaAndTorchaudio) {
  SoundGoldens goldens;
  for (int32_t i = 0; i < goldens.count(); ++i) {
    const std::vector<float> s = goldens.floats("s", i), want = goldens.floats("m", i);
    const auto integer = [&](size_t k) { return static_cast<int64_t>(s[k]); };
    const MelSpec spec{static_cast<MelRecipe>(integer(4)),
                       integer(0),
                       integer(1),
                       integer(2),
                       integer(3),
                       static_cast<double>(s[5]),
                       static_cast<double>(s[6])};
    ASSERT_TRUE(check_mel(spec).ok()) << check_mel(spec).error().str();
    std::vector<float> got(want.size());
    MelReader(spec).read(goldens.wave(i).samples, integer(7), got);
    for (size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(got[k], want[k], 1e-3) << i << " value " << k;  // decibels
  }
}

TEST(Sounds, AreCutAndFilledWithSilence) {
  MelSpec spec{MelRecipe::librosa, 8000, 64, 32, 4};
  std::vector<float> tone(320), four(4 * 4), twelve(4 * 12), twenty(4 * 20);
  for (size_t i = 0; i < tone.size(); ++i) tone[i] = std::sin(static_cast<float>(i));
  const MelReader reader(spec);
  reader.read(tone, 4, four);
  reader.read(tone, 12, twelve);
  reader.read({}, 20, twenty);
  EXPECT_FLOAT_EQ(four[0], twelve[0]);
  EXPECT_FLOAT_EQ(twelve[11], -100);  // beyond its 11 frames, but for the half window
  EXPECT_THAT(twenty, ::testing::Each(-100.0f));
}

TEST(Sounds, ThatAreCutOrOfOtherFormsAreRefusedInOneLine) {
  SoundGoldens goldens;
  const std::span<const std::byte> integer = goldens.file(1);
  for (size_t size = 0; size < integer.size(); ++size) {
    const Result<Wave> wave = decode_wave(integer.first(size), "a.wav", {});
    ASSERT_FALSE(wave.ok()) << size;
    EXPECT_EQ(wave.error().str().find('\n'), std::string::npos);
  }
  std::vector<std::byte> other(integer.begin(), integer.end());
  other[20] = std::byte{7};  // mu-law
  EXPECT_THAT(decode_wave(other, "a.wav", {}).error().str(),
              HasSubstr("samples of form 7 with 16 bits; PCM of 8, 16, 24 or 32 bits, or floats"));
  for (size_t at = 0; at < 64; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      other.assign(integer.begin(), integer.end());
      other[at] ^= std::byte{1} << bit;
      const Result<Wave> wave = decode_wave(other, "a.wav", MemoryBudget(1 << 20));
      EXPECT_LE(wave.ok() ? wave->samples.size() : 0, integer.size());
    }
  }
}

TEST(MelSpecs, ThatCanNotBeAreRefused) {
  const auto refused = [](MelSpec spec) {
    const Status fine = check_mel(spec);
    return fine.ok() ? "" : fine.error().message;
  };
  EXPECT_THAT(refused({.window = 401}), HasSubstr("must be even"));
  EXPECT_THAT(refused({.hop = 0}), HasSubstr("hop is 0"));
  EXPECT_THAT(refused({.low = 300, .high = 200}), HasSubstr("must ascend"));
  EXPECT_THAT(refused({.high = 9000}), HasSubstr("half the rate"));
}

}  // namespace
}  // namespace loom::core
