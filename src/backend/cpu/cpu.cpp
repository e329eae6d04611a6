#include "backend/cpu/cpu.hpp"

#include <array>
#include <iterator>

#include "backend/cpu/isa.hpp"
#include "backend/cpu/processor.hpp"
#include "backend/reference/reference.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

struct IsaRow {
  std::string_view name;
  bool (*runs)();  // may be null: not in this program
  void (*fill)(Ops&);
  void (*fill_training)(Ops&);  // may be null: not in this program
  void (*fill_probe)(IsaProbe&);
};

#ifdef LOOM_WITHOUT_TRAINING
#define LOOM_TRAINING(id) nullptr
#else
#define LOOM_TRAINING(id) isa_##id::fill_training
#endif
#define LOOM_HERE(id) \
  { #id, runs_##id, isa_##id::fill_ops, LOOM_TRAINING(id), isa_##id::fill_probe }
#define LOOM_ELSEWHERE(id) \
  { #id, nullptr, nullptr, nullptr, nullptr }
#ifdef LOOM_WITHOUT_SCALAR
#define LOOM_ISA_ANY LOOM_ELSEWHERE
#else
#define LOOM_ISA_ANY LOOM_HERE
#endif
// The starter program has one instruction set (cmake/starter.cmake). With LOOM_FEW_ISAS it is the
// first vector set of an architecture, with LOOM_WITHOUT_VECTORS the scalar set.
#define LOOM_ISA_X86 LOOM_ELSEWHERE
#define LOOM_ISA_X86_MORE LOOM_ELSEWHERE
#define LOOM_ISA_ARM64 LOOM_ELSEWHERE
#define LOOM_ISA_ARM64_MORE LOOM_ELSEWHERE
#define LOOM_ISA_WASM LOOM_ELSEWHERE
#define LOOM_ISA_WASMRELAXED LOOM_ELSEWHERE
#if defined(LOOM_WITHOUT_VECTORS)
#elif defined(__x86_64__)
#undef LOOM_ISA_X86
#define LOOM_ISA_X86 LOOM_HERE
#if !defined(LOOM_FEW_ISAS)
#undef LOOM_ISA_X86_MORE
#define LOOM_ISA_X86_MORE LOOM_HERE
#endif
#elif defined(__aarch64__)
#undef LOOM_ISA_ARM64
#define LOOM_ISA_ARM64 LOOM_HERE
#if !defined(LOOM_FEW_ISAS)
#undef LOOM_ISA_ARM64_MORE
#define LOOM_ISA_ARM64_MORE LOOM_HERE
#endif
#elif defined(__wasm_simd128__)
#undef LOOM_ISA_WASM
#define LOOM_ISA_WASM LOOM_HERE
#if defined(LOOM_WASM_RELAXED)
#undef LOOM_ISA_WASMRELAXED
#define LOOM_ISA_WASMRELAXED LOOM_HERE
#endif
#endif

constexpr IsaRow kIsas[] = {
#define LOOM_ISA(id, architecture) LOOM_ISA_##architecture(id),
#include "backend/cpu/isas.def"
#undef LOOM_ISA
};

std::vector<Isa> detect() {
  std::vector<Isa> isas;
  for (size_t i = 0; i < std::size(kIsas); ++i) {
    if (kIsas[i].runs != nullptr && kIsas[i].runs()) isas.push_back(static_cast<Isa>(i));
  }
  return isas;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return kIsas[static_cast<size_t>(isa)].name;
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
  static const std::array<Ops, std::size(kIsas)> tables = [] {
    std::array<Ops, std::size(kIsas)> all;
    for (Ops& ops : all) ops = reference_ops();
    for (Isa available : available_isas()) {
      const IsaRow& row = kIsas[static_cast<size_t>(available)];
      Ops& ops = all[static_cast<size_t>(available)];
      row.fill(ops);
      if (row.fill_training != nullptr) row.fill_training(ops);
    }
    return all;
  }();
  return tables[static_cast<size_t>(isa)];
}

IsaProbe cpu_probe(Isa isa) {
  IsaProbe probe;
  kIsas[static_cast<size_t>(isa)].fill_probe(probe);
  return probe;
}

}  // namespace loom::core
