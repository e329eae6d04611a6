// What one call may cost. A tokenizer file is untrusted: its patterns may backtrack without end and
// its replacements may double the text again and again, so that work and memory are counted, not
// trusted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loom::core::text {

struct Budget {
  uint64_t steps = 0;  // of regular expressions
  uint64_t bytes = 0;  // that steps which rewrite the text may write

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
  // False when so many bytes are more than is left.
  [[nodiscard]] bool spend_bytes(uint64_t count) {
    if (count > bytes) return false;
    bytes -= count;
    return true;
  }
};

}  // namespace loom::core::text
