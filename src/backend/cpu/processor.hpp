// Which instruction sets of isas.def this processor and its operating system can run.
#pragma once

namespace loom::core {

#define LOOM_ISA(id, architecture) bool runs_##id();
#include "backend/cpu/isas.def"
#undef LOOM_ISA

}  // namespace loom::core
