#include "learn/data/augment.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kAugmentStream = uint64_t{1} << 52;
// Numbers that a place has for itself, and which of them mean what.
constexpr uint64_t kDrawsPerPosition = 256, kPartnerDraws = 16, kMixDraws = 32, kBetaDraws = 64;
enum Draw : uint64_t {
  kFlip,
  kFlipVertical,
  kShiftX,
  kShiftY,
  kTurn,
  kZoom,
  kBright,
  kContrast,
  kSaturate
};
enum MixDraw : uint64_t { kPartnerLow, kPartnerHigh, kWay, kCutX, kCutY };

// Draws a share from Beta(a, a) (Johnk, 1964). For u, v uniform in (0, 1), let x = u^(1/a) and y =
// v^(1/a). If x + y <= 1, x / (x + y) has that distribution. For a up to 2 at least a sixth of the
// pairs pass. If all 96 tries fail, which is nearly impossible, the share is a half.
template <class Uniform>
double beta_share(double a, const Uniform& uniform) {
  constexpr uint64_t kTries = (kDrawsPerPosition - kBetaDraws) / 2;
  for (uint64_t i = 0; i < kTries; ++i) {
    const double x = dmath::exp(dmath::log(uniform(kBetaDraws + 2 * i)) / a);
    const double y = dmath::exp(dmath::log(uniform(kBetaDraws + 2 * i + 1)) / a);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
  return 0.5;
}

}  // namespace

// The numbers of one place of an epoch.
class Augmenter::Draws {
 public:
  Draws(uint64_t seed, int64_t epoch, int64_t position)
      : rng_(seed, kAugmentStream + static_cast<uint64_t>(epoch)),
        first_(static_cast<uint64_t>(position) * kDrawsPerPosition) {}

  Draws partner() const {
    Draws other = *this;
    other.first_ += kPartnerDraws;
    return other;
  }
  uint64_t bits(uint64_t i) const { return rng_.bits(first_ + i); }
  // In (0, 1), never at an end.
  double uniform(uint64_t i) const { return (static_cast<double>(bits(i)) + 0.5) * 0x1p-32; }
  double within(uint64_t i, double most) const { return most * (2 * uniform(i) - 1); }
  // From -most to most.
  int64_t integer(uint64_t i, int64_t most) const {
    return static_cast<int64_t>(uniform(i) * static_cast<double>(2 * most + 1)) - most;
  }

 private:
  Rng rng_;
  uint64_t first_;
};

bool AugmentSpec::moves() const {
  return flip > 0 || flip_vertical > 0 || rotate > 0 || scale > 0 || crop > 0 || cutmix > 0 ||
         saturation > 0;
}

bool AugmentSpec::any() const {
  return moves() || brightness > 0 || contrast > 0 || mixup > 0;
}

Result<Augmenter> Augmenter::create(const AugmentSpec& spec, const Dataset& data, uint64_t seed) {
  Augmenter out;
  out.spec_ = spec;
  out.seed_ = seed;
  if (!spec.any()) return out;
  const Shape& sample = data.sample;
  if (!data.has_numbers()) return invalid("augmentation changes numbers; these inputs are ids");
  out.width_ = sample.rank() == 0 ? 1 : sample.count();
  const bool is_image = sample.rank() == 2 || sample.rank() == 3;
  if (spec.moves() && !is_image) {
    return invalid(
        cat("augmentation of images needs samples [height, width] or [channels, height, "
            "width]; these are ",
            sample.str()));
  }
  if (is_image) {
    out.channels_ = sample.rank() == 3 ? sample[0] : 1;
    out.height_ = sample[sample.rank() - 2];
    out.width_ = sample.last();
  }
  if (spec.saturation > 0 && out.channels_ != 3)
    return invalid(
        cat("augmentation saturation needs three channels; these samples are ", sample.str()));
  if (spec.moves() && data.labels_per_sample() > 1)
    return invalid("augmentation moves images, but not their labels per position");
  if (spec.moves() || spec.mixes()) {
    if (!data.lengths.empty())
      return invalid("augmentation neither moves nor mixes samples that have lengths");
  }
  if (spec.mixes() && (!data.weights.empty() || data.ignored ||
                       (data.has_labels() && data.labels_per_sample() != 1)))
    return invalid("mixup and cutmix need one label or target per sample, none without weight");
  return out;
}

// Without a turn or zoom pixels are copied as they are.
void Augmenter::move(const float* from, const Draws& draws, float* to) const {
  const bool flip = draws.uniform(kFlip) < spec_.flip;
  const bool flip_vertical = draws.uniform(kFlipVertical) < spec_.flip_vertical;
  const int64_t dx = draws.integer(kShiftX, spec_.crop), dy = draws.integer(kShiftY, spec_.crop);
  for (int64_t c = 0; c < channels_; ++c) {
    for (int64_t y = 0; y < height_; ++y) {
      const int64_t up = std::clamp<int64_t>(y - dy, 0, height_ - 1);
      const float* row = from + (c * height_ + (flip_vertical ? height_ - 1 - up : up)) * width_;
      for (int64_t x = 0; x < width_; ++x) {
        const int64_t left = std::clamp<int64_t>(x - dx, 0, width_ - 1);
        *to++ = row[flip ? width_ - 1 - left : left];
      }
    }
  }
}

// Every pixel asks where it comes from: back by the shift, the turn and the zoom, then the flips.
void Augmenter::turn(const float* from, const Draws& draws, float* to) const {
  const double angle = draws.within(kTurn, spec_.rotate) * (3.14159265358979323846 / 180);
  const double zoom = 1 + draws.within(kZoom, spec_.scale);
  const double cosine = dmath::cos(angle) / zoom, sine = dmath::sin(angle) / zoom;
  const double across = draws.uniform(kFlip) < spec_.flip ? -1 : 1;
  const double down = draws.uniform(kFlipVertical) < spec_.flip_vertical ? -1 : 1;
  const auto dx = static_cast<double>(draws.integer(kShiftX, spec_.crop));
  const auto dy = static_cast<double>(draws.integer(kShiftY, spec_.crop));
  const double mid_x = static_cast<double>(width_ - 1) / 2;
  const double mid_y = static_cast<double>(height_ - 1) / 2;
  for (int64_t y = 0; y < height_; ++y) {
    for (int64_t x = 0; x < width_; ++x) {
      const double u = static_cast<double>(x) - dx - mid_x, v = static_cast<double>(y) - dy - mid_y;
      const double at_x = std::clamp(mid_x + across * (cosine * u + sine * v), 0.0, 2 * mid_x);
      const double at_y = std::clamp(mid_y + down * (cosine * v - sine * u), 0.0, 2 * mid_y);
      const auto left = static_cast<int64_t>(at_x), top = static_cast<int64_t>(at_y);
      const int64_t right = std::min(left + 1, width_ - 1), low = std::min(top + 1, height_ - 1);
      const double fx = at_x - static_cast<double>(left), fy = at_y - static_cast<double>(top);
      for (int64_t c = 0; c < channels_; ++c) {
        const float* plane = from + c * height_ * width_;
        const auto pixel = [&](int64_t row, int64_t col) {
          return static_cast<double>(plane[row * width_ + col]);
        };
        const double upper = pixel(top, left) + fx * (pixel(top, right) - pixel(top, left));
        const double lower = pixel(low, left) + fx * (pixel(low, right) - pixel(low, left));
        to[(c * height_ + y) * width_ + x] = static_cast<float>(upper + fy * (lower - upper));
      }
    }
  }
}

void Augmenter::color(const Draws& draws, float* pixel_values) const {
  const int64_t pixels = height_ * width_, count = channels_ * pixels;
  if (spec_.brightness > 0) {
    const double factor = 1 + draws.within(kBright, spec_.brightness);
    for (int64_t i = 0; i < count; ++i)
      pixel_values[i] = static_cast<float>(static_cast<double>(pixel_values[i]) * factor);
  }
  if (spec_.contrast > 0) {
    const double factor = 1 + draws.within(kContrast, spec_.contrast);
    double mean = 0;
    for (int64_t i = 0; i < count; ++i) mean += static_cast<double>(pixel_values[i]);
    mean /= static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i)
      pixel_values[i] =
          static_cast<float>(mean + (static_cast<double>(pixel_values[i]) - mean) * factor);
  }
  if (spec_.saturation <= 0) return;
  const double factor = 1 + draws.within(kSaturate, spec_.saturation);
  for (int64_t i = 0; i < pixels; ++i) {
    const double grey = 0.299 * static_cast<double>(pixel_values[i]) +
                        0.587 * static_cast<double>(pixel_values[pixels + i]) +
                        0.114 * static_cast<double>(pixel_values[2 * pixels + i]);
    for (int64_t c = 0; c < 3; ++c) {
      float& value = pixel_values[c * pixels + i];
      value = static_cast<float>(grey + (static_cast<double>(value) - grey) * factor);
    }
  }
}

// One sample as it was before it was normalized, changed, and normalized again.
void Augmenter::show(const float* from, const Draws& draws, float* to) const {
  const auto count = static_cast<size_t>(channels_ * height_ * width_);
  std::vector<float> plain(from, from + count);
  for (size_t i = 0; i < spec_.shift.size(); ++i)
    plain[i] = plain[i] / spec_.factor[i] + spec_.shift[i];
  if (spec_.rotate > 0 || spec_.scale > 0) {
    turn(plain.data(), draws, to);
  } else if (spec_.flip > 0 || spec_.flip_vertical > 0 || spec_.crop > 0) {
    move(plain.data(), draws, to);
  } else {
    std::copy(plain.begin(), plain.end(), to);
  }
  color(draws, to);
  for (size_t i = 0; i < spec_.shift.size(); ++i)
    to[i] = (to[i] - spec_.shift[i]) * spec_.factor[i];
}

// The rectangle covers the share that its sample loses, around a random position. It is clipped at
// the border of the image, and the share follows the clipped size.
Augmenter::Mix Augmenter::mix(const Dataset& data, const Draws& draws) const {
  Mix m;
  const auto uniform = [&](uint64_t i) { return draws.uniform(i); };
  const uint64_t wide =
      (draws.bits(kMixDraws + kPartnerHigh) << 32) | draws.bits(kMixDraws + kPartnerLow);
  m.partner = static_cast<int64_t>(wide % static_cast<uint64_t>(data.samples));
  const bool both = spec_.mixup > 0 && spec_.cutmix > 0;
  m.cut = both ? uniform(kMixDraws + kWay) < 0.5 : spec_.cutmix > 0;
  m.share = beta_share(m.cut ? spec_.cutmix : spec_.mixup, uniform);
  if (!m.cut) return m;
  const double side = std::sqrt(1 - m.share);
  const auto piece = [&](uint64_t draw, int64_t extent, int64_t& begin, int64_t& end) {
    const auto half = static_cast<int64_t>(side * static_cast<double>(extent)) / 2;
    const auto middle = static_cast<int64_t>(uniform(draw) * static_cast<double>(extent));
    begin = std::clamp<int64_t>(middle - half, 0, extent);
    end = std::clamp<int64_t>(middle + half, 0, extent);
  };
  piece(kMixDraws + kCutY, height_, m.top, m.bottom);
  piece(kMixDraws + kCutX, width_, m.left, m.right);
  const auto cut = static_cast<double>((m.bottom - m.top) * (m.right - m.left));
  m.share = 1 - cut / static_cast<double>(height_ * width_);
  return m;
}

// own, other: places for a sample as it is read, and for the one that it is mixed with.
Status Augmenter::sample(const Dataset& data, std::span<const int64_t> order, int64_t epoch,
                         int64_t position, std::vector<float>& own, std::vector<float>& other,
                         float* to) const {
  const int64_t count = channels_ * height_ * width_;
  const Draws draws(seed_, epoch, position);
  LOOM_TRY(data.read_inputs(order[static_cast<size_t>(position)], own.data()));
  show(own.data(), draws, to);
  if (!mixes()) return {};
  const Mix m = mix(data, draws);
  LOOM_TRY(data.read_inputs(m.partner, own.data()));
  show(own.data(), draws.partner(), other.data());
  const double share = m.share;
  for (int64_t i = 0; i < count && !m.cut; ++i) {
    to[i] = static_cast<float>(share * static_cast<double>(to[i]) +
                               (1 - share) * static_cast<double>(other[static_cast<size_t>(i)]));
  }
  for (int64_t c = 0; c < channels_ && m.cut; ++c) {
    for (int64_t y = m.top; y < m.bottom; ++y) {
      const int64_t row = (c * height_ + y) * width_;
      std::copy(other.data() + row + m.left, other.data() + row + m.right, to + row + m.left);
    }
  }
  return {};
}

Status Augmenter::inputs(const Dataset& data, std::span<const int64_t> order, int64_t epoch,
                         int64_t first, int64_t count, float* x, ThreadPool& pool) const {
  const int64_t each = channels_ * height_ * width_;
  std::vector<Status> done(static_cast<size_t>(count));
  pool.run([&](int lane, int lanes) {
    std::vector<float> own(static_cast<size_t>(each)), other(own.size());
    for (int64_t i = lane; i < count; i += lanes)
      done[static_cast<size_t>(i)] =
          sample(data, order, epoch, first + i, own, other, x + i * each);
  });
  for (const Status& status : done) LOOM_TRY(status);
  return {};
}

void Augmenter::targets(const Dataset& data, std::span<const int64_t> order, int64_t epoch,
                        int64_t first, int64_t count, int64_t width, float* target) const {
  std::fill_n(target, count * width, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = order[static_cast<size_t>(first + i)];
    const Mix m = mix(data, Draws(seed_, epoch, first + i));
    float* row = target + i * width;
    if (data.has_labels()) {
      const int32_t mine = data.labels[static_cast<size_t>(own)];
      const int32_t theirs = data.labels[static_cast<size_t>(m.partner)];
      row[mine] = static_cast<float>(mine == theirs ? 1.0 : m.share);
      if (mine != theirs) row[theirs] = static_cast<float>(1 - m.share);
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      const auto a = static_cast<double>(data.targets[static_cast<size_t>(own * width + j)]);
      const auto b = static_cast<double>(data.targets[static_cast<size_t>(m.partner * width + j)]);
      row[j] = static_cast<float>(m.share * a + (1 - m.share) * b);
    }
  }
}

}  // namespace loom::core
