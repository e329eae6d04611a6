// Builds GGUF bytes field by field, well-formed or not, for the tests of the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/gguf/file.hpp"

namespace loom::core::test {

class GgufBytes {
 public:
  // Magic, version and counts.
  explicit GgufBytes(uint64_t tensors = 0, uint64_t values = 0, uint32_t version = 3) {
    raw("GGUF").u32(version).u64(tensors).u64(values);
  }
  GgufBytes& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  GgufBytes& u8(uint8_t v) { return number(v); }
  GgufBytes& u32(uint32_t v) { return number(v); }
  GgufBytes& u64(uint64_t v) { return number(v); }
  GgufBytes& f32(float v) { return number(v); }
  GgufBytes& text(std::string_view text) { return u64(text.size()).raw(text); }
  // The key and the type of a value.
  GgufBytes& key(std::string_view key, GgufType type) {
    return text(key).u32(static_cast<uint32_t>(type));
  }
  GgufBytes& array(std::string_view name, GgufType type, uint64_t count) {
    return key(name, GgufType::array).u32(static_cast<uint32_t>(type)).u64(count);
  }
  // A tensor info; `type` by id, extents as the format writes them: the fastest first.
  GgufBytes& tensor(std::string_view name, std::initializer_list<uint64_t> extents, uint32_t type,
                    uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(extents.size()));
    for (const uint64_t extent : extents) u64(extent);
    return u32(type).u64(offset);
  }
  GgufBytes& pad(size_t alignment = 32) {
    out_.append((alignment - out_.size() % alignment) % alignment, '\0');
    return *this;
  }
  GgufBytes& data(size_t count) {
    for (size_t i = 0; i < count; ++i) out_ += static_cast<char>(i * 37 + 1);
    return *this;
  }
  operator std::string() const { return out_; }  // NOLINT(google-explicit-constructor)
  const std::string& str() const { return out_; }

 private:
  template <class T>
  GgufBytes& number(T v) {
    out_.append(reinterpret_cast<const char*>(&v), sizeof(v));
    return *this;
  }
  std::string out_;
};

}  // namespace loom::core::test
