// The container of ".entity" files of version 1: magic, a JSON header, and contiguous blobs; see
// original.hpp. Invariant of accepted files: the blobs tile the payload, paths are unique, and each
// blob is used. Room-private.
#pragma once

#include <map>

#include "formats/original/reader.hpp"

namespace loom::core {

constexpr uint64_t kLoom1EntityStart = 20;  // magic, version, flags, header length
constexpr uint64_t kMaxLoom1Header = uint64_t{256} << 20;

struct Loom1Blob {
  std::string path, dtype;
  uint64_t offset = 0, length = 0;  // from the start of the payload
  double scale = 0;
  bool native = false;
  int64_t at = -1;  // offset of its record in the file
  std::span<const std::byte> bytes;
  bool used = false;
};

class Loom1Entity {
 public:
  static Result<Loom1Entity> parse(std::span<const std::byte> bytes, const std::string& where);

  const JsonValue& header() const { return header_; }
  // Returns the blob and marks it as used; may be null.
  const Loom1Blob* take(const std::string& path);
  bool has(const std::string& path) const { return blobs_.count(path) > 0; }
  // Whether a blob has a path with this prefix.
  bool has_below(const std::string& prefix) const;
  // An Error for the first unused blob.
  Status check_all_taken() const;

  // Appends `count` values of a blob in layout 1 to out.
  Status plain(const Loom1Blob& blob, uint64_t count, std::vector<float>& out) const;
  // Blocks of 32 with a scale each, in the original project's format, and BitNet matrices.
  Status q4_0(const Loom1Blob& blob, uint64_t count, std::vector<float>& out) const;
  Status bitnet(const Loom1Blob& blob, const Shape& shape, uint64_t flat_offset,
                std::vector<float>& out) const;
  Error bad(const Loom1Blob& blob, std::string_view message) const;

 private:
  Error fault(const JsonValue& at, std::string_view message) const;
  Status read_blobs(std::span<const std::byte> payload);
  Result<Loom1Blob> read_blob(const JsonValue& value, const std::string& location) const;
  Status check_tiling(uint64_t payload) const;

  std::string where_;
  JsonValue header_;
  std::map<std::string, Loom1Blob, std::less<>> blobs_;
};

}  // namespace loom::core
