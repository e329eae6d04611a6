#include "ops/moves.hpp"

#include <cstdlib>
#include <utility>

namespace loom::core {

namespace {

Shape shape_of(std::span<const int64_t> extents) {
  Shape shape;
  for (size_t k = extents.size(); k-- > 0;) shape = shape.after(extents[k]);
  return shape;
}

void take_axis(CopyArgs& to, int k, const CopyArgs& from, int axis) {
  to.extent[k] = from.extent[axis];
  to.x_step[k] = from.x_step[axis];
  to.y_step[k] = from.y_step[axis];
}

// Reverses axis k so that its step of y is positive.
void turn_axis(CopyArgs& args, int k) {
  if (args.y_step[k] >= 0) return;
  args.x_first += (args.extent[k] - 1) * args.x_step[k];
  args.y_first += (args.extent[k] - 1) * args.y_step[k];
  args.x_step[k] = -args.x_step[k];
  args.y_step[k] = -args.y_step[k];
}

}  // namespace

Walk::Walk(const Shape& shape) : rank(shape.rank()) {
  int64_t stride = 1;
  for (int k = rank - 1; k >= 0; --k) {
    extent[k] = shape[k];
    step[k] = stride;
    stride *= shape[k];
  }
}

Walk::Walk(std::span<const int64_t> extents) : Walk(shape_of(extents)) {}

Walk Walk::permuted(std::span<const int> axes) const {
  Walk to = *this;
  for (int k = 0; k < rank; ++k) {
    const int axis = axes[static_cast<size_t>(k)];
    to.extent[k] = extent[axis];
    to.step[k] = step[axis];
  }
  return to;
}

Walk Walk::sliced(int axis, int64_t start, int64_t count, int64_t by) const {
  Walk to = *this;
  to.first += start * step[axis];
  to.extent[axis] = count;
  to.step[axis] = step[axis] * by;
  return to;
}

Walk Walk::expanded(int axis, int64_t count) const {
  Walk to = *this;
  to.extent[axis] = count;
  to.step[axis] = 0;
  return to;
}

Walk Walk::split(int axis, int64_t inner) const {
  Walk to = *this;
  ++to.rank;
  for (int k = rank; k > axis + 1; --k) {
    to.extent[k] = extent[k - 1];
    to.step[k] = step[k - 1];
  }
  to.extent[axis + 1] = inner;
  to.step[axis + 1] = step[axis];
  to.extent[axis] = extent[axis] / inner;
  to.step[axis] = step[axis] * inner;
  return to;
}

CopyArgs move(const Tensor& x, const Walk& from, const Tensor& y, const Walk& to) {
  CopyArgs args;
  args.x = x;
  args.y = y;
  args.rank = to.rank;
  for (int k = 0; k < to.rank; ++k) {
    args.extent[k] = to.extent[k];
    args.x_step[k] = from.step[k];
    args.y_step[k] = to.step[k];
  }
  args.x_first = from.first;
  args.y_first = to.first;
  args.whole = args.count() == y.shape.count();
  return merged(args);
}

CopyArgs reshape(const Tensor& x, const Tensor& y) {
  const Walk all(Shape{x.shape.count()});
  return move(x, all, y, all);
}

CopyArgs permute(const Tensor& x, std::span<const int64_t> extents, std::span<const int> axes,
                 const Tensor& y) {
  const Walk from = Walk(extents).permuted(axes);
  return move(x, from, y, Walk(std::span(from.extent, extents.size())));
}

CopyArgs expand(const Tensor& x, std::span<const int64_t> from, const Tensor& y,
                std::span<const int64_t> to) {
  Walk walk(from);
  for (int k = 0; k < walk.rank; ++k) {
    const int64_t count = to[static_cast<size_t>(k)];
    if (count != walk.extent[k]) walk = walk.expanded(k, count);
  }
  return move(x, walk, y, Walk(to));
}

CopyArgs copy_into(const Tensor& x, std::span<const int64_t> part, const Tensor& y,
                   std::span<const int64_t> whole, std::span<const int64_t> start) {
  Walk to(whole);
  for (int k = 0; k < to.rank; ++k) {
    to = to.sliced(k, start[static_cast<size_t>(k)], part[static_cast<size_t>(k)]);
  }
  return move(x, Walk(part), y, to);
}

CopyArgs slice(const Tensor& x, std::span<const int64_t> whole, std::span<const int64_t> start,
               std::span<const int64_t> by, const Tensor& y, std::span<const int64_t> part) {
  Walk from(whole);
  for (int k = 0; k < from.rank; ++k) {
    const auto axis = static_cast<size_t>(k);
    from = from.sliced(k, start[axis], part[axis], by[axis]);
  }
  return move(x, from, y, Walk(part));
}

CopyArgs merged(const CopyArgs& args) {
  CopyArgs out = args;
  if (args.count() == 0) return out;
  out.rank = 0;
  for (int k = 0; k < args.rank; ++k) {
    if (args.extent[k] == 1) continue;
    take_axis(out, out.rank, args, k);
    turn_axis(out, out.rank++);
  }
  // Insertion sort by step; there are few axes.
  for (int k = 1; k < out.rank; ++k) {
    const CopyArgs before = out;
    int to = k;
    for (; to > 0 && before.y_step[to - 1] < before.y_step[k]; --to) {
      take_axis(out, to, before, to - 1);
    }
    take_axis(out, to, before, k);
  }
  int last = 0;
  for (int k = 1; k < out.rank; ++k) {
    if (out.y_step[last] == out.y_step[k] * out.extent[k] &&
        out.x_step[last] == out.x_step[k] * out.extent[k]) {
      const int64_t outer = out.extent[last];
      take_axis(out, last, out, k);
      out.extent[last] *= outer;
    } else {
      take_axis(out, ++last, out, k);
    }
  }
  out.rank = std::min(out.rank, last + 1);
  for (int k = out.rank; k < Shape::kMaxRank; ++k) {
    out.extent[k] = out.x_step[k] = out.y_step[k] = 0;
  }
  return out;
}

}  // namespace loom::core
