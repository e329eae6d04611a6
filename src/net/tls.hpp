// TLS 1.2 and later: certificates, keys and trust, by OpenSSL. A build without it (LOOM_TLS=OFF)
// cannot make a context and returns a one-line error.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX and SSL
struct ssl_st;

namespace loom::core {

// Names of PEM files; "" means none.
struct TlsFiles {
  std::string cert;  // own certificate, then the chain up to its root
  std::string key;   // its key, without a password
  // Trusted certificates. With it, a server requires a client certificate signed by one of these;
  // without it, none. A client trusts these instead of the system's.
  std::string ca;
};

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// For servers. Errors: invalid_argument (no certificate, no key), not_found, bad_file (unreadable;
// they do not match), unsupported (a build without TLS).
Result<TlsContext> tls_server(const TlsFiles& files);
// For clients; a certificate of their own is optional. Servers must authenticate. Errors: as
// tls_server().
Result<TlsContext> tls_client(const TlsFiles& files);

// A warning about working files: the certificate has expired, or others on this machine can read
// the key. "" if there is none.
std::string tls_warning(const TlsFiles& files);

// For a client's connection: sets the name or number that the server's certificate must have.
// Errors: invalid_argument.
Status tls_expect(ssl_st* session, const std::string& host);
// Why the certificate of the other side was not trusted; "" if that was not the problem.
std::string tls_distrust(ssl_st* session);

}  // namespace loom::core
