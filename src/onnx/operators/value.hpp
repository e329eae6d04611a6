// Values of a graph that runs unchanged: arrays of any type that ONNX has, with exact integers and
// shapes that may depend on data; lists of them; and none. A value is constant once it is set, and
// its owners share its memory. The tensors of networks (tensor/tensor.hpp) differ: they have one
// type to compute in and fixed shapes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "onnx/file/model.hpp"
#include "tensor/tensor.hpp"

namespace loom::core::evaluate {

using Dims = std::vector<int64_t>;

// Memory of values: kept for the next one of about its size, and no more than a limit altogether.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(int64_t limit) : limit_(limit) {}
  // Not zeroed. Errors: out_of_memory.
  Result<std::shared_ptr<const Buffer>> take(int64_t bytes);

 private:
  void give_back(Buffer buffer);
  void forget();  // unused buffers
  std::mutex mutex_;
  std::map<int64_t, std::vector<Buffer>> free_;  // by their sizes
  int64_t limit_, held_ = 0;
};

// Bytes of one element in memory: types below 8 bits take a byte each, integers by their value,
// floats by their code; types of 16 bits and below are kept as codes.
int element_bytes(OnnxType type);

// Types that operators compute in. Narrower ones are widened before and rounded or wrapped after,
// so that an operator has four forms at most.
//   float16, bfloat16, float8, float4 -> f32; int8 to int64 -> i64; bool, uint8 to uint64 -> u64
OnnxType computing_type(OnnxType type);
bool is_real(OnnxType type);    // a float of any width
bool is_signed(OnnxType type);  // an integer below 0 is possible
bool is_whole(OnnxType type);   // int or uint, no bool

// Calls f with a value of the C++ type of a computing type.
template <class F>
auto with_type(OnnxType computing, F f) {
  switch (computing) {
    case OnnxType::f32: return f(float{});
    case OnnxType::f64: return f(double{});
    case OnnxType::i64: return f(int64_t{});
    default: return f(uint64_t{});
  }
}
template <class F>
auto with_real(OnnxType computing, F f) {
  return computing == OnnxType::f64 ? f(double{}) : f(float{});
}

class Value {
 public:
  OnnxType type = OnnxType::undefined;
  Dims dims;

  static Result<Value> make(Memory& memory, OnnxType type, Dims dims);
  int64_t count() const;
  int64_t bytes() const { return count() * element_bytes(type); }
  int rank() const { return static_cast<int>(dims.size()); }
  int64_t last() const { return dims.empty() ? 1 : dims.back(); }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(memory_->data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(memory_->data());
  }
  // The same memory under another shape of as many elements, or another type of as many bytes.
  Value view_as(Dims other) const;
  Value view_as(OnnxType other) const;

 private:
  std::shared_ptr<const Buffer> memory_;
};

// How long operators took, by name: with what runs inside of them.
struct OperatorTime {
  int64_t calls = 0, nanoseconds = 0;
};
using Profile = std::map<std::string, OperatorTime, std::less<>>;

// The value of a name of a graph.
struct Slot {
  enum class Kind : uint8_t { absent, tensor, sequence, none };  // none: an optional without value
  Kind kind = Kind::absent;
  Value tensor;
  std::shared_ptr<const std::vector<Slot>> items;

  static Slot of(Value v) { return {Kind::tensor, std::move(v), nullptr}; }
  static Slot of(std::vector<Slot> list) {
    return {Kind::sequence, {}, std::make_shared<const std::vector<Slot>>(std::move(list))};
  }
};

// Product of extents from `first` to before `last`.
int64_t product(const Dims& dims, int first, int last);
inline int64_t product(const Dims& dims) {
  return product(dims, 0, static_cast<int>(dims.size()));
}
// Steps of a row-major array.
Dims steps_of(const Dims& dims);

enum class RoundingUp : uint8_t { up, down, nearest };  // of numbers that become a power of two
struct Casting {
  bool saturate = true;  // of floats of 8 bits; false: beyond their range is infinity or NaN
  RoundingUp rounding = RoundingUp::up;
};
// `v` in another type: floats are rounded to nearest, ties to even; a float that becomes an integer
// is cut, integers wrap; true where it is not 0.
Result<Value> cast(Memory& memory, const Value& v, OnnxType to, const Casting& how = {});
// In computing_type(); the same value where it is already.
Result<Value> widen(Memory& memory, const Value& v);

// A tensor of a file as a value.
Result<Value> value_of(Memory& memory, const OnnxTensor& tensor);

// One number as a float of 8 or 4 bits, and back.
uint8_t small_float_code(OnnxType type, double v, const Casting& how);
float small_float_value(OnnxType type, uint8_t code);

}  // namespace loom::core::evaluate
