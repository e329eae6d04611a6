// The memory that a recorder needs for the ops of a trace, known before they run.
#pragma once

#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {

// Reserves memory for those commands, for attention over `positions`, and for the q8 copies of the
// largest input of a matmul. Recorded commands hold the addresses of these copies.
Status reserve_for(const Trace& trace, int64_t positions, Recorder& recorder);

}  // namespace loom::core
