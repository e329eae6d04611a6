// The writer of ONNX models: fields in ascending order, tensors as raw_data, nothing that a default
// already says. See model.hpp.
#include "base/text.hpp"
#include "io/bytes/protobuf.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {
namespace {

ProtoWriter tensor(const OnnxTensor& t) {
  ProtoWriter out;
  out.integers(1, t.shape);
  out.integer(2, static_cast<int64_t>(t.type));
  if (!t.name.empty()) out.text(8, t.name);
  out.bytes(9, t.data());
  return out;
}

ProtoWriter graph(const OnnxGraph& g);

ProtoWriter attribute(const OnnxAttribute& a) {
  ProtoWriter out;
  out.text(1, a.name);
  switch (a.type) {
    case OnnxAttributeType::real: out.f32(2, a.real); break;
    case OnnxAttributeType::integer: out.integer(3, a.integer); break;
    case OnnxAttributeType::text: out.text(4, a.text); break;
    case OnnxAttributeType::tensor: out.message(5, tensor(a.tensors[0])); break;
    case OnnxAttributeType::reals: out.floats(7, a.reals); break;
    case OnnxAttributeType::integers: out.integers(8, a.integers); break;
    case OnnxAttributeType::texts:
      for (const std::string& text : a.texts) out.text(9, text);
      break;
    case OnnxAttributeType::tensors:
      for (const OnnxTensor& t : a.tensors) out.message(10, tensor(t));
      break;
    case OnnxAttributeType::graph:
    case OnnxAttributeType::graphs:
      for (const OnnxGraph& g : a.graphs)
        out.message(a.type == OnnxAttributeType::graph ? 6 : 11, graph(g));
      break;
    case OnnxAttributeType::type: break;  // nothing that we make holds one
  }
  out.integer(20, static_cast<int64_t>(a.type));
  return out;
}

ProtoWriter node(const OnnxNode& n) {
  ProtoWriter out;
  for (const std::string& name : n.inputs) out.text(1, name);
  for (const std::string& name : n.outputs) out.text(2, name);
  if (!n.name.empty()) out.text(3, n.name);
  out.text(4, n.op);
  for (const OnnxAttribute& a : n.attributes) out.message(5, attribute(a));
  if (!n.domain.empty()) out.text(7, n.domain);
  return out;
}

ProtoWriter value(const OnnxValue& v) {
  ProtoWriter shape, type, whole, out;
  for (const OnnxDim& d : v.shape) {
    ProtoWriter axis;
    if (d.extent >= 0) axis.integer(1, d.extent);
    if (d.extent < 0 && !d.symbol.empty()) axis.text(2, d.symbol);
    shape.message(1, axis);
  }
  type.integer(1, static_cast<int64_t>(v.type));
  if (v.has_shape) type.message(2, shape);
  whole.message(1, type);
  out.text(1, v.name);
  out.message(2, whole);
  return out;
}

ProtoWriter graph(const OnnxGraph& g) {
  ProtoWriter out;
  for (const OnnxNode& n : g.nodes) out.message(1, node(n));
  out.text(2, g.name);
  for (const OnnxTensor& t : g.initializers) out.message(5, tensor(t));
  for (const OnnxValue& v : g.inputs) out.message(11, value(v));
  for (const OnnxValue& v : g.outputs) out.message(12, value(v));
  for (const OnnxValue& v : g.values) out.message(13, value(v));
  return out;
}

}  // namespace

Result<std::string> onnx_bytes(const OnnxModel& model) {
  ProtoWriter out;
  out.integer(1, model.ir_version);
  if (!model.producer.empty()) out.text(2, model.producer);
  if (!model.producer_version.empty()) out.text(3, model.producer_version);
  out.message(7, graph(model.graph));
  for (const auto& [domain, version] : model.opsets) {
    ProtoWriter opset;
    if (!domain.empty()) opset.text(1, domain);
    opset.integer(2, version);
    out.message(8, opset);
  }
  for (const auto& [key, value] : model.metadata) {
    ProtoWriter pair;
    pair.text(1, key);
    pair.text(2, value);
    out.message(14, pair);
  }
  if (out.str().size() > kMaxOnnxFile)
    return unsupported(
        cat("an ONNX file holds at most ", kMaxOnnxFile, " bytes; this needs ", out.str().size()));
  return out.take();
}

}  // namespace loom::core
