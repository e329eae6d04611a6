#include "io/process_memory.hpp"

#include <algorithm>
#include <charconv>

#include "io/files/file.hpp"

namespace loom::core {

int64_t kilobytes_of(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(": \t")));
  int64_t kilobytes = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  return read.ec == std::errc() ? kilobytes * 1024 : 0;
}

ResidentMemory resident_memory(const std::string& root) {
  const Result<std::string> text = read_file(root + "/proc/self/status", 1 << 16);
  if (!text.ok()) return {};
  return {kilobytes_of(*text, "VmRSS"), kilobytes_of(*text, "VmHWM")};
}

}  // namespace loom::core
