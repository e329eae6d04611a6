// The output files of a command. They are checked before its work starts: an existing file needs
// --force. If writing fails at the end, they are saved under another name, so that no work is lost.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

bool file_exists(const std::string& path);
// `path`, or the first free one of "net-2.entity", "net-3.entity" ... for "net.entity".
std::string unused_name(const std::string& path);

// Writes a file, or standard output for "-".
Status write_text(const std::string& path, const std::string& text);

// Collects a command's output paths. Empty paths are ignored.
class Outputs {
 public:
  // `replace`: --force; outputs may exist.
  explicit Outputs(bool replace) : replace_(replace) {}
  // `endings`: the allowed endings; one may be "", a path without an ending. `writes`: what the
  // option writes, for the message: "the loss curve as SVG".
  Outputs& file(std::string_view option, const std::string& path,
                std::vector<std::string_view> endings, std::string_view writes);
  // A text that may also go to standard output, as "-": write_text() writes it.
  Outputs& text(std::string_view option, const std::string& path,
                std::vector<std::string_view> endings, std::string_view writes);
  // A file that the command continues if it exists: a checkpoint. It needs no --force.
  Outputs& state(std::string_view option, const std::string& path,
                 std::vector<std::string_view> endings, std::string_view writes);
  // An input file, which no output may overwrite. `of`: its option or argument.
  Outputs& input(std::string_view of, const std::string& path);

  // Checks as far as possible that all can be written. Leaves no file. Errors: invalid_argument (a
  // wrong ending, a file that exists, a folder, two outputs or an output and an input in one file),
  // io_error (the system refuses).
  Status check() const;

 private:
  struct Named {
    std::string name, path;
  };
  struct Written {
    Named named;
    std::vector<std::string_view> endings;
    std::string writes;
    bool continued = false;
  };
  Status check_names() const;
  bool replace_;
  std::vector<Written> files_;
  std::vector<Named> inputs_;
};

// Saves the results of long work. If its path fails, a free name is used: next to it, in the
// current folder, or in the folder for temporary files.
class Keeper {
 public:
  using Save = std::function<Status(const std::string& path)>;

  // Saves under `path`, or else elsewhere. The work continues in either case, and a note on stderr
  // reports it. A failed path is tried again the next time.
  void save(const std::string& path, const Save& save);
  // From now on finish() returns failures; they are not noted.
  void begin_end() { ending_ = true; }
  // The first failed save: the reason, and the location of its file. Others are noted.
  Status finish() const;

 private:
  struct Rescued {
    std::string path, name;  // name: empty while there is none
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
