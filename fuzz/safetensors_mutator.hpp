// The mutator of the targets that read safetensors files. It repairs the length of the header half
// of the time, because blind mutation would seldom pass it. Included once per program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 != 0 || size < 10) return size;
  const uint8_t* end = data + size;
  while (end > data + 8 && end[-1] != '}') --end;
  const uint64_t header = static_cast<uint64_t>(end - data) - 8;
  std::memcpy(data, &header, 8);
  return size;
}
