// LineFile: lines that are appended to a file, such as a log. A failed write loses only its own
// lines. The next write starts on a new line, and lost() counts the missing lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/append_file.hpp"

namespace loom::core {

class LineFile {
 public:
  // Errors: those of AppendFile::open().
  static Result<LineFile> open(const std::string& path);

  // Appends whole lines, each with its end. Errors: io_error; lines that are not completely in the
  // file are lost.
  Status write(std::string_view lines);
  // Lines that are not in the file.
  int64_t lost() const { return lost_; }

 private:
  explicit LineFile(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
  bool torn_ = false;      // the file ends with a part of a line
  bool only_end_ = false;  // only the end of that line is missing
  int64_t lost_ = 0;
};

}  // namespace loom::core
