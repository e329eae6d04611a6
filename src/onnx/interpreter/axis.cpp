// Functions along one axis, by operators that no network has constants of: softmax, and places of
// extremes. See rows.hpp.
#include <algorithm>

#include "onnx/interpreter/families.hpp"
#include "onnx/operators/rows.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {

Result<Value> softmax_rows(const Call& c, const Value& x, int64_t n) {
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  if (x.count() == 0) return y;
  if (x.type == OnnxType::f32) {
    auto* from = const_cast<float*>(x.data<float>());
    const int64_t rows = x.count() / n;
    LOOM_TRY(c.rt.recorder.softmax(
        {f32_matrix(from, rows, n), f32_matrix(y.data<float>(), rows, n), 1.0F}));
    LOOM_TRY(c.rt.recorder.flush());
    return y;
  }
  for (int64_t r = 0; r < x.count(); r += n) {
    const double* row = x.data<double>() + r;
    const double most = extreme_of(row, n, true);
    const double sum = folded_sum<double>(row, n, [=](double v) { return dmath::exp(v - most); });
    for (int64_t i = 0; i < n; ++i) y.data<double>()[r + i] = dmath::exp(row[i] - most) / sum;
  }
  return y;
}

namespace {

Status place_of_extreme(const Call& c, bool largest) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  const bool last = c.integer("select_last_index", 0) != 0;
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, {axis}, order));
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  if (n == 0) return c.bad("an axis without values");
  LOOM_ASSIGN(Value y,
              c.make(OnnxType::i64, without(x.dims, {axis}, c.integer("keepdims", 1) != 0)));
  with_type(x.type, [&]<class T>(T) {
    each_row<T>(c, moved, n, y.data<int64_t>(), [=](const T* row, int64_t m) {
      int64_t best = 0;
      for (int64_t i = 1; i < m; ++i) {
        const bool better = largest ? row[i] > row[best] : row[i] < row[best];
        if (better || (last && row[i] == row[best])) best = i;
      }
      return best;
    });
  });
  return c.give(std::move(y));
}

template <bool Largest>
Status arg_extreme(const Call& c) {
  return place_of_extreme(c, Largest);
}

Result<Value> log_softmax_rows(const Call& c, const Value& x, int64_t n) {
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  with_real(x.type, [&]<class T>(T) {
    c.parallel(n == 0 ? 0 : x.count() / n, 10.0 * static_cast<double>(n),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin * n; r < end * n; r += n) {
                   const T* row = x.data<T>() + r;
                   const auto most = static_cast<double>(extreme_of(row, n, true));
                   const double all = log_sum_exp(most, row, n);
                   for (int64_t i = 0; i < n; ++i)
                     y.data<T>()[r + i] = static_cast<T>(static_cast<double>(row[i]) - all);
                 }
               });
  });
  return y;
}

Result<Value> hardmax_rows(const Call& c, const Value& x, int64_t n) {
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  fill_zero(y);
  with_real(x.type, [&]<class T>(T) {
    for (int64_t r = 0; r < x.count(); r += n) {
      const T* row = x.data<T>() + r;
      y.data<T>()[r + (std::max_element(row, row + n) - row)] = 1;
    }
  });
  return y;
}

// Over one axis; before opset 13 over all from `axis` on.
using Rows = Result<Value> (*)(const Call&, const Value&, int64_t);
Status along_axis(const Call& c, Rows rows) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  const bool old = c.opset < 13;
  if (x.rank() == 0) return c.bad("takes one axis and more");
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", old ? 1 : -1), x.rank()));
  if (old) {
    LOOM_ASSIGN(const Value y, rows(c, x, product(x.dims, axis, x.rank())));
    return c.give_as(y, c.value(0).type);
  }
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, {axis}, order));
  LOOM_ASSIGN(const Value made, rows(c, moved, x.dims[static_cast<size_t>(axis)]));
  LOOM_ASSIGN(const Value y, axes_back(c, made, order));
  return c.give_as(y, c.value(0).type);
}

template <Rows R>
Status by_axis(const Call& c) {
  return along_axis(c, R);
}

constexpr Operator kAxis[] = {
    {"", "ArgMax", arg_extreme<true>, {}},
    {"", "ArgMin", arg_extreme<false>, {}},
    {"", "Softmax", by_axis<softmax_rows>, {}},
    {"", "LogSoftmax", by_axis<log_softmax_rows>, {}},
    {"", "Hardmax", by_axis<hardmax_rows>, "a axis"},
};

}  // namespace

std::span<const Operator> axis_operators() {
  return kAxis;
}

}  // namespace loom::core::evaluate
