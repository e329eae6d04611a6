// Graphs, nodes and attributes of ONNX files: see read.hpp.
#include "onnx/file/read.hpp"

#include <algorithm>

namespace loom::core {
namespace {

// The field of the value of an attribute of each type; 0 is a type that we refuse by name.
uint32_t value_field(int64_t type, OnnxReading reading) {
  constexpr uint32_t kFields[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 14};
  if (reading == OnnxReading::plain && (type == 5 || type >= 10)) return 0;
  return type >= 0 && type < 14 ? kFields[type] : 0;
}

}  // namespace

Status OnnxReader::list_field(const ProtoReader& in, const ProtoField& f, OnnxAttribute& out) {
  if (f.number == 9) {
    LOOM_TRY(room(in, f, "strings", out.texts, kMaxOnnxNames));
    LOOM_ASSIGN(const auto bytes, in.bytes(f, "strings"));
    if (bytes.size() > ProtoReader::kMaxText) return in.error(f, "strings", "too long a string");
    out.texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  if (f.number == 6 || f.number == 11) {
    LOOM_TRY(room(in, f, "graphs", out.graphs, kMaxOnnxNames));
    if (depth_ >= kMaxOnnxDepth) return in.error(f, "graph", "graphs inside of graphs too deep");
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "GraphProto"));
    OnnxGraph made;
    ++depth_;
    LOOM_TRY(graph(inner, made));
    --depth_;
    out.graphs.push_back(std::move(made));
    return {};
  }
  LOOM_TRY(room(in, f, "tensors", out.tensors, kMaxOnnxNames));
  LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TensorProto"));
  LOOM_ASSIGN(OnnxTensor made, tensor(inner));
  out.tensors.push_back(std::move(made));
  return {};
}

Status OnnxReader::attribute_field(const ProtoReader& in, const ProtoField& f, const OnnxNode& node,
                                   OnnxAttribute& out, uint32_t& held) {
  if (held != 0 && held != f.number) return in.error(f, "value", "an attribute of two types");
  const bool single = f.number < 6;
  if (single && held == f.number) return in.error(f, "value", "occurs twice");
  held = f.number;
  switch (f.number) {
    case 2: {
      LOOM_ASSIGN(out.real, in.f32(f, "f"));
      return {};
    }
    case 3: {
      LOOM_ASSIGN(out.integer, in.integer(f, "i"));
      return {};
    }
    case 4: {
      LOOM_ASSIGN(const auto bytes, in.bytes(f, "s"));
      if (bytes.size() > ProtoReader::kMaxText) return in.error(f, "s", "too long a string");
      out.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    case 7: return in.floats(f, "floats", kMaxOnnxValues, out.reals);
    case 8: return in.integers(f, "ints", kMaxOnnxValues, out.integers);
    case 5:
    case 9:
    case 10: return list_field(in, f, out);
    case 6:
    case 11:
      if (everything() || node.op == "If") return list_field(in, f, out);
      break;
    case 14:
      if (everything()) return {};
      break;
    default: break;
  }
  return not_known(cat("node '", printable(node.name), "' (", printable(node.op),
                       "): its attribute '", printable(out.name),
                       "' holds a subgraph, a sparse tensor or a type; none is read"));
}

Result<OnnxAttribute> OnnxReader::attribute(ProtoReader in, const OnnxNode& node) {
  OnnxAttribute out;
  ReadOnce once;
  int64_t type = 0;
  std::vector<ProtoField> values;  // read when the name is known
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "name"));
      LOOM_ASSIGN(out.name, in.text(f, "name"));
    } else if (f.number == 20) {
      LOOM_TRY(once.check(in, f, "type"));
      LOOM_ASSIGN(type, in.integer(f, "type"));
    } else if (f.number == 21) {
      if (!everything())
        return in.error(f, "ref_attr_name", "attributes of functions are not read");
      LOOM_TRY(once.check(in, f, "ref_attr_name"));
      LOOM_ASSIGN(out.reference, in.text(f, "ref_attr_name"));
    } else if (f.number != 13 && f.number <= 23) {
      if (values.size() >= kMaxOnnxTensors) return in.error(f, "value", "too many values");
      values.push_back(f);
    }
  }
  LOOM_TRY(value_of(in, values, node, type, out));
  return out;
}

Status OnnxReader::value_of(const ProtoReader& in, const std::vector<ProtoField>& values,
                            const OnnxNode& node, int64_t type, OnnxAttribute& out) {
  uint32_t held = 0;
  for (const ProtoField& f : values) LOOM_TRY(attribute_field(in, f, node, out, held));
  const bool branch = type == 5 && node.op == "If";  // that a condition may choose
  const uint32_t expected = value_field(type, branch ? OnnxReading::everything : reading_);
  if (expected == 0)
    return in.error(
        cat("attribute '", printable(out.name), "' is of type ", type, ", which is not read"));
  // Lists and zeros may be absent altogether.
  if (held != 0 && held != expected)
    return in.error(cat("attribute '", printable(out.name), "' says it is of type ", type,
                        ", but holds another"));
  const bool empty =
      (expected == 5 && out.tensors.size() != 1) || (expected == 6 && out.graphs.size() != 1);
  if (empty && out.reference.empty())
    return in.error(
        cat("attribute '", printable(out.name), "' has no ", expected == 5 ? "tensor" : "graph"));
  out.type = static_cast<OnnxAttributeType>(type);
  return {};
}

Result<OnnxNode> OnnxReader::node(ProtoReader in) {
  OnnxNode out;
  ReadOnce once;
  std::vector<ProtoField> attributes;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    std::string* single = f.number == 3 ? &out.name : f.number == 4 ? &out.op : nullptr;
    if (f.number == 7) single = &out.domain;
    if (single != nullptr) {
      LOOM_TRY(once.check(in, f, "name, op_type or domain"));
      LOOM_ASSIGN(*single, in.text(f, "name, op_type or domain"));
    } else if (f.number == 1 || f.number == 2) {
      std::vector<std::string>& list = f.number == 1 ? out.inputs : out.outputs;
      LOOM_TRY(room(in, f, "inputs and outputs", list, kMaxOnnxNames));
      LOOM_ASSIGN(std::string name, in.text(f, "inputs and outputs"));
      list.push_back(std::move(name));
    } else if (f.number == 5) {
      LOOM_TRY(room(in, f, "attribute", attributes, kMaxOnnxAttributes));
      attributes.push_back(f);
    }
  }
  if (out.op.empty()) return in.error("has no op_type");
  for (const ProtoField& f : attributes) {
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "AttributeProto"));
    LOOM_ASSIGN(OnnxAttribute made, attribute(inner, out));
    if (out.find(made.name) != nullptr)
      return in.error(f, "attribute", cat("'", printable(made.name), "' occurs twice"));
    out.attributes.push_back(std::move(made));
  }
  return out;
}

Result<OnnxDim> OnnxReader::dim(ProtoReader in) {
  OnnxDim out;
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "dim_value"));
      LOOM_ASSIGN(out.extent, in.integer(f, "dim_value"));
      // Some exporters write an open extent as -1.
      if (out.extent < -1 && !everything())
        return in.error(f, "dim_value", cat(out.extent, " is below 0"));
      out.extent = std::max<int64_t>(out.extent, -1);
    } else if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "dim_param"));
      LOOM_ASSIGN(out.symbol, in.text(f, "dim_param"));
    }
  }
  if (once.has(1) && once.has(2)) return in.error("has both dim_value and dim_param");
  return out;
}

Status OnnxReader::tensor_type(ProtoReader in, OnnxValue& out) {
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "elem_type"));
      LOOM_ASSIGN(const int64_t type, in.integer(f, "elem_type"));
      if (type < 0 || type > 1000) return in.error(f, "elem_type", cat(type, " is not a type"));
      out.type = static_cast<OnnxType>(type);
    } else if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "shape"));
      out.has_shape = true;
      LOOM_ASSIGN(ProtoReader shape, in.enter(f, "TensorShapeProto"));
      while (!shape.done()) {
        LOOM_ASSIGN(const ProtoField axis, shape.next());
        if (axis.number != 1) continue;
        LOOM_TRY(room(shape, axis, "dim", out.shape, kMaxOnnxRank));
        LOOM_ASSIGN(const ProtoReader inner, shape.enter(axis, "Dimension"));
        LOOM_ASSIGN(OnnxDim made, dim(inner));
        out.shape.push_back(std::move(made));
      }
    }
  }
  return {};
}

Status OnnxReader::type(ProtoReader in, OnnxValue& out) {
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "tensor_type"));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TypeProto.Tensor"));
      LOOM_TRY(tensor_type(inner, out));
    } else if (everything() && (f.number == 4 || f.number == 9)) {
      // A list of, or an optional, value of the type in field 1.
      LOOM_ASSIGN(ProtoReader inner, in.enter(f, "TypeProto"));
      const OnnxKind kind = f.number == 4 ? OnnxKind::sequence : OnnxKind::optional;
      if (depth_ >= kMaxOnnxDepth) return in.error(f, "type", "types inside of types too deep");
      ++depth_;
      while (!inner.done()) {
        LOOM_ASSIGN(const ProtoField element, inner.next());
        if (element.number != 1) continue;
        LOOM_ASSIGN(const ProtoReader deeper, inner.enter(element, "TypeProto"));
        LOOM_TRY(type(deeper, out));
      }
      --depth_;
      // An output of a list of maps is the values of the maps (src/onnx/interpreter/ml/ml.hpp).
      out.kind = maps_ ? OnnxKind::tensor : kind;
      maps_ = false;
    } else if (everything() && f.number == 5) {
      LOOM_ASSIGN(ProtoReader inner, in.enter(f, "TypeProto.Map"));
      if (depth_ >= kMaxOnnxDepth) return in.error(f, "type", "types inside of types too deep");
      ++depth_;
      while (!inner.done()) {
        LOOM_ASSIGN(const ProtoField element, inner.next());
        if (element.number != 2) continue;
        LOOM_ASSIGN(const ProtoReader deeper, inner.enter(element, "TypeProto"));
        LOOM_TRY(type(deeper, out));
      }
      --depth_;
      maps_ = true;
    } else if (f.number == 4 || f.number == 5 || f.number == 8 || f.number == 9) {
      return not_known(cat("value '", printable(out.name),
                           "' is not a plain tensor; sequences, maps, "
                           "optionals and sparse tensors are not read"));
    }
  }
  return {};
}

Result<OnnxValue> OnnxReader::value(ProtoReader in) {
  OnnxValue out;
  out.type = OnnxType::undefined;
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "name"));
      LOOM_ASSIGN(out.name, in.text(f, "name"));
    } else if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "type"));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TypeProto"));
      LOOM_TRY(type(inner, out));
    }
  }
  return out;
}

Status OnnxReader::graph_field(const ProtoReader& in, const ProtoField& f, OnnxGraph& out) {
  switch (f.number) {
    case 1: {
      LOOM_TRY(room(in, f, "node", out.nodes, kMaxOnnxNodes));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "NodeProto"));
      LOOM_ASSIGN(OnnxNode made, node(inner));
      out.nodes.push_back(std::move(made));
      return {};
    }
    case 5: {
      LOOM_TRY(room(in, f, "initializer", out.initializers, kMaxOnnxTensors));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TensorProto"));
      LOOM_ASSIGN(OnnxTensor made, tensor(inner));
      out.initializers.push_back(std::move(made));
      return {};
    }
    case 15:
      return not_known("the graph has sparse initializers, which are not read; save them dense");
    default: break;
  }
  std::vector<OnnxValue>& list = f.number == 11   ? out.inputs
                                 : f.number == 12 ? out.outputs
                                                  : out.values;
  LOOM_TRY(room(in, f, "value", list, kMaxOnnxTensors));
  LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "ValueInfoProto"));
  LOOM_ASSIGN(OnnxValue made, value(inner));
  list.push_back(std::move(made));
  return {};
}

Status OnnxReader::graph(ProtoReader in, OnnxGraph& out) {
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "name"));
      LOOM_ASSIGN(out.name, in.text(f, "name"));
    } else if (f.number == 1 || f.number == 5 || f.number == 15 ||
               (f.number >= 11 && f.number <= 13)) {
      LOOM_TRY(graph_field(in, f, out));
    }
  }
  return {};
}

Result<std::pair<std::string, int64_t>> OnnxReader::opset(ProtoReader in) {
  std::pair<std::string, int64_t> out;
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "domain"));
      LOOM_ASSIGN(out.first, in.text(f, "domain"));
    } else if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "version"));
      LOOM_ASSIGN(out.second, in.integer(f, "version"));
    }
  }
  if (out.first == "ai.onnx") out.first.clear();  // two names of one domain
  return out;
}

Result<std::pair<std::string, std::string>> OnnxReader::pair(ProtoReader in) {
  std::pair<std::string, std::string> out;
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number != 1 && f.number != 2) continue;
    LOOM_TRY(once.check(in, f, "key or value"));
    LOOM_ASSIGN((f.number == 1 ? out.first : out.second), in.text(f, "key or value"));
  }
  return out;
}

Status OnnxReader::function_field(const ProtoReader& in, const ProtoField& f, OnnxFunction& out) {
  switch (f.number) {
    case 1: {
      LOOM_ASSIGN(out.name, in.text(f, "name"));
      return {};
    }
    case 4:
    case 5: {
      std::vector<std::string>& list = f.number == 4 ? out.inputs : out.outputs;
      LOOM_TRY(room(in, f, "inputs and outputs", list, kMaxOnnxNames));
      LOOM_ASSIGN(std::string name, in.text(f, "inputs and outputs"));
      list.push_back(std::move(name));
      return {};
    }
    case 7: {
      LOOM_TRY(room(in, f, "node", out.nodes, kMaxOnnxNodes));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "NodeProto"));
      LOOM_ASSIGN(OnnxNode made, node(inner));
      out.nodes.push_back(std::move(made));
      return {};
    }
    case 9: {
      LOOM_TRY(room(in, f, "opset_import", out.opsets, kMaxOnnxOpsets));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "OperatorSetIdProto"));
      LOOM_ASSIGN(auto made, opset(inner));
      out.opsets.push_back(std::move(made));
      return {};
    }
    case 10: {
      LOOM_ASSIGN(out.domain, in.text(f, "domain"));
      return {};
    }
    case 11: {
      LOOM_TRY(room(in, f, "attribute_proto", out.defaults, kMaxOnnxAttributes));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "AttributeProto"));
      LOOM_ASSIGN(OnnxAttribute made, attribute(inner, OnnxNode{}));
      out.defaults.push_back(std::move(made));
      return {};
    }
    default: return {};
  }
}

Result<OnnxFunction> OnnxReader::function(ProtoReader in) {
  OnnxFunction out;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    LOOM_TRY(function_field(in, f, out));
  }
  if (out.name.empty()) return in.error("has no name");
  return out;
}

Status OnnxReader::model_field(const ProtoReader& in, const ProtoField& f, ReadOnce& once,
                               OnnxModel& out) {
  if (f.number == 1) {
    LOOM_TRY(once.check(in, f, "ir_version"));
    LOOM_ASSIGN(out.ir_version, in.integer(f, "ir_version"));
  } else if (f.number == 2 || f.number == 3) {
    LOOM_TRY(once.check(in, f, "producer"));
    LOOM_ASSIGN((f.number == 2 ? out.producer : out.producer_version), in.text(f, "producer"));
  } else if (f.number == 7) {
    LOOM_TRY(once.check(in, f, "graph"));
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "GraphProto"));
    LOOM_TRY(graph(inner, out.graph));
  } else if (f.number == 8) {
    LOOM_TRY(room(in, f, "opset_import", out.opsets, kMaxOnnxOpsets));
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "OperatorSetIdProto"));
    LOOM_ASSIGN(auto made, opset(inner));
    for (const auto& before : out.opsets) {
      if (before == made) return {};  // said twice; skl2onnx does
      if (before.first == made.first)
        return in.error(f, "opset_import", cat("'", printable(made.first), "' occurs twice"));
    }
    out.opsets.push_back(std::move(made));
  } else if (f.number == 14) {
    LOOM_TRY(room(in, f, "metadata_props", out.metadata, kMaxOnnxNames));
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "StringStringEntryProto"));
    LOOM_ASSIGN(auto made, pair(inner));
    out.metadata.push_back(std::move(made));
  } else if (f.number == 25) {
    if (!everything())
      return not_known("the model defines functions of its own, which are not read; inline them");
    LOOM_TRY(room(in, f, "functions", out.functions, kMaxOnnxFunctions));
    LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "FunctionProto"));
    LOOM_ASSIGN(OnnxFunction made, function(inner));
    out.functions.push_back(std::move(made));
  }
  return {};
}

namespace {

// The bytes of a field of the outermost message end with the file.
Error cut_short(Error error) {
  if (error.message.ends_with(" remain")) error.message += "; copy or download it again";
  return error;
}

}  // namespace

Result<OnnxModel> OnnxReader::model() {
  OnnxModel out;
  ReadOnce once;
  if (file_.size() > kMaxOnnxFile)
    return bad_file(cat("more than ", kMaxOnnxFile, " bytes, which no ONNX file has"), where_, 0);
  ProtoReader in(file_, where_, "ModelProto");
  while (!in.done()) {
    Result<ProtoField> f = in.next();
    if (!f.ok()) return cut_short(f.error());
    LOOM_TRY(model_field(in, *f, once, out));
  }
  if (!once.has(7)) return in.error("has no graph: this is not an ONNX model");
  if (out.ir_version < 1 || out.opsets.empty())
    return in.error("has no ir_version or no opset_import: this is not an ONNX model");
  return out;
}

Result<OnnxModel> parse_onnx(std::span<const std::byte> file, const std::string& where,
                             OnnxReading reading) {
  return OnnxReader(file, where, reading).model();
}

}  // namespace loom::core
