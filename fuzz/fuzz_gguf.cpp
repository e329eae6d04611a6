// Any bytes as a GGUF file. It is refused in one line, or it is consistent and all its values can
// be read. Its tokenizer and configuration are then refused or read without harm. The mutator
// repairs the counts of the header half of the time, and puts a whole file after the magic.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "formats/gguf/config.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf/tokenizer/tokenizer.hpp"
#include "text/tokenizer.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 != 0 || size < 24) return size;
  std::memcpy(data, "GGUF", 4);
  const uint32_t version = 2 + seed / 2 % 2;
  std::memcpy(data + 4, &version, 4);
  for (size_t at = 8; at < 24; at += 8) {
    uint64_t count = 0;
    std::memcpy(&count, data + at, 8);
    count %= 16;
    std::memcpy(data + at, &count, 8);
  }
  return size;
}

static void check_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
}

static void check_values(const loom::core::Gguf& file) {
  double sum = 0;
  for (const loom::core::GgufValue& value : file.metadata()) {
    CHECK(file.find_value(value.key) == &value);
    for (uint64_t i = 0; i < value.count(); ++i) sum += value.number(i);
  }
  (void)sum;
}

static void check_tensors(const loom::core::Gguf& file, size_t size) {
  uint64_t end = 0;
  std::vector<float> values(512);
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const loom::core::TensorEntry& entry = file.entries()[i];
    CHECK(file.find_tensor(entry.name) == static_cast<int64_t>(i));
    CHECK(entry.offset >= end && entry.offset <= size && entry.bytes <= size - entry.offset);
    CHECK(entry.offset % file.alignment() == 0);
    end = entry.offset + entry.bytes;
    const int64_t count = entry.count();
    for (int64_t at = 0; at < count; at += 511) {
      const int64_t chunk = std::min<int64_t>(511, count - at);
      if (!file.to_f32(i, at, chunk, values.data()).ok()) break;
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = loom::core::Gguf::parse(bytes, where);
  if (!file.ok()) {
    check_error(file.error());
    CHECK(file.error().offset >= 0 && file.error().offset <= static_cast<int64_t>(size));
    return 0;
  }
  check_values(*file);
  check_tensors(*file, size);
  for (const loom::core::DecoderFamily* family : loom::core::decoder_families()) {
    if (family->gguf.name.empty()) continue;
    const auto config = loom::core::read_gguf_config(*file, *family);
    if (!config.ok()) check_error(config.error());
  }
  const auto spec = loom::core::read_gguf_tokenizer(*file);
  if (!spec.ok()) {
    check_error(spec.error());
  } else if (*spec) {
    const auto tokenizer = loom::core::Tokenizer::make(**spec);
    if (tokenizer.ok()) (void)tokenizer->encode("a b\xE2\x96\x81 c<s>");
    const auto again = loom::core::parse_tokenizer_json(tokenizer_json(**spec), where);
    if (tokenizer.ok()) CHECK(again.ok());
  }
  return 0;
}
