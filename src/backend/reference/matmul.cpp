// matmul: rule 2 of docs/numerics.md over float weights, rule 3 over integer levels and q8
// activations. y[R,N] = act(x[R,K] . w[N,K]^T + bias[N]); lanes share the N outputs in groups
// of 16.
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "ops/activation.hpp"

namespace loom::reference {
namespace {

float float_dot(const R16& w, const std::byte* data, const float* x, int64_t output) {
  if (dtype_info(w.dtype).compute == ComputeType::f64) {
    return static_cast<float>(chunked_dot<double>(
        x, w.cols,
        [&](int64_t k0, int64_t n, double* out) { r16_decode_f64(w, data, output, k0, n, out); }));
  }
  return chunked_dot<float>(x, w.cols, [&](int64_t k0, int64_t n, float* out) {
    r16_decode(w, data, output, k0, n, out);
  });
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

void matmul(const MatmulArgs& args, const Lane& lane) {
  const R16 w = r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]);
  const LaneRange outputs = lane.range(w.rows, kR16Rows);
  for (int64_t n = outputs.begin; n < outputs.end; ++n) {
    for (int64_t r = 0; r < args.x.rows(); ++r) {
      float sum = args.use_q8 ? q8_dot(w, args.w.data, args.q8, r, n)
                              : float_dot(w, args.w.data, args.x.f32_row(r), n);
      if (!args.bias.empty()) sum = sum + args.bias.f32()[n];
      args.y.f32_row(r)[n] = activate<float>(args.activation, sum);
    }
  }
}

}  // namespace loom::reference
