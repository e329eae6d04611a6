// Moves: what a layer says when it wants values elsewhere. A Walk names elements of a flat array in
// an order; move(x, from, y, to) copies what one walk names to where the other one does. Reshape,
// permute, slice, flip, expand, concatenation and padding are walks that were turned a little.
// Not here: which tensors there are, and arithmetic. Invariant: a walk names no element outside of
// the array that it was made for, as long as slices lie inside of their axes.
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

  // Axis k is the one that was axes[k].
  Walk permuted(std::span<const int> axes) const;
  // Elements start, start + by, .. of an axis, `count` of them; by may be negative.
  Walk sliced(int axis, int64_t start, int64_t count, int64_t by = 1) const;
  // Every element of an axis, the last one first.
  Walk flipped(int axis) const { return sliced(axis, extent[axis] - 1, extent[axis], -1); }
  // An axis of extent 1 that names its one element `count` times.
  Walk expanded(int axis, int64_t count) const;
  // An axis as two, the second one `inner` long; the walk has fewer than Shape::kMaxRank axes.
  Walk split(int axis, int64_t inner) const;
};

// y at `to` takes x at `from`; both walks have the same extents. The axes are as few as the steps
// allow. Whether all of y is written follows from the count.
CopyArgs move(const Tensor& x, const Walk& from, const Tensor& y, const Walk& to);

// All elements in their order: a reshape.
CopyArgs reshape(const Tensor& x, const Tensor& y);
// y's axis k is axis axes[k] of x, which has these extents.
CopyArgs permute(const Tensor& x, std::span<const int64_t> extents, std::span<const int> axes,
                 const Tensor& y);
// Axes of extent 1 of x are repeated to those of y; as many axes.
CopyArgs expand(const Tensor& x, std::span<const int64_t> from, const Tensor& y,
                std::span<const int64_t> to);
// x, as an array of `part` extents, becomes the part of y [whole] that begins at `start`: what
// concatenation and padding are made of.
CopyArgs place(const Tensor& x, std::span<const int64_t> part, const Tensor& y,
               std::span<const int64_t> whole, std::span<const int64_t> start);
// The other way: the part of x that begins at `start` and takes every `by`-th element.
CopyArgs slice(const Tensor& x, std::span<const int64_t> whole, std::span<const int64_t> start,
               std::span<const int64_t> by, const Tensor& y, std::span<const int64_t> part);

// The same copy with as few axes as its steps allow, ordered by the size of y's steps, which are
// all positive.
CopyArgs merged(const CopyArgs& args);

}  // namespace loom::core
