// Augmentation: changes of an image against geometry and statistics, equal bits for all batch sizes
// and threads, and targets that are mixed like the inputs.
#include "learn/data/augment.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "loom/augment.hpp"

namespace loom::core {
namespace {

AugmentSpec spec_of(const std::string& text) {
  const Result<Augment> read = parse_augment(text);
  EXPECT_TRUE(read.ok()) << read.error().str();
  return read.ok() ? AugmentSpec{*read, {}, {}} : AugmentSpec{};
}

// Pictures whose value is `value(sample, channel, y, x)`.
template <class Value>
Dataset images(const Shape& sample, int64_t samples, const Value& value) {
  Dataset d;
  d.samples = samples;
  d.sample = sample;
  const int64_t channels = sample.rank() == 3 ? sample[0] : 1;
  const int64_t height = sample[sample.rank() - 2], width = sample.last();
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < height * width; ++i)
        d.inputs.push_back(static_cast<float>(value(s, c, i / width, i % width)));
    }
    d.labels.push_back(static_cast<int32_t>(s % 3));
  }
  d.classes = 3;
  return d;
}

std::vector<int64_t> in_order(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<float> shown(const AugmentSpec& spec, const Dataset& data, int64_t epoch = 0,
                         int64_t batch = 0, int threads = 1, uint64_t seed = 5) {
  ThreadPool pool(threads, true);
  const Result<Augmenter> augmenter = Augmenter::create(spec, data, seed);
  EXPECT_TRUE(augmenter.ok()) << augmenter.error().str();
  std::vector<float> out(data.inputs.size());
  if (!augmenter.ok()) return out;
  const std::vector<int64_t> order = in_order(data.samples);
  const int64_t each = static_cast<int64_t>(out.size()) / data.samples;
  const int64_t step = batch > 0 ? batch : data.samples;
  for (int64_t first = 0; first < data.samples; first += step) {
    const int64_t count = std::min(step, data.samples - first);
    float* to = out.data() + first * each;
    EXPECT_TRUE(augmenter->inputs(data, order, epoch, first, count, to, pool).ok());
  }
  return out;
}

double ramp(int64_t s, int64_t c, int64_t y, int64_t x) {
  return static_cast<double>(1000 * s + 100 * c + 10 * y + x);
}

TEST(Augment, WordsAreReadAndWrittenAlike) {
  const AugmentSpec spec = spec_of("flip,crop:3,rotate:12.5,mixup:0.4,saturation:0.25");
  EXPECT_EQ(spec.flip, 0.5);
  EXPECT_EQ(spec.crop, 3);
  EXPECT_EQ(augment_text(spec), augment_text(spec_of(augment_text(spec))));
  EXPECT_EQ(augment_text(AugmentSpec{}), "");
  EXPECT_FALSE(spec_of("").any());
}

TEST(Augment, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {{"flop", "did you mean 'augment.flip'?"},
                                                       {"rotate:x", "must be a number"},
                                                       {"rotate:181", "must be 0 to 180"},
                                                       {"mixup:2.5", "must be 0 to 2"},
                                                       {"crop:1.5", "must be an integer"},
                                                       {"crop:-1", "must be 0 to 65536"},
                                                       {"flip:nan", "must be 0 to 1"}};
  for (const auto& [text, message] : cases) {
    const Result<Augment> spec = parse_augment(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_NE(spec.error().str().find(message), std::string::npos) << spec.error().str();
  }
}

TEST(Augment, RefusesDataThatItCannotChange) {
  Dataset table = images(Shape{2, 2}, 4, ramp);
  table.sample = Shape{4};
  Dataset weighted = images(Shape{2, 2}, 4, ramp);
  weighted.weights = {1, 1, 2, 1};
  Dataset positions = images(Shape{2, 2}, 4, ramp);
  positions.labels.resize(16);
  const std::tuple<const char*, const Dataset*, const char*> cases[] = {
      {"rotate", &table, "needs samples [height, width]"},
      {"cutmix", &table, "needs samples [height, width]"},
      {"saturation", &weighted, "three channels"},
      {"mixup", &weighted, "one label or target per sample"},
      {"flip", &positions, "labels per position"}};
  for (const auto& [text, data, message] : cases) {
    const Result<Augmenter> made = Augmenter::create(spec_of(text), *data, 1);
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_NE(made.error().str().find(message), std::string::npos) << made.error().str();
  }
  EXPECT_TRUE(Augmenter::create(spec_of("mixup,brightness"), table, 1).ok());
}

TEST(Augment, MirrorsAndShiftsMoveWholePixels) {
  const Dataset data = images(Shape{2, 5, 7}, 300, ramp);
  const std::vector<float> mirrored = shown(spec_of("flip:1"), data);
  const std::vector<float> rotated = shown(spec_of("flip:1,flip_vertical:1"), data);
  const std::vector<float> moved = shown(spec_of("crop:2"), data);
  std::set<std::pair<int64_t, int64_t>> shifts;
  for (int64_t s = 0; s < data.samples; ++s) {
    const auto from = static_cast<size_t>(s * 70);
    // The middle of the image shows how far it was moved.
    const auto middle = static_cast<int64_t>(moved[from + 2 * 7 + 3]) % 100;
    const int64_t dy = 2 - middle / 10, dx = 3 - middle % 10;
    ASSERT_LE(std::abs(dy), 2);
    ASSERT_LE(std::abs(dx), 2);
    shifts.insert({dy, dx});
    for (int64_t i = 0; i < 70; ++i) {
      const int64_t c = i / 35, y = i % 35 / 7, x = i % 7;
      ASSERT_EQ(static_cast<double>(mirrored[from + static_cast<size_t>(i)]), ramp(s, c, y, 6 - x));
      ASSERT_EQ(static_cast<double>(rotated[from + static_cast<size_t>(i)]),
                ramp(s, c, 4 - y, 6 - x));
      ASSERT_EQ(static_cast<double>(moved[from + static_cast<size_t>(i)]),
                ramp(s, c, std::clamp<int64_t>(y - dy, 0, 4), std::clamp<int64_t>(x - dx, 0, 6)));
    }
  }
  EXPECT_EQ(shifts.size(), 25u);
}

TEST(Augment, HalfOfThePicturesIsMirrored) {
  const Dataset data = images(Shape{1, 2}, 4000, [](auto, auto, auto, int64_t x) { return x; });
  const std::vector<float> out = shown(spec_of("flip"), data);
  int64_t mirrored = 0;
  for (size_t i = 0; i < out.size(); i += 2) mirrored += out[i] == 1.0f ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(mirrored) / 4000, 0.5, 4 * 0.5 / std::sqrt(4000.0));
}

// Bilinear sampling keeps a linear function linear: its slope is turned and divided by the zoom.
TEST(Augment, TurnsAndZoomsALinearPictureAsGeometrySays) {
  const Dataset data = images(Shape{41, 41}, 200, [](auto, auto, int64_t y, int64_t x) {
    return 3.0 * static_cast<double>(x) - 2.0 * static_cast<double>(y);
  });
  const std::vector<float> out = shown(spec_of("rotate:25,scale:0.2"), data);
  const double length = std::hypot(3.0, 2.0), start = std::atan2(-2.0, 3.0);
  double least = 1e9, most = -1e9, near = 1e9, far = -1e9;
  for (int64_t s = 0; s < data.samples; ++s) {
    const float* p = out.data() + s * 41 * 41;
    const auto at = [&](int64_t y, int64_t x) { return static_cast<double>(p[y * 41 + x]); };
    const double across = at(20, 21) - at(20, 20), down = at(21, 20) - at(20, 20);
    const double zoom = length / std::hypot(across, down);
    double turn = (std::atan2(down, across) - start) * 180 / 3.14159265358979;
    if (turn < -180) turn += 360;
    least = std::min(least, turn), most = std::max(most, turn);
    near = std::min(near, zoom), far = std::max(far, zoom);
    ASSERT_NEAR(at(20, 20), 20, 1e-4);  // the middle stays
    for (int64_t y = 12; y < 29; ++y) {
      for (int64_t x = 12; x < 29; ++x) {
        const double want =
            at(20, 20) + across * static_cast<double>(x - 20) + down * static_cast<double>(y - 20);
        ASSERT_NEAR(at(y, x), want, 2e-4);
      }
    }
  }
  EXPECT_GT(least, -25.01);
  EXPECT_LT(least, -23.0);
  EXPECT_LT(most, 25.01);
  EXPECT_GT(most, 23.0);
  EXPECT_GT(near, 0.799);
  EXPECT_LT(near, 0.82);
  EXPECT_LT(far, 1.201);
  EXPECT_GT(far, 1.18);
}

TEST(Augment, ColoursKeepWhatTheyAreAbout) {
  const auto value = [](int64_t s, int64_t c, int64_t y, int64_t x) {
    return 0.1 + std::sin(static_cast<double>(7 * s + 5 * c + 3 * y + x));
  };
  const Dataset data = images(Shape{3, 4, 4}, 60, value);
  const std::vector<float> bright = shown(spec_of("brightness:0.3"), data);
  const std::vector<float> contrast = shown(spec_of("contrast:0.3"), data);
  const std::vector<float> faded = shown(spec_of("saturation:0.3"), data);
  for (size_t s = 0; s < 60; ++s) {
    const float* was = data.inputs.data() + s * 48;
    const double factor = static_cast<double>(bright[s * 48]) / static_cast<double>(was[0]);
    EXPECT_LE(std::abs(factor - 1), 0.3001);
    double mean = 0, mean_was = 0;
    for (size_t i = 0; i < 48; ++i) {
      EXPECT_NEAR(bright[s * 48 + i], factor * was[i], 1e-5);
      mean += static_cast<double>(contrast[s * 48 + i]) / 48;
      mean_was += static_cast<double>(was[i]) / 48;
    }
    EXPECT_NEAR(mean, mean_was, 1e-5);
    for (size_t i = 0; i < 16; ++i) {
      const auto grey = [&](const float* p) {
        return 0.299 * static_cast<double>(p[i]) + 0.587 * static_cast<double>(p[16 + i]) +
               0.114 * static_cast<double>(p[32 + i]);
      };
      EXPECT_NEAR(grey(faded.data() + s * 48), grey(was), 1e-5);
    }
  }
}

// A sample that is one number everywhere says how much of it is left.
TEST(Augment, MixesTargetsByTheShareOfTheInputs) {
  constexpr int64_t kSamples = 2000, kPixels = 64;
  for (const char* text : {"mixup:0.2", "mixup:1", "cutmix:1", "mixup:0.5,cutmix:0.5"}) {
    SCOPED_TRACE(text);
    Dataset data = images(Shape{8, 8}, kSamples, [](int64_t s, auto, auto, auto) { return s % 3; });
    const AugmentSpec spec = spec_of(text);
    const std::vector<float> x = shown(spec, data);
    const Augmenter augmenter = Augmenter::create(spec, data, 5).or_exit();
    std::vector<float> target(kSamples * 3);
    augmenter.targets(data, in_order(kSamples), 0, 0, kSamples, 3, target.data());
    // The same with targets that are numbers: the value of the image.
    Dataset numbers = data;
    numbers.labels.clear();
    numbers.outputs = 1;
    for (int64_t s = 0; s < kSamples; ++s) numbers.targets.push_back(static_cast<float>(s % 3));
    std::vector<float> mixed(kSamples);
    augmenter.targets(numbers, in_order(kSamples), 0, 0, kSamples, 1, mixed.data());
    int64_t changed = 0;
    for (int64_t s = 0; s < kSamples; ++s) {
      double mean = 0;
      for (int64_t i = 0; i < kPixels; ++i)
        mean += static_cast<double>(x[static_cast<size_t>(s * kPixels + i)]) / kPixels;
      const float* row = target.data() + s * 3;
      ASSERT_NEAR(row[0] + row[1] + row[2], 1.0, 1e-6);
      ASSERT_NEAR(row[1] + 2 * row[2], mean, 1e-5) << s;
      ASSERT_NEAR(mixed[static_cast<size_t>(s)], mean, 1e-5) << s;
      changed += row[s % 3] < 0.999f ? 1 : 0;
    }
    EXPECT_GT(changed, kSamples / 4);
  }
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(Augment, SharesOfMixupAreBetaDistributed) {
  constexpr int64_t kSamples = 20000;
  for (const double a : {0.2, 0.7, 1.0, 2.0}) {
    Dataset data;
    data.samples = kSamples;
    data.sample = Shape{1};
    data.outputs = 1;
    for (int64_t s = 0; s < kSamples; ++s) data.inputs.push_back(static_cast<float>(s < 10000));
    data.targets = data.inputs;
    AugmentSpec spec;
    spec.mixup = a;
    const std::vector<float> x = shown(spec, data);
    double mean = 0, square = 0, count = 0;
    for (int64_t s = 0; s < kSamples; ++s) {
      // With a partner of the other value the input is the share, or what it leaves.
      const double value = static_cast<double>(x[static_cast<size_t>(s)]);
      if (value == 0 || value == 1) continue;
      const double share = s < 10000 ? value : 1 - value;
      mean += share, square += (share - 0.5) * (share - 0.5), ++count;
    }
    ASSERT_GT(count, 8000);
    EXPECT_NEAR(mean / count, 0.5, 0.02) << a;
    EXPECT_NEAR(square / count, 1 / (4 * (2 * a + 1)), 0.006) << a;
  }
}

TEST(Augment, InputsAreChangedAsTheyWereBeforeTheyWereNormalized) {
  const auto value = [](int64_t s, auto, int64_t y, int64_t x) {
    return static_cast<double>(s + 5 * y + x);
  };
  const Dataset plain = images(Shape{4, 4}, 20, value);
  AugmentSpec spec = spec_of("rotate:30,crop:1,contrast:0.2,mixup:0.5");
  const std::vector<float> want = shown(spec, plain);
  Dataset data = plain;
  for (size_t i = 0; i < 16; ++i) {
    spec.shift.push_back(static_cast<float>(i) * 0.5f);
    spec.factor.push_back(1.0f / static_cast<float>(1 + i));
  }
  for (size_t i = 0; i < data.inputs.size(); ++i)
    data.inputs[i] = (data.inputs[i] - spec.shift[i % 16]) * spec.factor[i % 16];
  const std::vector<float> got = shown(spec, data);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i] / spec.factor[i % 16] + spec.shift[i % 16], want[i], 2e-4);
}

TEST(Augment, NeitherBatchesNorThreadsChangeABit) {
  std::mt19937 random(11);
  const char* words[] = {"flip",      "flip_vertical",  "crop:2",      "rotate:40",
                         "scale:0.3", "brightness:0.2", "contrast:.2", "saturation:0.2",
                         "mixup:0.3", "cutmix"};
  for (int trial = 0; trial < 40; ++trial) {
    std::string text;
    for (const char* word : words) {
      if (random() % 2 == 0) text += (text.empty() ? "" : ",") + std::string(word);
    }
    SCOPED_TRACE(text);
    const int64_t samples = 1 + static_cast<int64_t>(random() % 40);
    const Dataset data = images(Shape{3, 6, 5}, samples, ramp);
    const AugmentSpec spec = spec_of(text);
    const auto epoch = static_cast<int64_t>(random() % 100);
    const std::vector<float> want = shown(spec, data, epoch);
    for (const int64_t batch : {1, 3, 7}) {
      const std::vector<float> got = shown(spec, data, epoch, batch, static_cast<int>(batch));
      ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
    }
    if (!spec.any() || samples < 20) continue;
    EXPECT_NE(shown(spec, data, epoch + 1), want);
    EXPECT_NE(shown(spec, data, epoch, 0, 1, 6), want);
  }
}

}  // namespace
}  // namespace loom::core
