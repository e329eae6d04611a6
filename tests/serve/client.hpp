// An HTTP client for tests: bytes out, bytes in, over a local socket.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "base/waits.hpp"
#include "io/json/json.hpp"

namespace loom::core::test {

class Socket {
 public:
  explicit Socket(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    good_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  bool good() const { return good_; }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // The bytes received within the time; empty at the end of the stream, and after a timeout.
  std::string receive(int milliseconds = kDeadlineMs) {
    pollfd one{fd_, POLLIN, 0};
    if (::poll(&one, 1, milliseconds) <= 0) return {};
    char bytes[4096];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    ended_ = n <= 0;
    return {bytes, n > 0 ? static_cast<size_t>(n) : 0};
  }
  bool ended() const { return ended_; }
  // Receives until the end of the stream.
  std::string receive_all() {
    std::string all, piece;
    while (!(piece = receive()).empty()) all += piece;
    return all;
  }

 private:
  int fd_;
  bool good_ = false, ended_ = false;
};

// A port that is taken but has no listener: no other test gets it meanwhile.
class ClosedPort {
 public:
  ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~ClosedPort() { ::close(fd_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

struct Answer {
  int status = 0;
  std::string head, body;
  JsonValue json() const {
    const Result<JsonValue> value = parse_json(body, "the reply");
    EXPECT_TRUE(value.ok()) << body;
    return value.ok() ? *value : JsonValue();
  }
  bool has(std::string_view header) const {
    return to_lower_ascii(head).find(to_lower_ascii(header)) != std::string::npos;
  }
};

inline std::string unchunked(std::string_view body) {
  std::string out;
  while (!body.empty()) {
    const size_t size = std::strtoul(std::string(body).c_str(), nullptr, 16);
    const size_t line = body.find("\r\n");
    if (size == 0 || line == std::string_view::npos) break;
    out += body.substr(line + 2, size);
    body.remove_prefix(std::min(body.size(), line + 2 + size + 2));
  }
  return out;
}

inline Answer parsed(const std::string& all) {
  Answer out;
  const size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos) return out;
  out.head = all.substr(0, end);
  if (out.head.size() > 12) out.status = std::atoi(out.head.c_str() + 9);
  out.body = all.substr(end + 4);
  if (out.has("Transfer-Encoding: chunked")) out.body = unchunked(out.body);
  return out;
}

// One request on its own connection.
inline Answer ask(uint16_t port, std::string_view method, std::string_view path,
                  std::string_view body = {}, std::string_view headers = {}) {
  Socket socket(port);
  const bool typed = to_lower_ascii(headers).find("content-type") != std::string::npos;
  const bool named = to_lower_ascii(headers).find("host:") != std::string::npos;
  socket.send(cat(method, " ", path, " HTTP/1.1\r\n", named ? "" : "Host: 127.0.0.1\r\n",
                  "Connection: close\r\n", headers,
                  body.empty() || typed ? "" : "Content-Type: application/json\r\n",
                  "Content-Length: ", body.size(), "\r\n\r\n", body));
  return parsed(socket.receive_all());
}

}  // namespace loom::core::test
