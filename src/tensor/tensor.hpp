// Tensor: a view of numbers in memory (dtype, layout, shape, address). It owns nothing; Buffer owns
// bytes. Plain tensors are row-major with one free stride, that of the second-to-last axis, so a
// slice of rows or columns is again a tensor. R16 tensors are packed weight matrices
// (dtype/r16/r16.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "base/inline.hpp"
#include "base/result.hpp"
#include "dtype/dtype.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core {

class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  LOOM_INLINE int rank() const { return rank_; }
  LOOM_INLINE int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  LOOM_INLINE int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  // Product of all extents; 1 for rank 0.
  LOOM_INLINE int64_t count() const { return rows() * last(); }
  LOOM_INLINE int64_t last() const { return rank_ > 0 ? dims_[static_cast<size_t>(rank_ - 1)] : 1; }
  // Product of all but the last extent.
  LOOM_INLINE int64_t rows() const {
    int64_t n = 1;
    for (int i = 0; i + 1 < rank_; ++i) n *= dims_[static_cast<size_t>(i)];
    return n;
  }
  // This shape with a new first axis; rank() must be below kMaxRank.
  Shape after(int64_t first) const;
  bool operator==(const Shape& other) const;
  std::string str() const;  // "[2, 3]"

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};

enum class Layout : uint8_t { plain, r16 };

struct Tensor {
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  Shape shape;
  int64_t row_stride = 0;  // elements between rows (axis rank-2) of a plain tensor
  std::byte* data = nullptr;

  LOOM_INLINE bool empty() const { return data == nullptr; }
  LOOM_INLINE int64_t rows() const { return shape.rows(); }
  LOOM_INLINE int64_t cols() const { return shape.last(); }
  // Typed access; T must match dtype.
  template <class T>
  LOOM_INLINE T* values() const {
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  LOOM_INLINE T* row(int64_t r) const {
    return values<T>() + r * row_stride;
  }
  LOOM_INLINE float* f32() const { return reinterpret_cast<float*>(data); }
  LOOM_INLINE float* f32_row(int64_t row) const { return f32() + row * row_stride; }
  LOOM_INLINE int32_t* i32() const { return reinterpret_cast<int32_t*>(data); }
  // Rows [first, first + count) of a plain matrix, as a matrix.
  Tensor slice_rows(int64_t first, int64_t count) const;
  // One past the last byte that belongs to the tensor.
  const std::byte* end() const;
};

// A contiguous plain f32 matrix over memory that outlives it.
Tensor f32_matrix(float* data, int64_t rows, int64_t cols);
Tensor f32_vector(float* data, int64_t n);
// A packed weight matrix.
Tensor r16_tensor(const R16& geometry, std::byte* data);
// Bytes of a contiguous plain tensor; sub-byte types round up per row.
int64_t plain_bytes(DType dtype, const Shape& shape);

// Owned bytes, 64-byte aligned, zero-filled. Large buffers ask the system for huge pages.
class Buffer {
 public:
  static Result<Buffer> allocate(int64_t bytes);
  // The same, but pages are allocated when they are first touched.
  static Result<Buffer> reserve(int64_t bytes);
  Buffer() = default;
  std::byte* data() const { return bytes_.get(); }
  int64_t size() const { return size_; }

 private:
  friend class BufferBlocks;
  static Result<Buffer> aligned(int64_t bytes, int64_t align);
  struct Free {
    Free() : block(nullptr) {}
    explicit Free(std::byte* b) : block(b) {}
    explicit Free(std::shared_ptr<const Buffer> s) : block(nullptr), shared(std::move(s)) {}
    void operator()(std::byte* p) const;
    std::byte* block;                      // the allocation, if it differs from the used part
    std::shared_ptr<const Buffer> shared;  // the buffer that it is a part of
  };
  std::unique_ptr<std::byte, Free> bytes_;
  int64_t size_ = 0;
};

// Buffers that are read one after the other, such as the weights of a network. Once they total some
// megabytes, buffers that are too small for huge pages of their own share blocks of them. A block
// is freed with the last of its buffers.
class BufferBlocks {
 public:
  Result<Buffer> allocate(int64_t bytes);

 private:
  std::shared_ptr<const Buffer> block_;
  int64_t used_ = 0;   // of block_
  int64_t total_ = 0;  // bytes of all buffers so far
};

}  // namespace loom::core
