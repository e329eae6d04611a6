// Connections of "donate compute": frames in, frames out, each with a limit on its time. The only
// part that listens; Boost.Asio does it, and listener.cpp alone sees it.
//
// One thread, that of run(), reads and writes, so that frames of one connection never interleave.
// It never parses and never computes. A connection is read one frame at a time: the next one is
// read when what handles it asks for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "donate/frame.hpp"
#include "net/tls.hpp"

namespace loom::core {

// A connection, for whoever answers on it. Any thread; after it was lost, nothing happens.
class DonateConnection {
 public:
  virtual ~DonateConnection() = default;
  // One message, whole. Messages go out in the order of these calls.
  virtual void send(std::string json) = 0;
  // Reads the next frame.
  virtual void next() = 0;
  // So many more answers are awaited on it: as long as there are any, a client may be silent.
  virtual void await(int64_t more) = 0;
  // What was sent goes out; then it ends, and nothing more is read.
  virtual void finish() = 0;
  virtual void allow(uint32_t most) = 0;  // bytes of a frame, from the next one on
  // Nobody needs an answer any more.
  virtual bool gone() const = 0;
};

// What one connection says. Called on the thread of run(), and must not wait.
class DonateHandler {
 public:
  virtual ~DonateHandler() = default;
  virtual void on_open(const std::shared_ptr<DonateConnection>& connection) = 0;
  virtual void on_frame(const std::shared_ptr<DonateConnection>& connection, std::string frame) = 0;
};

struct DonateLimits {
  // At a time. If there are as many, the peer that has been silent longest before its first frame
  // gives way to a new one, then one that awaits no answer. If all await one, the new one is
  // closed.
  int64_t connections = 64;
  uint64_t frames = 256u << 20;             // bytes of all frames that are not handled yet
  uint32_t first_frame = kDonateFrameMost;  // bytes, until allow()
  uint64_t waiting_bytes = 1 << 20;         // of answers; above it nothing more is read
  // For a frame from its first byte to its last, and for a frame to be taken by the client.
  std::chrono::milliseconds time{30000};
  // For silence between frames while no answer is awaited; none: as `time`.
  std::optional<std::chrono::milliseconds> idle_time{};
  std::chrono::milliseconds handshake_time{10000};  // of TLS
  uint32_t socket_mode = 0600;                      // who may open a Unix socket
};

class DonateListener {
 public:
  using Make = std::function<std::shared_ptr<DonateHandler>()>;
  // Listens at `port` of `address`, an IPv4 or IPv6 number (port 0: one that is free), or at a Unix
  // socket, "unix:PATH". `make` is asked for each connection. Errors: invalid_argument (no such
  // address), io_error, naming it.
  static Result<std::unique_ptr<DonateListener>> listen(const std::string& address, uint16_t port,
                                                        const DonateLimits& limits, Make make);
  // One that does not listen: take() brings its connections, and run_one() serves them.
  static std::unique_ptr<DonateListener> create(const DonateLimits& limits, Make make);
  virtual ~DonateListener() = default;
  // Serves a connected stream socket without TLS, and owns it from here on. On the thread that
  // serves. Errors: io_error (not a socket); the descriptor stays the caller's.
  virtual Status take(int descriptor) = 0;
  // Does one thing that is ready, and waits up to `most` for it. False: nothing was. In the place
  // of run(), on one thread.
  virtual bool run_one(std::chrono::milliseconds most) = 0;
  // New connections over TCP are encrypted from here on, with this context; from any thread.
  virtual void use_tls(TlsContext context) = 0;
  virtual uint16_t port() const = 0;
  virtual int64_t connections() const = 0;
  // Until stop().
  virtual void run() = 0;
  // From any thread: no new connections.
  virtual void refuse_more() = 0;
  // From any thread: what was sent goes out within the time, then run() returns.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace loom::core
