// The file of a request log. A full disk loses lines, never requests. Writing resumes as soon as
// possible, and a line {"lost_lines": N} reports the loss.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "serve/request_log.hpp"

namespace loom::core {

// Appends lines to `path`. `note`: called with one line when lines begin to be lost, when they are
// written again, and when the log ends with lines lost; by any thread, one at a time.
// Errors: invalid_argument (a folder), not_found (no such folder), io_error.
Result<LogLine> log_to_file(const std::string& path,
                            std::function<void(const std::string& text)> note);

}  // namespace loom::core
