// An upload of a model: its chunks in order, checked on arrival. Memory grows with the received
// bytes and is aligned to 64, so that weights can be used in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "remote/secret.hpp"

namespace loom::core {

class DonateBytes {
 public:
  // Errors: out_of_memory; then nothing was added. `end`: an upper bound of the size.
  Status add(std::string_view bytes, uint64_t end);
  std::span<const std::byte> view() const { return {data_.get(), size_}; }
  uint64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0, room_ = 0;
};

struct DonatedModel {
  std::string config;  // the uploaded JSON
  DonateBytes bytes;
};

// Bytes of all uploads of a server.
class DonateAccount {
 public:
  explicit DonateAccount(uint64_t most) : most_(most) {}
  uint64_t most() const { return most_; }
  bool take(uint64_t bytes);
  void give_back(uint64_t bytes) { held_ -= bytes; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> held_{0};
};

// One thread at a time. An Error of chunk() or commit() discards the upload; restart it with
// begin().
class DonateUpload {
 public:
  explicit DonateUpload(std::shared_ptr<DonateAccount> account) : account_(std::move(account)) {}
  ~DonateUpload() { forget(); }

  // Errors: invalid_argument "bad weights_len" (below 1, or above the account), an empty config, an
  // invalid hash. `sha256`: "" or 64 hexadecimal digits.
  Status begin(std::string config, int64_t length, std::string sha256);
  // Chunks are numbered from 0. Errors: invalid_argument (no begin(), a number that is not the
  // next, bad base64, more than was announced, one after the last), out_of_memory.
  Status chunk(int64_t index, bool last, std::string_view base64);
  // Errors: invalid_argument (bytes missing, another checksum).
  Result<std::shared_ptr<const DonatedModel>> commit();

 private:
  Status add_chunk(int64_t index, bool last, std::string_view base64);
  void forget();

  std::shared_ptr<DonateAccount> account_;
  std::shared_ptr<DonatedModel> model_;  // null if there is no upload
  std::optional<DonateDigest> digest_;
  std::string sha256_;
  int64_t length_ = 0, next_ = 0;
  uint64_t booked_ = 0;
  bool last_ = false;
};

}  // namespace loom::core
