// Addresses that servers listen at: IPv4 and IPv6 numbers, and Unix sockets
// ("unix:/run/loom.sock").
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// Whether only this machine can reach the address: 127.0.0.1, ::1, ::ffff:127.0.0.1 and Unix
// sockets. A name counts as reachable by others.
bool is_loopback(std::string_view address);

constexpr std::string_view kUnixPrefix = "unix:";
inline bool is_unix_address(std::string_view address) {
  return address.starts_with(kUnixPrefix);
}
// The path of a Unix address. Errors: invalid_argument (no path, longer than the system allows).
Result<std::string> unix_path(std::string_view address);

}  // namespace loom::core
