// Connections of "donate compute": frames in, frames out, each with a time limit. It is the only
// part of the room that listens, and only listener.cpp includes Boost.Asio here.
//
// One thread, that of run(), reads and writes, so frames of one connection never interleave. It
// never parses and never computes. A connection is read one frame at a time: its handler requests
// the next one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "net/tls.hpp"
#include "remote/frame.hpp"

namespace loom::core {

// A connection, as seen by its handler. Any thread; calls after a disconnect have no effect.
class DonateConnection {
 public:
  virtual ~DonateConnection() = default;
  // Sends one whole message. Messages keep the order of these calls.
  virtual void send(std::string json) = 0;
  // Reads the next frame.
  virtual void next() = 0;
  // Adds to the number of pending answers: while there are any, a client may be silent.
  virtual void await(int64_t more) = 0;
  // Sends what is queued, then ends; reads nothing more.
  virtual void finish() = 0;
  virtual void allow(uint32_t most) = 0;  // maximum bytes of a frame, from the next one on
  // The client no longer needs answers.
  virtual bool gone() const = 0;
};

// Handler of one connection. Called on the thread of run(), and must not wait.
class DonateHandler {
 public:
  virtual ~DonateHandler() = default;
  virtual void on_open(const std::shared_ptr<DonateConnection>& connection) = 0;
  virtual void on_frame(const std::shared_ptr<DonateConnection>& connection, std::string frame) = 0;
};

struct DonateLimits {
  // Maximum at the same time. At the maximum, a new connection replaces the peer that has been
  // silent longest before its first frame, or else one without pending answers. If all have some,
  // the new one is closed.
  int64_t connections = 64;
  uint64_t frames = 256u << 20;             // bytes of all unhandled frames
  uint32_t first_frame = kDonateFrameMost;  // maximum bytes, until allow()
  uint64_t waiting_bytes = 1 << 20;         // of answers; above it reading stops
  // Time limit for receiving a frame from the first byte to the last, and for sending one.
  std::chrono::milliseconds time{30000};
  // Time limit between frames without pending answers; unset means `time`.
  std::optional<std::chrono::milliseconds> idle_time{};
  std::chrono::milliseconds handshake_time{10000};  // of TLS
  uint32_t socket_mode = 0600;                      // mode of a Unix socket
};

class DonateListener {
 public:
  using Make = std::function<std::shared_ptr<DonateHandler>()>;
  // Listens at `port` of `address`, an IPv4 or IPv6 number (port 0 means any free port), or at a
  // Unix socket, "unix:PATH". `make` is called for each connection. Errors: invalid_argument (no
  // such address), io_error, naming it.
  static Result<std::unique_ptr<DonateListener>> listen(const std::string& address, uint16_t port,
                                                        const DonateLimits& limits, Make make);
  // Does not listen: take() adds connections, and run_one() serves them.
  static std::unique_ptr<DonateListener> create(const DonateLimits& limits, Make make);
  virtual ~DonateListener() = default;
  // Takes ownership of a connected stream socket without TLS and serves it. Call it on the serving
  // thread. Errors: io_error (not a socket); the descriptor stays the caller's.
  virtual Status take(int descriptor) = 0;
  // Handles one ready event, and waits up to `most` for it. Returns false if there was none.
  // Replaces run(), on one thread.
  virtual bool run_one(std::chrono::milliseconds most) = 0;
  // Encrypts new TCP connections with this context; from any thread.
  virtual void use_tls(TlsContext context) = 0;
  virtual uint16_t port() const = 0;
  virtual int64_t connections() const = 0;
  // Runs until stop().
  virtual void run() = 0;
  // Refuses new connections. From any thread.
  virtual void refuse_more() = 0;
  // Sends queued messages within the time, then ends run(). From any thread.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace loom::core
