// The other side of a connection to a server in this process: a socket pair, and bytes that arrive
// in parts.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace loom_fuzz {

// `text` as it may arrive: whole if `seed` is 0, else in up to 8 parts that the seed decides.
inline std::vector<std::string_view> pieces(std::string_view text, uint8_t seed) {
  constexpr size_t kMax = 8;
  std::vector<std::string_view> out;
  uint32_t state = seed;
  while (seed != 0 && out.size() + 1 < kMax && text.size() > 1) {
    state = state * 1664525u + 1013904223u;
    // Short parts are as likely as long ones.
    const size_t longest = (state >> 24) % 2 == 0 ? 8 : text.size();
    const size_t size = 1 + (state >> 8) % std::min(longest, text.size() - 1);
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  out.push_back(text);
  return out;
}

class Peer {
 public:
  Peer() {
    int both[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    mine_ = both[0];
    theirs_ = both[1];
  }
  ~Peer() { ::close(mine_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The socket of the server, which owns it.
  int theirs() const { return theirs_; }
  // False: the server has closed.
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(mine_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void end_writing() const { ::shutdown(mine_, SHUT_WR); }
  // Appends the bytes that came. Returns false if none came.
  bool read(std::string& to) {
    static char bytes[64 << 10];
    const ssize_t got = ::recv(mine_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) to.append(bytes, static_cast<size_t>(got));
    ended_ = ended_ || got == 0;
    return got > 0;
  }
  // The server has closed, and all its bytes are read.
  bool ended() const { return ended_; }

 private:
  int mine_ = -1, theirs_ = -1;
  bool ended_ = false;
};

}  // namespace loom_fuzz
