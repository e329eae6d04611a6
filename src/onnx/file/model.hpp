// ONNX models as plain data: what a file says, checked for sizes and counts, with no meaning given
// to any operator (src/onnx/operators, src/onnx/import). Reader and writer are ours, over
// protobuf.hpp; field numbers are those of onnx.proto. Tensors that are read view the bytes of the
// file, which must outlive the model. Nothing a file says names a path that is opened: tensors with
// data in other files are refused. Networks know tensors of the plain types alone; the interpreter
// (src/onnx/interpreter), which also runs subgraphs, functions and narrow types, asks for
// OnnxReading::everything.
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
  bf16 = 16,
  // Read only by OnnxReading::everything.
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26
};
std::string_view onnx_type_name(OnnxType type);
size_t onnx_type_bytes(OnnxType type);  // of the plain types; 0 for others
int onnx_type_bits(OnnxType type);      // of every type above; 0 for others

// Row-major little-endian values; those below 8 bits are packed, the first lowest.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> raw;  // of the file; or
  std::vector<std::byte> own;      // values of typed fields, or that we made

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
  graph = 5,
  reals = 6,
  integers = 7,
  texts = 8,
  tensors = 9,
  graphs = 10,
  type = 13
};

struct OnnxGraph;

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
  std::vector<OnnxGraph> graphs;    // one of OnnxAttributeType::graph
  std::string reference;            // inside of a function: which attribute of its call holds it
};

OnnxAttribute onnx_attribute(std::string name, int64_t value);
OnnxAttribute onnx_attribute(std::string name, float value);
OnnxAttribute onnx_attribute(std::string name, std::string value);
OnnxAttribute onnx_attribute(std::string name, std::vector<int64_t> values);
OnnxAttribute onnx_attribute(std::string name, std::vector<float> values);
OnnxAttribute onnx_attribute(std::string name, std::vector<std::string> values);

struct OnnxNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" if left out
  std::vector<OnnxAttribute> attributes;
  const OnnxAttribute* find(std::string_view attribute) const;
};

// One axis: an extent, a name that stands for one, or neither.
struct OnnxDim {
  int64_t extent = -1;
  std::string symbol;
};

// The kind of a value: a tensor, a list of them, or an optional one of either.
enum class OnnxKind : uint8_t { tensor, sequence, optional };

struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::f32;
  bool has_shape = false;
  std::vector<OnnxDim> shape;
  OnnxKind kind = OnnxKind::tensor;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs, values;
};

// An operator that a model defines by others.
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, int64_t>> opsets;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::string producer, producer_version;
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("" is ONNX itself), version
  std::vector<std::pair<std::string, std::string>> metadata;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

enum class OnnxReading : uint8_t { plain, everything };

// Caps, per list.
constexpr size_t kMaxOnnxNodes = size_t{1} << 20;
constexpr size_t kMaxOnnxTensors = size_t{1} << 20;
constexpr size_t kMaxOnnxNames = size_t{1} << 16;  // inputs or outputs of one node, metadata, ...
constexpr size_t kMaxOnnxAttributes = 1024;        // of one node
constexpr size_t kMaxOnnxOpsets = 256;
constexpr size_t kMaxOnnxRank = 8;
constexpr size_t kMaxOnnxFunctions = 4096;
constexpr int kMaxOnnxDepth = 16;                           // of graphs in graphs
constexpr uint64_t kMaxOnnxFile = (uint64_t{1} << 31) - 1;  // what protobuf itself allows

// Errors: bad_file with the byte; unsupported (sparse tensors, strings, external data, types we do
// not know; of plain reading also subgraphs, functions, sequences), naming the node or tensor.
Result<OnnxModel> parse_onnx(std::span<const std::byte> file, const std::string& where,
                             OnnxReading reading = OnnxReading::plain);
// The bytes of the file: equal models are equal bytes. Errors: more than 2 GB.
Result<std::string> onnx_bytes(const OnnxModel& model);

}  // namespace loom::core
