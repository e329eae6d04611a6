// Augmentation: training samples that are changed anew in every epoch. What happens to a sample is
// a function of (seed, epoch, its place in the order of the epoch), so that neither the batch size
// nor threads nor a resumed run change a bit. Pictures are [height, width] or [channels, height,
// width].
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "learn/dataset.hpp"

namespace loom::core {

// 0 everywhere: nothing happens. In the order in which it is done to a picture: flips, turn and
// zoom about the middle (bilinear), shift; what comes from outside is the nearest pixel of the
// edge. Then colours, then mixing with another sample.
struct AugmentSpec {
  double flip = 0, flip_vertical = 0;  // probability of a mirrored picture
  double rotate = 0;                   // degrees, at most, either way
  double scale = 0;                    // zoom by a factor from 1 - scale to 1 + scale
  int64_t crop = 0;  // pixels, at most, along both axes: a crop of a padded picture
  // Factors from 1 - value to 1 + value: of all values; of the distance from their mean; of three
  // channels from their grey, 0.299 R + 0.587 G + 0.114 B.
  double brightness = 0, contrast = 0, saturation = 0;
  // Parameter of the Beta distribution of the share of the sample itself, up to 2: of all values
  // (mixup, Zhang et al., 2018), or outside of a rectangle (cutmix, Yun et al., 2019). Targets are
  // mixed by the same share. Where both are there, each sample is mixed in one way of the two.
  double mixup = 0, cutmix = 0;
  // How inputs were normalized: (x - shift) scale. Samples are changed as they were before.
  std::vector<float> shift = {}, factor = {};

  bool moves() const;  // needs a picture
  bool mixes() const { return mixup > 0 || cutmix > 0; }
  bool any() const;
};

// "flip,crop:2,rotate:10,mixup:0.2". Without a number: flip, flip_vertical 0.5, crop 2, rotate 10,
// scale, brightness, contrast, saturation 0.1, mixup 0.2, cutmix 1. Errors: invalid_argument.
Result<AugmentSpec> parse_augment(std::string_view text);
// The same the other way, with every number; "" where nothing happens.
std::string augment_text(const AugmentSpec& spec);
Status check_augment(const AugmentSpec& spec);

class Augmenter {
 public:
  Augmenter() = default;
  // Errors: invalid_argument where the samples are no pictures, or cannot be mixed.
  static Result<Augmenter> create(const AugmentSpec& spec, const Dataset& data, uint64_t seed);

  bool any() const { return spec_.any(); }
  bool mixes() const { return spec_.mixes(); }

  // Places [first, first + count) of the epoch (from 0), whose samples `order` names, to x.
  // Errors: those of reading samples that are not in memory.
  Status inputs(const Dataset& data, std::span<const int64_t> order, int64_t epoch, int64_t first,
                int64_t count, float* x, ThreadPool& pool) const;
  // With mixes(): their targets, `width` numbers each: mixed, or shares of classes.
  void targets(const Dataset& data, std::span<const int64_t> order, int64_t epoch, int64_t first,
               int64_t count, int64_t width, float* target) const;

 private:
  struct Mix {
    double share = 1;     // of the sample itself
    int64_t partner = 0;  // the other sample
    bool cut = false;     // a rectangle: [top, bottom) x [left, right)
    int64_t top = 0, bottom = 0, left = 0, right = 0;
  };
  class Draws;
  Mix mix(const Dataset& data, const Draws& draws) const;
  void show(const float* from, const Draws& draws, float* to) const;
  void move(const float* from, const Draws& draws, float* to) const;
  void turn(const float* from, const Draws& draws, float* to) const;
  void color(const Draws& draws, float* picture) const;
  Status sample(const Dataset& data, std::span<const int64_t> order, int64_t epoch, int64_t place,
                std::vector<float>& own, std::vector<float>& other, float* to) const;

  AugmentSpec spec_;
  uint64_t seed_ = 0;
  int64_t channels_ = 1, height_ = 1, width_ = 1;  // of a picture; else width_ values
};

}  // namespace loom::core
