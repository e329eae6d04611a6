// The difference of two tensors of files.
#pragma once

#include <cstdint>
#include <string>

namespace loom {

// The difference of two tensors with the same name.
struct TensorDifference {
  std::string name;
  bool only_a = false, only_b = false;
  std::string dtype_a, dtype_b, shape_a, shape_b;
  int64_t count = 0;
  int64_t different = 0;  // values whose bits differ
  int64_t max_ulp = 0;    // in float32 steps
  double max_abs = 0;
  double relative = 0;  // RMS of the difference / RMS of the first tensor
  double cosine = 1;
  bool same_bytes = false;  // as stored
  bool comparable() const { return !only_a && !only_b && shape_a == shape_b; }
  bool equal() const {
    return comparable() && (same_bytes || (different == 0 && dtype_a != "text"));
  }
};

}  // namespace loom
