#include "formats/gguf/write.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_string(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out += text;
}

uint64_t padding(uint64_t size) {
  return (kGgufAlignment - size % kGgufAlignment) % kGgufAlignment;
}

// The bytes that the tensor takes.
Result<uint64_t> check(const GgufOutput& tensor) {
  const GgmlType* type = find_ggml_type(tensor.type);
  if (type == nullptr) return invalid(cat("no ggml type ", printable(tensor.type)), tensor.name);
  if (tensor.name.size() >= kMaxGgufName) {
    return invalid(cat("a tensor name has fewer than ", kMaxGgufName, " bytes"), tensor.name);
  }
  if (tensor.shape.size() > kMaxGgufDims) {
    return invalid(cat("has more than ", kMaxGgufDims, " dimensions"), tensor.name);
  }
  uint64_t count = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || !checked_mul(count, static_cast<uint64_t>(extent), count))
      return invalid("the shape is too large", tensor.name);
  }
  const uint64_t row = tensor.shape.empty() ? 1 : static_cast<uint64_t>(tensor.shape.back());
  if (row % type->values != 0) {
    return invalid(
        cat("has rows of ", row, " values; ", type->name, " needs a multiple of ", type->values),
        tensor.name);
  }
  uint64_t bytes = 0;
  if (!checked_mul(count / type->values, type->bytes, bytes) || bytes > INT64_MAX)
    return invalid("the shape is too large", tensor.name);
  return bytes;
}

Status check_unique(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return invalid("occurs twice", *twice);
}

// Everything before the data, and the bytes of each tensor.
Result<std::string> header_of(const GgufMetadata& metadata, const std::vector<GgufOutput>& tensors,
                              std::vector<uint64_t>& sizes) {
  std::string out = "GGUF";
  append<uint32_t>(out, 3);
  append<uint64_t>(out, tensors.size());
  append<uint64_t>(out, metadata.keys().size());
  out += metadata.bytes();
  std::vector<std::string> names;
  uint64_t offset = 0;
  for (const GgufOutput& tensor : tensors) {
    LOOM_ASSIGN(const uint64_t bytes, check(tensor));
    append_string(out, tensor.name);
    append<uint32_t>(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i > 0; --i)
      append<uint64_t>(out, static_cast<uint64_t>(tensor.shape[i - 1]));
    append<uint32_t>(out, find_ggml_type(tensor.type)->id);
    append<uint64_t>(out, offset);
    if (!checked_add(offset, bytes + padding(bytes), offset))
      return invalid("the tensors are too large", tensor.name);
    sizes.push_back(bytes);
    names.push_back(tensor.name);
  }
  LOOM_TRY(check_unique(std::move(names)));
  LOOM_TRY(check_unique(metadata.keys()));
  out.append(padding(out.size()), '\0');
  return out;
}

Status write_tensor(const GgufSink& sink, const GgufOutput& tensor, uint64_t size) {
  static constexpr std::byte kZeros[kGgufAlignment] = {};
  uint64_t written = 0;
  LOOM_TRY(tensor.write([&](std::span<const std::byte> bytes) -> Status {
    if (bytes.size() > size - written) return invalid("writes more bytes than it has", tensor.name);
    written += bytes.size();
    return sink(bytes);
  }));
  if (written != size) {
    return invalid(cat("wrote ", written, " of its ", size, " bytes"), tensor.name);
  }
  return sink({kZeros, static_cast<size_t>(padding(size))});
}

}  // namespace

void GgufMetadata::begin(std::string_view key, GgufType type) {
  keys_.emplace_back(key);
  append_string(bytes_, key);
  append(bytes_, static_cast<uint32_t>(type));
}

void GgufMetadata::begin_array(std::string_view key, GgufType type, size_t count) {
  begin(key, GgufType::array);
  append(bytes_, static_cast<uint32_t>(type));
  append<uint64_t>(bytes_, count);
}

void GgufMetadata::u32(std::string_view key, uint32_t value) {
  begin(key, GgufType::u32);
  append(bytes_, value);
}

void GgufMetadata::f32(std::string_view key, float value) {
  begin(key, GgufType::f32);
  append(bytes_, value);
}

void GgufMetadata::boolean(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  append<uint8_t>(bytes_, value ? 1 : 0);
}

void GgufMetadata::string(std::string_view key, std::string_view value) {
  begin(key, GgufType::string);
  append_string(bytes_, value);
}

void GgufMetadata::strings(std::string_view key, const std::vector<std::string>& values) {
  begin_array(key, GgufType::string, values.size());
  for (const std::string& value : values) append_string(bytes_, value);
}

void GgufMetadata::i32s(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, GgufType::i32, values.size());
  for (const int32_t value : values) append(bytes_, value);
}

void GgufMetadata::f32s(std::string_view key, std::span<const float> values) {
  begin_array(key, GgufType::f32, values.size());
  for (const float value : values) append(bytes_, value);
}

void GgufMetadata::add_all(const GgufMetadata& other) {
  bytes_ += other.bytes_;
  keys_.insert(keys_.end(), other.keys_.begin(), other.keys_.end());
}

Status write_gguf_to(const GgufSink& sink, const GgufMetadata& metadata,
                     const std::vector<GgufOutput>& tensors) {
  std::vector<uint64_t> sizes;
  LOOM_ASSIGN(const std::string header, header_of(metadata, tensors, sizes));
  LOOM_TRY(sink(std::as_bytes(std::span(header))));
  for (size_t i = 0; i < tensors.size(); ++i) LOOM_TRY(write_tensor(sink, tensors[i], sizes[i]));
  return {};
}

Status write_gguf_file(const std::string& path, const GgufMetadata& metadata,
                       const std::vector<GgufOutput>& tensors) {
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  const auto sink = [&](std::span<const std::byte> bytes) { return file.write(bytes); };
  LOOM_TRY(write_gguf_to(sink, metadata, tensors));
  return file.commit();
}

}  // namespace loom::core
