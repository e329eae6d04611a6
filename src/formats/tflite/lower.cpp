// Inputs, the walk, the table of operators and the outputs. See lower.hpp.
#include "formats/tflite/lower.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace loom::core {
namespace {

// Values that a model may make while it is read beyond its own, and how often each byte of its own.
constexpr int64_t kFreeValues = int64_t{1} << 21, kCopiesOfByte = 24;

}  // namespace

TfliteGraph::TfliteGraph(const TfliteModel& file, const std::string& where,
                         const TfliteOptions& options)
    : file_(file), where_(where), options_(options), values_(file.tensors.size()) {
  left_ = kFreeValues + kCopiesOfByte * static_cast<int64_t>(file.bytes);
}

void TfliteGraph::fail(Error error) {
  if (!failed()) error_ = std::move(error);
}

void TfliteGraph::refuse(std::string_view reason) {
  if (!failed()) error_ = unsupported(cat(place_, ": ", reason), where_);
}

std::span<const TfliteGraph::Row> TfliteGraph::rows() {
  using G = TfliteGraph;
  constexpr size_t kMany = 4096;
  // clang-format off
  static constexpr Row kRows[] = {
      {kAdd, &G::binary, 2, 2}, {kAveragePool, &G::pool}, {kConcatenation, &G::concat, 1, kMany},
      {kConv, &G::conv, 2, 3}, {kDepthwiseConv, &G::depthwise, 2, 3},
      {kDepthToSpace, &G::blocks}, {kDequantize, &G::same},
      {kEmbeddingLookup, &G::gather, 2, 2}, {kFloor, &G::unary},
      {kFullyConnected, &G::fully_connected, 2, 3}, {kL2Normalization, &G::l2_normalization},
      {kL2Pool, &G::pool}, {kLocalResponseNormalization, &G::local_response},
      {kLogistic, &G::unary}, {kMaxPool, &G::pool}, {kMul, &G::binary, 2, 2}, {kRelu, &G::unary},
      {kReluN1To1, &G::function}, {kRelu6, &G::function}, {kReshape, &G::reshape, 1, 2},
      {kResizeBilinear, &G::resize, 2, 2}, {kSoftmax, &G::softmax}, {kSpaceToDepth, &G::blocks},
      {kTanh, &G::unary}, {kPad, &G::pad, 2, 2}, {kGather, &G::gather, 2, 2},
      {kTranspose, &G::transpose, 2, 2}, {kMean, &G::reduce, 2, 2}, {kSub, &G::binary, 2, 2},
      {kDiv, &G::binary, 2, 2}, {kSqueeze, &G::squeeze}, {kSequenceLstm, &G::lstm, 20, 24},
      {kStridedSlice, &G::strided_slice, 4, 4}, {kExp, &G::unary}, {kTopK, &G::top_k, 2, 2, 2},
      {kSplit, &G::split, 2, 2, 0}, {kLogSoftmax, &G::softmax},
      {kBothWaysLstm, &G::both_ways_lstm, 39, 48, 0}, {kCast, &G::cast},
      {kPrelu, &G::binary, 2, 2}, {kMaximum, &G::binary, 2, 2}, {kArgMax, &G::arg, 2, 2},
      {kMinimum, &G::binary, 2, 2}, {kLess, &G::compare, 2, 2}, {kNeg, &G::unary},
      {kPadV2, &G::pad, 3, 3}, {kGreater, &G::compare, 2, 2}, {kGreaterEqual, &G::compare, 2, 2},
      {kLessEqual, &G::compare, 2, 2}, {kSelect, &G::select, 3, 3}, {kSlice, &G::slice, 3, 3},
      {kSin, &G::unary}, {kTransposeConv, &G::transpose_conv, 3, 4}, {kTile, &G::tile, 2, 2},
      {kExpandDims, &G::expand_dims, 2, 2}, {kEqual, &G::compare, 2, 2},
      {kNotEqual, &G::compare, 2, 2}, {kLog, &G::unary}, {kSum, &G::reduce, 2, 2},
      {kSqrt, &G::unary}, {kRsqrt, &G::function}, {kShape, &G::shape}, {kPow, &G::binary, 2, 2},
      {kArgMin, &G::arg, 2, 2}, {kReduceProd, &G::reduce, 2, 2}, {kReduceMax, &G::reduce, 2, 2},
      {kPack, &G::pack, 1, kMany}, {kLogicalOr, &G::compare, 2, 2}, {kOneHot, &G::one_hot, 4, 4},
      {kLogicalAnd, &G::compare, 2, 2}, {kLogicalNot, &G::unary}, {kUnpack, &G::unpack, 1, 1, 0},
      {kReduceMin, &G::reduce, 2, 2}, {kFloorDiv, &G::floor_pair, 2, 2}, {kSquare, &G::function},
      {kZerosLike, &G::zeros_like}, {kFill, &G::fill, 2, 2}, {kFloorMod, &G::floor_pair, 2, 2},
      {kRange, &G::range, 3, 3}, {kResizeNearest, &G::resize, 2, 2}, {kLeakyRelu, &G::function},
      {kSquaredDifference, &G::squared_difference, 2, 2}, {kMirrorPad, &G::mirror_pad, 2, 2},
      {kAbs, &G::unary}, {kSplitV, &G::split, 3, 3, 0}, {kCeil, &G::unary},
      {kReverse, &G::reverse, 2, 2}, {kAddN, &G::add_all, 1, kMany},
      {kGatherNd, &G::gather_nd, 2, 2}, {kCos, &G::unary}, {kRank, &G::shape}, {kElu, &G::unary},
      {kQuantize, &G::same}, {kRound, &G::unary}, {kHardSwish, &G::unary},
      {kSelectV2, &G::select, 3, 3}, {kDensify, &G::same}, {kBatchMatMul, &G::batch_matmul, 2, 2},
      {kCumsum, &G::cumsum, 2, 2}, {kBroadcastTo, &G::broadcast_to, 2, 2}, {kGelu, &G::function},
      {kRelu0To1, &G::function}, {kSign, &G::unary},
  };
  // clang-format on
  return kRows;
}

// A name that callers see: that of the file where nothing else has it.
std::string TfliteGraph::unique(const std::string& name, std::string_view otherwise) {
  std::string out = name.empty() ? std::string(otherwise) : name;
  if (out[0] == ' ') out.insert(0, "'");  // as our own begin
  while (!names_.insert(out).second) out += '\'';
  return out;
}

void TfliteGraph::read_input(int64_t tensor) {
  const TfliteTensor& t = file_.tensors[static_cast<size_t>(tensor)];
  Value& v = values_[static_cast<size_t>(tensor)];
  place_ = cat("input '", printable(t.name), "'");
  if (v.made || t.constant)
    return fail(bad_file(cat(place_, " occurs twice, or is a constant"), where_));
  if (t.variable) return refuse("is a state that is kept between runs");
  v.dims = t.dims;
  for (size_t i = 0; i < v.dims.size(); ++i) {
    const bool open = i < t.signature.size() && t.signature[i] < 0;
    if (open && i > 0) {
      if (options_.open_extent < 1)
        return refuse(cat("axis ", i, " may have any extent; say which (--open-extent)"));
      v.dims[i] = options_.open_extent;
    }
    if (v.dims[i] < 1) return refuse("has no values");
  }
  const OnnxType type = t.quantization ? OnnxType::f32 : onnx_type_of(t.type);
  if (type == OnnxType::undefined)
    return refuse(cat("holds ", tflite_type_name(t.type), " values"));
  OnnxValue given;
  given.name = unique(t.name, cat("input ", tensor));
  given.type = type;
  given.has_shape = true;
  for (const int64_t d : v.dims) given.shape.push_back({d, ""});
  v.type = type;
  v.made = true;
  v.plain = next_++;
  inputs_.emplace(v.plain, given.name);
  out_.model.graph.inputs.push_back(std::move(given));
  if (!t.quantization) return;
  out_.notes.push_back(cat(place_, " holds ", tflite_type_name(t.type),
                           " values in the file, in steps of ", t.quantization->scale[0],
                           "; here the numbers that those stand for"));
  v.plain = quantized(v.plain, *t.quantization, t.type);
}

void TfliteGraph::check_op(const Row& row) {
  const size_t inputs = op_->inputs.size(), outputs = op_->outputs.size();
  if (inputs < row.least || inputs > row.most)
    return fail(bad_file(cat(place_, ": ", inputs, " inputs"), where_));
  if (outputs < 1 || (row.outputs != 0 && outputs != row.outputs))
    return fail(bad_file(cat(place_, ": ", outputs, " outputs"), where_));
  for (const int64_t tensor : op_->outputs) {
    const auto i = static_cast<size_t>(tensor);
    if (values_[i].made || file_.tensors[i].constant)
      return fail(
          bad_file(cat(place_, ": its output, tensor ", tensor, ", is made twice"), where_));
  }
}

void TfliteGraph::op(size_t index) {
  op_ = &file_.ops[index];
  const int code = op_->code;
  place_ = cat("operator ", index, " (", tflite_op_name(code), ")");
  if (code == kCustom) {
    const bool flex = op_->custom.starts_with("Flex");
    return refuse(
        cat("'", printable(op_->custom), "' is ",
            flex ? "an operator of TensorFlow; convert the model with TFLite's own alone"
                 : "not an operator of TFLite itself, and what it computes is not in the file"));
  }
  // It fills tables and variables before the first run; operators that read them are refused by
  // their names, so without any of them it does nothing that can be seen.
  if (code == kCallOnce && op_->outputs.empty()) return;
  const auto is = [&](const Row& row) { return row.code == code; };
  const auto all = rows();
  const auto row = std::ranges::find_if(all, is);
  if (row == all.end()) return refuse("is not read; docs/tflite.md lists the operators that are");
  check_op(*row);
  if (!failed()) (this->*row->handle)();
}

void TfliteGraph::outputs() {
  for (const int64_t tensor : file_.outputs) {
    const TfliteTensor& t = file_.tensors[static_cast<size_t>(tensor)];
    place_ = cat("output '", printable(t.name), "'");
    Value& v = tensor_value(tensor);
    const Name plain = in_order(v, Order::plain);
    if (failed()) return;
    OnnxValue given;
    given.name = unique(t.name, cat("output ", tensor));
    given.type = v.type;
    given.has_shape = true;
    for (const int64_t d : v.dims) given.shape.push_back({d, ""});
    OnnxNode named;
    named.name = place_;
    named.op = "Identity";
    named.inputs = {spelled(plain)};
    named.outputs = {given.name};
    out_.model.graph.nodes.push_back(std::move(named));
    out_.model.graph.outputs.push_back(std::move(given));
  }
}

Result<TfliteAsOnnx> TfliteGraph::run() {
  if (file_.inputs.empty() || file_.outputs.empty())
    return unsupported("takes no input, or gives no output", where_);
  OnnxModel& model = out_.model;
  model.ir_version = 9;
  model.producer = "TFLite";
  model.opsets = {{"", kTfliteOpset}};
  model.graph.name = "main";
  for (const int64_t tensor : file_.inputs) read_input(tensor);
  for (size_t i = 0; i < file_.ops.size() && !failed(); ++i) op(i);
  if (!failed()) outputs();
  if (failed()) return std::move(*error_);
  std::set<std::string_view> used;
  for (const OnnxNode& n : model.graph.nodes) used.insert(n.inputs.begin(), n.inputs.end());
  for (auto& [at, tensor] : constants_) {
    if (used.contains(tensor.name)) model.graph.initializers.push_back(std::move(tensor));
  }
  return std::move(out_);
}

}  // namespace loom::core
