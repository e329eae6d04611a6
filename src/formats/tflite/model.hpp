// TFLite files as plain data: tensors, operators and their options, checked for bounds and indexes,
// with no meaning given to any operator (lower.hpp does that). The flatbuffer is walked with the
// accessors of the flatbuffers library; which field is which is our table (read.cpp).
// Values of tensors view the bytes of the file, which must outlive the model. If a file has several
// graphs, only the first is read, as in the TFLite interpreter.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {

enum class TfliteType : int8_t {
  f32 = 0,
  f16 = 1,
  i32 = 2,
  u8 = 3,
  i64 = 4,
  text = 5,
  boolean = 6,
  i16 = 7,
  c64 = 8,
  i8 = 9,
  f64 = 10,
  c128 = 11,
  u64 = 12,
  resource = 13,
  variant = 14,
  u32 = 15,
  u16 = 16,
  i4 = 17,
  bf16 = 18
};

// real = (stored - zero_point) * scale: one of each for the tensor, or one for each place of
// `axis`.
struct TfliteQuantization {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;
  int64_t axis = 0;
};

// One axis of a sparse tensor, in the order of its values in memory.
struct TfliteSparseAxis {
  bool sparse = false;
  int64_t extent = 0;                      // of a dense axis
  std::vector<int64_t> segments, indices;  // of a sparse one
};

struct TfliteSparsity {
  std::vector<int64_t> order, blocks;  // blocks: axes of the tensor that are cut into blocks
  std::vector<TfliteSparseAxis> axes;
};

struct TfliteTensor {
  std::string name;
  TfliteType type = TfliteType::f32;
  std::vector<int64_t> dims;
  std::vector<int64_t> signature;   // the same with -1 where any extent will do; or empty
  std::span<const std::byte> data;  // of a constant
  bool constant = false;
  bool variable = false;  // a state between runs, zeros before the first
  std::optional<TfliteQuantization> quantization;
  std::shared_ptr<const TfliteSparsity> sparsity;
};

struct TfliteOp {
  int code = 0;
  std::string custom;                    // name of an operator that TFLite does not define
  std::vector<int64_t> inputs, outputs;  // tensors; -1 if absent
  std::array<double, 8>
      options{};              // by number of the field; what the file leaves out is its default
  std::vector<int64_t> list;  // the option that is a list
};

struct TfliteModel {
  std::vector<TfliteTensor> tensors;
  std::vector<TfliteOp> ops;  // in the order in which they run
  std::vector<int64_t> inputs, outputs;
  std::string description;
  size_t bytes = 0;  // of the file
};

// "CONV_2D"; a number where we do not know the operator.
std::string tflite_op_name(int code);
std::string_view tflite_type_name(TfliteType type);
// As ONNX calls the same values; undefined: values that networks do not read.
OnnxType onnx_type_of(TfliteType type);

bool is_tflite(std::span<const std::byte> file);

// Caps.
constexpr size_t kMaxTfliteTensors = size_t{1} << 20;
constexpr size_t kMaxTfliteOps = size_t{1} << 20;
constexpr size_t kMaxTfliteList = size_t{1} << 16;  // tensors of one operator, option lists
constexpr size_t kMaxTfliteRank = 8;

// Errors: bad_file (data outside of the file, invalid indexes, constants whose size does not match
// their shape); unsupported (no graph, more than 2 GB).
Result<TfliteModel> parse_tflite(std::span<const std::byte> file, const std::string& where);

}  // namespace loom::core
