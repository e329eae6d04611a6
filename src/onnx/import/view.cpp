// Views: see values.hpp. A reshape is a new grouping of the axes of memory; where it cuts one
// of them, that axis is split in two.
#include <algorithm>

#include "base/numbers/checked.hpp"
#include "onnx/import/values.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxSeen = uint64_t{1} << 46;  // values of a view, repetitions counted

}  // namespace

OnnxView OnnxView::of(const std::vector<int64_t>& dims) {
  OnnxView v;
  for (const int64_t extent : dims) {
    v.axes.emplace_back();
    if (extent == 1) continue;
    v.axes.back().push_back(static_cast<int>(v.base.size()));
    v.base.push_back({extent, false});
  }
  return v;
}

std::vector<int64_t> OnnxView::dims() const {
  std::vector<int64_t> out;
  for (const std::vector<int>& axis : axes) {
    int64_t extent = 1;
    for (const int a : axis) extent *= base[static_cast<size_t>(a)].extent;
    out.push_back(extent);
  }
  return out;
}

bool OnnxView::plain() const {
  int next = 0;
  for (const std::vector<int>& axis : axes) {
    for (const int a : axis) {
      if (a != next++ || base[static_cast<size_t>(a)].repeated) return false;
    }
  }
  return next == static_cast<int>(base.size());
}

OnnxView OnnxView::permuted(const std::vector<int64_t>& order) const {
  OnnxView out = *this;
  for (size_t i = 0; i < order.size(); ++i) out.axes[i] = axes[static_cast<size_t>(order[i])];
  return out;
}

bool OnnxView::reshape(const std::vector<int64_t>& dims) {
  std::vector<int> rest;  // axes of memory in the order they are seen, last first
  for (const std::vector<int>& axis : axes) rest.insert(rest.end(), axis.begin(), axis.end());
  std::reverse(rest.begin(), rest.end());
  std::vector<Axis> memory = base;
  std::vector<std::vector<int>> seen;
  for (const int64_t dim : dims) {
    seen.emplace_back();
    int64_t left = dim;
    if (left < 1) return false;
    while (left > 1) {
      if (rest.empty()) return false;
      const int a = rest.back();
      const int64_t extent = memory[static_cast<size_t>(a)].extent;
      if (left % extent == 0) {
        rest.pop_back();
        left /= extent;
      } else if (extent % left == 0) {
        memory[static_cast<size_t>(a)].extent = left;
        memory.insert(memory.begin() + a + 1,
                      {extent / left, memory[static_cast<size_t>(a)].repeated});
        const auto shift = [a](int& other) { other += other > a ? 1 : 0; };
        std::for_each(rest.begin(), rest.end(), shift);
        for (std::vector<int>& axis : seen) std::for_each(axis.begin(), axis.end(), shift);
        rest.back() = a + 1;
        left = 1;
      } else {
        return false;
      }
      seen.back().push_back(a);
    }
  }
  if (!rest.empty()) return false;
  base = std::move(memory);
  axes = std::move(seen);
  return true;
}

bool OnnxView::expand(const std::vector<int64_t>& to) {
  const size_t rank = std::max(to.size(), axes.size());
  axes.insert(axes.begin(), rank - axes.size(), {});
  const std::vector<int64_t> have = dims();
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t axis = rank - to.size() + i;
    if (to[i] == 1 || to[i] == have[axis]) continue;
    if (have[axis] != 1 || to[i] < 1) return false;
    axes[axis].push_back(static_cast<int>(base.size()));
    base.push_back({to[i], true});
  }
  uint64_t count = 1;
  for (const Axis& a : base) {
    if (!checked_mul(count, static_cast<uint64_t>(a.extent), count) || count > kMaxSeen)
      return false;
  }
  return true;
}

OnnxView OnnxView::once(int axis, int64_t& repeats) const {
  OnnxView out = *this;
  repeats = 1;
  // Only a repetition right inside the axis: each of its values occurs `repeats` times in a row.
  std::vector<int>& inside = out.axes[static_cast<size_t>(axis)];
  if (!inside.empty() && base[static_cast<size_t>(inside.back())].repeated) {
    const int a = inside.back();
    repeats *= base[static_cast<size_t>(a)].extent;
    inside.pop_back();
    out.base.erase(out.base.begin() + a);
    for (std::vector<int>& list : out.axes) {
      for (int& other : list) other -= other > a ? 1 : 0;
    }
  }
  return out;
}

bool OnnxView::operator==(const OnnxView& other) const {
  const auto equal = [](const Axis& a, const Axis& b) {
    return a.extent == b.extent && a.repeated == b.repeated;
  };
  return axes == other.axes &&
         std::equal(base.begin(), base.end(), other.base.begin(), other.base.end(), equal);
}

}  // namespace loom::core
