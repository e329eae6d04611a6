// Hashes by which a hub names its files, computed in pieces. It wraps OpenSSL, which only
// digest.cpp includes in this room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "loom/result.hpp"

struct evp_md_ctx_st;

namespace loom::cli {

class Digest {
 public:
  // The hash for `etag`. 64 digits: SHA-256 of the bytes. 40 digits: git's hash of a blob of `size`
  // bytes, SHA-1 of "blob SIZE", a zero byte and the bytes. Errors: invalid_argument (another
  // name), internal.
  static Result<Digest> for_etag(std::string_view etag, int64_t size);

  void add(std::string_view bytes);
  // In hexadecimal; nothing can be added afterwards. Empty if the library failed.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  bool good_ = true;
};

}  // namespace loom::cli
