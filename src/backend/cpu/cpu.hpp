// The CPU backend: one SIMD source compiled once per instruction set, chosen at run time. Every set
// gives the bits of the reference backend.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

enum class Isa : uint8_t {
#define LOOM_ISA(id, architecture) id,
#include "backend/cpu/isas.def"
#undef LOOM_ISA
};

std::string_view isa_name(Isa isa);
// The sets this build holds and this processor runs, slowest first; never empty.
const std::vector<Isa>& available_isas();
inline Isa best_isa() {
  return available_isas().back();
}
// "scalar", "avx2", ...; an Error names those available here.
Result<Isa> parse_isa(std::string_view name);

// The kernels of one available set.
const Ops& cpu_ops(Isa isa);

// Loops that show what one set reaches at its best, on one lane; they compute nothing of use. What
// they return depends on all that they did, so that no compiler leaves it out.
struct IsaProbe {
  struct Loop {
    float (*run)(int64_t rounds) = nullptr;
    int64_t ops = 0;  // of a round; a multiplication and an addition are two
  };
  Loop fma_f32, fma_f64;  // independent chains of s = fma(a, b, s), as the kernels make them
  Loop dot_int8;          // of four bytes each, as quantized products make them
  // `bytes` is a multiple of kProbeStep.
  float (*read)(const std::byte* from, int64_t bytes) = nullptr;
  void (*write)(std::byte* to, int64_t bytes) = nullptr;
  void (*copy)(const std::byte* from, std::byte* to, int64_t bytes) = nullptr;
};
inline constexpr int64_t kProbeStep = 1024;

// The loops of one available set.
IsaProbe cpu_probe(Isa isa);

}  // namespace loom::core
