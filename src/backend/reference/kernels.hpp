// The bodies of the reference backend, one template per row of ops.def, and their shared helpers. T
// is the compute type, float or double, of activations, plain parameters, gradients and sums. Each
// lane computes whole outputs in a fixed order, so the lane count never changes a bit. The code
// does not allocate, vectorize by hand or optimize. Not an interface: other code uses
// reference_ops().
#pragma once

#include "ops/ops.hpp"

namespace loom::core::reference {

#define LOOM_OP(name, Args) \
  template <class T>        \
  void name(const Args& args, const Lane& lane);
#include "ops/ops.def"
#undef LOOM_OP

// At the end of the file of a body: instantiates it for both compute types, or for float alone.
#define LOOM_REFERENCE_BODY(name, Args)                \
  template void name<float>(const Args&, const Lane&); \
  template void name<double>(const Args&, const Lane&)
#define LOOM_REFERENCE_BODY_F32(name, Args) template void name<float>(const Args&, const Lane&)

// y = softmax(x * scale) over n values. x and y may be the same memory. All zeros if no value is
// above -inf.
template <class T>
void softmax_row(const T* x, float scale, int64_t n, T* y);

// The values of row `row` of a packed matrix, k in [k0, k0 + n), in the compute type: rounded to
// f32 for float, exact for double.
template <class T>
void decode_row(const R16& w, const std::byte* data, int64_t row, int64_t k0, int64_t n, T* out);
template <>
inline void decode_row(const R16& w, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                       float* out) {
  r16_decode(w, data, row, k0, n, out);
}
template <>
inline void decode_row(const R16& w, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                       double* out) {
  r16_decode_f64(w, data, row, k0, n, out);
}

}  // namespace loom::core::reference
