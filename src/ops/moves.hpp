// Moves: how a layer copies values to other locations. A Walk enumerates elements of a flat array.
// move(x, from, y, to) copies the elements of one walk to those of the other. Reshape, permute,
// slice, flip, expand, concatenation and padding are variations of walks. Tensors and arithmetic
// are not part of it. Invariant: a walk stays inside its array, if slices stay inside their axes.
#pragma once

#include <span>

#include "ops/args.hpp"

namespace loom::core {

// Elements first + sum_k i_k step[k] for i_k < extent[k], the last axis fastest.
struct Walk {
  int rank = 0;
  int64_t extent[Shape::kMaxRank] = {}, step[Shape::kMaxRank] = {};
  int64_t first = 0;

  Walk() = default;
  // All elements of a row-major array.
  explicit Walk(const Shape& shape);
  explicit Walk(std::span<const int64_t> extents);

  // Axis k of the result is axis axes[k].
  Walk permuted(std::span<const int> axes) const;
  // Elements start, start + by, .. of an axis, `count` of them; by may be negative.
  Walk sliced(int axis, int64_t start, int64_t count, int64_t by = 1) const;
  // Every element of an axis, in reverse order.
  Walk flipped(int axis) const { return sliced(axis, extent[axis] - 1, extent[axis], -1); }
  // An axis of extent 1 that repeats its one element `count` times.
  Walk expanded(int axis, int64_t count) const;
  // An axis as two, the second one `inner` long; the walk has fewer than Shape::kMaxRank axes.
  Walk split(int axis, int64_t inner) const;
};

// Copies x at `from` to y at `to`; both walks have the same extents. Merges axes if the steps allow
// it. The count determines whether all of y is written.
CopyArgs move(const Tensor& x, const Walk& from, const Tensor& y, const Walk& to);

// All elements in their order: a reshape.
CopyArgs reshape(const Tensor& x, const Tensor& y);
// y's axis k is axis axes[k] of x, which has these extents.
CopyArgs permute(const Tensor& x, std::span<const int64_t> extents, std::span<const int> axes,
                 const Tensor& y);
// Repeats axes of extent 1 of x to those of y; both have the same number of axes.
CopyArgs expand(const Tensor& x, std::span<const int64_t> from, const Tensor& y,
                std::span<const int64_t> to);
// x, as an array of `part` extents, becomes the part of y [whole] that begins at `start`. This is
// the basis of concatenation and padding.
CopyArgs copy_into(const Tensor& x, std::span<const int64_t> part, const Tensor& y,
                   std::span<const int64_t> whole, std::span<const int64_t> start);
// The reverse: the part of x that begins at `start` and takes every `by`-th element.
CopyArgs slice(const Tensor& x, std::span<const int64_t> whole, std::span<const int64_t> start,
               std::span<const int64_t> by, const Tensor& y, std::span<const int64_t> part);

// The same copy with the fewest axes that its steps allow, ordered by the size of y's steps, which
// are all positive.
CopyArgs merged(const CopyArgs& args);

}  // namespace loom::core
