#include "serve/log_file.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "base/text.hpp"
#include "io/files/line_file.hpp"

namespace loom::core {
namespace {

class RequestLog {
 public:
  RequestLog(LineFile file, std::string path, std::function<void(const std::string&)> note)
      : file_(std::move(file)), path_(std::move(path)), note_(std::move(note)) {}
  ~RequestLog() {
    if (missing_ > 0) note_(cat(path_, ": ", missing_, " lines of the log are lost"));
  }
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (missing_ > 0 && !go_on()) {
      ++missing_;
      return;
    }
    const Status done = file_.write(line + "\n");
    if (done.ok()) return;
    ++missing_;
    note_(cat(done.error().str(), "; lines of the log are lost until it can be written"));
  }

 private:
  // The line about the loss comes first, so that a reader of the log sees it in its place.
  bool go_on() {
    if (!file_.write(cat("{\"lost_lines\":", missing_, "}\n")).ok()) return false;
    note_(cat(path_, ": the log is written again; ", missing_, " lines are lost"));
    missing_ = 0;
    return true;
  }

  std::mutex mutex_;
  LineFile file_;
  const std::string path_;
  const std::function<void(const std::string&)> note_;
  int64_t missing_ = 0;  // since a line was written
};

}  // namespace

Result<LogLine> log_to_file(const std::string& path,
                            std::function<void(const std::string& text)> note) {
  LOOM_ASSIGN(LineFile file, LineFile::open(path));
  const auto log = std::make_shared<RequestLog>(std::move(file), path, std::move(note));
  return LogLine([log](const std::string& line) { log->add(line); });
}

}  // namespace loom::core
