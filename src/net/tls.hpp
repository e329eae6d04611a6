// TLS 1.2 and later: certificates, keys and who is trusted. OpenSSL does it. A build without it
// (LOOM_TLS=OFF) refuses to make a context, with one line that says so.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX and SSL
struct ssl_st;

namespace loom::core {

// Names of PEM files; "": none.
struct TlsFiles {
  std::string cert;  // the own certificate, then those between it and its root
  std::string key;   // its key, without a password
  // Whom to trust. A server asks clients for a certificate of one of these, and for none without
  // it. A client trusts these instead of the system's.
  std::string ca;
};

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// For what listens. Errors: invalid_argument (no certificate, no key), not_found, bad_file (cannot
// be read; they do not belong together), unsupported (a build without TLS).
Result<TlsContext> tls_server(const TlsFiles& files);
// For what connects; a certificate of its own is optional. Servers have to prove who they are.
// Errors: as tls_server().
Result<TlsContext> tls_client(const TlsFiles& files);

// What a person should know of files that work: the certificate has expired, others of this
// machine can read the key. "": nothing.
std::string tls_warning(const TlsFiles& files);

// Of a client's connection: the name or number that the certificate of the server has to be of.
// Errors: invalid_argument.
Status tls_expect(ssl_st* session, const std::string& host);
// Why the certificate of the other side was not trusted; "" if it is not the reason.
std::string tls_distrust(ssl_st* session);

}  // namespace loom::core
