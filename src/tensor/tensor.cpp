#include "tensor/tensor.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

#include <cstdlib>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (int64_t d : dims) dims_[static_cast<size_t>(rank_++)] = d;
}

Shape Shape::after(int64_t first) const {
  Shape out{first};
  for (int i = 0; i < rank_; ++i) out.dims_[static_cast<size_t>(out.rank_++)] = (*this)[i];
  return out;
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

std::string Shape::str() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) out += cat(i > 0 ? ", " : "", (*this)[i]);
  return out + "]";
}

Tensor Tensor::slice_rows(int64_t first, int64_t count) const {
  Tensor out = *this;
  out.shape = Shape{count, cols()};
  out.data = data + first * row_stride * dtype_info(dtype).bits / 8;
  return out;
}

const std::byte* Tensor::end() const {
  if (layout == Layout::r16) return data + r16_geometry(dtype, shape.rows(), shape.last()).bytes();
  if (rows() == 0) return data;
  return data + ((rows() - 1) * row_stride + cols()) * dtype_info(dtype).bits / 8;
}

Tensor f32_matrix(float* data, int64_t rows, int64_t cols) {
  return Tensor{DType::f32, Layout::plain, Shape{rows, cols}, cols,
                reinterpret_cast<std::byte*>(data)};
}

Tensor f32_vector(float* data, int64_t n) {
  return Tensor{DType::f32, Layout::plain, Shape{n}, n, reinterpret_cast<std::byte*>(data)};
}

Tensor r16_tensor(const R16& geometry, std::byte* data) {
  return Tensor{geometry.dtype, Layout::r16, Shape{geometry.rows, geometry.cols}, geometry.cols,
                data};
}

int64_t plain_bytes(DType dtype, const Shape& shape) {
  return shape.rows() * ceil_div(shape.last() * dtype_info(dtype).bits, 8);
}

Result<Buffer> Buffer::allocate(int64_t bytes) {
  if (bytes < 0) return invalid("a buffer of negative size was asked for");
  LOOM_ASSIGN(Buffer buffer, aligned(bytes, bytes >= 2 * kHugePage ? kHugePage : 64));
  std::memset(buffer.data(), 0, static_cast<size_t>(round_up(bytes, 64)));
  return buffer;
}

// Windows lacks the standard aligned_alloc; its replacement needs its own free function.
static void* take_aligned(size_t align, size_t size) {
#if defined(_WIN32)
  return _aligned_malloc(size, align);
#else
  return std::aligned_alloc(align, size);
#endif
}
static void free_aligned(void* memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

// Bytes that are not zeroed and not touched yet.
Result<Buffer> Buffer::aligned(int64_t bytes, int64_t align) {
  const int64_t size = round_up(bytes > 0 ? bytes : 1, align);
  // With 32-bit addresses, a size above the maximum of an object is unavailable too.
  void* memory = size > PTRDIFF_MAX
                     ? nullptr
                     : take_aligned(static_cast<size_t>(align), static_cast<size_t>(size));
  if (memory == nullptr) {
    return make_error(Code::out_of_memory, cat("no memory for a buffer of ", bytes, " bytes"));
  }
  // Huge pages spare the TLB when a token streams all weights. Advice only: a refusal changes
  // nothing.
#if defined(__linux__)
  if (align == kHugePage) madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
  Buffer buffer;
  buffer.bytes_.reset(static_cast<std::byte*>(memory));
  buffer.size_ = bytes;
  return buffer;
}

// Large calloc blocks are fresh pages of the system: zeros without physical memory yet.
Result<Buffer> Buffer::reserve(int64_t bytes) {
  if (bytes < 0) return invalid("a buffer of negative size was asked for");
  constexpr int64_t kAlign = 64;
  const int64_t size = bytes + kAlign;
  auto* block = static_cast<std::byte*>(
      size > PTRDIFF_MAX ? nullptr : std::calloc(static_cast<size_t>(size), 1));
  if (block == nullptr) {
    return make_error(Code::out_of_memory, cat("no memory for a buffer of ", bytes, " bytes"));
  }
  const auto address = reinterpret_cast<uintptr_t>(block);
  Buffer buffer;
  buffer.bytes_ = {block + (kAlign - address % kAlign), Free{block}};
  buffer.size_ = bytes;
  return buffer;
}

void Buffer::Free::operator()(std::byte* p) const {
  if (shared != nullptr) return;
  if (block != nullptr) return std::free(block);
  free_aligned(p);
}

Result<Buffer> BufferBlocks::allocate(int64_t bytes) {
  constexpr int64_t kBlock = 8 * kHugePage, kLine = 64;
  if (bytes >= 2 * kHugePage || total_ < 2 * kHugePage) {
    total_ += bytes;
    return Buffer::allocate(bytes);
  }
  const int64_t size = round_up(bytes > 0 ? bytes : 1, kLine);
  if (block_ == nullptr || block_->size() - used_ < size) {
    LOOM_ASSIGN(Buffer block, Buffer::aligned(kBlock, kHugePage));
    block_ = std::make_shared<const Buffer>(std::move(block));
    used_ = 0;
  }
  Buffer buffer;
  buffer.bytes_ = {block_->data() + used_, Buffer::Free{block_}};
  buffer.size_ = bytes;
  std::memset(buffer.data(), 0, static_cast<size_t>(size));
  used_ += size;
  return buffer;
}

}  // namespace loom::core
