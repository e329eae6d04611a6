// Any bytes as a file of torch.save: refused in one line, or tensors inside it whose values can be
// read.
#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"
#include "io/weights/torch_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = loom::core::read_torch_file(bytes, where, 0);
  if (!tensors.ok()) {
    CHECK(!tensors.error().message.empty());
    CHECK(tensors.error().str().find('\n') == std::string::npos);
    return 0;
  }
  std::vector<float> values(256);
  for (const loom::core::SafeTensor& tensor : *tensors) {
    CHECK(tensor.file_offset <= size && tensor.data.size() <= size - tensor.file_offset);
    const int64_t count = tensor.count();
    CHECK(static_cast<uint64_t>(count) * loom::core::safe_dtype_bits(tensor.dtype) ==
          8 * tensor.data.size());
    const int64_t chunk = std::min<int64_t>(256, count);
    if (chunk == 0) continue;
    // Types without values as f32 are an error.
    static_cast<void>(loom::core::SafeTensors::to_f32(tensor, 0, chunk, values.data()));
  }
  return 0;
}
