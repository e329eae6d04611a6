#include "io/files/line_file.hpp"

#include <algorithm>
#include <utility>

namespace loom::core {

Result<LineFile> LineFile::open(const std::string& path) {
  LOOM_ASSIGN(AppendFile file, AppendFile::open(path));
  return LineFile(std::move(file));
}

Status LineFile::write(std::string_view lines) {
  const std::string text = (torn_ ? "\n" : "") + std::string(lines);
  const uint64_t before = file_.written();
  Status done = file_.write(std::as_bytes(std::span(text)));
  const size_t size = static_cast<size_t>(file_.written() - before);
  // The rest of a torn line does not count as a line.
  const int64_t whole =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), '\n') -
      (torn_ && size > 0 ? 1 : 0);
  lost_ += std::count(lines.begin(), lines.end(), '\n') - whole;
  if (size == 0) return done;
  if (only_end_) --lost_;  // the first byte was the end of that line
  torn_ = text[size - 1] != '\n';
  only_end_ = torn_ && text[size] == '\n';
  return done;
}

}  // namespace loom::core
