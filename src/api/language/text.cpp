#include "loom/text.hpp"

#include "base/memory_budget.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace loom {

std::string printable(std::string_view text, size_t most) {
  return core::printable(text, most);
}
std::string closest(std::string_view word, const std::vector<std::string>& known) {
  return core::closest(word, known);
}
Result<uint64_t> parse_size(std::string_view text) {
  return core::parse_size(text);
}
std::string size_text(uint64_t bytes) {
  return core::size_text(bytes);
}

}  // namespace loom
