// Builds .entity files byte by byte, with hashes that let a wrong file reach the later checks.
// Independent of the writer: it repeats the layout of docs/entity.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "io/bytes/hash.hpp"
#include "io/io_testing.hpp"
#include "io/weights/entity.hpp"

namespace loom::core::test {

template <class T>
void put(std::string& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}
template <class T>
T get(std::string_view file, size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

// Fixes the two hashes of the fixed part, whatever its other fields are.
inline std::string sealed(std::string file) {
  const uint64_t length = get<uint64_t>(file, 12);
  if (length <= file.size() - 64)
    put(file, 32, hash64(bytes_of(std::string_view(file).substr(64, length))));
  put(file, 56, hash64(bytes_of(std::string_view(file).substr(0, 56))));
  return file;
}

// A file with this header, padded with spaces, and this payload.
inline std::string entity_file(std::string header, std::string_view payload = {}) {
  header.resize((header.size() + 63) / 64 * 64, ' ');
  std::string file(64, '\0');
  std::memcpy(file.data(), "ENTITY", 6);
  put(file, 8, uint16_t{2});
  put(file, 10, uint16_t{1});
  put(file, 12, uint64_t{header.size()});
  put(file, 24, uint64_t{64 + header.size() + payload.size()});
  return sealed(file + header + std::string(payload));
}

// The item of a blob in the header; `fields` replaces values by name ("" removes the member).
inline std::string blob_item(const std::string& payload,
                             const std::vector<std::pair<std::string, std::string>>& fields = {}) {
  std::vector<std::pair<std::string, std::string>> all = {
      {"path", "\"w\""},
      {"layout", "\"plain\""},
      {"dtype", "\"float32\""},
      {"shape", "[2]"},
      {"offset", "0"},
      {"length", "8"},
      {"hash", cat("\"", hash_hex(bytes_of(payload)), "\"")}};
  for (const auto& [name, value] : fields) {
    const auto same = [&key = name](const auto& field) { return field.first == key; };
    const auto found = std::find_if(all.begin(), all.end(), same);
    if (found != all.end()) {
      found->second = value;
    } else {
      all.emplace_back(name, value);
    }
  }
  std::string text;
  for (const auto& [name, value] : all) {
    if (!value.empty()) text += cat(text.empty() ? "" : ",", "\"", name, "\":", value);
  }
  return "{" + text + "}";
}

inline std::string with_blobs(const std::string& list) {
  return R"({"entity":2,"blobs":[)" + list + "]}";
}

// `bytes` in memory with the alignment of a map.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::string_view bytes)
      : buffer_(std::move(*Buffer::allocate(static_cast<int64_t>(bytes.size())))) {
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), buffer_.data());
  }
  std::span<const std::byte> bytes() const {
    return {buffer_.data(), static_cast<size_t>(buffer_.size())};
  }

 private:
  Buffer buffer_;
};

}  // namespace loom::core::test
