// LineFile: lines that are appended to a file, such as a log. A write that fails loses its own
// lines and no later ones: the next write begins on a line of its own, and lost() counts what is
// missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/append_file.hpp"

namespace loom::core {

class LineFile {
 public:
  // Errors: those of AppendFile::open().
  static Result<LineFile> open(const std::string& path);

  // Appends whole lines, each with its end. Errors: io_error; lines that are not in the file as a
  // whole are lost then.
  Status write(std::string_view lines);
  // Lines that are not in the file.
  int64_t lost() const { return lost_; }

 private:
  explicit LineFile(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
  bool torn_ = false;      // the file ends with a part of a line
  bool only_end_ = false;  // of that line nothing but its end is missing
  int64_t lost_ = 0;
};

}  // namespace loom::core
