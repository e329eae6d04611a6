// Datagrams to one address. Listeners may come and go; the system may say that nobody listened to a
// datagram, at a later call. That is counted, so that a run that reached nobody can say so.
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
    // An error is about an earlier datagram, and this one was not sent: once more.
    if (socket_.send(bytes, kSeconds).ok()) {
      ++sent_;
    } else {
      ++refused_;
      sent_ += socket_.send(bytes, kSeconds).ok() ? 1 : 0;
    }
  }

  // io_error if every datagram was refused.
  Status end() {
    constexpr double kSeconds = 0.05;  // for what the system says of the last one
    const bool pending = refused_ + 1 == sent_ && socket_.readable(kSeconds);
    if (pending && !socket_.receive(1, kSeconds).ok()) ++refused_;
    if (refused_ == 0 || refused_ < sent_) return {};
    return make_error(Code::io_error,
                      cat("telemetry: nobody listens there; ", sent_, " datagrams were lost"),
                      address_);
  }

 private:
  Socket socket_;
  std::string address_;
  int64_t sent_ = 0, refused_ = 0;
};

}  // namespace loom::core
