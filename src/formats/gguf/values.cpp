// Typed access to the metadata of a GGUF file: a value is had in just the type it was written in.
#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "formats/gguf/file.hpp"

namespace loom::core {
namespace {

struct GgufTypeRow {
  std::string_view name;
  uint64_t bytes;
};
constexpr GgufTypeRow kGgufTypes[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class T>
double as_double(const std::byte* at) {
  return static_cast<double>(load_le<T>(at));
}

using Read = double (*)(const std::byte*);
constexpr Read kNumbers[] = {as_double<uint8_t>,
                             as_double<int8_t>,
                             as_double<uint16_t>,
                             as_double<int16_t>,
                             as_double<uint32_t>,
                             as_double<int32_t>,
                             as_double<float>,
                             as_double<uint8_t>,
                             nullptr,
                             nullptr,
                             as_double<uint64_t>,
                             as_double<int64_t>,
                             as_double<double>};

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  return kGgufTypes[static_cast<size_t>(type)].name;
}
uint64_t gguf_type_bytes(GgufType type) {
  return kGgufTypes[static_cast<size_t>(type)].bytes;
}

uint64_t GgufValue::count() const {
  return type == GgufType::string ? strings.size() : bytes.size() / gguf_type_bytes(type);
}

double GgufValue::number(uint64_t index) const {
  const Read read = kNumbers[static_cast<size_t>(type)];
  return read == nullptr ? 0.0 : read(bytes.data() + index * gguf_type_bytes(type));
}

std::string GgufValue::describe() const {
  return is_array ? cat("an array of ", gguf_type_name(type)) : std::string(gguf_type_name(type));
}

const GgufValue* Gguf::find_value(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &metadata_[found->second];
}

Error Gguf::key_error(std::string_view key, std::string_view what) const {
  const GgufValue* value = find_value(key);
  return bad_file(cat("gguf key '", printable(key), "' ", what), where_,
                  value == nullptr ? -1 : static_cast<int64_t>(value->offset));
}

Result<const GgufValue*> Gguf::value_of(std::string_view key, GgufType type, bool is_array) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return key_error(key, "is missing");
  if (value->type == type && value->is_array == is_array) return value;
  return key_error(key, cat("must be ", is_array ? "an array of " : "", gguf_type_name(type),
                            ", is ", value->describe()));
}

Result<uint32_t> Gguf::u32(std::string_view key) const {
  LOOM_ASSIGN(const GgufValue* value, value_of(key, GgufType::u32, false));
  return load_le<uint32_t>(value->bytes.data());
}

Result<float> Gguf::f32(std::string_view key) const {
  LOOM_ASSIGN(const GgufValue* value, value_of(key, GgufType::f32, false));
  return load_le<float>(value->bytes.data());
}

Result<bool> Gguf::boolean(std::string_view key) const {
  LOOM_ASSIGN(const GgufValue* value, value_of(key, GgufType::boolean, false));
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> Gguf::string(std::string_view key) const {
  LOOM_ASSIGN(const GgufValue* value, value_of(key, GgufType::string, false));
  return value->strings[0];
}

Result<const GgufValue*> Gguf::array(std::string_view key, GgufType type) const {
  return value_of(key, type, true);
}

}  // namespace loom::core
