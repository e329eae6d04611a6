// GGUF, versions 2 and 3, little-endian: metadata and tensors of a file as plain data; it makes no
// layers. It accepts what llama.cpp writes: unique keys and names, tensors in file order without
// gaps or overlaps, each padded to general.alignment, nothing after the last. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/gguf/quants.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/files/file.hpp"
#include "io/weights/tensor_file.hpp"

namespace loom::core {

constexpr uint64_t kGgufAlignment = 32;  // the default
constexpr uint64_t kMinGgufAlignment = 8, kMaxGgufAlignment = 1 << 20;
constexpr size_t kMaxGgufName = 64;    // bytes of a tensor name
constexpr size_t kMaxGgufKey = 65535;  // bytes of a key
constexpr uint32_t kMaxGgufDims = 4;

// Types of metadata, by the ids of the format.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
std::string_view gguf_type_name(GgufType type);  // "u32"
uint64_t gguf_type_bytes(GgufType type);         // of one value; 0 for string and array

// A value, or an array of values, of the metadata. Views into the file.
struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::u32;  // of the value, or of each element
  bool is_array = false;
  uint64_t offset = 0;                    // of the first value in the file
  std::span<const std::byte> bytes;       // the stored values, except strings
  std::vector<std::string_view> strings;  // strings only
  uint64_t count() const;
  // Element `index` < count() as a number (booleans 0 and 1, strings 0).
  double number(uint64_t index) const;
  std::string describe() const;  // "u32", "an array of string"
};

class Gguf : public TensorFile {
 public:
  static Result<Gguf> open(const FileRef& path);
  // A file already in memory; `where` names it in messages. The bytes must outlive the result.
  // For tests and fuzzers.
  static Result<Gguf> parse(std::span<const std::byte> bytes, const std::string& where);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::string& where() const { return where_; }

  // The metadata in file order.
  std::span<const GgufValue> metadata() const { return metadata_; }
  const GgufValue* find_value(std::string_view key) const;
  bool has(std::string_view key) const { return find_value(key) != nullptr; }
  // A value of exactly this type. Errors: bad_file (missing, another type).
  Result<uint32_t> u32(std::string_view key) const;
  Result<float> f32(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  // An array of exactly this type.
  Result<const GgufValue*> array(std::string_view key, GgufType type) const;
  // An Error about a key: "gguf key 'llama.block_count' <what>".
  Error key_error(std::string_view key, std::string_view what) const;

  std::span<const TensorEntry> entries() const override { return entries_; }
  Status to_f32(size_t index, int64_t first, int64_t count, float* out) const override;
  std::span<const std::byte> bytes(size_t index) const override;
  void release(size_t index) const override;
  const GgmlType& type(size_t index) const { return *types_[index]; }
  int64_t find_tensor(std::string_view name) const;  // as find(), in constant time

 private:
  Status read(std::span<const std::byte> bytes);
  Status read_header(ByteReader& reader, uint64_t& tensors, uint64_t& values);
  Result<GgufType> read_type(ByteReader& reader, const std::string& what) const;
  Status read_value(ByteReader& reader);
  Status read_array(ByteReader& reader, GgufValue& value, const std::string& what);
  Status read_alignment();
  Status read_tensor(ByteReader& reader);
  Status place_tensors(uint64_t header_end);
  Status check_padding(uint64_t begin, uint64_t end) const;
  Error fault(uint64_t offset, std::string message) const;
  Result<const GgufValue*> value_of(std::string_view key, GgufType type, bool is_array) const;

  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::string where_;
  uint32_t version_ = 3;
  uint64_t alignment_ = kGgufAlignment;
  std::vector<GgufValue> metadata_;
  std::unordered_map<std::string_view, size_t> keys_;
  std::vector<TensorEntry> entries_;
  std::vector<const GgmlType*> types_;
  std::unordered_map<std::string, size_t> names_;
};

}  // namespace loom::core
