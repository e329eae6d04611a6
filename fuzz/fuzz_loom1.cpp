// Any bytes as a file of the original project, JSON or entity: refused in one line, or a network
// that can be finalized and values that belong to it. The mutator repairs the header length of an
// entity half of the time.
#include <algorithm>
#include <cstring>
#include <string>

#include "check.hpp"
#include "formats/original/original.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 != 0 || size < 24 || data[0] != 'E') return size;
  const uint8_t* end = data + 20;
  int depth = 0;
  do {
    if (end == data + size) return size;
    depth += (*end == '{') - (*end == '}');
    ++end;
  } while (depth > 0);
  const uint64_t header = static_cast<uint64_t>(end - data) - 20;
  std::memcpy(data + 12, &header, 8);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = size > 0 && data[0] == 'E' ? loom::core::parse_loom1_entity(bytes, where)
                                               : loom::core::parse_loom1_json(text, where);
  if (!read.ok()) {
    CHECK(!read.error().message.empty());
    CHECK(read.error().str().find('\n') == std::string::npos);
    CHECK(read.error().offset <= static_cast<int64_t>(size));
    return 0;
  }
  const auto network = loom::core::Network::finalize(read->spec.grid, read->spec.input.after(1));
  CHECK(network.ok());
  for (const loom::core::Param& p : network->params()) {
    const loom::core::Loom1Param* values = read->find(p.path);
    CHECK(values == nullptr || static_cast<int64_t>(values->values.size()) == p.spec.shape.count());
  }
  return 0;
}
