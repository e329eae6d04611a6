// The container of absorbed models and of requests to them: u64 length of the manifest | manifest,
// JSON | zeros to a multiple of 64 | payload | SHA-256 of everything before it, 32 bytes. Offsets
// in the manifest count from the first byte of the payload. It is untrusted: every range is checked
// against the size before anything is read or allocated.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "io/json/json.hpp"
#include "loom/tensor.hpp"

namespace loom {

// Reads bytes that must outlive it.
class BridgeReader {
 public:
  // Checks the hash of the whole first. `where` names the stream in errors. Errors: bad_file,
  // unsupported (another schema).
  static Result<BridgeReader> open(std::span<const std::byte> stream, std::string_view schema,
                                   std::string where);

  const core::JsonValue& manifest() const { return manifest_; }
  Error bad(std::string message) const;
  Result<const core::JsonValue*> member(const core::JsonValue& of, std::string_view key) const;
  Result<std::string> text(const core::JsonValue& of, std::string_view key) const;
  // The bytes of a piece of the payload, after a check of their hash.
  Result<std::span<const std::byte>> stored(const core::JsonValue& of, std::string_view what) const;
  // The list `key`, of at least one array.
  Result<std::vector<Tensor>> tensors(const core::JsonValue& of, std::string_view key) const;

 private:
  Result<int64_t> number(const core::JsonValue& of, std::string_view key) const;
  Result<Tensor> tensor(const core::JsonValue& described, std::string_view what) const;

  std::span<const std::byte> payload_;
  std::string where_;
  core::JsonValue manifest_;
};

class BridgeWriter {
 public:
  // Adds a piece to the payload; `described` gets its "store" and "sha256".
  void add(std::string_view piece, core::JsonValue& described);
  // Adds a contiguous array; returns its description for the manifest.
  core::JsonValue add(const Tensor& tensor);
  // The complete container.
  std::string sealed(const core::JsonValue& manifest) const;

 private:
  std::string payload_;
};

}  // namespace loom
