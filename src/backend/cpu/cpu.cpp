#include "backend/cpu/cpu.hpp"

#include <array>

#include "backend/cpu/isa.hpp"
#include "backend/reference/reference.hpp"
#include "base/text.hpp"

namespace loom {
namespace {

constexpr std::string_view kNames[] = {"scalar", "avx2", "avx512", "neon", "wasm"};

std::vector<Isa> detect() {
  std::vector<Isa> isas = {Isa::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni")) {
      isas.push_back(Isa::avx512);
    }
  }
#elif defined(__aarch64__)
  isas.push_back(Isa::neon);
#elif defined(__wasm_simd128__)
  isas.push_back(Isa::wasm);
#endif
  return isas;
}

Ops make_ops(Isa isa) {
  Ops ops = reference_ops();
  switch (isa) {
    case Isa::scalar: isa_scalar::fill_ops(ops); break;
#if defined(__x86_64__)
    case Isa::avx2: isa_avx2::fill_ops(ops); break;
    case Isa::avx512: isa_avx512::fill_ops(ops); break;
    default: break;
#else
    default: isa_simd128::fill_ops(ops); break;
#endif
  }
  return ops;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return kNames[static_cast<size_t>(isa)];
}

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Result<Isa> parse_isa(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  std::vector<std::string> known;
  for (Isa isa : available_isas()) {
    if (word == isa_name(isa)) return isa;
    known.emplace_back(isa_name(isa));
  }
  return unsupported(cat("instruction set '", printable(name),
                         "' is not available here; choose from ", join(known, ", ")));
}

const Ops& cpu_ops(Isa isa) {
  static const std::array<Ops, 5> tables = [] {
    std::array<Ops, 5> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = reference_ops();
    for (Isa available : available_isas())
      all[static_cast<size_t>(available)] = make_ops(available);
    return all;
  }();
  return tables[static_cast<size_t>(isa)];
}

}  // namespace loom
