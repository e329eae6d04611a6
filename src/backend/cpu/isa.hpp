// The functions that the translation unit of each instruction set exports to the backend.
#pragma once

#include "backend/cpu/cpu.hpp"
#include "ops/ops.hpp"

namespace loom::core {

// fill_ops overwrites the rows of an Ops table that the set has kernels for. fill_training does the
// same for the rows of of_training(); a program that does not call it does not link the training
// kernels. matmul is exported for sets that only add an int8 dot product to another set.
#define LOOM_ISA(id, architecture)                      \
  namespace isa_##id {                                  \
    void fill_ops(Ops& ops);                            \
    void fill_training(Ops& ops);                       \
    void fill_probe(IsaProbe& probe);                   \
    void matmul(const MatmulArgs& m, const Lane& lane); \
  }
#include "backend/cpu/isas.def"
#undef LOOM_ISA

namespace isa_wasmrelaxed {
bool fuses();
}

}  // namespace loom::core
