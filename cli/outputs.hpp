// The files that a command writes: checked before its work begins, and, where writing fails at its
// end, saved under another name, so that no work is lost.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

bool file_exists(const std::string& path);

// Collects what a command will write. Paths that are empty were not asked for.
class Outputs {
 public:
  // `endings`: those that the path may have; one of them may be "", a path without an ending.
  // `writes`: what the option writes, for the message: "the loss curve as SVG".
  Outputs& file(std::string_view option, const std::string& path,
                std::vector<std::string_view> endings, std::string_view writes);
  // A file that is read, so that no output takes its name. `of`: its option or argument.
  Outputs& input(std::string_view of, const std::string& path);

  // Can all be written, as far as can be known? Leaves nothing behind.
  // Errors: invalid_argument (an ending that does not fit, a folder, no such folder, two outputs or
  // an output and an input in one file), io_error (the system refuses).
  Status check() const;

 private:
  struct Named {
    std::string name, path;
  };
  struct Written {
    Named named;
    std::vector<std::string_view> endings;
    std::string writes;
  };
  Status check_names() const;
  std::vector<Written> files_;
  std::vector<Named> inputs_;
};

// Saves work that took long. Where its path fails, a name that is free is taken: beside it, in the
// current folder, in that for temporary files.
class Keeper {
 public:
  using Save = std::function<Status(const std::string& path)>;

  // Saves under `path`, or else elsewhere. The work goes on in either case, and a note on stderr
  // says what happened. A path that failed is tried again the next time.
  void save(const std::string& path, const Save& save);
  // From now on failures are kept for finish() instead of noted.
  void begin_end() { ending_ = true; }
  // The first save that failed: why, and where its file is now. Others are noted.
  Status finish() const;

 private:
  struct Rescued {
    std::string path, name;  // name: "" while there is none
  };
  struct Failure {
    Error why;
    bool noted;
  };
  Rescued& rescued(const std::string& path);
  std::vector<Rescued> rescued_;
  std::vector<Failure> failures_;
  bool ending_ = false;
};

}  // namespace loom::cli
