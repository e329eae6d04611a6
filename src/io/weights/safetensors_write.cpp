#include "io/weights/safetensors_write.hpp"

#include <algorithm>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

// The number of bytes of dtype and shape.
Result<uint64_t> size_of(const SafeOutput& t) {
  uint64_t bits = safe_dtype_bits(t.dtype);
  for (const int64_t n : t.shape) {
    if (n < 0 || !checked_mul(bits, static_cast<uint64_t>(n), bits))
      return invalid("the shape is too large", t.name);
  }
  if (bits % 8 != 0) return invalid("the shape does not fill its last byte", t.name);
  return bits / 8;
}

Result<std::span<const std::byte>> bytes_of(const SafeOutput& t) {
  std::span<const std::byte> bytes = t.data;
  if (t.produce) {
    LOOM_ASSIGN(bytes, t.produce());
  }
  LOOM_ASSIGN(const uint64_t size, size_of(t));
  if (size == bytes.size()) return bytes;
  return invalid(cat("has ", bytes.size(), " bytes, its shape needs ", size), t.name);
}

JsonValue integers(const std::vector<int64_t>& list) {
  JsonValue out = JsonValue::array();
  for (const int64_t n : list) out.push(JsonValue::integer(n));
  return out;
}

// Length and JSON, for sorted tensors.
Result<std::string> header_of(const std::vector<SafeOutput>& tensors,
                              const SafeMetadata& metadata) {
  JsonValue header = JsonValue::object();
  if (!metadata.empty()) {
    JsonValue pairs = JsonValue::object();
    for (const auto& [key, value] : metadata) pairs.add(key, JsonValue::string(value));
    header.add("__metadata__", std::move(pairs));
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafeOutput& t = tensors[i];
    LOOM_ASSIGN(const uint64_t size, size_of(t));
    if (!t.produce) LOOM_TRY(bytes_of(t));
    if (i > 0 && tensors[i - 1].name == t.name) return invalid("occurs twice", t.name);
    JsonValue entry = JsonValue::object();
    entry.add("dtype", JsonValue::string(std::string(safe_dtype_name(t.dtype))));
    entry.add("shape", integers(t.shape));
    const uint64_t end = offset + size;
    entry.add("data_offsets", integers({static_cast<int64_t>(offset), static_cast<int64_t>(end)}));
    header.add(t.name, std::move(entry));
    offset = end;
  }
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxSafeHeader) return invalid("a header of more than 100 MB");
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

void sort_by_name(std::vector<SafeOutput>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const SafeOutput& a, const SafeOutput& b) { return a.name < b.name; });
}

}  // namespace

Result<std::string> safetensors_bytes(std::vector<SafeOutput> tensors,
                                      const SafeMetadata& metadata) {
  sort_by_name(tensors);
  LOOM_ASSIGN(std::string file, header_of(tensors, metadata));
  for (const SafeOutput& t : tensors) {
    LOOM_ASSIGN(const std::span<const std::byte> bytes, bytes_of(t));
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return file;
}

Status write_safetensors(const FileRef& path, std::vector<SafeOutput> tensors,
                         const SafeMetadata& metadata, const std::string& keep) {
  sort_by_name(tensors);
  LOOM_ASSIGN(const std::string header, header_of(tensors, metadata));
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(file.write(header));
  for (const SafeOutput& t : tensors) {
    LOOM_ASSIGN(const std::span<const std::byte> bytes, bytes_of(t));
    LOOM_TRY(file.write(bytes));
  }
  return file.commit(keep);
}

}  // namespace loom::core
