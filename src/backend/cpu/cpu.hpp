// The CPU backend: one SIMD source compiled once per instruction set, chosen at run time. Every set
// gives the bits of the reference backend.
#pragma once

#include <string_view>
#include <vector>

#include "ops/ops.hpp"

namespace loom {

enum class Isa : uint8_t { scalar, avx2, avx512, neon, wasm };

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

}  // namespace loom
