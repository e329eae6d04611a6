#include "digest.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>

#include "name.hpp"

namespace loom::cli {

void Digest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Result<Digest> Digest::for_etag(std::string_view etag, int64_t size) {
  const bool large = is_sha256_hex(etag);
  if (!large && !is_sha1_hex(etag))
    return Error{Code::invalid_argument, "no hash that this program knows", std::string(etag), -1};
  Digest digest;
  digest.context_.reset(EVP_MD_CTX_new());
  if (digest.context_ == nullptr ||
      EVP_DigestInit_ex(digest.context_.get(), large ? EVP_sha256() : EVP_sha1(), nullptr) != 1)
    return Error{Code::internal, "OpenSSL has no such hash", large ? "SHA-256" : "SHA-1", -1};
  if (!large) digest.add(fmt::format("blob {}", size) + '\0');
  return digest;
}

void Digest::add(std::string_view bytes) {
  good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned length = 0;
  if (!good_ || EVP_DigestFinal_ex(context_.get(), bytes.data(), &length) != 1) return {};
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

}  // namespace loom::cli
