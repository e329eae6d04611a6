// Elements in other places, by operators that no network has constants of. See elementwise.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

// A cache of keys or values, into which an update is written from a place on.
Status tensor_scatter(const Call& c) {
  const Value &x = c.value(0), &update = c.value(1);
  LOOM_TRY(c.same_type(0, 1));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -2), x.rank()));
  const auto a = static_cast<size_t>(axis);
  const std::string mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.bad("mode must be linear or circular");
  Dims want = x.dims;
  if (axis == 0 || update.rank() != x.rank()) return c.bad("an update that does not fit");
  want[a] = update.dims[a];
  if (update.dims != want || want[a] > x.dims[a]) return c.bad("an update that does not fit");
  LOOM_ASSIGN(Dims from, c.int_list(2));
  if (!c.has(2)) from.assign(static_cast<size_t>(x.dims[0]), 0);
  if (static_cast<int64_t>(from.size()) != x.dims[0]) return c.bad("a place per sample is needed");
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  copy_blocks(x, y, 0, 0, x.count());
  const int64_t inner = product(x.dims, axis + 1, x.rank()), outer = product(x.dims, 0, axis);
  const int64_t n = want[a], room = x.dims[a];
  for (int64_t r = 0; r < outer; ++r) {
    const int64_t start = from[static_cast<size_t>(r / (outer / x.dims[0]))];
    if (start < 0 || start > room || (mode == "linear" && start + n > room))
      return c.bad("an update beyond the cache");
    for (int64_t i = 0; i < n; ++i)
      copy_blocks(update, y, (r * n + i) * inner, (r * room + (start + i) % room) * inner, inner);
  }
  return c.give(std::move(y));
}

Status compress(const Call& c) {
  Value x = c.value(0);
  if (c.value(1).type != OnnxType::boolean || c.value(1).rank() != 1)
    return c.bad("the condition must be a list of bool");
  int axis = 0;
  if (c.given("axis")) {
    LOOM_ASSIGN(axis, c.axis(c.integer("axis", 0), x.rank()));
  } else {
    x = x.view_as(Dims{x.count()});
  }
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  Dims kept;
  for (int64_t i = 0; i < c.value(1).count(); ++i) {
    if (c.value(1).data<uint8_t>()[i] == 0) continue;
    if (i >= n) return c.bad("a condition longer than its axis");
    kept.push_back(i);
  }
  Dims dims = x.dims;
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(kept.size());
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const int64_t outer = product(x.dims, 0, axis), inner = product(x.dims, axis + 1, x.rank());
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t i : kept) copy_blocks(x, y, (o * n + i) * inner, to++ * inner, inner);
  }
  return c.give(std::move(y));
}

// Columns of the last axis (ai.onnx.ml).
Status feature_extractor(const Call& c) {
  const Value& x = c.value(0);
  if (x.rank() < 1) return c.bad("takes one axis and more");
  LOOM_ASSIGN(const Dims at, indices(c, 1, x.dims.back()));
  Dims dims = x.dims;
  dims.back() = static_cast<int64_t>(at.size());
  if (x.rank() == 1) dims.insert(dims.begin(), 1);
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const int64_t rows = product(x.dims, 0, x.rank() - 1);
  int64_t to = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (const int64_t i : at) copy_blocks(x, y, r * x.dims.back() + i, to++, 1);
  }
  return c.give(std::move(y));
}

Status center_crop_pad(const Call& c) {
  Value x = c.value(0);
  LOOM_ASSIGN(const Dims shape, c.int_list(1));
  Dims list = c.list("axes");
  if (list.empty()) {
    list.resize(x.dims.size());
    std::iota(list.begin(), list.end(), 0);
  }
  LOOM_ASSIGN(const std::vector<int> axes, c.axes(list, x.rank()));
  if (axes.size() != shape.size()) return c.bad("an extent per axis is needed");
  LOOM_ASSIGN(const Value zero, zero_of(c, x.type));
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto a = static_cast<size_t>(axes[k]);
    if (shape[k] < 0) return c.bad("an extent below 0");
    const int64_t more = shape[k] - x.dims[a];
    const int64_t before = more >= 0 ? more / 2 : -(-more / 2);
    LOOM_ASSIGN(x, pad_axis(c, x, a, before, more - before, "constant", zero));
  }
  return c.give(std::move(x));
}

// [N, C, H, W] cut into squares of `block`, its axes reordered.
Status depth_to_space(const Call& c) {
  const Value& x = c.value(0);
  const int64_t b = c.integer("blocksize", 0);
  if (x.rank() != 4 || b < 1 || b > (1 << 20) || x.dims[1] % (b * b) != 0)
    return c.bad("takes [N, C, H, W] with C a multiple of blocksize^2");
  const std::string mode = c.text("mode", "DCR");
  const int64_t n = x.dims[0], ch = x.dims[1] / (b * b), h = x.dims[2], w = x.dims[3];
  const bool depth_first = mode == "DCR";
  if (!depth_first && mode != "CRD") return c.bad("mode must be DCR or CRD");
  const Value cut = x.view_as(depth_first ? Dims{n, b, b, ch, h, w} : Dims{n, ch, b, b, h, w});
  LOOM_ASSIGN(Value y, permuted(c, cut,
                                depth_first ? std::vector<int>{0, 3, 4, 1, 5, 2}
                                            : std::vector<int>{0, 1, 4, 2, 5, 3}));
  return c.give(y.view_as(Dims{n, ch, h * b, w * b}));
}

Status space_to_depth(const Call& c) {
  const Value& x = c.value(0);
  const int64_t b = c.integer("blocksize", 0);
  if (x.rank() != 4 || b < 1 || x.dims[2] % b != 0 || x.dims[3] % b != 0)
    return c.bad("takes [N, C, H, W] with H and W multiples of blocksize");
  const int64_t n = x.dims[0], ch = x.dims[1], h = x.dims[2] / b, w = x.dims[3] / b;
  const Value cut = x.view_as(Dims{n, ch, h, b, w, b});
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.bad("mode must be DCR or CRD");
  LOOM_ASSIGN(Value y, permuted(c, cut,
                                mode == "DCR" ? std::vector<int>{0, 3, 5, 1, 2, 4}
                                              : std::vector<int>{0, 1, 3, 5, 2, 4}));
  return c.give(y.view_as(Dims{n, ch * b * b, h, w}));
}

Status reverse_sequence(const Call& c) {
  const Value& x = c.value(0);
  if (x.rank() < 2) return c.bad("takes two axes and more");
  LOOM_ASSIGN(const int time, c.axis(c.integer("time_axis", 0), x.rank()));
  LOOM_ASSIGN(const int batch, c.axis(c.integer("batch_axis", 1), x.rank()));
  LOOM_ASSIGN(const Dims lengths, c.int_list(1));
  const auto t = static_cast<size_t>(time), b = static_cast<size_t>(batch);
  if (t == b || static_cast<int64_t>(lengths.size()) != x.dims[b])
    return c.bad("a length per sample is needed");
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  const Dims steps = steps_of(x.dims);
  for (int64_t s = 0; s < x.dims[b]; ++s) {
    const int64_t n = lengths[static_cast<size_t>(s)];
    if (n < 0 || n > x.dims[t]) return c.bad("a length beyond the axis");
    Move m{x.dims, steps, steps, s * steps[b], s * steps[b]};
    m.dims[b] = 1;
    move(c, x, y, m);  // what stays; the rest is written over
    if (n == 0) continue;
    m.dims[t] = n;
    m.x_steps[t] = -steps[t];
    m.x_first += (n - 1) * steps[t];
    move(c, x, y, m);
  }
  return c.give(std::move(y));
}

constexpr Operator kRearrange[] = {
    {"", "CenterCropPad", center_crop_pad, "aa axes"},
    {"", "DepthToSpace", depth_to_space, {}},
    {"", "SpaceToDepth", space_to_depth, {}},
    {"", "ReverseSequence", reverse_sequence, "aa batch_axis time_axis"},
    {"", "TensorScatter", tensor_scatter, "aa?a axis mode"},
    {"", "Compress", compress, "aa axis"},
    {"ai.onnx.ml", "ArrayFeatureExtractor", feature_extractor, "aa"},
};

}  // namespace

std::span<const Operator> rearrange_operators() {
  return kRearrange;
}

}  // namespace loom::core::evaluate
