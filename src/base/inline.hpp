// LOOM_INLINE: always inlined. Code that is compiled once per instruction set must not leave a
// shared out-of-line copy: the linker could keep the AVX-512 copy for all (tools/isa_symbols.sh
// checks the object files).
#pragma once

#define LOOM_INLINE inline __attribute__((always_inline))
#define LOOM_INLINE_LAMBDA __attribute__((always_inline))
