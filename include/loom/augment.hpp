// Augment: training samples that are changed anew in every epoch, by seed: see docs/training.md.
#pragma once

#include <string>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Pictures are [height, width] or [channels, height, width]; what comes from outside of one is the
// nearest pixel of its edge. 0: nothing. A picture is mirrored, turned and zoomed about its middle
// (bilinear), shifted; then its colours change; then it is mixed with another sample.
struct Augment {
  double flip = 0, flip_vertical = 0;  // probability of a mirrored picture
  double rotate = 0;                   // degrees, at most, either way; up to 180
  double scale = 0;                    // zoom by a factor from 1 - scale to 1 + scale; up to 0.9
  int64_t crop = 0;                    // pixels, at most, along both axes
  // Factors from 1 - value to 1 + value, of all values; of the distances from their mean; of three
  // channels from their grey.
  double brightness = 0, contrast = 0, saturation = 0;
  // Parameter of the Beta distribution of the share of the sample itself, up to 2: mixup of all
  // values, cutmix of a rectangle. Targets, or classes as a distribution, are mixed alike. Where
  // both are there, each sample is mixed in one way of the two.
  double mixup = 0, cutmix = 0;
};

// "flip,crop:2,rotate:10,mixup:0.2"; a name without a number has its usual one. Errors:
// invalid_argument.
LOOM_API Result<Augment> parse_augment(std::string_view text);
// The same the other way, "" where nothing happens.
LOOM_API std::string augment_text(const Augment& augment);

}  // namespace loom
#endif
