#include "bridge/network_checkpoint.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "io/bytes/base64.hpp"
#include "io/bytes/hash.hpp"

namespace loom::core {
namespace {

// Members that a description does not have.
constexpr std::string_view kParams = "params", kModel = "model", kNormalization = "normalization";
constexpr std::string_view kKeys[] = {"path", "layout", "dtype", "shape", "hash", "data"};

struct Packed {
  DType dtype = DType::f32;
  Shape shape;
  bool matrix = false;
  std::string bytes;
};

int64_t bytes_of(const Packed& p) {
  if (!p.matrix) return plain_bytes(p.dtype, p.shape);
  return r16_geometry(p.dtype, p.shape[0], p.shape[1]).bytes();
}

class CheckpointSource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Status read(const JsonValue& params, const std::string& where);
  Status read_training(const JsonValue& json);
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  Result<Packed> read_one(const JsonValue& item, const std::string& location);
  Error bad(const JsonValue& at, const std::string& location, std::string_view what) const {
    return bad_file(cat(location, ": ", what), path, at.offset());
  }

  std::unordered_map<std::string, Packed> params_;
};

// One entry of "params". It is checked completely before use: the keys; the extents, and that their
// product fits the arithmetic of bytes_of(); the number of bytes and their hash; and that kernels
// may read the codes.
Result<Packed> CheckpointSource::read_one(const JsonValue& item, const std::string& location) {
  if (!item.is_object())
    return bad(item, location, cat("expected an object, found ", item.describe()));
  for (const auto& [key, value] : item.members()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      return bad(value, location, cat("unknown key '", printable(key), "'"));
  }
  for (const std::string_view key : kKeys) {
    const JsonValue* value = item.find(key);
    const bool list = key == "shape";
    if (value == nullptr || (list ? !value->is_array() : !value->is_string()))
      return bad(item, location, cat(key, " must be a ", list ? "list" : "text"));
  }
  Packed packed;
  const std::string& layout = item.find("layout")->text();
  if (layout != "r16" && layout != "plain")
    return bad(*item.find("layout"), location, "layout must be plain or r16");
  packed.matrix = layout == "r16";
  const Result<DType> type = parse_dtype(item.find("dtype")->text());
  if (!type.ok()) return bad(*item.find("dtype"), location, type.error().message);
  packed.dtype = *type;
  if (!packed.matrix && packed.dtype != DType::f32)
    return bad(*item.find("dtype"), location, "a plain parameter is float32");
  const std::vector<JsonValue>& extents = item.find("shape")->elements();
  if (extents.size() > Shape::kMaxRank || (packed.matrix && extents.size() != 2))
    return bad(*item.find("shape"), location,
               "a matrix in r16 has two extents, others at most six");
  constexpr int64_t kMaxExtent = int64_t{1} << 24;
  for (size_t i = extents.size(); i-- > 0;) {
    const Result<int64_t> extent = extents[i].as_int("");
    if (!extent.ok() || *extent < 0 || *extent > kMaxExtent)
      return bad(extents[i], location, "an extent must be from 0 to 2^24");
    packed.shape = packed.shape.after(*extent);
  }
  const std::string& data = item.find("data")->text();
  Result<std::string> bytes = decode_base64(data);
  if (!bytes.ok()) return bad(*item.find("data"), location, cat("data: ", bytes.error().message));
  packed.bytes = std::move(*bytes);
  // Two extents of 2^24 cannot overflow in products; more extents need a check first.
  int64_t values = 1;
  for (int axis = 0; axis < packed.shape.rank(); ++axis) {
    values *= std::max<int64_t>(packed.shape[axis], 1);
    if (values > int64_t{1} << 34) return bad(item, location, "the shape is too large");
  }
  if (bytes_of(packed) != static_cast<int64_t>(packed.bytes.size())) {
    return bad(item, location,
               cat("has ", packed.bytes.size(), " bytes, its shape needs ", bytes_of(packed)));
  }
  const auto raw = std::as_bytes(std::span(packed.bytes));
  if (hash_hex(raw) != item.find("hash")->text())
    return bad(*item.find("hash"), location, "the data does not match its hash");
  if (packed.matrix &&
      !r16_valid(r16_geometry(packed.dtype, packed.shape[0], packed.shape[1]), raw.data()))
    return bad(item, location, "has a zero point that is not a code of its type");
  return packed;
}

Status CheckpointSource::read(const JsonValue& params, const std::string& where) {
  path = where;
  if (!params.is_array()) return bad(params, "params", "expected a list");
  LOOM_ASSIGN(const Network network, Network::finalize(spec.grid, spec.input.after(1)));
  for (size_t i = 0; i < params.elements().size(); ++i) {
    const JsonValue& item = params.elements()[i];
    const std::string location = cat("params[", i, "]");
    LOOM_ASSIGN(Packed packed, read_one(item, location));
    const std::string& name = item.find("path")->text();
    const int index = network.find_param(name);
    if (index < 0)
      return bad(item, location, cat("the network has no parameter '", printable(name), "'"));
    const ParamSpec& want = network.params()[static_cast<size_t>(index)].spec;
    if (want.matrix() != packed.matrix || !(want.shape == packed.shape)) {
      return bad(item, location,
                 cat(printable(name), " is ", packed.shape.str(), ", the network wants ",
                     want.shape.str(), want.matrix() ? " in r16" : ""));
    }
    if (packed.matrix) dtype = dtype_name(packed.dtype);
    if (!params_.emplace(name, std::move(packed)).second)
      return bad(item, location, cat(printable(name), " occurs twice"));
  }
  for (const Param& param : network.params()) {
    if (!params_.contains(param.path)) return bad(params, "params", cat(param.path, " is absent"));
  }
  return {};
}

// The training task of the network, and the normalization of its inputs.
Status CheckpointSource::read_training(const JsonValue& json) {
  if (const JsonValue* model = json.find(kModel)) {
    if (!model->is_object()) return bad(*model, std::string(kModel), "expected an object");
    sections.add(std::string(kModel), *model);
  }
  const JsonValue* given = json.find(kNormalization);
  if (given == nullptr) return {};
  Normalization made;
  const auto values = static_cast<size_t>(spec.input.count());
  for (const auto& [key, to] : {std::pair("shift", &made.shift), std::pair("scale", &made.scale)}) {
    const std::string location = cat(kNormalization, ".", key);
    const JsonValue* list = given->find(key);
    if (list == nullptr || list->elements().size() != values)
      return bad(*given, location,
                 cat("must be a list of ", values, " numbers, one per input value"));
    for (const JsonValue& value : list->elements()) {
      if (!value.is_number()) return bad(value, location, "must hold numbers");
      LOOM_ASSIGN(const double number, value.as_double(location));
      to->push_back(static_cast<float>(number));
    }
  }
  keep_normalization(std::move(made), *this);
  return {};
}

Result<SourceWeight> CheckpointSource::weight(const Param& param) const {
  const auto found = params_.find(param.path);
  if (found == params_.end()) return bad_file(cat("has no parameter ", param.path), path);
  const Packed& packed = found->second;
  const auto* data = reinterpret_cast<const std::byte*>(packed.bytes.data());
  SourceWeight weight;
  weight.stored = packed.dtype;
  if (!packed.matrix) {
    weight.rows = [data](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(data + first * 4, count * 4, reinterpret_cast<std::byte*>(out));
      return {};
    };
    return weight;
  }
  const R16 g = r16_geometry(packed.dtype, packed.shape[0], packed.shape[1]);
  weight.rows = [g, data](int64_t first, int64_t count, float* out) -> Status {
    for (int64_t row = first; row < first + count; ++row, out += g.cols)
      r16_decode(g, data, row, 0, g.cols, out);
    return {};
  };
  weight.copy_row = [data](int64_t row, const R16& matrix, std::byte* to) -> Status {
    r16_copy_row(matrix, data, row, to);
    return {};
  };
  return weight;
}

JsonValue normalization_json(const Normalization& n) {
  JsonValue out = JsonValue::object();
  for (const auto& [key, from] : {std::pair("shift", &n.shift), std::pair("scale", &n.scale)}) {
    JsonValue list = JsonValue::array();
    for (const float value : *from) list.push(JsonValue::real(static_cast<double>(value)));
    out.add(key, std::move(list));
  }
  return out;
}

}  // namespace

Result<std::string> write_network_checkpoint(const NetworkSource& source, const PackPolicy& policy,
                                             ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
  PackPolicy packing = policy;
  if (!packing.dtype) packing.dtype = [](const Param&, DType stored) { return stored; };
  LOOM_ASSIGN(const std::vector<EntityOutput> params,
              packed_outputs(network, source, packing, pool));
  std::string text = write_network(source.spec);
  text.resize(text.rfind("\n}"));
  if (const JsonValue* model = source.sections.find(kModel))
    text += cat(",\n  \"", kModel, "\": ", dump_json(*model));
  LOOM_ASSIGN(const Normalization normalization, normalization_of(source));
  if (!normalization.empty())
    text += cat(",\n  \"", kNormalization, "\": ", dump_json(normalization_json(normalization)));
  text += ",\n  \"params\": [";
  for (size_t i = 0; i < params.size(); ++i) {
    LOOM_ASSIGN(const std::span<const std::byte> bytes, params[i].data());
    JsonValue item = JsonValue::object();
    item.add("path", JsonValue::string(params[i].path));
    item.add("layout", JsonValue::string(std::string(blob_layout_name(params[i].layout))));
    item.add("dtype", JsonValue::string(std::string(dtype_name(params[i].dtype))));
    JsonValue shape = JsonValue::array();
    for (int axis = 0; axis < params[i].shape.rank(); ++axis)
      shape.push(JsonValue::integer(params[i].shape[axis]));
    item.add("shape", std::move(shape));
    item.add("hash", JsonValue::string(hash_hex(bytes)));
    item.add("data", JsonValue::string(encode_base64(
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
    text += (i == 0 ? "\n    " : ",\n    ") + dump_json(item);
  }
  return text + "\n  ]\n}\n";
}

Result<std::unique_ptr<NetworkSource>> parse_network_checkpoint(std::string_view text,
                                                                const std::string& where) {
  LOOM_ASSIGN(const JsonValue json, parse_json(text, where));
  if (!is_network_checkpoint(json)) return bad_file("has no weights (\"params\")", where);
  JsonValue description = JsonValue::object();
  for (const auto& [key, value] : json.members()) {
    if (key != kParams && key != kModel && key != kNormalization) description.add(key, value);
  }
  LOOM_ASSIGN(NetworkSpec spec, read_network(description, where));
  auto source = std::make_unique<CheckpointSource>(std::move(spec));
  LOOM_TRY(source->read(*json.find(kParams), where));
  LOOM_TRY(source->read_training(json));
  return std::unique_ptr<NetworkSource>(std::move(source));
}

bool is_network_checkpoint(const JsonValue& json) {
  return json.find(kParams) != nullptr;
}

}  // namespace loom::core
