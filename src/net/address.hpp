// Kinds of addresses that servers listen at: IPv4 and IPv6 numbers, and Unix sockets
// ("unix:/run/loom.sock").
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// Does the address name this machine alone? 127.0.0.1, ::1, ::ffff:127.0.0.1 and Unix sockets do. A
// name counts as one that others reach.
bool is_loopback(std::string_view address);

constexpr std::string_view kUnixPrefix = "unix:";
inline bool is_unix_address(std::string_view address) {
  return address.starts_with(kUnixPrefix);
}
// The path of a Unix address. Errors: invalid_argument (no path, more bytes than the system takes).
Result<std::string> unix_path(std::string_view address);

}  // namespace loom::core
