#include "tls_flags.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "console.hpp"
#include "net/address.hpp"
#include "signals.hpp"

namespace loom::cli {

void TlsFlags::add(const Command& verb) {
  const Option own = verb.option(
      "--tls-cert", cert,
      "PEM file of this machine's certificate, followed by those above it: connections over TCP "
      "are encrypted (TLS 1.2 or later). SIGHUP reads it again");
  verb.option("--tls-key", key, "PEM file of its key, without a password").needs(own);
  verb.option("--tls-client-ca", client_ca,
              "PEM file: clients must have a certificate of one of these authorities")
      .needs(own);
  verb.option("--socket-mode", mode, "Permissions of a Unix socket (--host unix:PATH), in octal")
      .show_default();
}

Result<core::TlsContext> TlsFlags::server(const std::vector<std::string>& hosts) const {
  if (!enabled()) return core::TlsContext();
  if (std::ranges::all_of(hosts, is_unix_host))
    return Error{Code::invalid_argument, "a Unix socket is not encrypted; leave --tls-cert out",
                 hosts.empty() ? std::string() : hosts.front(), -1};
  const core::TlsFiles files{cert, key, client_ca};
  LOOM_ASSIGN(core::TlsContext made, core::tls_server(files));
  if (const std::string warning = core::tls_warning(files); !warning.empty()) note(warning);
  hangups_reload();
  return made;
}

void TlsFlags::reload(const std::function<void(core::TlsContext)>& use) const {
  if (!enabled() || !take_hangup()) return;
  const core::TlsFiles files{cert, key, client_ca};
  Result<core::TlsContext> made = core::tls_server(files);
  if (!made.ok()) return note("the certificate stays as it was: " + made.error().str());
  use(std::move(*made));
  const std::string warning = core::tls_warning(files);
  note(warning.empty() ? cert + " was read again" : warning);
}

Result<uint32_t> TlsFlags::socket_mode() const {
  uint32_t out = 0;
  const auto read = std::from_chars(mode.data(), mode.data() + mode.size(), out, 8);
  if (read.ec == std::errc() && read.ptr == mode.data() + mode.size() && out <= 0777) return out;
  return Error{Code::invalid_argument, "--socket-mode must be octal, from 0000 to 0777", mode, -1};
}

std::string shown_address(const std::string& host, int port, const std::string& scheme) {
  if (is_unix_host(host)) return host;
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("{}{}:{}", scheme, six ? "[" + host + "]" : host, port);
}

bool is_unix_host(const std::string& host) {
  return core::is_unix_address(host);
}

bool is_far_host(const std::string& host) {
  return !core::is_loopback(host);
}

}  // namespace loom::cli
