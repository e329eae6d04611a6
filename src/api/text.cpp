#include "loom/text.hpp"

#include "base/memory_budget.hpp"
#include "base/text.hpp"

namespace loom {

std::string printable(std::string_view text, size_t most) {
  return core::printable(text, most);
}
Result<uint64_t> parse_size(std::string_view text) {
  return core::parse_size(text);
}
std::string size_text(uint64_t bytes) {
  return core::size_text(bytes);
}

}  // namespace loom
