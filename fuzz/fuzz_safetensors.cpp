// Any bytes as a safetensors file: refused in one line, or a file consistent in itself whose values
// can all be read.
#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"
#include "io/weights/safetensors.hpp"
#include "io/weights/torch_file.hpp"
#include "safetensors_mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (loom::core::is_torch_file(bytes)) return 0;  // fuzz_torch.cpp
  const auto file = loom::core::SafeTensors::parse(bytes, where);
  if (!file.ok()) {
    CHECK(!file.error().message.empty());
    CHECK(file.error().str().find('\n') == std::string::npos);
    CHECK(file.error().offset >= 0 && file.error().offset <= static_cast<int64_t>(size));
    return 0;
  }
  uint64_t total = 0;
  uint64_t first = size;
  std::vector<float> values(256);
  for (const loom::core::SafeTensor& tensor : file->tensors()) {
    CHECK(file->find(tensor.name) == &tensor);
    CHECK(tensor.file_offset <= size && tensor.data.size() <= size - tensor.file_offset);
    const int64_t count = tensor.count();
    CHECK(static_cast<uint64_t>(count) * loom::core::safe_dtype_bits(tensor.dtype) ==
          8 * tensor.data.size());
    for (int64_t at = 0; at < count; at += 256) {
      const int64_t chunk = std::min<int64_t>(256, count - at);
      if (!loom::core::SafeTensors::to_f32(tensor, at, chunk, values.data()).ok()) break;
    }
    total += tensor.data.size();
    first = std::min(first, tensor.file_offset);
  }
  CHECK(first + total == size);
  return 0;
}
