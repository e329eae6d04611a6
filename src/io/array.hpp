// ArrayView: numbers of an array as they lie in a file (NPY, IDX, safetensors), whatever their type
// and byte order, and their conversion to f32 or 32-bit whole numbers. Plain data: nothing here
// knows what the numbers mean.
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
  std::shared_ptr<const std::vector<std::byte>> own;  // of data that were put in order; or null
  uint64_t file_offset = 0;                           // of data[0]

  int64_t count() const;
  std::string shape_text() const;  // "[3, 4]"
};

// The product of `shape` times the size of an element, or nothing when that overflows.
std::optional<uint64_t> array_bytes(const std::vector<int64_t>& shape, ElementType type);

// Behind a header that was read: the data, which must be all that remains. The Error says what the
// shape takes.
Status take_data(ArrayView& array, ByteReader& reader);
// Data in Fortran's order (the first axis runs fastest) become data in C's, in memory of their own.
void from_fortran_order(ArrayView& array);
// How long the whole file is by the shape in the header, at whose end `reader` stands.
Result<uint64_t> stated_size(const ArrayView& array, const ByteReader& reader);

// All values, multiplied by `scale`. An Error names the first that is not finite.
Result<std::vector<float>> array_f32(const ArrayView& array, float scale = 1.0f);
// All values as whole numbers of 32 bits. An Error names the first that is none.
Result<std::vector<int32_t>> array_i32(const ArrayView& array);

}  // namespace loom::core
