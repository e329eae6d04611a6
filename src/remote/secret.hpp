// Cryptography of "donate compute": SHA-256, and a challenge that only a client with the secret can
// answer. It wraps OpenSSL, which only secret.cpp includes in this room. It does not hide the
// traffic: the secret controls access, not confidentiality.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct evp_md_ctx_st;

namespace loom::core {

constexpr size_t kDonateSecretLeast = 16;  // bytes: an observer can try proofs offline

// SHA-256 of bytes in pieces.
class DonateDigest {
 public:
  DonateDigest();
  void add(std::string_view bytes);
  // The digest in hexadecimal; nothing can be added afterwards. Errors: internal.
  Result<std::string> finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  bool good_ = false;
};

// 32 bytes of the system's randomness in hexadecimal, new for each connection. Errors: internal.
Result<std::string> donate_challenge();
// HMAC-SHA-256 (RFC 2104) under `secret` of "loom donate 1\n" and the challenge, in hexadecimal.
Result<std::string> donate_proof(std::string_view secret, std::string_view challenge);
// Constant-time comparison of two texts of equal length.
bool same_donate_proof(std::string_view a, std::string_view b);

}  // namespace loom::core
