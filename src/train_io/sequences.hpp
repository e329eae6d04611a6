// Samples of different lengths, as arrays hold them: padded at the end, [samples, positions, ..],
// or packed, the positions of one sample after those of the other, [all positions, ..]. Private to
// the room.
#pragma once

#include <algorithm>
#include <vector>

#include "io/arrays/array.hpp"
#include "learn/data/dataset.hpp"

namespace loom::core {

// The positions of samples in an array, and their destinations: [samples][most].
class Spreading {
 public:
  // lengths: of the samples; most: the positions that the network takes. Errors: a length beyond.
  static Result<Spreading> create(std::vector<int32_t> lengths, int64_t most,
                                  const std::string& where);
  // Whether `array` has `each` values for every position, and not for the samples alone.
  bool spreads(const ArrayView& array, int64_t each) const;
  // The values of such an array, with zeros after the ends.
  template <class T>
  std::vector<T> spread(const std::vector<T>& values, const ArrayView& array, int64_t each) const {
    std::vector<T> out(lengths_.size() * static_cast<size_t>(most_ * each));
    const bool apart = padded(array, each);
    int64_t from = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const int64_t count = lengths_[i] * each;
      std::copy_n(values.begin() + from, count,
                  out.begin() + static_cast<int64_t>(i) * most_ * each);
      from += apart ? array.shape[1] * each : count;
    }
    return out;
  }
  int64_t samples() const { return std::ssize(lengths_); }
  const std::vector<int32_t>& lengths() const { return lengths_; }

 private:
  bool padded(const ArrayView& array, int64_t each) const;

  std::vector<int32_t> lengths_;
  int64_t most_ = 0, all_ = 0, longest_ = 0;
};

}  // namespace loom::core
