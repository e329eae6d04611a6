// A quick proof that this build computes correctly on this processor: a small matmul of every
// number type on every instruction set, compared with the bits of the reference backend.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"

namespace loom::core {

struct SelfCheck {
  Isa isa = Isa::scalar;
  int checked = 0;                  // combinations of number type and activations
  std::vector<std::string> failed;  // "q4_0 with q8 activations"
};

// One entry per available instruction set.
Result<std::vector<SelfCheck>> self_check();

}  // namespace loom::core
