// The cost limit of one call. A tokenizer file is untrusted: its patterns may backtrack endlessly,
// and its replacements may double the text repeatedly. So work and memory are counted. The budget
// also asks whether the caller still needs the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.hpp"

namespace loom::core::text {

struct Budget {
  uint64_t steps = 0;  // of regular expressions
  uint64_t bytes = 0;  // that rewriting steps may write
  // Called after every few thousand units of work; true ends the call. May be null; not owned.
  const std::function<bool()>* should_stop = nullptr;
  uint64_t unasked = 0;  // work since its last call

  static Budget for_text(size_t text_bytes) {
    Budget budget;
    budget.extend(text_bytes);
    budget.steps += 1'000'000;
    budget.bytes += 65'536;
    return budget;
  }
  void extend(size_t text_bytes) {
    steps += uint64_t{1024} * text_bytes;
    bytes += uint64_t{256} * text_bytes;
  }
  // Counts work: bytes, symbols or steps. Returns true if the caller cancelled; end with
  // stop_error().
  [[nodiscard]] bool stopped(uint64_t work) {
    if (should_stop == nullptr) return false;
    constexpr uint64_t kAskedWork = 4096;
    unasked += work;
    if (unasked < kAskedWork) return false;
    unasked = 0;
    return (*should_stop)();
  }
  static Error stop_error() { return make_error(Code::cancelled, "tokenizing was stopped"); }
  // Returns false if fewer bytes are left.
  [[nodiscard]] bool spend_bytes(uint64_t count) {
    if (count > bytes) return false;
    bytes -= count;
    return true;
  }
};

}  // namespace loom::core::text
