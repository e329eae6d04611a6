// Tensor: an array of numbers with a shape; the inputs and outputs of networks.
//
//   std::vector<float> pixels = ...;                                // 32 images of 28 x 28
//   Tensor x = Tensor::view(pixels.data(), {32, 1, 28, 28});        // borrows: no copy
//   Tensor y = net.predict(x).or_exit();                            // owns its memory
//   for (float score : y.values<float>().or_exit()) use(score);
//
// A tensor is a handle: copies share their memory. It owns that memory or borrows it; borrowed
// memory must outlive every copy. Rows are contiguous unless it has strides. Types: float64,
// float32, float16, bfloat16 and integers of 8 to 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "loom/dtype.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

using Shape = std::vector<int64_t>;

// "[32, 10]"
LOOM_API std::string shape_text(const Shape& shape);
// The product of all extents; 1 for an empty shape, -1 for negative or too large extents.
LOOM_API int64_t element_count(const Shape& shape);

namespace detail {
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return sizeof(T) == 1   ? DType::int8
           : sizeof(T) == 2 ? DType::int16
           : sizeof(T) == 4 ? DType::int32
                            : DType::int64;
  if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>)
    return sizeof(T) == 1   ? DType::uint8
           : sizeof(T) == 2 ? DType::uint16
           : sizeof(T) == 4 ? DType::uint32
                            : DType::uint64;
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "a tensor holds numbers");
}
}  // namespace detail

class LOOM_API Tensor {
 public:
  Tensor() = default;  // empty: rank 0, no memory

  // Borrows `values`; their number must match the shape.
  template <class T>
  static Tensor view(const T* values, Shape shape) {
    return borrow(values, detail::dtype_of<T>(), std::move(shape));
  }
  // The same for any plain type, with strides in elements (empty means contiguous). An `owner`
  // lives as long as the tensor.
  static Tensor borrow(const void* values, DType dtype, Shape shape, Shape strides = {},
                       std::shared_ptr<const void> owner = {});
  // Owns a copy. Errors: invalid_argument (the number of values does not match the shape),
  // out_of_memory.
  template <class T>
  static Result<Tensor> copy(std::span<const T> values, Shape shape) {
    return copy_of(values.data(), static_cast<int64_t>(values.size()), detail::dtype_of<T>(),
                   std::move(shape));
  }
  template <class T>
  static Result<Tensor> copy(const std::vector<T>& values, Shape shape) {
    return copy(std::span<const T>(values), std::move(shape));
  }
  // Owns zeros. Errors: invalid_argument (a type with scales, a negative extent), out_of_memory.
  static Result<Tensor> zeros(Shape shape, DType dtype = DType::float32);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size() const { return data_ == nullptr ? 0 : element_count(shape_); }
  int64_t bytes() const;  // of all elements, without gaps
  bool empty() const { return size() == 0; }
  bool owned() const { return owned_; }
  bool contiguous() const;  // without gaps

  const std::byte* data() const { return data_; }
  // All elements, row by row. Errors: invalid_argument (another type, or gaps: call to() or
  // copied() first).
  template <class T>
  Result<std::span<const T>> values() const {
    if (Status fits = check_values(detail::dtype_of<T>()); !fits) return fits.error();
    return std::span<const T>(reinterpret_cast<const T*>(data_), static_cast<size_t>(size()));
  }
  // Writable elements of a tensor that owns its memory. All its copies change.
  template <class T>
  Result<std::span<T>> mutable_values() {
    if (Status fits = check_values(detail::dtype_of<T>(), true); !fits) return fits.error();
    return std::span<T>(reinterpret_cast<T*>(const_cast<std::byte*>(data_)),
                        static_cast<size_t>(size()));
  }

  // The same elements with other extents, without a copy. Errors: invalid_argument (another number
  // of elements, gaps).
  Result<Tensor> reshape(Shape shape) const;
  // Elements [first, first + count) along the first axis, without a copy. Errors: out_of_range.
  Result<Tensor> slice(int64_t first, int64_t count) const;
  // A contiguous copy that owns its memory.
  Result<Tensor> copied() const;
  // The values as another plain type: this tensor if it has that type and no gaps, else a copy.
  // Floats become integers by rounding to the nearest, ties to even, and are clamped to the range.
  Result<Tensor> to(DType dtype) const;

 private:
  static Result<Tensor> copy_of(const void* values, int64_t count, DType dtype, Shape shape);
  Status check_values(DType dtype, bool write = false) const;

  DType dtype_ = DType::float32;
  Shape shape_, strides_;
  const std::byte* data_ = nullptr;
  bool owned_ = false;
  std::shared_ptr<const void> owner_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool boolean = false;  // uint8 values 0 and 1 that are written as booleans
};
#ifndef LOOM_MINIMAL
// Loads an array of .npy, .idx, or, by name, of .npz and .safetensors, in its stored type (booleans
// as uint8). Errors: those of reading, not_found.
LOOM_API Result<Tensor> load_array(const std::string& path, const std::string& name = {});
// Writes arrays as .npz, which NumPy reads. Errors: invalid_argument (another ending, bfloat16),
// io_error.
LOOM_API Status save_arrays(const std::string& path, const std::vector<NamedTensor>& arrays);
#endif

}  // namespace loom
