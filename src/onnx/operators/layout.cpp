// Elements in other places: every operator here is a few strided moves (call.hpp). See
// elementwise.hpp.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "onnx/operators/elementwise.hpp"

namespace loom::core::evaluate {

Result<Value> permuted(const Call& c, const Value& x, const std::vector<int>& order) {
  Move m;
  const Dims steps = steps_of(x.dims);
  for (const int a : order) {
    m.dims.push_back(x.dims[static_cast<size_t>(a)]);
    m.x_steps.push_back(steps[static_cast<size_t>(a)]);
  }
  m.y_steps = steps_of(m.dims);
  LOOM_ASSIGN(Value y, c.make(x.type, m.dims));
  move(c, x, y, m);
  return y;
}

namespace {

// Which axis of the input each axis of the output is.
Result<std::vector<int>> order_of(const Call& c) {
  const Value& x = c.value(0);
  Dims perm = c.list("perm");
  if (!c.given("perm")) {
    perm.resize(x.dims.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (perm.size() != x.dims.size()) return c.bad("perm must name every axis");
  return c.axes(perm, x.rank());
}

Result<Dims> transposed_shape(const Call& c) {
  LOOM_ASSIGN(const std::vector<int> order, order_of(c));
  Dims dims;
  for (const int a : order) dims.push_back(c.value(0).dims[static_cast<size_t>(a)]);
  return dims;
}

Status transpose(const Call& c) {
  LOOM_ASSIGN(const std::vector<int> order, order_of(c));
  LOOM_ASSIGN(Value y, permuted(c, c.value(0), order));
  return c.give(std::move(y));
}

Result<int> joined_axis(const Call& c) {
  return c.axis(c.integer("axis", 1), c.value(0).rank());
}

Result<Dims> joined_shape(const Call& c) {
  LOOM_ASSIGN(const int axis, joined_axis(c));
  const auto a = static_cast<size_t>(axis);
  Dims dims = c.value(0).dims;
  for (size_t i = 1; i < c.in.size(); ++i) {
    LOOM_TRY(c.same_type(0, i));
    Dims other = c.value(i).dims;
    if (other.size() != dims.size()) return c.bad("inputs of different ranks");
    const int64_t extent = other[a];
    other[a] = dims[a];
    if (other != dims) return c.bad("inputs that do not fit");
    dims[a] += extent;
  }
  return dims;
}

Status concat(const Call& c) {
  LOOM_ASSIGN(const int axis, joined_axis(c));
  const auto a = static_cast<size_t>(axis);
  LOOM_ASSIGN(const Dims dims, joined_shape(c));
  LOOM_ASSIGN(Value y, c.make(c.value(0).type, dims));
  const Dims steps = steps_of(dims);
  int64_t at = 0;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const Value& x = c.value(i);
    move(c, x, y, {x.dims, steps_of(x.dims), steps, 0, at * steps[a]});
    at += x.dims[a];
  }
  return c.give(std::move(y));
}

// The part that a Slice takes, without the steps of its output. Starts, ends, axes and steps are
// inputs, or before opset 10 attributes.
Result<Move> sliced(const Call& c) {
  const Value& x = c.value(0);
  Dims part[4] = {c.list("starts"), c.list("ends"), c.list("axes"), {}};
  for (size_t i = 0; i < 4; ++i) {
    if (!c.has(i + 1)) continue;
    LOOM_ASSIGN(part[i], c.whole_list(i + 1));
  }
  Dims &starts = part[0], &ends = part[1], &axes = part[2], &steps = part[3];
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return c.bad("starts, ends, axes and steps of different lengths");
  LOOM_ASSIGN(const std::vector<int> which, c.axes(axes, x.rank()));
  Move m{x.dims, steps_of(x.dims), {}, 0, 0};
  for (size_t i = 0; i < which.size(); ++i) {
    const auto a = static_cast<size_t>(which[i]);
    const int64_t n = x.dims[a], step = steps[i];
    if (step == 0 || step == INT64_MIN) return c.bad("a step of 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto clamped = [&](int64_t v) {
      return std::clamp<int64_t>(v < 0 ? v + n : v, low, high);
    };
    const int64_t start = clamped(starts[i]), end = clamped(ends[i]);
    // An end before the first place, going down, is written as below -n.
    const int64_t distance = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : -step;
    m.dims[a] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    m.x_first += start * m.x_steps[a];
    m.x_steps[a] *= m.dims[a] <= 1 ? 1 : step;
  }
  return m;
}

Result<Dims> sliced_shape(const Call& c) {
  LOOM_ASSIGN(const Move m, sliced(c));
  return m.dims;
}

Status slice(const Call& c) {
  LOOM_ASSIGN(Move m, sliced(c));
  m.y_steps = steps_of(m.dims);
  LOOM_ASSIGN(Value y, c.make(c.value(0).type, m.dims));
  move(c, c.value(0), y, m);
  return c.give(std::move(y));
}

Status split(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  const auto a = static_cast<size_t>(axis);
  Dims parts = c.list("split");
  if (c.has(1)) {
    LOOM_ASSIGN(parts, c.int_list(1));
  }
  if (parts.empty()) {
    const auto outputs = static_cast<int64_t>(c.out.size());
    const int64_t n = c.integer("num_outputs", outputs);
    if (n < 1 || n != outputs) return c.bad("num_outputs is not how many outputs it has");
    const int64_t each = (x.dims[a] + n - 1) / n;
    for (int64_t k = 0; k < n; ++k)
      parts.push_back(std::clamp<int64_t>(x.dims[a] - k * each, 0, each));
  }
  if (parts.size() != c.out.size()) return c.bad("as many parts as outputs are needed");
  int64_t at = 0;
  Dims dims = x.dims;
  const Dims steps = steps_of(x.dims);
  for (size_t k = 0; k < parts.size(); ++k) {
    if (parts[k] < 0 || parts[k] > x.dims[a] - at) return c.bad("parts beyond the axis");
    dims[a] = parts[k];
    LOOM_ASSIGN(Value y, c.make(x.type, dims));
    move(c, x, y, {dims, steps, steps_of(dims), at * steps[a], 0});
    at += parts[k];
    LOOM_TRY(c.give(std::move(y), k));
  }
  return at == x.dims[a] ? Status{} : c.bad("parts that are not the whole axis");
}

Result<Dims> expanded_shape(const Call& c) {
  LOOM_ASSIGN(Dims dims, c.whole_list(1));
  if (!broadcast(dims, c.value(0).dims)) return c.bad("a shape that does not fit");
  return dims;
}

Status expand(const Call& c) {
  LOOM_ASSIGN(const Dims dims, expanded_shape(c));
  LOOM_ASSIGN(Value y, c.make(c.value(0).type, dims));
  move(c, c.value(0), y, {dims, broadcast_steps(c.value(0).dims, dims), steps_of(dims)});
  return c.give(std::move(y));
}

Status tile(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const Dims repeats, c.int_list(1));
  if (repeats.size() != x.dims.size()) return c.bad("a repeat per axis is needed");
  Dims dims = x.dims;
  Move m;
  const Dims x_steps = steps_of(x.dims);
  for (size_t a = 0; a < dims.size(); ++a) {
    if (repeats[a] < 0 || __builtin_mul_overflow(dims[a], repeats[a], &dims[a]))
      return c.bad("a repeat that is out of range");
  }
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const Dims y_steps = steps_of(dims);
  for (size_t a = 0; a < dims.size(); ++a) {
    for (const bool outer : {true, false}) {
      m.dims.push_back(outer ? repeats[a] : x.dims[a]);
      m.x_steps.push_back(outer ? 0 : x_steps[a]);
      m.y_steps.push_back(outer ? y_steps[a] * x.dims[a] : y_steps[a]);
    }
  }
  move(c, x, y, m);
  return c.give(std::move(y));
}

// The index within an axis of n values that a padded index reads; -1 for the constant.
int64_t padded_index(int64_t i, int64_t n, std::string_view mode) {
  if (i >= 0 && i < n) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : n - 1;
  if (mode == "wrap") return ((i % n) + n) % n;
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1), at = ((i % period) + period) % period;
  return at < n ? at : period - at;
}

}  // namespace

Result<Value> pad_axis(const Call& c, const Value& x, size_t a, int64_t before, int64_t behind,
                       const std::string& mode, const Value& constant) {
  Dims dims = x.dims;
  dims[a] += before + behind;
  if (dims[a] < 0) return c.bad("pads that leave less than nothing");
  if (x.dims[a] == 0 && mode != "constant" && dims[a] > 0)
    return c.bad("nothing to repeat in an empty axis");
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const Dims x_steps = steps_of(x.dims), y_steps = steps_of(dims);
  if (mode == "constant") fill(y, constant);
  Dims layer = dims;
  for (int64_t i = 0; i < dims[a];) {
    const int64_t from = padded_index(i - before, x.dims[a], mode);
    int64_t run = 1;
    while (from >= 0 && i + run < dims[a] &&
           padded_index(i + run - before, x.dims[a], mode) == from + run)
      ++run;
    layer[a] = run;
    if (from >= 0) move(c, x, y, {layer, x_steps, y_steps, from * x_steps[a], i * y_steps[a]});
    i += run;
  }
  return y;
}

Result<Value> zero_of(const Call& c, OnnxType type) {
  LOOM_ASSIGN(Value zero, c.make(type, {}));
  fill_zero(zero);
  return zero;
}

namespace {

Status pad(const Call& c) {
  constexpr int64_t kMaxPad = int64_t{1} << 40;
  Value x = c.value(0);
  Dims pads = c.list(c.given("paddings") ? "paddings" : "pads");
  if (c.has(1)) {
    LOOM_ASSIGN(pads, c.int_list(1));
  }
  LOOM_ASSIGN(Dims list, c.int_list(3));
  if (!c.has(3)) {
    list.resize(x.dims.size());
    std::iota(list.begin(), list.end(), 0);
  }
  LOOM_ASSIGN(const std::vector<int> axes, c.axes(list, x.rank()));
  if (pads.size() != 2 * axes.size()) return c.bad("two pads per axis are needed");
  const std::string mode = c.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return c.not_done(cat("mode '", printable(mode), "'"));
  LOOM_ASSIGN(Value constant, zero_of(c, x.type));
  if (c.has(2)) {
    LOOM_TRY(c.same_type(0, 2));
    if (c.value(2).count() != 1) return c.bad("the constant must be one number");
    constant = c.value(2);
  } else if (c.given("value")) {
    LOOM_ASSIGN(Value given, c.make(OnnxType::f32, {}));
    *given.data<float>() = static_cast<float>(c.real("value", 0));
    LOOM_ASSIGN(constant, cast(c.rt.memory, given, x.type));
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t before = pads[k], behind = pads[k + axes.size()];
    if (std::max(std::abs(before), std::abs(behind)) > kMaxPad) return c.bad("too large a pad");
    if (before == 0 && behind == 0) continue;
    LOOM_ASSIGN(x, pad_axis(c, x, static_cast<size_t>(axes[k]), before, behind, mode, constant));
  }
  return c.give(std::move(x));
}

Status trilu(const Call& c) {
  const Value& x = c.value(0);
  if (x.rank() < 2) return c.bad("takes two axes and more");
  LOOM_ASSIGN(const int64_t k, c.whole_number(1, 0));
  const bool upper = c.integer("upper", 1) != 0;
  const int64_t cols = x.dims.back(), rows = x.dims[x.dims.size() - 2];
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  fill_zero(y);
  const int64_t count = cols == 0 ? 0 : x.count() / cols;
  const auto size = static_cast<size_t>(element_bytes(x.type));
  const int64_t shift = std::clamp<int64_t>(k, -rows, cols);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t diagonal = std::clamp<int64_t>(r % rows + shift + (upper ? 0 : 1), 0, cols);
    const int64_t begin = upper ? diagonal : 0, end = upper ? cols : diagonal;
    const size_t at = static_cast<size_t>(r * cols + begin) * size;
    std::memcpy(y.data<std::byte>() + at, x.data<std::byte>() + at,
                static_cast<size_t>(end - begin) * size);
  }
  return c.give(std::move(y));
}

constexpr uint16_t kPicks = Operator::folds | Operator::moves | Operator::picks;
constexpr Operator kLayout[] = {
    {"", "Transpose", transpose, "A>A perm:I", "transpose", kPicks, nullptr, transposed_shape},
    {"", "Concat", concat, "A+>A axis:i!", "concat", Operator::folds | Operator::moves, nullptr,
     joined_shape},
    {"", "Slice", slice, "A>A axes:I ends:I! starts:I!|10 AII?II>A", "slice", kPicks, nullptr,
     sliced_shape},
    {"", "Split", split, "2 A>A+ axis:i split:I|13 A?l>A+ axis:i|18 A?l>A+ axis:i num_outputs:i"},
    {"", "Expand", expand, "Al>A", "expand", kPicks, nullptr, expanded_shape},
    {"", "Tile", tile, "6 Al>A"},
    {"", "Pad", pad, "F paddings|2 F>F mode:s pads:I! value:f|11 Al?A>A mode:s|18 Al?Ai>A mode:s"},
    {"", "Trilu", trilu, "A?l>A upper:g", "", Operator::folds | Operator::moves},
};

}  // namespace

std::span<const Operator> layout_operators() {
  return kLayout;
}

}  // namespace loom::core::evaluate
