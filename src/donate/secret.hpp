// What "donate compute" needs of cryptography: SHA-256, and a challenge that only who knows the
// secret can answer. A cover of OpenSSL, which secret.cpp alone includes. Nothing here hides what
// is sent: the secret says who may ask, not who can read along.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct evp_md_ctx_st;

namespace loom::core {

constexpr size_t kDonateSecretLeast = 16;  // bytes: a proof can be tried offline by who saw it

// SHA-256 of bytes that come piece by piece.
class DonateDigest {
 public:
  DonateDigest();
  void add(std::string_view bytes);
  // In hexadecimal, of what was added; nothing can be added afterwards. Errors: internal.
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
// Takes as long wherever two texts of one length differ.
bool same_donate_proof(std::string_view a, std::string_view b);

}  // namespace loom::core
