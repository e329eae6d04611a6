// loom absorb --serve: streams over HTTP, for processes of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "../shared/verbs.hpp"

namespace loom::cli {

struct AbsorbHostFlags {
  std::string folder;  // empty: do not serve
  std::string address = "127.0.0.1";
  int64_t port = 9876;
};

// Runs until a signal; returns the exit code. stream_bytes: maximum size of a body.
int run_absorb_host(const AbsorbHostFlags& flags, const EngineFlags& engine, uint64_t stream_bytes);

}  // namespace loom::cli
