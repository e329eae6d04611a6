// Included first, outside its namespace, by every translation unit of an instruction set. The unit
// has defined LOOM_ISA_NAMESPACE, LOOM_SIMD_WIDTH and LOOM_ISA_NAME.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backend/cpu/isa.hpp"
#include "backend/reference/reference.hpp"
#include "base/inline.hpp"
#include "base/numbers/fma.hpp"
#include "dtype/codecs/codec.hpp"
#include "ops/activation.hpp"
#include "ops/fmath.hpp"
#include "ops/gradients/activation_dx.hpp"
#include "ops/moves.hpp"
#include "ops/ops.hpp"
#include "ops/pooling.hpp"

#if LOOM_SIMD_WIDTH >= 8
#include <immintrin.h>
#endif

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#if LOOM_SIMD_WIDTH == 16
// VSCALEFPS (Intel SDM) gives e * 2^n, rounded once. Only this set has this lane type.
namespace loom::core::fmath {
typedef float Lanes16 __attribute__((vector_size(64)));
template <>
struct ScaleExp<Lanes16> {
  LOOM_INLINE static Lanes16 run(Lanes16 e, Int<Lanes16>, Lanes16 nf) {
    return _mm512_scalef_ps(e, nf);
  }
};
}  // namespace loom::core::fmath
#endif
