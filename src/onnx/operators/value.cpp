// Memory and conversions of values. See value.hpp.
#include "onnx/operators/value.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core::evaluate {

Result<std::shared_ptr<const Buffer>> Memory::take(int64_t bytes) {
  // Sizes in steps of a quarter of a power of two, so that equal shapes meet their memory again.
  const auto capacity = static_cast<uint64_t>(std::max<int64_t>(bytes, 64));
  const uint64_t step = std::max<uint64_t>(std::bit_floor(capacity) / 4, 64);
  const int64_t size = round_up(static_cast<int64_t>(capacity), static_cast<int64_t>(step));
  Buffer buffer;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Buffer>& list = free_[size];
    if (!list.empty()) {
      buffer = std::move(list.back());
      list.pop_back();
    } else {
      if (size > limit_ - held_) forget();
      if (size > limit_ - held_)
        return make_error(Code::out_of_memory,
                          cat("the values of this graph need more than ", limit_, " bytes"));
      held_ += size;
    }
  }
  if (buffer.data() == nullptr) {
    LOOM_ASSIGN(buffer, Buffer::allocate(size));
  }
  auto* held = new Buffer(std::move(buffer));
  return std::shared_ptr<const Buffer>(held, [self = shared_from_this()](const Buffer* b) {
    auto* mine = const_cast<Buffer*>(b);
    self->give_back(std::move(*mine));
    delete mine;
  });
}

void Memory::forget() {
  for (const auto& [size, list] : free_) held_ -= size * static_cast<int64_t>(list.size());
  free_.clear();
}

void Memory::give_back(Buffer buffer) {
  const std::lock_guard lock(mutex_);
  const int64_t size = buffer.size();
  free_[size].push_back(std::move(buffer));
}

int element_bytes(OnnxType type) {
  const int bits = onnx_type_bits(type);
  return bits < 8 ? 1 : bits / 8;
}

bool is_real(OnnxType type) {
  using enum OnnxType;
  return type == f32 || type == f64 || type == f16 || type == bf16 ||
         (type >= f8e4m3fn && type <= f8e5m2fnuz) || type == f4e2m1 || type == f8e8m0;
}

bool is_signed(OnnxType type) {
  using enum OnnxType;
  return type == i8 || type == i16 || type == i32 || type == i64 || type == i4 || type == i2;
}

bool is_whole(OnnxType type) {
  return !is_real(type) && type != OnnxType::boolean && type != OnnxType::undefined;
}

OnnxType computing_type(OnnxType type) {
  if (type == OnnxType::f64) return OnnxType::f64;
  if (is_real(type)) return OnnxType::f32;
  return is_signed(type) ? OnnxType::i64 : OnnxType::u64;
}

int64_t product(const Dims& dims, int first, int last) {
  int64_t n = 1;
  for (int i = first; i < last; ++i) n *= dims[static_cast<size_t>(i)];
  return n;
}

Dims steps_of(const Dims& dims) {
  Dims out(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    out[i] = step;
    step *= dims[i];
  }
  return out;
}

Result<Value> Value::make(Memory& memory, OnnxType type, Dims dims) {
  uint64_t count = 1;
  const int size = element_bytes(type);
  if (size == 0) return unsupported(cat("values of type ", static_cast<int>(type)));
  for (const int64_t d : dims) {
    if (d < 0) return invalid(cat("an extent of ", d));
    if (!checked_mul(count, static_cast<uint64_t>(d), count) || count > (uint64_t{1} << 40))
      return make_error(Code::out_of_memory, "a value of more than 2^40 elements");
  }
  Value v;
  v.type = type;
  v.dims = std::move(dims);
  LOOM_ASSIGN(v.memory_, memory.take(static_cast<int64_t>(count) * size));
  return v;
}

int64_t Value::count() const {
  return product(dims);
}

Value Value::view_as(Dims other) const {
  Value v = *this;
  v.dims = std::move(other);
  return v;
}

Value Value::view_as(OnnxType other) const {
  Value v = *this;
  v.type = other;
  return v;
}

namespace {

// A float of few bits: exponent and mantissa, and what its codes beyond the numbers mean.
struct SmallFloat {
  int exponent, mantissa, bias;
  uint8_t most;       // code of the largest finite value
  int infinity, nan;  // codes, or -1
};
SmallFloat small_float(OnnxType type) {
  switch (type) {
    case OnnxType::f8e4m3fn: return {4, 3, 7, 0x7e, -1, 0x7f};
    case OnnxType::f8e4m3fnuz: return {4, 3, 8, 0x7f, -1, 0x80};
    case OnnxType::f8e5m2: return {5, 2, 15, 0x7b, 0x7c, 0x7f};
    case OnnxType::f8e5m2fnuz: return {5, 2, 16, 0x7f, -1, 0x80};
    default: return {2, 1, 1, 0x07, -1, -1};
  }
}

uint8_t power_code(double v, RoundingUp rounding) {
  if (std::isnan(v)) return 0xff;
  const double a = std::abs(v);
  if (a == 0) return 0;
  if (std::isinf(v)) return 0xfe;
  int exponent = 0;
  const double part = std::frexp(a, &exponent);  // a = part 2^exponent, part in [1/2, 1)
  int code = exponent - 1 + 127;
  const bool more = rounding == RoundingUp::up        ? part > 0.5
                    : rounding == RoundingUp::nearest ? part >= 0.75
                                                      : false;
  code += more ? 1 : 0;
  return static_cast<uint8_t>(std::clamp(code, 0, 254));
}

}  // namespace

uint8_t small_float_code(OnnxType type, double v, const Casting& how) {
  if (type == OnnxType::f8e8m0) return power_code(v, how.rounding);
  const SmallFloat f = small_float(type);
  const bool one_zero = f.nan == 0x80;  // the code of -0 is NaN
  const int sign_bit = f.exponent + f.mantissa;
  const bool negative = std::signbit(v);
  const auto sign = static_cast<uint8_t>(negative ? 1 << sign_bit : 0);
  if (std::isnan(v))
    return f.nan < 0 ? static_cast<uint8_t>(1 << sign_bit)
                     : static_cast<uint8_t>(one_zero ? f.nan : f.nan | sign);
  const auto beyond = [&] {
    if (how.saturate || f.nan < 0) return static_cast<uint8_t>(f.most | sign);
    if (f.infinity >= 0) return static_cast<uint8_t>(f.infinity | sign);
    return static_cast<uint8_t>(one_zero ? f.nan : f.nan | sign);
  };
  const double a = std::abs(v);
  if (std::isinf(v)) return beyond();
  int e = a == 0 ? 1 - f.bias : std::ilogb(a);
  e = std::max(e, 1 - f.bias);
  const double units = std::nearbyint(std::ldexp(a, f.mantissa - e));
  const double code = units + std::ldexp(e + f.bias - 1, f.mantissa);
  if (code > f.most) return beyond();
  const auto bits = static_cast<uint8_t>(code);
  return one_zero && bits == 0 ? bits : static_cast<uint8_t>(bits | sign);
}

float small_float_value(OnnxType type, uint8_t code) {
  if (type == OnnxType::f8e8m0) return f32_from_e8m0(code);
  const SmallFloat f = small_float(type);
  const int sign_bit = f.exponent + f.mantissa;
  const int low = code & ((1 << sign_bit) - 1);
  const float sign = (code >> sign_bit & 1) != 0 ? -1.0F : 1.0F;
  if (f.nan == 0x80 ? code == 0x80 : (f.nan >= 0 && low > f.most && low != f.infinity))
    return std::numeric_limits<float>::quiet_NaN();
  if (low == f.infinity) return sign * std::numeric_limits<float>::infinity();
  const int exponent = low >> f.mantissa;
  const int part = low & ((1 << f.mantissa) - 1);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(part), 1 - f.bias - f.mantissa);
  return sign *
         std::ldexp(static_cast<float>(part + (1 << f.mantissa)), exponent - f.bias - f.mantissa);
}

namespace {

// A cast goes by blocks: elements become numbers of their computing type, and those become elements
// of the other type. So there is a loop for each type and not for each pair of types.
constexpr int64_t kBlock = 256;

template <class From, class To>
void convert(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

// n elements of `type`, from `from` on, in its computing type; `room` is used if that is another.
const void* read_block(OnnxType type, const std::byte* from, int64_t n, void* room) {
  using enum OnnxType;
  const auto as_float = [&](auto value) {
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(room)[i] = value(i);
  };
  const auto* codes = reinterpret_cast<const uint16_t*>(from);
  switch (type) {
    case f32:
    case f64:
    case i64:
    case u64: return from;
    case i32: convert<int32_t, int64_t>(from, room, n); break;
    case u32: convert<uint32_t, uint64_t>(from, room, n); break;
    case i16: convert<int16_t, int64_t>(from, room, n); break;
    case u16: convert<uint16_t, uint64_t>(from, room, n); break;
    case i8:
    case i4:
    case i2: convert<int8_t, int64_t>(from, room, n); break;
    case boolean:
    case u8:
    case u4:
    case u2: convert<uint8_t, uint64_t>(from, room, n); break;
    case f16: as_float([=](int64_t i) { return f32_from_f16(codes[i]); }); break;
    case bf16: as_float([=](int64_t i) { return f32_from_bf16(codes[i]); }); break;
    default:
      as_float([=](int64_t i) { return small_float_value(type, static_cast<uint8_t>(from[i])); });
  }
  return room;
}

// A number as a whole one: cut; what is beyond 64 bits, and NaN, is the least or the largest.
template <class T>
uint64_t whole_bits(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!(v == v)) return 0;
    if (v >= static_cast<T>(18446744073709551616.0)) return ~uint64_t{0};
    if (v >= static_cast<T>(9223372036854775808.0)) return static_cast<uint64_t>(v);
    if (v < static_cast<T>(-9223372036854775808.0)) return uint64_t{1} << 63;
    return static_cast<uint64_t>(static_cast<int64_t>(v));
  } else {
    return static_cast<uint64_t>(v);
  }
}

// Whole numbers of fewer than 8 bits, kept by their value.
int8_t narrow_whole(OnnxType type, uint64_t bits) {
  switch (type) {
    case OnnxType::u4: return static_cast<int8_t>(bits & 15);
    case OnnxType::u2: return static_cast<int8_t>(bits & 3);
    case OnnxType::i4: return static_cast<int8_t>(static_cast<int8_t>(bits << 4) >> 4);
    default: return static_cast<int8_t>(static_cast<int8_t>(bits << 6) >> 6);
  }
}

// Numbers of a computing type in double precision, or cut to 64 bits.
void as_doubles(OnnxType wide, const void* from, double* to, int64_t n) {
  with_type(wide, [&]<class T>(T) { convert<T, double>(from, to, n); });
}
void as_whole(OnnxType wide, const void* from, uint64_t* to, int64_t n) {
  with_type(wide, [&]<class T>(T) {
    const auto* x = static_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = whole_bits(x[i]);
  });
}

void write_whole(OnnxType type, const uint64_t* from, std::byte* to, int64_t n) {
  if (onnx_type_bits(type) < 8) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(narrow_whole(type, from[i]));
    return;
  }
  switch (element_bytes(type)) {
    case 1: return convert<uint64_t, uint8_t>(from, to, n);
    case 2: return convert<uint64_t, uint16_t>(from, to, n);
    case 4: return convert<uint64_t, uint32_t>(from, to, n);
    default: return convert<uint64_t, uint64_t>(from, to, n);
  }
}

// n numbers of the computing type `wide`, kBlock at most, as elements of `type`.
void write_block(OnnxType wide, const void* from, OnnxType type, const Casting& how, std::byte* to,
                 int64_t n) {
  using enum OnnxType;
  if (is_whole(type)) {
    uint64_t bits[kBlock];
    as_whole(wide, from, bits, n);
    return write_whole(type, bits, to, n);
  }
  if (type == f32) return with_type(wide, [&]<class T>(T) { convert<T, float>(from, to, n); });
  auto* codes = reinterpret_cast<uint16_t*>(to);
  if (wide == f32 && (type == f16 || type == bf16)) {
    const auto* x = static_cast<const float*>(from);
    for (int64_t i = 0; i < n; ++i)
      codes[i] = type == f16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]);
    return;
  }
  if (type == f64) return as_doubles(wide, from, reinterpret_cast<double*>(to), n);
  double x[kBlock];
  as_doubles(wide, from, x, n);
  for (int64_t i = 0; i < n; ++i) {
    if (type == boolean)
      to[i] = std::byte{x[i] != 0};
    else if (type == f16 || type == bf16)
      codes[i] = static_cast<uint16_t>(encode_value(type == f16 ? DType::f16 : DType::bf16, x[i]));
    else
      to[i] = static_cast<std::byte>(small_float_code(type, x[i], how));
  }
}

}  // namespace

Result<Value> cast(Memory& memory, const Value& v, OnnxType to, const Casting& how) {
  if (v.type == to) return v;
  LOOM_ASSIGN(Value out, Value::make(memory, to, v.dims));
  const OnnxType wide = computing_type(v.type);
  const int from_bytes = element_bytes(v.type), to_bytes = element_bytes(to);
  alignas(8) std::byte room[kBlock * 8];
  for (int64_t at = 0, count = v.count(); at < count; at += kBlock) {
    const int64_t n = std::min(kBlock, count - at);
    const void* block = read_block(v.type, v.data<std::byte>() + at * from_bytes, n, room);
    write_block(wide, block, to, how, out.data<std::byte>() + at * to_bytes, n);
  }
  return out;
}

Result<Value> widen(Memory& memory, const Value& v) {
  return cast(memory, v, computing_type(v.type));
}

Result<Value> value_of(Memory& memory, const OnnxTensor& tensor) {
  LOOM_ASSIGN(Value out, Value::make(memory, tensor.type, tensor.shape));
  const std::span<const std::byte> from = tensor.data();
  const int bits = onnx_type_bits(tensor.type);
  if (bits >= 8) {
    if (!from.empty()) std::memcpy(out.data<std::byte>(), from.data(), from.size());
    return out;
  }
  const int each = 8 / bits;
  for (int64_t i = 0, n = out.count(); i < n; ++i) {
    const auto byte = static_cast<uint64_t>(from[static_cast<size_t>(i / each)]);
    const uint64_t code = byte >> (i % each * bits);
    out.data<int8_t>()[i] = tensor.type == OnnxType::f4e2m1 ? static_cast<int8_t>(code & 15)
                                                            : narrow_whole(tensor.type, code);
  }
  return out;
}

}  // namespace loom::core::evaluate
