// The number type of most values of a model, which names a model of mixed types.
#pragma once

#include <array>

#include "dtype/dtype.hpp"

namespace loom::core {

class DTypeTally {
 public:
  void add(DType dtype, int64_t values) { counts_[static_cast<size_t>(dtype)] += values; }
  bool empty() const { return most() == DType::f64 && counts_[0] == 0; }
  // The type with the lowest id among equals.
  DType most() const {
    size_t most = 0;
    for (size_t i = 1; i < counts_.size(); ++i)
      if (counts_[i] > counts_[most]) most = i;
    return static_cast<DType>(most);
  }

 private:
  std::array<int64_t, 256> counts_{};
};

}  // namespace loom::core
