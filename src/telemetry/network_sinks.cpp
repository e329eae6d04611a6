// JSON lines over the network: posts and datagrams.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "io/json/json.hpp"
#include "telemetry/datagram_sender.hpp"
#include "telemetry/sink.hpp"

namespace loom::core {
namespace {

struct PostAddress {
  HostPort at;
  std::string host, path;
};

Result<PostAddress> parse_post_address(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  constexpr int kHttpPort = 80;
  const bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!url.starts_with(kScheme) || !plain)
    return invalid(cat("'", printable(url),
                       "' is not an address to post to; write "
                       "http://HOST:PORT/PATH"));
  const std::string_view rest = std::string_view(url).substr(kScheme.size());
  const size_t slash = rest.find('/');
  PostAddress out;
  out.host = rest.substr(0, slash);
  out.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  LOOM_ASSIGN(out.at, parse_host_port(out.host, kHttpPort));
  return out;
}

class Posts final : public Sink {
 public:
  Posts(PostAddress to, double seconds) : to_(std::move(to)), seconds_(seconds) {}

  Status write(const Record& record) override {
    waiting_ += json_line(record) + "\n";
    ++records_;
    return waiting_.size() < kMaxPost ? Status() : flush();
  }

  Status flush() override {
    if (waiting_.empty()) return {};
    const std::string body = std::exchange(waiting_, {});
    const int64_t records = std::exchange(records_, 0);
    const bool kept = socket_.has_value();
    Status done = post(body);
    // A server may close a connection that was idle for a while.
    if (!done.ok() && kept) done = post(body);
    if (done.ok()) {
      failed_ = 0;
      return {};
    }
    lost_ += records;
    error_ = done.error();
    if (++failed_ < kMaxFailures) return {};
    return lost_error(cat(kMaxFailures, " posts in a row failed, "));
  }

  Status end() override {
    if (lost_ == 0) return {};
    return lost_error("");
  }

 private:
  static constexpr size_t kMaxPost = size_t{1} << 16, kMaxReply = size_t{1} << 16;
  static constexpr int kMaxFailures = 3;

  Error lost_error(std::string_view why) const {
    Error error = error_;
    error.message = cat("telemetry: ", why, lost_, " records were lost: ", error.message);
    error.where = cat("http://", to_.host, to_.path);
    return error;
  }

  Status post(const std::string& body) {
    if (!socket_) {
      LOOM_ASSIGN(socket_, Socket::connect(SocketKind::stream, to_.at, seconds_));
    }
    Status done =
        socket_->send(cat("POST ", to_.path, " HTTP/1.1\r\nHost: ", to_.host,
                          "\r\nContent-Type: application/x-ndjson\r\nContent-Length: ", body.size(),
                          "\r\n\r\n", body),
                      seconds_);
    if (done.ok()) done = read_reply();
    if (!done.ok()) socket_.reset();
    return done;
  }

  // The whole reply is read if it states its length; otherwise the connection ends with it.
  Status read_reply() {
    std::string reply;
    size_t head = std::string::npos;
    while (head == std::string::npos) {
      LOOM_ASSIGN(const std::string more, socket_->receive(4096, seconds_));
      reply += more;
      head = reply.find("\r\n\r\n");
      if (more.empty() || reply.size() > kMaxReply)
        return make_error(Code::io_error, "the reply is not HTTP");
    }
    const std::string start = to_lower_ascii(reply.substr(0, head));
    const bool taken = start.starts_with("http/1.") && start.size() > 9 && start[9] == '2';
    if (!taken)
      return make_error(Code::io_error,
                        cat("it answers '", printable(start.substr(0, start.find('\r'))), "'"));
    const size_t at = start.find("content-length: 0");
    const bool none = at != std::string::npos || start.find(" 204") != std::string::npos;
    if (!none || start.find("connection: close") != std::string::npos) socket_.reset();
    return {};
  }

  PostAddress to_;
  double seconds_;
  std::optional<Socket> socket_;
  std::string waiting_;
  int64_t records_ = 0, lost_ = 0;
  int failed_ = 0;
  Error error_;  // of the last post that failed
};

class Datagrams final : public Sink {
 public:
  Datagrams(Socket socket, std::string address) : to_(std::move(socket), cat("udp://", address)) {}

  Status write(const Record& record) override {
    constexpr size_t kMaxDatagram = 1400;
    std::string line = json_line(record) + "\n";
    if (line.size() > kMaxDatagram) {
      JsonValue cut = JsonValue::object();
      cut.add("wall", JsonValue::real(record.wall));
      cut.add("step", JsonValue::integer(record.step));
      cut.add("tag", JsonValue::string(record.tag.substr(0, kMaxDatagram / 8)));
      cut.add("cut", JsonValue::boolean(true));
      line = dump_json(cut) + "\n";
    }
    to_.send(line);
    return {};
  }
  Status end() override { return to_.end(); }

 private:
  DatagramSender to_;
};

}  // namespace

Result<std::unique_ptr<Sink>> http_sink(const std::string& url, double seconds) {
  LOOM_ASSIGN(PostAddress to, parse_post_address(url));
  return std::unique_ptr<Sink>(std::make_unique<Posts>(std::move(to), seconds));
}

Result<std::unique_ptr<Sink>> udp_sink(const std::string& address) {
  LOOM_ASSIGN(const HostPort to, parse_host_port(address));
  LOOM_ASSIGN(Socket socket, Socket::connect(SocketKind::datagram, to, 1.0));
  return std::unique_ptr<Sink>(std::make_unique<Datagrams>(std::move(socket), address));
}

}  // namespace loom::core
