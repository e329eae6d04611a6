// Images compared with Pillow (tools/goldens/pictures.py), and damaged images. LOOM_PICTURES_GOLDEN
// names a larger file of the same kind.
#include "media/picture.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "base/text.hpp"
#include "io/arrays/array_file.hpp"
#include "media/decoders.hpp"
#include "media/fit.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using ::testing::HasSubstr;

class Goldens {
 public:
  Goldens() {
    const char* other = std::getenv("LOOM_PICTURES_GOLDEN");
    const std::string own = loom_test::source_path("tests/media/golden/pictures.npz");
    file_ = ArrayFile::open(other != nullptr ? std::string(other) : own).or_exit();
    count_ = array_i32(find("count")).or_exit()[0];
  }
  int32_t count() const { return count_; }
  ArrayView find(const std::string& name) { return file_.find(name).or_exit(); }
  std::vector<std::byte> file(int32_t i) {
    const ArrayView view = find(cat("i", i));
    return {view.data.begin(), view.data.end()};
  }

 private:
  ArrayFile file_;
  int32_t count_ = 0;
};

class ImageSamples : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LOOM_WITHOUT_PICTURES
    GTEST_SKIP() << "this build has no libpng and libjpeg";
#endif
  }
};

TEST_F(ImageSamples, HaveThePixelsOfPillow) {
  Goldens goldens;
  for (int32_t i = 0; i < goldens.count(); ++i) {
    const std::vector<std::byte> bytes = goldens.file(i);
    ASSERT_TRUE(is_picture(bytes));
    const Result<Image> image = decode_picture(bytes, cat(i), {});
    ASSERT_TRUE(image.ok()) << image.error().str();
    const ArrayView want = goldens.find(cat("p", i));
    ASSERT_EQ(image->height, want.shape[0]) << i;
    ASSERT_EQ(image->width, want.shape[1]) << i;
    ASSERT_EQ(image->channels, want.shape[2]) << i;
    int worst = 0;
    for (size_t k = 0; k < image->pixels.size(); ++k)
      worst = std::max(worst, std::abs(image->pixels[k] - static_cast<int>(want.data[k])));
    EXPECT_EQ(worst, 0) << i;
  }
}

TEST_F(ImageSamples, MeetAnInputAsPillowResizesThem) {
  Goldens goldens;
  double worst = 0;
  for (int32_t i = 0; i < goldens.count(); ++i) {
    const Image image = decode_picture(goldens.file(i), cat(i), {}).or_exit();
    for (const std::string_view name : {"crop", "stretch", "pad"}) {
      const ArrayView want = goldens.find(cat(name, i));
      const std::vector<float> values = array_f32(want).or_exit();
      const PictureShape shape{want.shape[0], want.shape[1], want.shape[2]};
      std::vector<float> got(values.size());
      fit_picture(image, parse_picture_fit(name).or_exit(), shape, got);
      for (size_t k = 0; k < got.size(); ++k) {
        const double away = std::abs(static_cast<double>(got[k] - values[k]));
        worst = std::max(worst, away);
        ASSERT_LT(away, 2e-6) << i << " " << name << " value " << k;
      }
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

TEST_F(ImageSamples, ThatAreCutAnywhereAreRefusedInOneLine) {
  Goldens goldens;
  for (int32_t i = 0; i < std::min(goldens.count(), 12); ++i) {
    const std::vector<std::byte> integer = goldens.file(i);
    for (size_t size = 0; size + 12 < integer.size(); size += 1 + size / 16) {
      const std::vector<std::byte> cut(integer.begin(), integer.begin() + static_cast<long>(size));
      const Result<Image> image = decode_picture(cut, "a", {});
      if (image.ok()) continue;  // an end that carried no pixel
      EXPECT_THAT(image.error().str(), ::testing::StartsWith("a: "));
      EXPECT_EQ(image.error().str().find('\n'), std::string::npos);
    }
    const std::vector<std::byte> half(integer.begin(),
                                      integer.begin() + static_cast<long>(integer.size() / 2));
    EXPECT_FALSE(decode_picture(half, "a", {}).ok()) << i;
  }
}

TEST_F(ImageSamples, WithFlippedBitsNeverDoMoreThanFail) {
  Goldens goldens;
  for (int32_t i = 0; i < std::min(goldens.count(), 12); ++i) {
    std::vector<std::byte> bytes = goldens.file(i);
    const MemoryBudget budget(uint64_t{1} << 24);
    for (size_t at = 0; at < bytes.size(); at += 3) {
      const std::byte before = bytes[at];
      bytes[at] ^= std::byte{1} << (at % 8);
      const Result<Image> image = decode_picture(bytes, "a", budget);
      bytes[at] = before;
      if (!image.ok()) continue;
      EXPECT_EQ(static_cast<int64_t>(image->pixels.size()),
                image->width * image->height * image->channels);
    }
  }
}

// A header that claims sides of 60,000 pixels.
TEST_F(ImageSamples, ThatClaimMoreThanTheBudgetAreRefusedBeforeAnyMemoryIsTaken) {
  Goldens goldens;
  const MemoryBudget budget(uint64_t{64} << 20);
  for (int32_t i = 0; i < goldens.count(); ++i) {
    std::vector<std::byte> bytes = goldens.file(i);
    if (!is_jpeg(bytes)) continue;
    size_t at = 2;  // over the segments to the start of the frame
    while (static_cast<int>(bytes[at + 1]) != 0xc0 && static_cast<int>(bytes[at + 1]) != 0xc2)
      at += 2 + (static_cast<size_t>(bytes[at + 2]) << 8 | static_cast<size_t>(bytes[at + 3]));
    for (const size_t side : {at + 5, at + 7}) bytes[side] = std::byte{0xea};
    const Result<Image> image = decode_picture(bytes, "a", budget);
    ASSERT_FALSE(image.ok());
    EXPECT_THAT(image.error().str(), HasSubstr("pixels"));
    EXPECT_EQ(image.error().code, Code::out_of_memory);
    return;
  }
  FAIL() << "no JPEG among the goldens";
}

TEST_F(ImageSamples, OfOtherKindsAreRefusedByName) {
  const std::string text = "P7 2 2 255, and no more";
  const Result<Image> image = decode_picture(std::as_bytes(std::span(text)), "a.png", {});
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().str(), "a.png: at byte 0: this is neither a PNG nor a JPEG image");
}

}  // namespace
}  // namespace loom::core
