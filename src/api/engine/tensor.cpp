#include "loom/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"
#include "dtype/codecs/rounding.hpp"
#include "tensor/tensor.hpp"

namespace loom {
namespace {

using core::cat;
using core::invalid;

// 16-bit numbers, for which C++ has no type.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// Calls f.operator()<T>() with the type of an element; returns false for types with scales.
template <class F>
bool with_element(DType dtype, F&& f) {
  switch (static_cast<int>(dtype)) {
    case static_cast<int>(DType::float64): f.template operator()<double>(); return true;
    case static_cast<int>(DType::float32): f.template operator()<float>(); return true;
    case static_cast<int>(DType::float16): f.template operator()<Half>(); return true;
    case static_cast<int>(DType::bfloat16): f.template operator()<BFloat>(); return true;
    case static_cast<int>(DType::int64): f.template operator()<int64_t>(); return true;
    case static_cast<int>(DType::int32): f.template operator()<int32_t>(); return true;
    case static_cast<int>(DType::int16): f.template operator()<int16_t>(); return true;
    case static_cast<int>(DType::int8): f.template operator()<int8_t>(); return true;
    case static_cast<int>(DType::uint64): f.template operator()<uint64_t>(); return true;
    case static_cast<int>(DType::uint32): f.template operator()<uint32_t>(); return true;
    case static_cast<int>(DType::uint16): f.template operator()<uint16_t>(); return true;
    case static_cast<int>(DType::uint8): f.template operator()<uint8_t>(); return true;
    default: return false;
  }
}

bool plain(DType dtype) {
  return with_element(dtype, []<class T>() {});
}

Error not_plain(DType dtype) {
  return invalid(cat("a tensor cannot be ", dtype_name(dtype),
                     ", which has scales; choose a float or an integer of 8 to 64 bits"));
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half>) return static_cast<double>(core::f32_from_f16(value.bits));
  if constexpr (std::is_same_v<T, BFloat>)
    return static_cast<double>(core::f32_from_bf16(value.bits));
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(value);
}

// Rounds to the nearest, ties to even, and clamps to the range of T; NaN becomes 0.
template <class T>
T as_integer(double value) {
  constexpr auto kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  if (!(value == value)) return T{0};
  const double whole = core::round_half_even(value);
  if (whole <= static_cast<double>(kMin)) return kMin;
  if (whole >= static_cast<double>(kMax)) return kMax;
  return static_cast<T>(whole);
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(value, std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<To>) {
    return as_integer<To>(as_double(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return Half{core::f16_from_f32(static_cast<float>(as_double(value)))};
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return BFloat{core::bf16_from_f32(static_cast<float>(as_double(value)))};
  } else {
    return static_cast<To>(as_double(value));
  }
}

int64_t element_bytes(DType dtype) {
  return dtype_bits(dtype) / 8;
}

// The steps of an empty tensor are 0, because no element is ever reached and the product of its
// other extents may overflow.
Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size());
  if (element_count(shape) <= 0) return strides;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

}  // namespace

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += cat(i > 0 ? ", " : "", shape[i]);
  return out + "]";
}

int64_t element_count(const Shape& shape) {
  const auto has = [&](auto what) { return std::any_of(shape.begin(), shape.end(), what); };
  if (has([](int64_t extent) { return extent < 0; })) return -1;
  if (has([](int64_t extent) { return extent == 0; })) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return -1;
  }
  return count;
}

Tensor Tensor::borrow(const void* values, DType dtype, Shape shape, Shape strides,
                      std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.strides_ = strides.size() == shape.size() ? std::move(strides) : dense_strides(shape);
  t.shape_ = std::move(shape);
  t.data_ = static_cast<const std::byte*>(values);
  t.owner_ = std::move(owner);
  return t;
}

Result<Tensor> Tensor::zeros(Shape shape, DType dtype) {
  if (!plain(dtype)) return not_plain(dtype);
  const int64_t count = element_count(shape);
  int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, element_bytes(dtype), &bytes))
    return invalid(cat("a tensor cannot have the shape ", shape_text(shape)));
  LOOM_ASSIGN(core::Buffer buffer, core::Buffer::allocate(std::max<int64_t>(bytes, 1)));
  auto memory = std::make_shared<core::Buffer>(std::move(buffer));
  Tensor t = borrow(memory->data(), dtype, std::move(shape), {}, memory);
  t.owned_ = true;
  return t;
}

Result<Tensor> Tensor::copy_of(const void* values, int64_t count, DType dtype, Shape shape) {
  if (count != element_count(shape)) {
    return invalid(cat(count, " values cannot have the shape ", shape_text(shape)));
  }
  return borrow(values, dtype, std::move(shape)).copied();
}

int64_t Tensor::bytes() const {
  return size() * element_bytes(dtype_);
}

bool Tensor::contiguous() const {
  if (element_count(shape_) <= 0) return true;
  int64_t step = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

Status Tensor::check_values(DType dtype, bool write) const {
  if (data_ == nullptr) return {};
  if (dtype != dtype_) {
    return invalid(cat("a tensor of ", dtype_name(dtype_), " was read as ", dtype_name(dtype),
                       "; convert it with to()"));
  }
  if (!contiguous()) return invalid("a tensor with gaps between its rows; take copied()");
  if (write && !owned_) return invalid("a tensor that borrows its memory cannot be written");
  return {};
}

Result<Tensor> Tensor::reshape(Shape shape) const {
  if (element_count(shape) != size() || !contiguous()) {
    return invalid(cat("a tensor ", shape_text(shape_), contiguous() ? "" : " with gaps",
                       " cannot become ", shape_text(shape)));
  }
  Tensor t = *this;
  t.strides_ = dense_strides(shape);
  t.shape_ = std::move(shape);
  return t;
}

Result<Tensor> Tensor::slice(int64_t first, int64_t count) const {
  const int64_t extent = shape_.empty() ? 0 : shape_[0];
  if (first < 0 || count < 0 || first > extent || count > extent - first) {
    return core::make_error(Code::out_of_range, cat("elements ", first, " to ", first + count,
                                                    " of ", extent, " along the first axis"));
  }
  Tensor t = *this;
  t.shape_[0] = count;
  t.data_ += first * strides_[0] * element_bytes(dtype_);
  return t;
}

Result<Tensor> Tensor::copied() const {
  LOOM_ASSIGN(Tensor t, zeros(shape_, dtype_));
  auto* to = const_cast<std::byte*>(t.data_);
  const int64_t each = element_bytes(dtype_), count = size();
  if (contiguous()) {
    if (count > 0) std::memcpy(to, data_, static_cast<size_t>(count * each));
    return t;
  }
  Shape at(shape_.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) from += at[axis] * strides_[axis];
    std::memcpy(to + i * each, data_ + from * each, static_cast<size_t>(each));
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == shape_[axis];) at[axis] = 0;
  }
  return t;
}

Result<Tensor> Tensor::to(DType dtype) const {
  if (!plain(dtype_)) return not_plain(dtype_);
  if (!contiguous()) {
    LOOM_ASSIGN(const Tensor whole, copied());
    return whole.to(dtype);
  }
  if (dtype == dtype_) return *this;
  LOOM_ASSIGN(Tensor t, zeros(shape_, dtype));
  const int64_t count = size();
  with_element(dtype_, [&]<class From>() {
    with_element(dtype, [&]<class To>() {
      const auto* from = reinterpret_cast<const From*>(data_);
      auto* to = reinterpret_cast<To*>(const_cast<std::byte*>(t.data_));
      for (int64_t i = 0; i < count; ++i) to[i] = converted<To>(from[i]);
    });
  });
  return t;
}

}  // namespace loom
