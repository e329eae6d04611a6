// What a recorder needs for the ops of a trace, known before they run.
#pragma once

#include "ops/recorder.hpp"
#include "ops/trace.hpp"

namespace loom::core {

// Room for those commands, for the q8 copies of the largest input of a matmul, as recorded commands
// hold their addresses, and for attention over `positions`.
Status reserve_for(const Trace& trace, int64_t positions, Recorder& recorder);

}  // namespace loom::core
