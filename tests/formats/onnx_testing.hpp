// Handmade ONNX files: the messages of a small model from the wire format up, so that tests can
// make each of them invalid.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/bytes/protobuf.hpp"
#include "onnx/file/model.hpp"

namespace loom::core::test {

using Wire = ProtoWriter;

inline Wire wire(const std::function<void(Wire&)>& fill) {
  Wire out;
  fill(out);
  return out;
}

// raw_data of a float tensor [2].
inline Wire onnx_wire_tensor(const std::function<void(Wire&)>& more = {}) {
  return wire([&](Wire& t) {
    t.text(8, "w");
    if (more) {
      more(t);
    } else {
      t.integers(1, {2});
      t.integer(2, 1);
      t.text(9, "12345678");
    }
  });
}

inline Wire onnx_wire_value(const std::string& name, const std::function<void(Wire&)>& dims = {}) {
  Wire shape, type, whole, out;
  if (dims) {
    dims(shape);
  } else {
    Wire batch, two;
    batch.text(2, "batch");
    two.integer(1, 2);
    shape.message(1, batch);
    shape.message(1, two);
  }
  type.integer(1, 1);
  type.message(2, shape);
  whole.message(1, type);
  out.text(1, name);
  out.message(2, whole);
  return out;
}

inline Wire onnx_wire_node(const std::function<void(Wire&)>& more = {}) {
  return wire([&](Wire& n) {
    n.text(1, "x");
    n.text(2, "y");
    n.text(3, "n");
    n.text(4, "Relu");
    if (more) more(n);
  });
}

// A model whose graph has a Relu and the additions of `more`.
inline std::string onnx_wire_model(const std::function<void(Wire&)>& more = {},
                                   const std::function<void(Wire&)>& outside = {}) {
  Wire graph, opset, model;
  graph.message(1, onnx_wire_node());
  graph.text(2, "g");
  if (more) more(graph);
  graph.message(11, onnx_wire_value("x"));
  graph.message(12, onnx_wire_value("y"));
  opset.integer(2, 20);
  model.integer(1, 9);
  model.message(7, graph);
  model.message(8, opset);
  if (outside) outside(model);
  return model.take();
}

inline std::string onnx_wire_with_tensor(const std::function<void(Wire&)>& fields) {
  return onnx_wire_model([&](Wire& g) { g.message(5, onnx_wire_tensor(fields)); });
}

inline std::string onnx_wire_with_attribute(const std::function<void(Wire&)>& fields) {
  return onnx_wire_model(
      [&](Wire& g) { g.message(1, onnx_wire_node([&](Wire& n) { n.message(5, wire(fields)); })); });
}

}  // namespace loom::core::test
