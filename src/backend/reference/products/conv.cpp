// conv, conv_dx and conv_dw. Every output of conv and of conv_dw is one sum under rule 2 of
// docs/numerics.md over all of its terms. Terms outside the input are products with zero. Lanes
// share the filters, the channels, and the rows of dw.
#include "backend/reference/products/conv.hpp"

#include "backend/reference/sums.hpp"
#include "ops/activation.hpp"

namespace loom::core::reference {
namespace {

// The value of a sample x [C][in] that filter `filter` reads at index k of its patch for output
// `out`.
template <class T>
T gathered(const ConvShape& s, const T* x, int64_t filter, int64_t out, int64_t k) {
  const int64_t group = filter / (s.filters / s.groups);
  const PatchTerm term = patch_term(s, k);
  const int64_t position = input_position(s, out, term.tap);
  if (position < 0) return T(0);
  return x[(group * (s.channels / s.groups) + term.channel) * s.in_positions() + position];
}

// The gradient of one input value: over all taps that reach it, the sum over the filters of its
// group.
template <class T>
T input_gradient(const ConvShape& s, const Packed& w, const T* dy, int64_t channel, int64_t in) {
  const int64_t channels = s.channels / s.groups, filters = s.filters / s.groups;
  const int64_t first = channel / channels * filters;
  T total{};
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const int64_t out = output_position(s, in, tap);
    if (out < 0) continue;
    const int64_t k = channel % channels * s.taps() + tap;
    total = total + sum_over_column<T>(w, k, first, filters, [&](int64_t f, auto weight) {
              return Factors<decltype(weight)>{dy[f * s.out_positions() + out], weight};
            });
  }
  return total;
}

}  // namespace

template <class T>
void conv(const ConvArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const Packed w(args.w);
  const LaneRange filters = lane.range(s.filters);
  for (int64_t b = 0; b < args.x.rows(); ++b) {
    const T* x = args.x.row<T>(b);
    for (int64_t f = filters.begin; f < filters.end; ++f) {
      for (int64_t o = 0; o < s.out_positions(); ++o) {
        T sum = sum_over_row<T>(w, f, [&](int64_t k, auto weight) {
          return Factors<decltype(weight)>{gathered(s, x, f, o, k), weight};
        });
        if (!args.bias.empty()) sum = sum + args.bias.values<T>()[f];
        args.y.row<T>(b)[f * s.out_positions() + o] = activate<T>(args.activation, sum);
      }
    }
  }
}

template <class T>
void conv_dx(const ConvDxArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const Packed w(args.w);
  const LaneRange channels = lane.range(s.channels);
  for (int64_t b = 0; b < args.dx.rows(); ++b) {
    const T* dy = args.dy.row<T>(b);
    for (int64_t c = channels.begin; c < channels.end; ++c) {
      for (int64_t i = 0; i < s.in_positions(); ++i) {
        T sum = input_gradient(s, w, dy, c, i);
        if (!args.bias.empty()) sum = sum + args.bias.values<T>()[c];
        sum = activate<T>(args.activation, sum);
        store(args.dx.row<T>(b)[c * s.in_positions() + i], sum, args.accumulate);
      }
    }
  }
}

template <class T>
void conv_dw(const ConvDwArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const int64_t outputs = s.out_positions();
  const LaneRange filters = lane.range(s.filters);
  for (int64_t f = filters.begin; f < filters.end; ++f) {
    for (int64_t k = 0; k < s.patch(); ++k) {
      const T sum = chained<T>(args.x.rows() * outputs, [&](int64_t term) {
        const int64_t b = term / outputs, o = term % outputs;
        return Factors<T>{args.dy.template row<T>(b)[f * outputs + o],
                          gathered(s, args.x.template row<T>(b), f, o, k)};
      });
      store(args.dw.row<T>(f)[k], sum, args.accumulate);
    }
  }
}

LOOM_REFERENCE_BODY(conv, ConvArgs);
LOOM_REFERENCE_BODY(conv_dx, ConvDxArgs);
LOOM_REFERENCE_BODY(conv_dw, ConvDwArgs);

}  // namespace loom::core::reference
