// Sums in double for this room: element i goes to virtual lane i mod 8. Each lane adds its elements
// ascending, and the lanes fold 8 -> 4 -> 2 -> 1. So sums have the same bits with any number of
// threads and any vector width.
#pragma once

#include <array>
#include <cstdint>

namespace loom::core {

class LaneSum {
 public:
  static constexpr int kLanes = 8;

  // Adds the products a[i] b[i], a[0] b[0] to lane 0. Vectors in pieces must have lengths that are
  // multiples of kLanes, except the last.
  template <class A, class B>
  void add_products(const A* a, const B* b, int64_t count) {
    const int64_t whole = count / kLanes * kLanes;
    for (int64_t i = 0; i < whole; i += kLanes) {
      for (int j = 0; j < kLanes; ++j)
        lanes_[static_cast<size_t>(j)] +=
            static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    }
    for (int64_t i = whole; i < count; ++i)
      lanes_[static_cast<size_t>(i - whole)] +=
          static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  double total() const {
    std::array<double, kLanes> fold = lanes_;
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) fold[j] += fold[j + half];
    }
    return fold[0];
  }

 private:
  std::array<double, kLanes> lanes_{};
};

// The cosine of two vectors by their dot product and squares. Two zero vectors are equal; a single
// one has similarity 0. sqrt(aa * bb) is exactly aa if both are the same vector.
inline double cosine_of(double ab, double aa, double bb) {
  if (aa == 0 || bb == 0) return aa == bb ? 1.0 : 0.0;
  const double cosine = ab / __builtin_sqrt(aa * bb);
  return cosine > 1 ? 1.0 : cosine < -1 ? -1.0 : cosine;
}

}  // namespace loom::core
