// Pooling of all kinds. Windows by the kernels of networks in f32, where types of 8 bits are exact;
// in double by plain loops.
// See windows.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/neural/windows.hpp"
#include "onnx/operators/functions.hpp"
#include "onnx/operators/rows.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

bool exact_in_float(OnnxType type) {
  return element_bytes(type) <= 2 && type != OnnxType::boolean;
}

// Windows and tensors of both kinds of pooling.
struct Pooling {
  Windows windows;
  Value x, y;  // f32
};
Result<Pooling> pooling(const Call& c) {
  Pooling p;
  const OnnxType type = c.value(0).type;
  const bool wide = type == OnnxType::f64;
  if (type != OnnxType::f32 && !wide && !exact_in_float(type))
    return c.not_done(cat("pooling of ", onnx_type_name(type)));
  LOOM_ASSIGN(p.x, c.as(0, wide ? OnnxType::f64 : OnnxType::f32));
  LOOM_ASSIGN(p.windows,
              windows_of(c, p.x.dims, c.list("kernel_shape"), c.integer("ceil_mode", 0) != 0));
  ConvShape& s = p.windows.shape;
  s.channels = s.filters = s.groups = p.x.dims[1];
  LOOM_ASSIGN(p.y, c.make(p.x.type, p.windows.out_dims(p.x.dims[0], p.x.dims[1])));
  return p;
}

// Planes in double: fold(y, x, place) for each value of each window, taps in their order.
template <class Fold>
void pool_doubles(const Call& c, const Pooling& p, double start, const Fold& fold) {
  const ConvShape& s = p.windows.shape;
  const int64_t in = s.in_positions(), out = s.out_positions();
  c.parallel(p.x.dims[0] * p.x.dims[1], static_cast<double>(out * s.taps()),
             [&](int64_t begin, int64_t end) {
               for (int64_t r = begin; r < end; ++r) {
                 const double* x = p.x.data<double>() + r * in;
                 double* y = const_cast<double*>(p.y.data<double>()) + r * out;
                 std::fill_n(y, out, start);
                 for (int64_t tap = 0; tap < s.taps(); ++tap) {
                   each_row_of_tap(s, tap, [&](int64_t o, int64_t i, int64_t count) {
                     for (int64_t n = 0; n < count; ++n)
                       fold(y[o + n], x[i + n * s.stride[2]], r * out + o + n, i + n * s.stride[2]);
                   });
                 }
               }
             });
}

// How many values each window has, the padding that the file asks for included where `padded`.
std::vector<double> counts_of(const Windows& windows, bool padded) {
  const ConvShape& s = windows.shape;
  std::vector<double> counts(static_cast<size_t>(s.out_positions()));
  ConvShape whole = s;
  for (int a = 0; padded && a < 3; ++a) {
    whole.in[a] += s.pad[a] + windows.pad_end[a];
    whole.pad[a] = 0;
  }
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    each_row_of_tap(whole, tap, [&](int64_t o, int64_t, int64_t count) {
      for (int64_t n = 0; n < count; ++n) counts[static_cast<size_t>(o + n)] += 1;
    });
  }
  return counts;
}

Tensor rows_of(const Value& v, int64_t rows) {
  return f32_matrix(const_cast<float*>(v.data<float>()), rows, v.count() / rows);
}

// Places of the largest values count over the whole input; column-major with storage_order 1.
Result<Value> all_indices(const Call& c, const Pooling& p, const int32_t* ids) {
  LOOM_ASSIGN(Value out, c.make(OnnxType::i64, p.y.dims));
  const ConvShape& s = p.windows.shape;
  const int64_t each = s.out_positions(), size = s.in_positions();
  const bool columns = c.integer("storage_order", 0) != 0;
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t at = ids[i];
    if (columns) {
      const int64_t d = at / (s.in[1] * s.in[2]), h = at / s.in[2] % s.in[1], w = at % s.in[2];
      at = (w * s.in[1] + h) * s.in[0] + d;
    }
    out.data<int64_t>()[i] = i / each * size + at;
  }
  return out;
}

Status max_pool(const Call& c) {
  LOOM_ASSIGN(const Pooling p, pooling(c));
  PoolArgs args;
  Value ids;
  if (p.x.type == OnnxType::f64) {
    LOOM_ASSIGN(ids, c.make(OnnxType::i32, p.y.dims));
    int32_t* indices = ids.data<int32_t>();
    std::fill_n(indices, ids.count(), -1);
    pool_doubles(c, p, -std::numeric_limits<double>::infinity(),
                 [=](double& most, double x, int64_t at, int64_t position) {
                   if (indices[at] >= 0 && !(x > most || x != x)) return;
                   most = x;
                   indices[at] = static_cast<int32_t>(position);
                 });
  } else if (p.y.count() > 0) {
    args.x = rows_of(p.x, p.x.dims[0]);
    args.y = rows_of(p.y, p.x.dims[0]);
    args.shape = p.windows.shape;
    if (c.wants(1)) {
      LOOM_ASSIGN(ids, c.make(OnnxType::i32, p.y.dims));
      args.ids = rows_of(ids, p.x.dims[0]);
      args.ids.dtype = DType::i32;
    }
    LOOM_TRY(c.rt.recorder.pool(args));
    LOOM_TRY(c.rt.recorder.flush());
  }
  if (c.wants(1)) {
    if (p.y.count() == 0) return c.bad("an empty input");
    LOOM_ASSIGN(Value indices, all_indices(c, p, ids.data<int32_t>()));
    LOOM_TRY(c.give(std::move(indices), 1));
  }
  return c.give_as(p.y, c.value(0).type);
}

Status average_pool(const Call& c) {
  LOOM_ASSIGN(const Pooling p, pooling(c));
  PoolArgs args;
  args.kind = PoolKind::average;
  args.include_pad = c.integer("count_include_pad", 0) != 0;
  if (p.x.type == OnnxType::f64) {
    pool_doubles(c, p, 0, [](double& sum, double x, int64_t, int64_t) { sum += x; });
    const std::vector<double> counts = counts_of(p.windows, args.include_pad);
    double* y = const_cast<double*>(p.y.data<double>());
    for (int64_t i = 0; i < p.y.count(); ++i)
      y[i] /= std::max(counts[static_cast<size_t>(i) % counts.size()], 1.0);  // 0 of none
  } else if (p.y.count() > 0) {
    args.x = rows_of(p.x, p.x.dims[0]);
    args.y = rows_of(p.y, p.x.dims[0]);
    args.shape = p.windows.shape;
    std::ranges::copy(p.windows.pad_end, args.pad_end);
    LOOM_TRY(c.rt.recorder.pool(args));
    LOOM_TRY(c.rt.recorder.flush());
  }
  return c.give_as(p.y, c.value(0).type);
}

Result<Value> powers(const Call& c, const Value& x, double p) {
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, x.dims));
  for (int64_t i = 0, n = x.count(); i < n; ++i)
    y.data<float>()[i] =
        static_cast<float>(pow(std::abs(static_cast<double>(x.data<float>()[i])), p));
  return y;
}

// (sum |x|^p)^(1/p): p 1 and 2 directly, others as sums of powers.
Status lp_pool(const Call& c) {
  LOOM_ASSIGN(Pooling p, pooling(c));
  const auto power = c.integer("p", 2);
  if (power < 1) return c.bad("p must be 1 or more");
  if (p.x.type == OnnxType::f64) {
    const auto exponent = static_cast<double>(power);
    pool_doubles(c, p, 0, [=](double& sum, double x, int64_t, int64_t) {
      sum += pow(std::abs(x), exponent);
    });
    double* y = const_cast<double*>(p.y.data<double>());
    for (int64_t i = 0; i < p.y.count(); ++i) y[i] = pow(y[i], 1 / exponent);
    return c.give(p.y);
  }
  const bool plain = power <= 2;
  if (!plain) {
    LOOM_ASSIGN(p.x, powers(c, p.x, static_cast<double>(power)));
  }
  PoolArgs args;
  args.kind = PoolKind::lp;
  args.p = plain ? static_cast<int>(power) : 1;
  if (p.y.count() > 0) {
    args.x = rows_of(p.x, p.x.dims[0]);
    args.y = rows_of(p.y, p.x.dims[0]);
    args.shape = p.windows.shape;
    LOOM_TRY(c.rt.recorder.pool(args));
    LOOM_TRY(c.rt.recorder.flush());
  }
  if (plain) return c.give_as(p.y, c.value(0).type);
  LOOM_ASSIGN(const Value y, powers(c, p.y, 1.0 / static_cast<double>(power)));
  return c.give_as(y, c.value(0).type);
}

enum class Whole : uint8_t { average, max, lp };
template <Whole W>
Status global_pool(const Call& c) {
  if (!is_real(c.value(0).type) || c.value(0).rank() < 3) return c.bad("takes floats [N, C, ...]");
  LOOM_ASSIGN(const Value x, c.widened(0));
  Dims dims(x.dims.size(), 1);
  dims[0] = x.dims[0], dims[1] = x.dims[1];
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const int64_t n = product(x.dims, 2, x.rank());
  if (n == 0) return c.bad("nothing to pool");
  const auto power = static_cast<double>(c.integer("p", 2));
  with_real(x.type, [&]<class T>(T) {
    each_row<T>(c, x, n, y.data<T>(), [=](const T* row, int64_t m) {
      if constexpr (W == Whole::max) return *std::max_element(row, row + m);
      const auto term = [=](double v) { return W == Whole::lp ? pow(std::abs(v), power) : v; };
      const double sum = folded_sum<double>(row, m, term);
      return static_cast<T>(W == Whole::lp ? pow(sum, 1 / power) : sum / static_cast<double>(m));
    });
  });
  return c.give_as(y, c.value(0).type);
}

// Values back to where the largest ones came from, zeros elsewhere.
Status max_unpool(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const Dims ids, c.int_list(1));
  if (c.value(1).dims != x.dims || x.rank() < 3) return c.bad("a place per value is needed");
  const int axes = x.rank() - 2;
  const Dims kernel = c.list("kernel_shape");
  if (static_cast<int>(kernel.size()) != axes) return c.bad("a kernel of another rank");
  LOOM_ASSIGN(const Dims strides, per_axis(c, "strides", axes, 1, 1));
  LOOM_ASSIGN(const Dims pads, per_axis(c, "pads", 2 * axes, 0, 0));
  Dims inner = x.dims;
  for (size_t a = 0; a < kernel.size(); ++a)
    inner[a + 2] = (x.dims[a + 2] - 1) * strides[a] - pads[a] - pads[a + kernel.size()] + kernel[a];
  Dims dims = inner;
  if (c.has(2)) {
    LOOM_ASSIGN(dims, c.int_list(2));
    if (dims.size() != inner.size()) return c.bad("an output shape of another rank");
  }
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  fill_zero(y);
  const Dims from = steps_of(inner), to = steps_of(dims);
  const auto size = static_cast<size_t>(element_bytes(x.type));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= product(inner)) return c.bad("a place beyond the output");
    int64_t rest = ids[i], at = 0;
    for (size_t a = 0; a < dims.size(); ++a) {
      const int64_t position = rest / from[a];
      rest %= from[a];
      if (position >= dims[a]) return c.bad("a place beyond the output");
      at += position * to[a];
    }
    std::copy_n(x.data<std::byte>() + i * size, size,
                y.data<std::byte>() + static_cast<size_t>(at) * size);
  }
  return c.give(std::move(y));
}

constexpr Operator kPools[] = {
    {"", "MaxPool", max_pool, {}},
    {"", "AveragePool", average_pool, {}},
    {"", "LpPool", lp_pool, {}},
    {"", "GlobalAveragePool", global_pool<Whole::average>, {}},
    {"", "GlobalMaxPool", global_pool<Whole::max>, {}},
    {"", "GlobalLpPool", global_pool<Whole::lp>, {}},
    {"", "MaxUnpool", max_unpool, "aa?a kernel_shape pads strides"},
};

}  // namespace

std::span<const Operator> pool_operators() {
  return kPools;
}

}  // namespace loom::core::evaluate
