// matmul: rule 2 of docs/numerics.md over float weights, rule 3 over integer levels and q8
// activations. y[R,N] = act(x[R,K] . w[N,K]^T + bias[N]); lanes share the N outputs in groups
// of 16.
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "ops/activation.hpp"

namespace loom::core::reference {
namespace {

// The chain over decoded weights, in type Sum.
template <class Sum, class T>
Sum decoded_dot(const R16& w, const std::byte* data, const T* x, int64_t output) {
  return chunked_dot<Sum>(x, w.cols, [&](int64_t k0, int64_t n, Sum* out) {
    decode_row<Sum>(w, data, output, k0, n, out);
  });
}

template <class T>
T float_dot(const R16& w, const std::byte* data, const T* x, int64_t output) {
  if (dtype_info(w.dtype).compute == ComputeType::f64) {
    return static_cast<T>(decoded_dot<double>(w, data, x, output));
  }
  return decoded_dot<T>(w, data, x, output);
}

// One row of activations against one output.
struct Q8Dot {
  const R16& w;
  const DTypeInfo& info;
  const std::byte* data;
  const Q8Rows& q;
  int64_t row, output;

  int32_t code(int64_t k) const { return q.codes[row * q.padded_cols() + k]; }
  float scale(int64_t block) const { return q.scales[row * q.blocks + block]; }
};

// Float scales: a term for each block of 32, or of 16 if scales change that often.
float q8_blocks(const Q8Dot& d) {
  const int64_t span = d.info.block == 16 ? 16 : kR16Block;
  const int64_t block = d.info.block > 0 ? d.info.block : d.w.blocks * kR16Block;
  float acc = 0.0f;
  for (int64_t k0 = 0; k0 < d.w.cols; k0 += span) {
    int32_t sum = 0, activations = 0;
    for (int64_t k = k0; k < k0 + span && k < d.w.cols; ++k) {
      sum += r16_level(d.w, d.data, d.output, k) * d.code(k);
      activations += d.code(k);
    }
    const float scale = d.scale(k0 / kR16Block);
    float term = static_cast<float>(sum) * (r16_step(d.w, d.data, d.output, k0 / block) * scale);
    if (d.info.shifted()) {
      const float offset = r16_offset(d.w, d.data, d.output, k0 / block);
      term = term + static_cast<float>(activations) * (offset * scale);
    }
    acc = acc + term;
  }
  return acc;
}

// Small integer scales enter the integer sums of the blocks of 32. Each super-block adds one term.
float q8_super_blocks(const Q8Dot& d) {
  float acc = 0.0f;
  for (int64_t k0 = 0; k0 < d.w.cols; k0 += d.info.super_block) {
    float levels = 0.0f, leasts = 0.0f;
    for (int64_t b = k0; b < k0 + d.info.super_block && b < d.w.cols; b += kR16Block) {
      int32_t sum = 0, least = 0;
      for (int64_t k = b; k < b + kR16Block && k < d.w.cols; ++k) {
        const R16Small small = r16_small(d.w, d.data, d.output, k / d.info.block);
        sum += small.scale * r16_level(d.w, d.data, d.output, k) * d.code(k);
        least += small.least * d.code(k);
      }
      const float scale = d.scale(b / kR16Block);
      levels = fused(static_cast<float>(sum), scale, levels);
      leasts = fused(static_cast<float>(least), scale, leasts);
    }
    const R16Super super = r16_super(d.w, d.data, d.output, k0 / d.info.super_block);
    float term = super.scale * levels;
    if (d.info.shifted()) term = term - super.least * leasts;
    acc = acc + term;
  }
  return acc;
}

float q8_dot(const R16& w, const std::byte* data, const Q8Rows& q, int64_t row, int64_t output) {
  const Q8Dot dot{w, dtype_info(w.dtype), data, q, row, output};
  return dot.info.super_block > 0 ? q8_super_blocks(dot) : q8_blocks(dot);
}

}  // namespace

template <class T>
void matmul(const MatmulArgs& args, const Lane& lane) {
  const R16 w = r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]);
  const LaneRange outputs = lane.range(w.rows, kR16Rows);
  for (int64_t n = outputs.begin; n < outputs.end; ++n) {
    for (int64_t r = 0; r < args.x.rows(); ++r) {
      T sum = args.use_q8 ? T{q8_dot(w, args.w.data, args.q8, r, n)}
                          : float_dot<T>(w, args.w.data, args.x.row<T>(r), n);
      if (!args.bias.empty()) sum = sum + args.bias.values<T>()[n];
      args.y.row<T>(r)[n] = activate<T>(args.activation, sum);
    }
  }
}
LOOM_REFERENCE_BODY(matmul, MatmulArgs);

template <class T>
void expert_matmul(const ExpertMatmulArgs& args, const Lane& lane) {
  const R16 w = r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]);
  const LaneRange outputs = lane.range(args.y.cols());
  for (int64_t e = 0; e < args.experts(); ++e) {
    for (int64_t r = args.starts.i32()[e]; r < args.starts.i32()[e + 1]; ++r) {
      for (int64_t n = outputs.begin; n < outputs.end; ++n) {
        const int64_t output = e * args.y.cols() + n;
        args.y.row<T>(r)[n] = args.use_q8 ? T{q8_dot(w, args.w.data, args.q8, r, output)}
                                          : float_dot<T>(w, args.w.data, args.x.row<T>(r), output);
      }
    }
  }
}
LOOM_REFERENCE_BODY(expert_matmul, ExpertMatmulArgs);

}  // namespace loom::core::reference
