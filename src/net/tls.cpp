#include "net/tls.hpp"

#include "base/left_out.hpp"

#if LOOM_TLS
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <filesystem>
#endif

namespace loom::core {

#if LOOM_TLS
namespace {

struct FreeCert {
  void operator()(X509* cert) const { X509_free(cert); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// The first error of OpenSSL.
std::string take_reason() {
  const unsigned long first = ERR_get_error();
  ERR_clear_error();
  const char* reason = first != 0 ? ERR_reason_error_string(first) : nullptr;
  return reason != nullptr ? reason : "it is not PEM";
}

Status check_file(const std::string& path) {
  std::error_code bad;
  if (std::filesystem::is_regular_file(path, bad)) return {};
  return make_error(Code::not_found, "there is no such file", path);
}

int no_password(char*, int, int, void*) {
  return 0;
}

Status use_own(SSL_CTX* context, const TlsFiles& files) {
  if (files.cert.empty() || files.key.empty())
    return invalid("TLS needs a certificate and its key; give --tls-cert and --tls-key");
  LOOM_TRY(check_file(files.cert));
  LOOM_TRY(check_file(files.key));
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) != 1)
    return bad_file(cat("no certificate can be read: ", take_reason(), "; give a PEM file"),
                    files.cert);
  // The certificate is loaded by now, so a key that does not match it fails here too.
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return bad_file(cat("no key of ", printable(files.cert), " can be read: ", take_reason(),
                        "; give its PEM file, without a password"),
                    files.key);
  }
  return {};
}

Status trust(SSL_CTX* context, const std::string& ca) {
  LOOM_TRY(check_file(ca));
  ERR_clear_error();
  if (SSL_CTX_load_verify_locations(context, ca.c_str(), nullptr) == 1) return {};
  return bad_file(cat("no certificates can be read: ", take_reason(), "; give a PEM file"), ca);
}

Result<TlsContext> make_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), &SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return make_error(Code::internal, cat("OpenSSL makes no context: ", take_reason()));
  SSL_CTX_set_default_passwd_cb(context.get(), &no_password);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Idle connections hold no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

Result<TlsContext> tls_server(const TlsFiles& files) {
  LOOM_ASSIGN(TlsContext context, make_context(TLS_server_method()));
  LOOM_TRY(use_own(context.get(), files));
  // Sessions are not resumed: each connection is authenticated with the current files.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  if (files.ca.empty()) return context;
  LOOM_TRY(trust(context.get(), files.ca));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(files.ca.c_str()));
  return context;
}

Result<TlsContext> tls_client(const TlsFiles& files) {
  LOOM_ASSIGN(TlsContext context, make_context(TLS_client_method()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (!files.cert.empty() || !files.key.empty()) LOOM_TRY(use_own(context.get(), files));
  if (!files.ca.empty()) {
    LOOM_TRY(trust(context.get(), files.ca));
  } else if (SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    return make_error(Code::io_error, "the system has no trusted certificates; give --tls-ca");
  }
  return context;
}

std::string tls_warning(const TlsFiles& files) {
  const std::unique_ptr<BIO, FreeBio> file(BIO_new_file(files.cert.c_str(), "r"));
  const std::unique_ptr<X509, FreeCert> cert(
      file ? PEM_read_bio_X509(file.get(), nullptr, &no_password, nullptr) : nullptr);
  ERR_clear_error();
  if (cert != nullptr && X509_cmp_current_time(X509_get0_notAfter(cert.get())) < 0)
    return cat(files.cert, " has expired: clients refuse it");
  if (cert != nullptr && X509_cmp_current_time(X509_get0_notBefore(cert.get())) > 0)
    return cat(files.cert, " is not valid yet: clients refuse it");
  using std::filesystem::perms;
  std::error_code bad;
  const perms mode = std::filesystem::status(files.key, bad).permissions();
  if (!bad && (mode & perms::others_read) != perms::none)
    return cat(files.key, " can be read by every user of this machine: chmod 600 it");
  return {};
}

Status tls_expect(ssl_st* session, const std::string& host) {
  X509_VERIFY_PARAM* param = SSL_get0_param(session);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool known = X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1 ||
                     (SSL_set_tlsext_host_name(session, host.c_str()) == 1 &&
                      X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size()) == 1);
  ERR_clear_error();
  if (known) return {};
  return invalid("no name that a certificate can be of", host);
}

std::string tls_distrust(ssl_st* session) {
  const long why = SSL_get_verify_result(session);
  return why == X509_V_OK ? std::string() : X509_verify_cert_error_string(why);
}

#else

namespace {
Error no_tls() {
  return left_out_of_build("TLS", LOOM_BUILD_WITH("LOOM_TLS=ON"));
}
}  // namespace

Result<TlsContext> tls_server(const TlsFiles&) {
  return no_tls();
}
Result<TlsContext> tls_client(const TlsFiles&) {
  return no_tls();
}
std::string tls_warning(const TlsFiles&) {
  return {};
}
Status tls_expect(ssl_st*, const std::string&) {
  return no_tls();
}
std::string tls_distrust(ssl_st*) {
  return {};
}

#endif

}  // namespace loom::core
