// pool and pool_dx: every output reads its window, every input value the windows that contain it.
// Lanes share the channels of all samples.
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "backend/reference/products/conv.hpp"
#include "ops/fmath.hpp"
#include "ops/pooling.hpp"

namespace loom::core::reference {
namespace {

// The window of one output: along each axis the taps that are inside of the input.
template <class Args>
struct Window {
  Window(const Args& args, int64_t out) {
    const Axes o = axes_of(out, args.shape.out);
    for (int a = 0; a < 3; ++a) {
      spans[a] = pool_span(args, a, o.at[a]);
      const bool strided = args.windows == PoolWindows::strided;
      taps[a] = strided ? args.shape.kernel[a] : spans[a].count;
      in[a] = args.shape.in[a];
    }
  }
  int64_t count() const { return taps[0] * taps[1] * taps[2]; }
  // The position that tap `tap` of all of them reads; -1 outside of the input.
  int64_t position(int64_t tap) const {
    const Axes k = axes_of(tap, taps);
    int64_t at = 0;
    for (int a = 0; a < 3; ++a) {
      const int64_t i = k.at[a] - spans[a].skipped;
      if (i < 0 || i >= spans[a].count) return -1;
      at = at * in[a] + spans[a].first + i * spans[a].step;
    }
    return at;
  }
  bool covers(const Axes& input) const {
    for (int a = 0; a < 3; ++a) {
      const int64_t from = input.at[a] - spans[a].first;
      if (from < 0 || from % spans[a].step != 0 || from / spans[a].step >= spans[a].count) {
        return false;
      }
    }
    return true;
  }
  PoolSpan spans[3];
  int64_t taps[3], in[3];
};

template <class T>
void largest(const PoolArgs& args, const T* x, int64_t out, T& y, int32_t& id) {
  const Window window(args, out);
  y = -static_cast<T>(__builtin_inff());
  id = -1;
  for (int64_t tap = 0; tap < window.count(); ++tap) {
    const int64_t at = window.position(tap);
    if (at < 0) continue;
    if (id >= 0 && !(x[at] > y || x[at] != x[at])) continue;
    y = x[at];
    id = static_cast<int32_t>(at);
  }
}

template <class T>
T pooled(const PoolArgs& args, const T* x, int64_t out) {
  const Window window(args, out);
  const T sum = chained<T>(window.count(), [&](int64_t tap) {
    const int64_t at = window.position(tap);
    if (at < 0) return Factors<T>{T(0), T(0)};
    if (args.kind == PoolKind::average) return Factors<T>{x[at], T(1)};
    return args.p == 1 ? Factors<T>{fmath::abs(x[at]), T(1)} : Factors<T>{x[at], x[at]};
  });
  if (args.kind == PoolKind::lp) return args.p == 1 ? sum : fmath::sqrt(sum);
  const int64_t divisor = pool_divisor(args, window.spans);
  return divisor == 0 ? T(0) : sum / static_cast<T>(divisor);
}

// The gradient that output `out`, value `out_at` of its row, sends to value `in_at` of x, which is
// in its window.
template <class T>
T sent(const PoolDxArgs& args, int64_t row, int64_t out_at, int64_t in_at, int64_t out) {
  const T dy = args.dy.row<T>(row)[out_at];
  switch (args.kind) {
    case PoolKind::max: return dy;
    case PoolKind::average: {
      const Window window(args, out);
      return dy / static_cast<T>(pool_divisor(args, window.spans));
    }
    case PoolKind::lp: break;
  }
  const T x = args.x.row<T>(row)[in_at];
  if (args.p == 1) return x > T(0) ? dy : x < T(0) ? -dy : T(0);
  const T y = args.y.row<T>(row)[out_at];
  return y == T(0) ? T(0) : dy * (x / y);
}

}  // namespace

template <class T>
void pool(const PoolArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const int64_t ins = s.in_positions(), outs = s.out_positions();
  const LaneRange planes = lane.range(args.y.rows() * s.channels);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    const int64_t row = plane / s.channels, channel = plane % s.channels;
    const T* x = args.x.row<T>(row) + channel * ins;
    T* y = args.y.row<T>(row) + channel * outs;
    for (int64_t out = 0; out < outs; ++out) {
      if (args.kind == PoolKind::max) {
        int32_t id = -1;
        largest(args, x, out, y[out], id);
        if (!args.ids.empty()) args.ids.row<int32_t>(row)[channel * outs + out] = id;
      } else {
        y[out] = pooled(args, x, out);
      }
    }
  }
}

template <class T>
void pool_dx(const PoolDxArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const int64_t ins = s.in_positions(), outs = s.out_positions();
  const LaneRange planes = lane.range(args.dx.rows() * s.channels);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    const int64_t row = plane / s.channels, channel = plane % s.channels;
    T* dx = args.dx.row<T>(row) + channel * ins;
    for (int64_t in = 0; in < ins; ++in) dx[in] = T(0);
    for (int64_t out = 0; out < outs; ++out) {
      const Window window(args, out);
      for (int64_t in = 0; in < ins; ++in) {
        if (!window.covers(axes_of(in, s.in))) continue;
        const int64_t at = channel * outs + out;
        if (args.kind == PoolKind::max && args.ids.row<int32_t>(row)[at] != in) continue;
        dx[in] = dx[in] + sent<T>(args, row, at, channel * ins + in, out);
      }
    }
  }
}

LOOM_REFERENCE_BODY(pool, PoolArgs);
LOOM_REFERENCE_BODY(pool_dx, PoolDxArgs);

}  // namespace loom::core::reference
