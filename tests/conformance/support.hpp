// Conformance: runs one op with the same inputs on every CPU backend and lane count. The bits must
// equal those of the reference on one lane. A driver builds its inputs once. A lambda describes its
// outputs and runs for each backend with fresh memory. Outputs are compared whole, including gaps
// between rows; all NaN are equal.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "ops/families/fwd.hpp"
#include "ops/ops.hpp"

namespace loom::core::test {

// Numbers of an input. smooth: uniform in [-2, 2). mixed: also zeros of both signs, subnormals,
// tiny and large values. wild: also infinities, NaN and the largest floats.
enum class Values { smooth, mixed, wild };

// Whether mixed and wild exclude subnormals, infinities, NaN and values above 2, and sweeps exclude
// values above 16: true on devices.
bool tame_values();
// Whether pack has a kernel for the type; devices do not support all (docs/webgpu.md).
bool packs(DType dtype);

// A finite float that no op produces by chance; it fills gaps between rows.
constexpr uint32_t kPattern = 0x7b7b7b7b;

// `count` numbers, a function of the seed alone.
std::vector<float> make_values(uint64_t seed, int64_t count, Values kind);

// A plain f32 matrix in memory of exactly its size, so that a sanitizer detects access past it.
// Gaps hold a pattern.
class Rows {
 public:
  Rows(int64_t rows, int64_t cols, int64_t gap = 0);
  Rows(int64_t rows, int64_t cols, int64_t gap, uint64_t seed, Values kind);
  Rows(Rows&&) = default;
  const Tensor& tensor() const { return tensor_; }
  float& at(int64_t row, int64_t col) { return tensor_.f32_row(row)[col]; }
  const std::vector<float>& memory() const { return memory_; }

 private:
  std::vector<float> memory_;
  Tensor tensor_;
};

// Plain i32 values, one vector.
class Ids {
 public:
  Ids(int64_t rows, int64_t cols);
  const Tensor& tensor() const { return tensor_; }
  std::vector<int32_t>& values() { return values_; }

 private:
  std::vector<int32_t> values_;
  Tensor tensor_;
};

// A list of rows of a table of `rows`: a few of them, each once, in arbitrary order, and entries
// that name none.
Ids some_rows(int64_t rows, int64_t indices, uint64_t seed);

// A matrix packed by the dtype room.
class Packed {
 public:
  Packed(DType dtype, int64_t rows, int64_t cols, uint64_t seed, Values kind = Values::smooth);
  const Tensor& tensor() const { return tensor_; }

 private:
  Buffer memory_;
  Tensor tensor_;
};

// Quantized rows with their memory.
class Q8 {
 public:
  Q8(int64_t rows, int64_t cols);
  explicit Q8(const Tensor& x);  // quantized by the reference
  const Q8Rows& rows() const { return q_; }
  const std::vector<int8_t>& codes() const { return codes_; }
  const std::vector<float>& scales() const { return scales_; }
  const std::vector<int32_t>& sums() const { return sums_; }

 private:
  std::vector<int8_t> codes_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;  // of blocks, then of half blocks
  Q8Rows q_;
};

// The memory after a run, as 32-bit words: floats with unified NaN, or raw words.
class Image {
 public:
  void add(const std::vector<float>& values);
  void add_bytes(const void* data, int64_t bytes);
  const std::vector<uint32_t>& words() const { return words_; }
  bool is_float(size_t i) const { return floats_[i]; }

 private:
  std::vector<uint32_t> words_;
  std::vector<bool> floats_;
};

// Runs one command on the device of `ops`: uploads its memory and downloads it again. Fails the
// test if it cannot.
void run_on_device(const Ops& ops, Command& command);

// One backend with some lanes. Lanes run one after the other, the last first: they must not depend
// on each other.
class Runner {
 public:
  Runner(const Ops& ops, int lanes, std::string name)
      : ops_(&ops), lanes_(lanes), name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  template <class Args>
  void operator()(void (*Ops::*op)(const Args&, const Lane&), const Args& args,
                  int64_t positions = 0) const {
    ++runs_[static_cast<size_t>(id_of(op))];
    if (ops_->device != nullptr) {
      Command command;
      command.op = id_of(op);
      std::memcpy(command.args, &args, sizeof(args));
      run_on_device(*ops_, command);
      return;
    }
    for (int lane = lanes_ - 1; lane >= 0; --lane) {
      int64_t bytes = std::max(
          {kMatmulScratch, attention_scratch(positions), attend_dx_scratch(positions, true)});
      if constexpr (requires { args.scratch(); }) bytes = std::max(bytes, args.scratch());
      std::vector<std::byte> scratch(static_cast<size_t>(bytes), std::byte{0xA5});
      (ops_->*op)(args, Lane{lane, lanes_, scratch.data(), bytes});
    }
  }
  int runs(OpId op) const { return runs_[static_cast<size_t>(op)]; }

 private:
  template <class Args>
  static OpId id_of(void (*Ops::*op)(const Args&, const Lane&)) {
#define LOOM_OP(name, RowArgs)                   \
  if constexpr (std::is_same_v<RowArgs, Args>) { \
    if (op == &Ops::name) return OpId::name;     \
  }
#include "ops/ops.def"
#undef LOOM_OP
    return OpId{};
  }

  const Ops* ops_;
  int lanes_;
  std::string name_;
  mutable std::array<int, kOpCount> runs_{};
};

// The reference on one lane, and all runners that must equal it.
const Runner& reference_runner();
const std::vector<Runner>& other_runners();

// Runs body(runner) -> Image for the reference and for every other runner; a difference fails the
// test, naming the case, the backend and the first differing word.
void expect_same_bits(const std::string& what, const std::function<Image(const Runner&)>& body);

// The drivers: one per row of ops.def. A row without one does not link.
#define LOOM_OP(name, Args) void conform_##name();
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::core::test
