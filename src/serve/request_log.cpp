#include "serve/request_log.hpp"

#include <atomic>
#include <mutex>

#include "base/civil_time.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {
namespace {

using LogClock = std::chrono::steady_clock;

std::string now() {
  return format_time(utc_now(), "%Y-%m-%dT%H:%M:%SZ").value_or("");
}

class LoggedReply final : public HttpReply {
 public:
  LoggedReply(std::shared_ptr<HttpReply> reply, const HttpRequest& request, LogLine log)
      : reply_(std::move(reply)),
        log_(std::move(log)),
        line_(object("time", std::string_view(now()), "method", std::string_view(request.method),
                     "path", std::string_view(request.path))) {}
  ~LoggedReply() override { finish(499); }

  void send(int status, HttpHeaders headers, std::string body) override {
    const auto bytes = static_cast<int64_t>(body.size());
    // Read first: a client that has the whole reply may disconnect.
    const bool gone = reply_->gone();
    reply_->send(status, std::move(headers), std::move(body));
    report_field("bytes", bytes);
    finish(gone ? 499 : status);
  }
  void send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next) override {
    const bool gone = reply_->gone();
    reply_->send_pieces(status, std::move(headers), bytes, std::move(next));
    report_field("bytes", static_cast<int64_t>(bytes));
    finish(gone ? 499 : status);
  }
  void begin(int status, HttpHeaders headers) override {
    status_ = status;
    reply_->begin(status, std::move(headers));
  }
  void write(std::string piece) override {
    bytes_ += static_cast<int64_t>(piece.size());
    reply_->write(std::move(piece));
  }
  void end() override {
    const bool gone = reply_->gone();
    reply_->end();
    report_field("bytes", bytes_);
    finish(gone ? 499 : status_);
  }
  bool gone() const override { return reply_->gone(); }
  std::string_view caller() const override { return reply_->caller(); }
  void report_field(const char* name, int64_t value) override {
    const std::lock_guard lock(mutex_);
    line_.add(name, JsonValue::integer(value));
  }

 private:
  void finish(int status) {
    if (done_.exchange(true)) return;
    const std::chrono::duration<double, std::milli> took = LogClock::now() - begun_;
    const std::lock_guard lock(mutex_);
    line_.add("status", JsonValue::integer(status));
    line_.add("ms", JsonValue::real(took.count()));
    log_(dump_json(line_));
  }

  const std::shared_ptr<HttpReply> reply_;
  const LogLine log_;
  const LogClock::time_point begun_ = LogClock::now();
  std::mutex mutex_;
  JsonValue line_;
  int status_ = 0;
  int64_t bytes_ = 0;
  std::atomic<bool> done_ = false;
};

}  // namespace

std::shared_ptr<HttpReply> logged(std::shared_ptr<HttpReply> reply, const HttpRequest& request,
                                  LogLine log) {
  return std::make_shared<LoggedReply>(std::move(reply), request, std::move(log));
}

}  // namespace loom::core
