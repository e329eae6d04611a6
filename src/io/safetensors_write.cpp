#include "io/safetensors_write.hpp"

#include <algorithm>

#include "base/bits.hpp"
#include "base/checked.hpp"
#include "base/text.hpp"
#include "io/json.hpp"

namespace loom {
namespace {

Status check(const SafeOutput& t) {
  uint64_t bits = safe_dtype_bits(t.dtype);
  for (const int64_t n : t.shape) {
    if (n < 0 || !checked_mul(bits, static_cast<uint64_t>(n), bits))
      return invalid("the shape is too large", t.name);
  }
  if (bits % 8 == 0 && bits / 8 == t.data.size()) return {};
  return invalid(cat("has ", t.data.size(), " bytes, its shape needs ", bits / 8), t.name);
}

JsonValue integers(const std::vector<int64_t>& list) {
  JsonValue out = JsonValue::array();
  for (const int64_t n : list) out.push(JsonValue::integer(n));
  return out;
}

}  // namespace

Result<std::string> safetensors_bytes(std::vector<SafeOutput> tensors,
                                      const SafeMetadata& metadata) {
  std::sort(tensors.begin(), tensors.end(),
            [](const SafeOutput& a, const SafeOutput& b) { return a.name < b.name; });
  JsonValue header = JsonValue::object();
  if (!metadata.empty()) {
    JsonValue pairs = JsonValue::object();
    for (const auto& [key, value] : metadata) pairs.add(key, JsonValue::string(value));
    header.add("__metadata__", std::move(pairs));
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafeOutput& t = tensors[i];
    LOOM_TRY(check(t));
    if (i > 0 && tensors[i - 1].name == t.name) return invalid("stands twice", t.name);
    JsonValue entry = JsonValue::object();
    entry.add("dtype", JsonValue::string(std::string(safe_dtype_name(t.dtype))));
    entry.add("shape", integers(t.shape));
    const uint64_t end = offset + t.data.size();
    entry.add("data_offsets", integers({static_cast<int64_t>(offset), static_cast<int64_t>(end)}));
    header.add(t.name, std::move(entry));
    offset = end;
  }
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxSafeHeader) return invalid("a header of more than 100 MB");
  const uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file.reserve(static_cast<size_t>(8 + length + offset));
  file += text;
  for (const SafeOutput& t : tensors)
    file.append(reinterpret_cast<const char*>(t.data.data()), t.data.size());
  return file;
}

Status write_safetensors(const std::string& path, std::vector<SafeOutput> tensors,
                         const SafeMetadata& metadata, const std::string& keep) {
  LOOM_ASSIGN(const std::string file, safetensors_bytes(std::move(tensors), metadata));
  return write_file_atomic(path, std::as_bytes(std::span(file)), keep);
}

}  // namespace loom
