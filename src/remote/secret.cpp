#include "remote/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <limits>
#include <span>

#include "base/text.hpp"
#include "io/bytes/sha256.hpp"

namespace loom::core {
void DonateDigest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

DonateDigest::DonateDigest() : context_(EVP_MD_CTX_new()) {
  good_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
}

void DonateDigest::add(std::string_view bytes) {
  good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

Result<std::string> DonateDigest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  if (!good_ || EVP_DigestFinal_ex(context_.get(), bytes.data(), &length) != 1)
    return make_error(Code::internal, "OpenSSL computes no SHA-256");
  good_ = false;
  return hex_text(std::as_bytes(std::span(bytes).first(length)));
}

Result<std::string> donate_challenge() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return make_error(Code::internal, "the system gives no random bytes for a challenge");
  return hex_text(std::as_bytes(std::span(bytes)));
}

Result<std::string> donate_proof(std::string_view secret, std::string_view challenge) {
  const std::string text = cat("loom donate 1\n", challenge);
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  if (secret.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return invalid("a secret of more than 2 GB");
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(),
           &length) == nullptr)
    return make_error(Code::internal, "OpenSSL computes no HMAC");
  return hex_text(std::as_bytes(std::span(bytes).first(length)));
}

bool same_donate_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace loom::core
