// matmul: rule 2 of docs/numerics.md over float weights, rule 3 over integer levels and q8
// activations. y[R,N] = act(x[R,K] . w[N,K]^T + bias[N]); lanes share the N outputs in groups
// of 16.
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "ops/activation.hpp"

namespace loom::reference {
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

float q8_dot(const R16& w, const std::byte* data, const Q8Rows& q, int64_t row, int64_t output) {
  const int64_t span = dtype_info(w.dtype).block == 16 ? 16 : 32;  // values that share a step
  const int8_t* codes = q.codes + row * q.padded_cols();
  float acc = 0.0f;
  for (int64_t block = 0; block * span < w.cols; ++block) {
    int32_t sum = 0;
    for (int64_t k = block * span; k < (block + 1) * span && k < w.cols; ++k) {
      sum += r16_level(w, data, output, k) * codes[k];
    }
    const float scale = q.scales[row * q.blocks + block * span / 32];
    acc = acc + static_cast<float>(sum) * (r16_step(w, data, output, block) * scale);
  }
  return acc;
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

}  // namespace loom::reference
