// Elements by places that are values: every place is checked against its axis. See elementwise.hpp.
#include <algorithm>
#include <cstring>
#include <functional>

#include "onnx/operators/elementwise.hpp"

namespace loom::core::evaluate {

Result<Dims> indices(const Call& c, size_t i, int64_t n) {
  LOOM_ASSIGN(Dims list, c.int_list(i));
  for (int64_t& v : list) {
    if (v < -n || v >= n) return c.bad(cat("place ", v, " of ", n));
    if (v < 0) v += n;
  }
  return list;
}

void copy_blocks(const Value& x, Value& y, int64_t from, int64_t to, int64_t count) {
  const auto size = static_cast<size_t>(element_bytes(x.type));
  std::memcpy(y.data<std::byte>() + static_cast<size_t>(to) * size,
              x.data<std::byte>() + static_cast<size_t>(from) * size,
              static_cast<size_t>(count) * size);
}

namespace {

Dims gathered_dims(const Call& c, int axis) {
  const Value& x = c.value(0);
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), c.value(1).dims.begin(), c.value(1).dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return dims;
}

Result<Dims> gathered_shape(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  const Result<Dims> at = indices(c, 1, x.dims[static_cast<size_t>(axis)]);
  if (!at.ok()) return at.error();
  return gathered_dims(c, axis);
}

Status gather(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  LOOM_ASSIGN(const Dims at, indices(c, 1, n));
  LOOM_ASSIGN(Value y, c.make(x.type, gathered_dims(c, axis)));
  const int64_t outer = product(x.dims, 0, axis), inner = product(x.dims, axis + 1, x.rank());
  const auto count = static_cast<int64_t>(at.size());
  c.parallel(outer * count, 5 + 0.3 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      copy_blocks(x, y, (r / count * n + at[static_cast<size_t>(r % count)]) * inner, r * inner,
                  inner);
  });
  return c.give(std::move(y));
}

// The position of element i of `ids` in an array with the steps `steps`. The id replaces its own
// index along `axis`.
using ElementMove = std::function<void(int64_t, int64_t)>;
void each_element(const Dims& ids_dims, const Dims& steps, size_t axis, const Dims& ids,
                  const ElementMove& f) {
  Dims outer = steps;
  outer[axis] = 0;
  const SideBySide walk(ids_dims, {steps_of(ids_dims), outer});
  walk.run(0, walk.rows(), [&](const auto& starts, int64_t n, const auto& step) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = starts[0] + i * step[0];
      f(at, starts[1] + i * step[1] + ids[static_cast<size_t>(at)] * steps[axis]);
    }
  });
}

Result<int> element_axis(const Call& c, const Value& x, const Value& ids) {
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  if (ids.rank() != x.rank()) return c.bad("places must have the rank of the data");
  for (int a = 0; a < x.rank(); ++a) {
    const auto k = static_cast<size_t>(a);
    if (a != axis && ids.dims[k] > x.dims[k]) return c.bad("more places than the data has");
  }
  return axis;
}

Status gather_elements(const Call& c) {
  const Value &x = c.value(0), &ids = c.value(1);
  LOOM_ASSIGN(const int axis, element_axis(c, x, ids));
  const auto a = static_cast<size_t>(axis);
  LOOM_ASSIGN(const Dims at, indices(c, 1, x.dims[a]));
  LOOM_ASSIGN(Value y, c.make(x.type, ids.dims));
  if (y.count() > 0)
    each_element(ids.dims, steps_of(x.dims), a, at,
                 [&](int64_t i, int64_t from) { copy_blocks(x, y, from, i, 1); });
  return c.give(std::move(y));
}

// The rule for elements at one position: replace, or combine.
Result<Pair> reduction_of(const Call& c, bool& replaces) {
  const std::string how = c.text("reduction", "none");
  replaces = how == "none";
  if (replaces || how == "add") return Pair::add;
  if (how == "mul") return Pair::mul;
  if (how == "max") return Pair::max;
  if (how == "min") return Pair::min;
  return c.bad(cat("reduction '", printable(how), "'"));
}

template <class T>
T met(Pair op, T a, T b) {
  switch (op) {
    case Pair::mul: return static_cast<T>(a * b);
    case Pair::max: return a > b || a != a ? a : b;
    case Pair::min: return a < b || a != a ? a : b;
    default: return static_cast<T>(a + b);
  }
}

// y starts as the data; f(i, at) is called for each update i that goes to element `at`.
Status scattered(const Call& c, const std::function<void(const ElementMove&)>& each) {
  bool replaces = true;
  LOOM_ASSIGN(const Pair op, reduction_of(c, replaces));
  LOOM_TRY(c.same_type(0, 2));
  const Value& x = c.value(0);
  if (replaces) {
    LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
    copy_blocks(x, y, 0, 0, x.count());
    each([&](int64_t i, int64_t to) { copy_blocks(c.value(2), y, i, to, 1); });
    return c.give(std::move(y));
  }
  if (x.type == OnnxType::boolean) return c.bad("takes numbers");
  LOOM_ASSIGN(const Value wide, c.widened(0));
  LOOM_ASSIGN(const Value updates, c.widened(2));
  LOOM_ASSIGN(Value y, c.make(wide.type, x.dims));
  copy_blocks(wide, y, 0, 0, x.count());
  with_type(wide.type, [&]<class T>(T) {
    each([&](int64_t i, int64_t to) {
      T& at = y.data<T>()[to];
      at = met(op, at, updates.data<T>()[i]);
    });
  });
  return c.give_as(y, x.type);
}

Status scatter_elements(const Call& c) {
  const Value &x = c.value(0), &ids = c.value(1);
  LOOM_ASSIGN(const int axis, element_axis(c, x, ids));
  if (c.value(2).dims != ids.dims) return c.bad("an update per place is needed");
  const auto a = static_cast<size_t>(axis);
  LOOM_ASSIGN(const Dims at, indices(c, 1, x.dims[a]));
  return scattered(c, [&](const ElementMove& f) {
    if (!at.empty()) each_element(ids.dims, steps_of(x.dims), a, at, f);
  });
}

// Places of several axes: each row of the ids names a part of x. `first` axes before them are a
// batch of both.
struct Offsets {
  Dims offsets;  // of each row, in elements
  int64_t block = 1;
  int axes = 0;
};
Result<Offsets> places_of_rows(const Call& c, const Value& x, const Value& ids, int first) {
  LOOM_ASSIGN(const Dims list, c.int_list(1));
  Offsets p;
  if (ids.rank() < 1 || first >= ids.rank()) return c.bad("places must be rows");
  const int64_t k = ids.dims.back();
  if (k < 1 || first < 0 || first + k > x.rank()) return c.bad("rows of more places than axes");
  for (int a = 0; a < first; ++a) {
    if (ids.dims[static_cast<size_t>(a)] != x.dims[static_cast<size_t>(a)])
      return c.bad("batches that do not fit");
  }
  p.axes = first + static_cast<int>(k);
  p.block = product(x.dims, p.axes, x.rank());
  const Dims steps = steps_of(x.dims);
  const int64_t rows = product(ids.dims, 0, ids.rank() - 1);
  const int64_t batches = product(x.dims, 0, first);
  const int64_t batch_size = product(x.dims, first, x.rank());
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset = r / std::max<int64_t>(1, rows / std::max<int64_t>(1, batches)) * batch_size;
    for (int64_t i = 0; i < k; ++i) {
      const auto a = static_cast<size_t>(first + i);
      int64_t v = list[static_cast<size_t>(r * k + i)];
      if (v < -x.dims[a] || v >= x.dims[a]) return c.bad(cat("place ", v, " of ", x.dims[a]));
      if (v < 0) v += x.dims[a];
      offset += v * steps[a];
    }
    p.offsets.push_back(offset);
  }
  return p;
}

Status gather_nd(const Call& c) {
  const Value &x = c.value(0), &ids = c.value(1);
  const int64_t first = c.integer("batch_dims", 0);
  if (first < 0 || first > x.rank()) return c.bad("batch_dims beyond the axes");
  LOOM_ASSIGN(const Offsets p, places_of_rows(c, x, ids, static_cast<int>(first)));
  Dims dims(ids.dims.begin(), ids.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + p.axes, x.dims.end());
  LOOM_ASSIGN(Value y, c.make(x.type, std::move(dims)));
  int64_t to = 0;
  for (const int64_t from : p.offsets) copy_blocks(x, y, from, to++ * p.block, p.block);
  return c.give(std::move(y));
}

Status scatter_nd(const Call& c) {
  const Value &x = c.value(0), &ids = c.value(1);
  LOOM_ASSIGN(const Offsets p, places_of_rows(c, x, ids, 0));
  Dims want(ids.dims.begin(), ids.dims.end() - 1);
  want.insert(want.end(), x.dims.begin() + p.axes, x.dims.end());
  if (c.value(2).dims != want) return c.bad("updates that do not fit");
  return scattered(c, [&](const ElementMove& f) {
    for (size_t r = 0; r < p.offsets.size(); ++r) {
      for (int64_t i = 0; i < p.block; ++i)
        f(static_cast<int64_t>(r) * p.block + i, p.offsets[r] + i);
    }
  });
}

Status non_zero(const Call& c) {
  LOOM_ASSIGN(const Value x, cast(c.rt.memory, c.value(0), OnnxType::boolean));
  const int rank = std::max(1, x.rank());
  Dims found;
  const int64_t n = x.count();
  for (int64_t i = 0; i < n; ++i) {
    if (x.data<uint8_t>()[i] != 0) found.push_back(i);
  }
  const auto count = static_cast<int64_t>(found.size());
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, {x.rank() == 0 ? 0 : rank, count}));
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = found[static_cast<size_t>(k)];
    for (int a = x.rank(); a-- > 0;) {
      y.data<int64_t>()[a * count + k] = rest % x.dims[static_cast<size_t>(a)];
      rest /= x.dims[static_cast<size_t>(a)];
    }
  }
  return c.give(std::move(y));
}

Status one_hot(const Call& c) {
  const Value& ids = c.value(0);
  const Value& values = c.value(2);
  if (values.count() != 2) return c.bad("two values, off and on, are needed");
  LOOM_ASSIGN(const double depth, c.number(1, 0));
  if (!(depth >= 1 && depth < 1e12)) return c.bad("a depth that is out of range");
  const auto n = static_cast<int64_t>(depth);
  LOOM_ASSIGN(const Value at, c.as(0, OnnxType::i64));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -1), ids.rank() + 1));
  Dims dims = ids.dims;
  dims.insert(dims.begin() + axis, n);
  LOOM_ASSIGN(Value y, c.make(values.type, dims));
  fill(y, values);
  const int64_t inner = product(ids.dims, axis, ids.rank());
  for (int64_t i = 0; i < ids.count(); ++i) {
    int64_t v = at.data<int64_t>()[i];
    if (v < -n || v >= n) continue;
    if (v < 0) v += n;
    copy_blocks(values, y, 1, (i / inner * n + v) * inner + i % inner, 1);
  }
  return c.give(std::move(y));
}

constexpr Operator kGather[] = {
    {"", "Gather", gather, "Ai>A axis:i", "gather",
     Operator::folds | Operator::moves | Operator::picks, nullptr, gathered_shape},
    {"", "GatherElements", gather_elements, "11 Ai>A axis:i"},
    {"", "ScatterElements", scatter_elements, "aaa axis reduction"},
    {"", "Scatter", scatter_elements, "aaa axis"},
    {"", "GatherND", gather_nd, "11 Al>A|12 Al>A batch_dims:i"},
    {"", "ScatterND", scatter_nd, "aaa reduction"},
    {"", "NonZero", non_zero, "9 a>l", "", Operator::folds},
    {"", "OneHot", one_hot, "9 nnA>A axis:i"},
};

}  // namespace

std::span<const Operator> gather_operators() {
  return kGather;
}

}  // namespace loom::core::evaluate
