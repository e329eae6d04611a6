// Datagrams to one address. Listeners may come and go. At a later call the system may report that a
// datagram had no listener. Such reports are counted, so a run without any listener can report it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "io/socket.hpp"

namespace loom::core {

class DatagramSender {
 public:
  // `address`: for messages.
  DatagramSender(Socket socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  void send(std::string_view bytes) {
    constexpr double kSeconds = 0.1;
    // An error belongs to an earlier datagram, and this one was not sent: try again.
    if (socket_.send(bytes, kSeconds).ok()) {
      ++sent_;
    } else {
      ++refused_;
      sent_ += socket_.send(bytes, kSeconds).ok() ? 1 : 0;
    }
  }

  // io_error if every datagram was refused.
  Status end() {
    constexpr double kSeconds = 0.05;  // for the system's report on the last one
    const bool pending = refused_ + 1 == sent_ && socket_.readable(kSeconds);
    if (pending && !socket_.receive(1, kSeconds).ok()) ++refused_;
    if (refused_ == 0 || refused_ < sent_) return {};
    return make_error(Code::io_error,
                      cat("telemetry: no listener there; ", sent_, " datagrams were lost"),
                      address_);
  }

 private:
  Socket socket_;
  std::string address_;
  int64_t sent_ = 0, refused_ = 0;
};

}  // namespace loom::core
