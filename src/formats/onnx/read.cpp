// The reader of ONNX models: see model.hpp. Strict where the format is lenient: a field that
// stands once stands once, an attribute says its type and holds that type alone, a tensor holds
// exactly the values of its shape, in one place. Unknown fields are skipped.
#include <algorithm>

#include "base/bits.hpp"
#include "base/checked.hpp"
#include "base/text.hpp"
#include "formats/onnx/model.hpp"
#include "io/protobuf.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxOnnxValues = static_cast<size_t>(kMaxOnnxFile);

Error not_known(std::string message, const std::string& where) {
  return unsupported(std::move(message), where);
}

// Refuses the second of a field that stands once: protobuf would let the last one win, other
// readers the first.
class Once {
 public:
  Status check(const ProtoReader& in, const ProtoField& f, std::string_view what) {
    const uint64_t bit = uint64_t{1} << (f.number & 63);
    if ((seen_ & bit) != 0) return in.error(f, what, "stands twice");
    seen_ |= bit;
    return {};
  }
  bool has(uint32_t number) const { return (seen_ >> number & 1) != 0; }

 private:
  uint64_t seen_ = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}
  Result<OnnxModel> model();

 private:
  Status graph(ProtoReader in, OnnxGraph& out);
  Status graph_field(const ProtoReader& in, const ProtoField& f, OnnxGraph& out);
  Result<OnnxNode> node(ProtoReader in);
  Result<OnnxAttribute> attribute(ProtoReader in, const OnnxNode& node);
  Status attribute_field(const ProtoReader& in, const ProtoField& f, const OnnxNode& node,
                         OnnxAttribute& out, uint32_t& held);
  Result<OnnxTensor> tensor(ProtoReader in);
  Result<OnnxValue> value(ProtoReader in);
  Status type(ProtoReader in, OnnxValue& out);
  Status tensor_type(ProtoReader in, OnnxValue& out);
  Result<OnnxDim> dim(ProtoReader in);
  Result<std::pair<std::string, int64_t>> opset(ProtoReader in);
  Result<std::pair<std::string, std::string>> pair(ProtoReader in);

  template <class T>
  Status room(const ProtoReader& in, const ProtoField& f, std::string_view what,
              const std::vector<T>& list, size_t most) const {
    if (list.size() < most) return {};
    return in.error(f, what, cat("more than ", most));
  }

  std::span<const std::byte> file_;
  const std::string& where_;
};

// Values of one tensor as they come in, before it is known which kind they should be.
struct TensorFields {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints32, ints64, uints64;
  std::span<const std::byte> raw;
  bool external = false;
};

template <class T, class From>
std::vector<std::byte> packed(const std::vector<From>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T v = static_cast<T>(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &v, sizeof(T));
  }
  return out;
}

// Values of int32_data must fit the type they stand for; f16 and bf16 stand as their bits.
template <class T>
bool narrow(const std::vector<int64_t>& values, std::vector<std::byte>& out) {
  const auto fits = [](int64_t v) { return static_cast<int64_t>(static_cast<T>(v)) == v; };
  if (!std::all_of(values.begin(), values.end(), fits)) return false;
  out = packed<T>(values);
  return true;
}

bool narrow_to(OnnxType type, const std::vector<int64_t>& values, std::vector<std::byte>& out) {
  switch (type) {
    case OnnxType::i32: return narrow<int32_t>(values, out);
    case OnnxType::i16: return narrow<int16_t>(values, out);
    case OnnxType::i8: return narrow<int8_t>(values, out);
    case OnnxType::boolean:
    case OnnxType::u8: return narrow<uint8_t>(values, out);
    default: return narrow<uint16_t>(values, out);
  }
}

// The number of values in the typed field of this type, all other fields being empty; or -1.
int64_t typed_count(OnnxType type, const TensorFields& f) {
  const size_t all =
      f.floats.size() + f.doubles.size() + f.ints32.size() + f.ints64.size() + f.uints64.size();
  size_t mine = f.ints32.size();
  if (type == OnnxType::f32) mine = f.floats.size();
  if (type == OnnxType::f64) mine = f.doubles.size();
  if (type == OnnxType::i64) mine = f.ints64.size();
  if (type == OnnxType::u32 || type == OnnxType::u64) mine = f.uints64.size();
  return mine == all ? static_cast<int64_t>(mine) : -1;
}

bool store(const TensorFields& f, OnnxTensor& t) {
  switch (t.type) {
    case OnnxType::f32: t.own = packed<float>(f.floats); return true;
    case OnnxType::f64: t.own = packed<double>(f.doubles); return true;
    case OnnxType::i64: t.own = packed<int64_t>(f.ints64); return true;
    case OnnxType::u64: t.own = packed<uint64_t>(f.uints64); return true;
    case OnnxType::u32: return narrow<uint32_t>(f.uints64, t.own);
    default: return narrow_to(t.type, f.ints32, t.own);
  }
}

// Shape, type and values of a tensor must say the same.
Status settle(const ProtoReader& in, const std::string& where, const TensorFields& f, bool has_raw,
              OnnxTensor& t) {
  const std::string who = cat("tensor '", printable(t.name), "'");
  if (f.external)
    return not_known(cat(who,
                         " keeps its data in another file; Loom opens no path that stands in "
                         "a model: save the model with its data inside"),
                     where);
  const size_t size = onnx_type_bytes(t.type);
  if (size == 0)
    return not_known(cat(who, ": data type ", static_cast<int32_t>(t.type), " is not read"), where);
  uint64_t count = 1, bytes = 0;
  for (const int64_t extent : t.shape) {
    if (extent < 0) return in.error(cat(who, ": a dimension of ", extent));
    if (!checked_mul(count, static_cast<uint64_t>(extent), count) || count > kMaxOnnxFile)
      return in.error(cat(who, ": its shape has more than ", kMaxOnnxFile, " values"));
  }
  if (!checked_mul(count, size, bytes)) return in.error(cat(who, ": too large"));
  const int64_t typed = typed_count(t.type, f);
  if (typed < 0 || (has_raw && typed > 0))
    return in.error(cat(who, ": values stand in more than one place, or not in that of ",
                        onnx_type_name(t.type)));
  if (has_raw) {
    if (f.raw.size() != bytes)
      return in.error(cat(who, ": raw_data has ", f.raw.size(), " bytes, its shape needs ", bytes));
    t.raw = f.raw;
    return {};
  }
  if (static_cast<uint64_t>(typed) != count)
    return in.error(cat(who, ": has ", typed, " values, its shape needs ", count));
  if (!store(f, t)) return in.error(cat(who, ": a value does not fit ", onnx_type_name(t.type)));
  return {};
}

Result<OnnxTensor> Reader::tensor(ProtoReader in) {
  OnnxTensor t;
  t.type = OnnxType::undefined;
  TensorFields values;
  Once once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    switch (f.number) {
      case 1: LOOM_TRY(in.integers(f, "dims", kMaxOnnxRank, t.shape)); break;
      case 2: {
        LOOM_TRY(once.check(in, f, "data_type"));
        LOOM_ASSIGN(const int64_t type, in.integer(f, "data_type"));
        if (type < 0 || type > 1000) return in.error(f, "data_type", cat(type, " is no type"));
        t.type = static_cast<OnnxType>(type);
        break;
      }
      case 3: return in.error(f, "segment", "tensors in pieces are not read");
      case 4: LOOM_TRY(in.floats(f, "float_data", kMaxOnnxValues, values.floats)); break;
      case 5: LOOM_TRY(in.integers(f, "int32_data", kMaxOnnxValues, values.ints32)); break;
      case 6: return in.error(f, "string_data", "tensors of strings are not read");
      case 7: LOOM_TRY(in.integers(f, "int64_data", kMaxOnnxValues, values.ints64)); break;
      case 8: {
        LOOM_TRY(once.check(in, f, "name"));
        LOOM_ASSIGN(t.name, in.text(f, "name"));
        break;
      }
      case 9: {
        LOOM_TRY(once.check(in, f, "raw_data"));
        LOOM_ASSIGN(values.raw, in.bytes(f, "raw_data"));
        break;
      }
      case 10: LOOM_TRY(in.doubles(f, "double_data", kMaxOnnxValues, values.doubles)); break;
      case 11: LOOM_TRY(in.integers(f, "uint64_data", kMaxOnnxValues, values.uints64)); break;
      case 13: values.external = true; break;
      case 14: {
        LOOM_TRY(once.check(in, f, "data_location"));
        LOOM_ASSIGN(const int64_t place, in.integer(f, "data_location"));
        values.external = values.external || place != 0;
        break;
      }
      default: break;
    }
  }
  LOOM_TRY(settle(in, where_, values, once.has(9), t));
  return t;
}

// Which field holds the value of an attribute of each type; 0: a type we refuse by name.
uint32_t value_field(int64_t type) {
  constexpr uint32_t kFields[] = {0, 2, 3, 4, 5, 0, 7, 8, 9, 10};
  return type >= 0 && type < 10 ? kFields[type] : 0;
}

Status Reader::attribute_field(const ProtoReader& in, const ProtoField& f, const OnnxNode& node,
                               OnnxAttribute& out, uint32_t& held) {
  if (held != 0 && held != f.number) return in.error(f, "value", "an attribute of two types");
  const bool single = f.number < 6;
  if (single && held == f.number) return in.error(f, "value", "stands twice");
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
    case 9: {
      LOOM_TRY(room(in, f, "strings", out.texts, kMaxOnnxNames));
      LOOM_ASSIGN(const auto bytes, in.bytes(f, "strings"));
      if (bytes.size() > ProtoReader::kMaxText) return in.error(f, "strings", "too long a string");
      out.texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    case 5:
    case 10: {
      LOOM_TRY(room(in, f, "tensors", out.tensors, kMaxOnnxNames));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TensorProto"));
      LOOM_ASSIGN(OnnxTensor made, tensor(inner));
      out.tensors.push_back(std::move(made));
      return {};
    }
    default:
      return not_known(
          cat("node '", printable(node.name), "' (", printable(node.op), "): its attribute '",
              printable(out.name), "' holds a subgraph, a sparse tensor or a type; none is read"),
          where_);
  }
}

Result<OnnxAttribute> Reader::attribute(ProtoReader in, const OnnxNode& node) {
  OnnxAttribute out;
  Once once;
  int64_t type = 0;
  uint32_t held = 0;
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
      return in.error(f, "ref_attr_name", "attributes of functions are not read");
    } else if (f.number != 13 && f.number <= 23) {
      if (values.size() >= kMaxOnnxTensors) return in.error(f, "value", "too many values");
      values.push_back(f);
    }
  }
  for (const ProtoField& f : values) LOOM_TRY(attribute_field(in, f, node, out, held));
  const uint32_t wanted = value_field(type);
  if (wanted == 0)
    return in.error(
        cat("attribute '", printable(out.name), "' is of type ", type, ", which is not read"));
  // Lists and zeros may be absent altogether.
  if (held != 0 && held != wanted)
    return in.error(cat("attribute '", printable(out.name), "' says it is of type ", type,
                        ", but holds another"));
  if (wanted == 5 && out.tensors.size() != 1)
    return in.error(cat("attribute '", printable(out.name), "' has no tensor"));
  out.type = static_cast<OnnxAttributeType>(type);
  return out;
}

Result<OnnxNode> Reader::node(ProtoReader in) {
  OnnxNode out;
  Once once;
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
      return in.error(f, "attribute", cat("'", printable(made.name), "' stands twice"));
    out.attributes.push_back(std::move(made));
  }
  return out;
}

Result<OnnxDim> Reader::dim(ProtoReader in) {
  OnnxDim out;
  Once once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "dim_value"));
      LOOM_ASSIGN(out.extent, in.integer(f, "dim_value"));
      if (out.extent < 0) return in.error(f, "dim_value", cat(out.extent, " is below 0"));
    } else if (f.number == 2) {
      LOOM_TRY(once.check(in, f, "dim_param"));
      LOOM_ASSIGN(out.symbol, in.text(f, "dim_param"));
    }
  }
  if (once.has(1) && once.has(2)) return in.error("has both dim_value and dim_param");
  return out;
}

Status Reader::tensor_type(ProtoReader in, OnnxValue& out) {
  Once once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "elem_type"));
      LOOM_ASSIGN(const int64_t type, in.integer(f, "elem_type"));
      if (type < 0 || type > 1000) return in.error(f, "elem_type", cat(type, " is no type"));
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

Status Reader::type(ProtoReader in, OnnxValue& out) {
  Once once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number == 1) {
      LOOM_TRY(once.check(in, f, "tensor_type"));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "TypeProto.Tensor"));
      LOOM_TRY(tensor_type(inner, out));
    } else if (f.number == 4 || f.number == 5 || f.number == 8 || f.number == 9) {
      return not_known(cat("value '", printable(out.name),
                           "' is no plain tensor; sequences, maps, "
                           "optionals and sparse tensors are not read"),
                       where_);
    }
  }
  return {};
}

Result<OnnxValue> Reader::value(ProtoReader in) {
  OnnxValue out;
  out.type = OnnxType::undefined;
  Once once;
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

Status Reader::graph_field(const ProtoReader& in, const ProtoField& f, OnnxGraph& out) {
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
      return not_known("the graph has sparse initializers, which are not read; save them dense",
                       where_);
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

Status Reader::graph(ProtoReader in, OnnxGraph& out) {
  Once once;
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

Result<std::pair<std::string, int64_t>> Reader::opset(ProtoReader in) {
  std::pair<std::string, int64_t> out;
  Once once;
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

Result<std::pair<std::string, std::string>> Reader::pair(ProtoReader in) {
  std::pair<std::string, std::string> out;
  Once once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    if (f.number != 1 && f.number != 2) continue;
    LOOM_TRY(once.check(in, f, "key or value"));
    LOOM_ASSIGN((f.number == 1 ? out.first : out.second), in.text(f, "key or value"));
  }
  return out;
}

Result<OnnxModel> Reader::model() {
  OnnxModel out;
  Once once;
  if (file_.size() > kMaxOnnxFile)
    return bad_file(cat("more than ", kMaxOnnxFile, " bytes, which no ONNX file has"), where_, 0);
  ProtoReader in(file_, where_, "ModelProto");
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
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
        if (before.first == made.first)
          return in.error(f, "opset_import", cat("'", printable(made.first), "' stands twice"));
      }
      out.opsets.push_back(std::move(made));
    } else if (f.number == 14) {
      LOOM_TRY(room(in, f, "metadata_props", out.metadata, kMaxOnnxNames));
      LOOM_ASSIGN(const ProtoReader inner, in.enter(f, "StringStringEntryProto"));
      LOOM_ASSIGN(auto made, pair(inner));
      out.metadata.push_back(std::move(made));
    } else if (f.number == 25) {
      return not_known("the model defines functions of its own, which are not read; inline them",
                       where_);
    }
  }
  if (!once.has(7)) return in.error("has no graph: this is no ONNX model");
  if (out.ir_version < 1 || out.opsets.empty())
    return in.error("has no ir_version or no opset_import: this is no ONNX model");
  return out;
}

}  // namespace

Result<OnnxModel> parse_onnx(std::span<const std::byte> file, const std::string& where) {
  return Reader(file, where).model();
}

}  // namespace loom::core
