// ArrayView: numbers of an array in the form of its file (NPY, IDX, safetensors), of any type and
// byte order. Converts them to f32 or 32-bit integers. Plain data: the code does not depend on the
// meaning of the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

enum class ElementType : uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64
};
uint64_t element_bytes(ElementType type);
std::string_view element_name(ElementType type);  // "u8"
inline bool is_whole(ElementType type) {
  return type < ElementType::f16;
}

class ByteReader;

struct ArrayView {
  std::string where;  // file, and the array's name in it
  ElementType type = ElementType::f32;
  bool big_endian = false;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;                    // count() elements
  std::shared_ptr<const std::vector<std::byte>> own;  // reordered data; may be null
  uint64_t file_offset = 0;                           // of data[0]

  int64_t count() const;
  std::string shape_text() const;  // "[3, 4]"
};

// The product of `shape` times the size of an element, or nothing if that overflows.
std::optional<uint64_t> array_bytes(const std::vector<int64_t>& shape, ElementType type);

// Call after reading a header: takes the data, which must be all that remains. The Error says what
// size the shape needs.
Status take_data(ArrayView& array, ByteReader& reader);
// Reorders data in Fortran order (the first axis runs fastest) to C order, in memory of their own.
void from_fortran_order(ArrayView& array);
// The size of the whole file according to the header that `reader` has just read.
Result<uint64_t> stated_size(const ArrayView& array, const ByteReader& reader);

// All values, multiplied by `scale`. Errors: the first value that is not finite.
Result<std::vector<float>> array_f32(const ArrayView& array, float scale = 1.0f);
// All values as 32-bit integers. Errors: the first value that is not one.
Result<std::vector<int32_t>> array_i32(const ArrayView& array);

}  // namespace loom::core
