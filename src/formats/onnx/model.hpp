// ONNX models as plain data: what a file says, checked for sizes and counts, with no meaning given
// to any operator (src/bridge does that). Reader and writer are ours, over protobuf.hpp; field
// numbers are those of onnx.proto.
// Tensors that are read view the bytes of the file, which must outlive the model. Nothing a file
// says names a path that is opened: tensors whose data lie in other files are refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

enum class OnnxType : int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};
std::string_view onnx_type_name(OnnxType type);
size_t onnx_type_bytes(OnnxType type);  // 0: none that Loom reads

// Row-major little-endian values.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> raw;  // of the file; or
  std::vector<std::byte> own;      // values that stood in typed fields, or that we made

  int64_t count() const;
  std::span<const std::byte> data() const { return own.empty() ? raw : std::span(own); }
};

OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values);
OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> shape,
                       std::span<const int64_t> values);
// Values as f32 or f64 (floats of any width), or as i64 (integers and booleans). Errors: the other
// kind; u64 beyond i64.
Result<std::vector<float>> onnx_f32(const OnnxTensor& tensor);
Result<std::vector<double>> onnx_f64(const OnnxTensor& tensor);
Result<std::vector<int64_t>> onnx_i64(const OnnxTensor& tensor);

enum class OnnxAttributeType : int32_t {
  real = 1,
  integer = 2,
  text = 3,
  tensor = 4,
  reals = 6,
  integers = 7,
  texts = 8,
  tensors = 9
};

struct OnnxAttribute {
  std::string name;
  OnnxAttributeType type = OnnxAttributeType::integer;
  float real = 0;
  int64_t integer = 0;
  std::string text;  // any bytes
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::vector<OnnxTensor> tensors;  // one of OnnxAttributeType::tensor
};

struct OnnxNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "": left out
  std::vector<OnnxAttribute> attributes;
  const OnnxAttribute* find(std::string_view attribute) const;
};

// One axis: an extent, a name that stands for one, or neither.
struct OnnxDim {
  int64_t extent = -1;
  std::string symbol;
};

struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::f32;
  bool has_shape = false;
  std::vector<OnnxDim> shape;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs, values;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::string producer, producer_version;
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("" is ONNX itself), version
  std::vector<std::pair<std::string, std::string>> metadata;
  OnnxGraph graph;
};

// Caps, per list.
constexpr size_t kMaxOnnxNodes = size_t{1} << 20;
constexpr size_t kMaxOnnxTensors = size_t{1} << 20;
constexpr size_t kMaxOnnxNames = size_t{1} << 16;  // inputs or outputs of one node, metadata, ...
constexpr size_t kMaxOnnxAttributes = 1024;        // of one node
constexpr size_t kMaxOnnxOpsets = 256;
constexpr size_t kMaxOnnxRank = 8;
constexpr uint64_t kMaxOnnxFile = (uint64_t{1} << 31) - 1;  // what protobuf itself allows

// Errors: bad_file with the byte; unsupported (subgraphs, sparse tensors, functions, external data,
// types we do not know), naming the node or tensor.
Result<OnnxModel> parse_onnx(std::span<const std::byte> file, const std::string& where);
// The bytes of the file: equal models are equal bytes. Errors: more than 2 GB.
Result<std::string> onnx_bytes(const OnnxModel& model);

}  // namespace loom::core
