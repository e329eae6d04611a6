// Augmentation: training samples that change anew in every epoch. The change of a sample is a
// function of (seed, epoch, its index in the order of the epoch). So neither the batch size nor
// threads nor a resumed run change a bit. Images are [height, width] or [channels, height, width].
#pragma once

#include <span>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "learn/data/dataset.hpp"
#include "loom/training_options.hpp"

namespace loom::core {

// Shares of flips are probabilities. Where mixup and cutmix are both there, each sample is mixed in
// one way of the two. Targets are mixed by the same share.
struct AugmentSpec : loom::Augment {
  // How inputs were normalized: (x - shift) scale. Samples are changed as they were before.
  std::vector<float> shift = {}, factor = {};

  bool moves() const;  // needs images
  bool mixes() const { return mixup > 0 || cutmix > 0; }
  bool any() const;
};

class Augmenter {
 public:
  Augmenter() = default;
  // Errors: invalid_argument if the samples are not images, or cannot be mixed.
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
  void color(const Draws& draws, float* pixel_values) const;
  Status sample(const Dataset& data, std::span<const int64_t> order, int64_t epoch,
                int64_t position, std::vector<float>& own, std::vector<float>& other,
                float* to) const;

  AugmentSpec spec_;
  uint64_t seed_ = 0;
  int64_t channels_ = 1, height_ = 1, width_ = 1;  // of an image; else width_ values
};

}  // namespace loom::core
