// Reductions over any axes, and running sums. Sums of floats are in double precision, lane by lane
// (rows.hpp), so bits depend on nothing else. Sums of integers wrap.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/numbers/dmath.hpp"
#include "onnx/operators/functions.hpp"
#include "onnx/operators/rows.hpp"

namespace loom::core::evaluate {

Result<Value> axes_last(const Call& c, const Value& x, const std::vector<int>& axes,
                        std::vector<int>& order) {
  order.clear();
  for (int a = 0; a < x.rank(); ++a) {
    if (std::ranges::find(axes, a) == axes.end()) order.push_back(a);
  }
  std::vector<int> last = axes;
  std::ranges::sort(last);
  order.insert(order.end(), last.begin(), last.end());
  if (std::ranges::is_sorted(order)) return x;
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

Result<Value> axes_back(const Call& c, const Value& y, const std::vector<int>& order) {
  if (std::ranges::is_sorted(order)) return y;
  Move m{y.dims, steps_of(y.dims), Dims(y.dims.size())};
  Dims dims(y.dims.size());
  for (size_t k = 0; k < order.size(); ++k) dims[static_cast<size_t>(order[k])] = y.dims[k];
  const Dims steps = steps_of(dims);
  for (size_t k = 0; k < order.size(); ++k) m.y_steps[k] = steps[static_cast<size_t>(order[k])];
  LOOM_ASSIGN(Value out, c.make(y.type, dims));
  move(c, y, out, m);
  return out;
}

Dims without(const Dims& dims, const std::vector<int>& axes, bool keep) {
  Dims out;
  for (size_t a = 0; a < dims.size(); ++a) {
    const bool gone = std::ranges::find(axes, static_cast<int>(a)) != axes.end();
    if (!gone)
      out.push_back(dims[a]);
    else if (keep)
      out.push_back(1);
  }
  return out;
}

namespace {

enum class Kind : uint8_t { sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, squares };

template <class T>
T reduced_real(Kind kind, const T* x, int64_t n) {
  const auto sum = [&](auto f) { return folded_sum<double>(x, n, f); };
  const auto same = [](double v) { return v; };
  switch (kind) {
    case Kind::sum: return static_cast<T>(sum(same));
    case Kind::mean: return static_cast<T>(sum(same) / static_cast<double>(n));
    case Kind::max:
    case Kind::min: return extreme_of(x, n, kind == Kind::max);
    case Kind::prod: {
      double all = 1;
      for (int64_t i = 0; i < n; ++i) all *= static_cast<double>(x[i]);
      return static_cast<T>(all);
    }
    case Kind::l1: return static_cast<T>(sum([](double v) { return std::abs(v); }));
    case Kind::l2: return static_cast<T>(std::sqrt(sum([](double v) { return v * v; })));
    case Kind::log_sum: return static_cast<T>(log_of(sum(same)));
    case Kind::log_sum_exp:
      return static_cast<T>(log_sum_exp(static_cast<double>(extreme_of(x, n, true)), x, n));
    default: return static_cast<T>(sum([](double v) { return v * v; }));
  }
}

template <class T>
T reduced_whole(Kind kind, const T* x, int64_t n) {
  uint64_t sum = 0, product = 1, squares = 0, size = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<uint64_t>(x[i]);
    sum += v;
    product *= v;
    squares += v * v;
    size += x[i] < T{} ? uint64_t{} - v : v;
  }
  switch (kind) {
    case Kind::sum: return static_cast<T>(sum);
    case Kind::mean: return n == 0 ? 0 : static_cast<T>(sum) / static_cast<T>(n);
    case Kind::max:
    case Kind::min: return extreme_of(x, n, kind == Kind::max);
    case Kind::prod: return static_cast<T>(product);
    case Kind::l1: return static_cast<T>(size);
    case Kind::squares: return static_cast<T>(squares);
    case Kind::l2: return static_cast<T>(std::sqrt(static_cast<double>(squares)));
    case Kind::log_sum: return static_cast<T>(log_of(static_cast<double>(static_cast<T>(sum))));
    default: {
      const auto most = static_cast<double>(extreme_of(x, n, true));
      return static_cast<T>(log_sum_exp(most, x, n));
    }
  }
}

// The neutral value, for a reduction of no values.
template <class T>
T of_nothing(Kind kind) {
  constexpr bool real = std::is_floating_point_v<T>;
  using L = std::numeric_limits<T>;
  switch (kind) {
    case Kind::prod: return 1;
    case Kind::max: return real ? -L::infinity() : L::lowest();
    case Kind::min: return real ? L::infinity() : L::max();
    case Kind::mean: return real ? L::quiet_NaN() : 0;
    case Kind::log_sum:
    case Kind::log_sum_exp: return real ? -L::infinity() : L::lowest();
    default: return 0;
  }
}

// Which axes: an input or an attribute; none given: all, or none where the node says so.
Result<std::vector<int>> reduced_axes(const Call& c, int rank) {
  Dims list = c.list("axes");
  if (c.has(1)) {
    LOOM_ASSIGN(list, c.int_list(1));
  }
  LOOM_ASSIGN(std::vector<int> axes, c.axes(list, rank));
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

Status reduce_by(const Call& c, Kind kind) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const std::vector<int> axes, reduced_axes(c, x.rank()));
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, axes, order));
  int64_t n = 1;
  for (const int a : axes) n *= x.dims[static_cast<size_t>(a)];
  LOOM_ASSIGN(Value y, c.make(x.type, without(x.dims, axes, c.integer("keepdims", 1) != 0)));
  with_type(x.type, [&]<class T>(T) {
    if (n == 0) {
      std::fill_n(y.data<T>(), y.count(), of_nothing<T>(kind));
      return;
    }
    each_row<T>(c, moved, n, y.data<T>(), [kind](const T* row, int64_t m) {
      if constexpr (std::is_floating_point_v<T>)
        return reduced_real(kind, row, m);
      else
        return reduced_whole(kind, row, m);
    });
  });
  return c.give_as(y, c.value(0).type);
}

template <Kind K>
Status reduce(const Call& c) {
  return reduce_by(c, K);
}

// The standard does not define a mean of no values.
Status mean_defined(const Call& c) {
  LOOM_ASSIGN(const std::vector<int> axes, reduced_axes(c, c.value(0).rank()));
  const auto is_empty = [&](int a) { return c.value(0).dims[static_cast<size_t>(a)] == 0; };
  return std::ranges::any_of(axes, is_empty) ? c.bad("a mean of no values") : Status{};
}

// Running sums or products along an axis.
Status run_along(const Call& c, bool sums) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const int64_t given, c.whole_number(1, 0));
  LOOM_ASSIGN(const int axis, c.axis(given, x.rank()));
  const bool before = c.integer("exclusive", 0) != 0, back = c.integer("reverse", 0) != 0;
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  const int64_t inner = product(x.dims, axis + 1, x.rank());
  const bool wraps = !is_real(x.type);  // and then a sign changes no bit
  with_type(wraps ? OnnxType::u64 : x.type, [&]<class T>(T) {
    for (int64_t o = 0, outer = product(x.dims, 0, axis); o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        T all = sums ? T{} : T{1};
        for (int64_t k = 0; k < n; ++k) {
          const int64_t at = (o * n + (back ? n - 1 - k : k)) * inner + i;
          const T next = sums ? all + x.data<T>()[at] : all * x.data<T>()[at];
          y.data<T>()[at] = before ? all : next;
          all = next;
        }
      }
    }
  });
  return c.give_as(y, c.value(0).type);
}

template <bool Sums>
Status running(const Call& c) {
  return run_along(c, Sums);
}

constexpr std::string_view kReduction =
    "G>G axes:I keepdims:g|18 G?l>G keepdims:g noop_with_empty_axes:g";
constexpr Operator kReduce[] = {
    {"", "ReduceSum", reduce<Kind::sum>,
     "G>G axes:I keepdims:g|13 G?l>G keepdims:g noop_with_empty_axes:g", "reduce sum"},
    {"", "ReduceMean", reduce<Kind::mean>, kReduction, "reduce mean", Operator::none, nullptr,
     nullptr, mean_defined},
    {"", "ReduceMax", reduce<Kind::max>, kReduction, "reduce max"},
    {"", "ReduceMin", reduce<Kind::min>, kReduction, "reduce min"},
    {"", "ReduceProd", reduce<Kind::prod>, kReduction, "", Operator::folds},
    {"", "ReduceL1", reduce<Kind::l1>, kReduction, "reduce l1"},
    {"", "ReduceL2", reduce<Kind::l2>, kReduction, "reduce l2"},
    {"", "ReduceLogSum", reduce<Kind::log_sum>, kReduction, "reduce log_sum"},
    {"", "ReduceLogSumExp", reduce<Kind::log_sum_exp>, kReduction, "reduce log_sum_exp"},
    {"", "ReduceSumSquare", reduce<Kind::squares>, kReduction, "reduce sum_squares"},
    {"", "CumSum", running<true>, "11 Ni>N exclusive:g reverse:g"},
    {"", "CumProd", running<false>, "aa exclusive reverse"},
};

}  // namespace

std::span<const Operator> reduce_operators() {
  return kReduce;
}

}  // namespace loom::core::evaluate
