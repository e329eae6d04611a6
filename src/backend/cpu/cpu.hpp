// The CPU backend: one SIMD source compiled once per instruction set, chosen at run time. Every set
// gives the same bits as the reference backend.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

enum class Isa : uint8_t {
#define LOOM_ISA(id, architecture) id,
#include "backend/cpu/isas.def"
#undef LOOM_ISA
};

std::string_view isa_name(Isa isa);
// The sets that this build holds and this processor runs, slowest first. Never empty.
const std::vector<Isa>& available_isas();
inline Isa best_isa() {
  return available_isas().back();
}
// Parses "scalar", "avx2", ...; an Error lists the available names.
Result<Isa> parse_isa(std::string_view name);

// The kernels of one available set.
const Ops& cpu_ops(Isa isa);

// Loops that reach the peak rate of one set, on one lane. Their results are useless, but depend on
// all of the work, so that no compiler removes it.
struct IsaProbe {
  struct Loop {
    float (*run)(int64_t rounds) = nullptr;
    int64_t ops = 0;  // of a round; one multiply-add counts as two
  };
  Loop fma_f32, fma_f64;  // independent chains of s = fma(a, b, s), as the kernels make them
  Loop dot_int8;          // of four bytes each, as quantized products compute them
  // `bytes` is a multiple of kProbeStep.
  float (*read)(const std::byte* from, int64_t bytes) = nullptr;
  void (*write)(std::byte* to, int64_t bytes) = nullptr;
  void (*copy)(const std::byte* from, std::byte* to, int64_t bytes) = nullptr;
};
inline constexpr int64_t kProbeStep = 1024;

// The loops of one available set.
IsaProbe cpu_probe(Isa isa);

}  // namespace loom::core
