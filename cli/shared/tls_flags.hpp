// Options of servers: certificates, and access to a Unix socket.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "flags.hpp"
#include "net/tls.hpp"

namespace loom::cli {

struct TlsFlags {
  std::string cert, key, client_ca, mode = "0600";

  void add(const Command& verb);
  bool enabled() const { return !cert.empty() || !key.empty() || !client_ca.empty(); }
  // The context of a server; null if none is requested. Notes problems of usable files, and makes
  // SIGHUP trigger reload(). Errors: those of the files; invalid_argument (only Unix sockets).
  Result<core::TlsContext> server(const std::vector<std::string>& hosts) const;
  // After a SIGHUP: reads the files again for new connections. Files that fail are noted, and
  // change nothing.
  void reload(const std::function<void(core::TlsContext)>& use) const;
  Result<uint32_t> socket_mode() const;
};

// "https://127.0.0.1:8080", "unix:/run/loom.sock".
std::string shown_address(const std::string& host, int port, const std::string& scheme);
bool is_unix_host(const std::string& host);
// Whether the traffic to the host can be read on the network without TLS.
bool is_far_host(const std::string& host);

}  // namespace loom::cli
