#include "io/socket.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define LOOM_HAS_SOCKETS 1
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#endif

namespace loom::core {

Result<HostPort> parse_host_port(std::string_view text, int default_port) {
  HostPort out;
  out.port = default_port;
  std::string_view host = text, port;
  const bool bracketed = text.starts_with("[");
  const size_t end = bracketed ? text.find(']') : text.rfind(':');
  if (bracketed && end != std::string_view::npos) {
    host = text.substr(1, end - 1);
    if (end + 1 < text.size() && text[end + 1] == ':') port = text.substr(end + 2);
  } else if (!bracketed && end != std::string_view::npos) {
    host = text.substr(0, end);
    port = text.substr(end + 1);
  }
  if (!port.empty()) {
    const auto read = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (read.ec != std::errc() || read.ptr != port.data() + port.size()) out.port = 0;
  }
  constexpr size_t kMaxName = 255;
  if (host.empty() || host.size() > kMaxName || out.port < 1 || out.port > 65535)
    return invalid(cat("'", printable(text),
                       "' is not an address; write HOST:PORT, a port from 1 to "
                       "65535"));
  out.host = host;
  return out;
}

#if LOOM_HAS_SOCKETS
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;
#endif

Error socket_error(const char* what, const HostPort& to) {
  return make_error(Code::io_error, cat(what, ": ", std::strerror(errno)),
                    cat(to.host, ":", to.port));
}

}  // namespace

Result<Socket> Socket::connect(SocketKind kind, const HostPort& to, double seconds) {
  addrinfo hints{};
  hints.ai_socktype = kind == SocketKind::stream ? SOCK_STREAM : SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(to.host.c_str(), cat(to.port).c_str(), &hints, &found);
  if (failed != 0)
    return make_error(Code::not_found, cat("no such host: ", gai_strerror(failed)), to.host);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  Error last = make_error(Code::not_found, "no address", to.host);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    Socket out(::socket(a->ai_family, a->ai_socktype, a->ai_protocol));
    if (out.handle_ < 0) {
      last = socket_error("no socket", to);
      continue;
    }
    fcntl(out.handle_, F_SETFD, FD_CLOEXEC);
    fcntl(out.handle_, F_SETFL, O_NONBLOCK);
    if (::connect(out.handle_, a->ai_addr, a->ai_addrlen) == 0) return out;
    if (errno == EINPROGRESS) {
      const Status ready = out.wait(true, seconds);
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(out.handle_, SOL_SOCKET, SO_ERROR, &error, &size);
      if (ready.ok() && error == 0) return out;
      errno = ready.ok() ? error : ETIMEDOUT;
    }
    last = socket_error("no answer", to);
  }
  return last;
}

Status Socket::wait(bool to_write, double seconds) const {
  pollfd one{handle_, static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
  const int ready = poll(&one, 1, static_cast<int>(std::max(0.0, seconds) * 1000));
  if (ready > 0) return {};
  return make_error(Code::io_error, ready == 0 ? std::string("the other side took too long")
                                               : std::string(std::strerror(errno)));
}

Status Socket::send(std::string_view bytes, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (!bytes.empty()) {
    const auto sent = ::send(handle_, bytes.data(), bytes.size(), kNoSignal);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      return make_error(Code::io_error, std::strerror(errno));
    LOOM_TRY(wait(true, std::chrono::duration<double>(end - Clock::now()).count()));
  }
  return {};
}

Result<std::string> Socket::receive(size_t most, double seconds) {
  LOOM_TRY(wait(false, seconds));
  std::string out(most, '\0');
  const auto got = ::recv(handle_, out.data(), most, 0);
  if (got < 0) return make_error(Code::io_error, std::strerror(errno));
  out.resize(static_cast<size_t>(got));
  return out;
}

Socket::~Socket() {
  if (handle_ >= 0) ::close(handle_);
}

#else

Result<Socket> Socket::connect(SocketKind, const HostPort&, double) {
  return unsupported("this system has no sockets");
}
Status Socket::wait(bool, double) const {
  return unsupported("this system has no sockets");
}
Status Socket::send(std::string_view, double) {
  return unsupported("this system has no sockets");
}
Result<std::string> Socket::receive(size_t, double) {
  return unsupported("this system has no sockets");
}
Socket::~Socket() = default;

#endif

Socket::Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

}  // namespace loom::core
