// The training task of a network as the section "model" and the blobs input/ of our files: see
// training_files.hpp. Separate from the files of training, since programs that only run networks
// need it too.
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "train_io/weights/training_parts.hpp"
#include "train_io/weights/weights_source.hpp"

namespace loom::core {
namespace {

constexpr const char* kSection = "model";
constexpr const char* kRecipe = "recipe";

EntityOutput floats_output(std::string path, const std::vector<float>& values) {
  EntityOutput out;
  out.path = std::move(path);
  out.shape = Shape{static_cast<int64_t>(values.size())};
  out.data = [&values]() -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(values));
  };
  return out;
}

}  // namespace

JsonValue names_json(const std::vector<std::string>& names) {
  JsonValue list = JsonValue::array();
  for (const std::string& name : names) list.push(JsonValue::string(name));
  return list;
}

JsonValue columns_json(const TableColumns& columns) {
  JsonValue out = JsonValue::object();
  out.add("inputs", names_json(columns.inputs));
  out.add("targets", names_json(columns.targets));
  if (columns.plan.empty()) return out;
  Result<JsonValue> plan = parse_json(columns.plan, "plan");
  if (plan.ok()) out.add("plan", std::move(*plan));
  return out;
}

void add_plan(const TableColumns& columns, JsonValue& sections) {
  if (!columns.plan.empty()) sections.add("columns", columns_json(columns));
}

std::string description_text(const NetworkSpec& network, const TableColumns& columns) {
  JsonValue sections = JsonValue::object();
  add_plan(columns, sections);
  return write_network(network, sections);
}

Result<TableColumns> read_columns(const JsonValue& json, const std::string& where) {
  TableColumns out;
  for (const auto& [key, list] :
       {std::pair("inputs", &out.inputs), std::pair("targets", &out.targets)}) {
    const JsonValue* names = json.find(key);
    if (names == nullptr || !names->is_array())
      return bad_file(cat("columns: ", key, " is absent"), where);
    for (const JsonValue& name : names->elements()) list->push_back(name.text());
  }
  if (const JsonValue* plan = json.find("plan")) out.plan = dump_json(*plan);
  return out;
}

JsonValue option_json(const LossSpec& loss, const LossOption& option) {
  if (option.real != nullptr) return JsonValue::real(static_cast<double>(loss.*option.real));
  if (option.integer != nullptr) return JsonValue::integer(loss.*option.integer);
  return JsonValue::boolean(loss.*option.flag);
}

JsonValue loss_json(const LossSpec& loss) {
  JsonValue out = JsonValue::object();
  out.add("kind", JsonValue::string(std::string(loss_name(loss.kind))));
  out.add("delta", JsonValue::real(static_cast<double>(loss.delta)));
  out.add("smoothing", JsonValue::real(static_cast<double>(loss.smoothing)));
  for (const LossOption& option : loss_def(loss.kind).options)
    out.add(option.key, option_json(loss, option));
  JsonValue heads = JsonValue::array();
  for (const int64_t width : loss.heads) heads.push(JsonValue::integer(width));
  if (!loss.heads.empty()) out.add("heads", std::move(heads));
  return out;
}

static Status read_option(const JsonValue& json, const std::string& where, const LossOption& option,
                          LossSpec& loss) {
  if (option.integer != nullptr) {
    LOOM_ASSIGN(loss.*option.integer, json.as_int(where));
  } else if (option.flag != nullptr) {
    LOOM_ASSIGN(loss.*option.flag, json.as_bool(where));
  } else {
    LOOM_ASSIGN(const double value, json.as_double(where));
    loss.*option.real = static_cast<float>(value);
  }
  return {};
}

Result<LossSpec> read_loss(const JsonValue& json, const std::string& where) {
  LossSpec loss;
  const JsonValue* kind = json.find("kind");
  const JsonValue* delta = json.find("delta");
  const JsonValue* smoothing = json.find("smoothing");
  if (kind == nullptr || delta == nullptr || smoothing == nullptr)
    return bad_file("kind, delta or smoothing is absent", where);
  LOOM_ASSIGN(loss.kind, parse_loss(kind->text()));
  if (loss.kind == Loss::automatic) return bad_file("the loss is automatic, must be a kind", where);
  LOOM_ASSIGN(const double d, delta->as_double(where));
  LOOM_ASSIGN(const double s, smoothing->as_double(where));
  loss.delta = static_cast<float>(d);
  loss.smoothing = static_cast<float>(s);
  for (const LossOption& option : loss_def(loss.kind).options) {
    const JsonValue* value = json.find(option.key);
    if (value != nullptr) LOOM_TRY(read_option(*value, where, option, loss));
  }
  const JsonValue* heads = json.find("heads");
  for (size_t i = 0; heads != nullptr && i < heads->elements().size(); ++i) {
    LOOM_ASSIGN(const int64_t width, heads->elements()[i].as_int(where));
    loss.heads.push_back(width);
  }
  return loss;
}

JsonValue split_json(const SplitRecord& split) {
  JsonValue out = JsonValue::object();
  out.add("share", JsonValue::real(split.spec.share));
  out.add("seed", JsonValue::integer(static_cast<int64_t>(split.spec.seed)));
  out.add("shuffle", JsonValue::boolean(split.spec.shuffle));
  out.add("data", JsonValue::string(split.data));
  if (split.spec.folds == 0) return out;
  out.add("folds", JsonValue::integer(split.spec.folds));
  out.add("fold", JsonValue::integer(split.spec.fold));
  return out;
}

Result<SplitRecord> read_split(const JsonValue& json, const std::string& where) {
  const JsonValue* share = json.find("share");
  const JsonValue* seed = json.find("seed");
  const JsonValue* shuffle = json.find("shuffle");
  const JsonValue* data = json.find("data");
  if (share == nullptr || seed == nullptr || shuffle == nullptr || data == nullptr ||
      !data->is_string())
    return bad_file("share, seed, shuffle or data of the split is absent", where);
  SplitRecord split;
  LOOM_ASSIGN(split.spec.share, share->as_double(where));
  LOOM_ASSIGN(const int64_t number, seed->as_int(where));
  LOOM_ASSIGN(split.spec.shuffle, shuffle->as_bool(where));
  split.spec.seed = static_cast<uint64_t>(number);
  split.data = data->text();
  if (json.find("folds") == nullptr || json.find("fold") == nullptr) return split;
  LOOM_ASSIGN(split.spec.folds, json.find("folds")->as_int(where));
  LOOM_ASSIGN(split.spec.fold, json.find("fold")->as_int(where));
  return split;
}

void add_model(const TrainedModel& model, JsonValue& header, std::vector<EntityOutput>& blobs) {
  JsonValue section = JsonValue::object();
  section.add("dtype", JsonValue::string(std::string(dtype_name(model.dtype))));
  section.add("loss", loss_json(model.loss));
  section.add("classes", names_json(model.names));
  if (!model.columns.empty()) section.add("columns", columns_json(model.columns));
  if (model.media) section.add("media", media_json(*model.media));
  if (model.split) section.add("split", split_json(*model.split));
  if (Result<JsonValue> recipe = parse_json(model.recipe, kRecipe); recipe.ok())
    section.add(kRecipe, std::move(*recipe));
  header.add(kSection, std::move(section));
  if (model.normalization.empty()) return;
  blobs.push_back(floats_output("input/shift", model.normalization.shift));
  blobs.push_back(floats_output("input/scale", model.normalization.scale));
}

Result<TrainedModel> model_of(const NetworkSource& source) {
  TrainedModel model{source.spec, DType::f32, {}, {}, {}};
  LOOM_ASSIGN(model.dtype, parse_dtype(source.dtype));
  LOOM_ASSIGN(model.normalization, normalization_of(source));
  model.loss.kind = Loss::cross_entropy;
  const JsonValue* section = source.sections.find(kSection);
  if (section == nullptr) {
    const JsonValue* columns = source.sections.find("columns");  // of a description
    if (columns == nullptr) return model;
    LOOM_ASSIGN(model.columns, read_columns(*columns, source.path));
    return model;
  }
  const std::string where = source.path + ": model";
  const JsonValue* dtype = section->find("dtype");
  const JsonValue* loss = section->find("loss");
  const JsonValue* classes = section->find("classes");
  if (dtype == nullptr || loss == nullptr || classes == nullptr || !classes->is_array())
    return bad_file("dtype, loss or classes is absent", where);
  const Result<DType> stored = parse_dtype(dtype->text());
  if (!stored.ok()) return bad_file(cat("dtype: ", stored.error().message), where);
  model.dtype = *stored;
  LOOM_ASSIGN(model.loss, read_loss(*loss, where));
  for (const JsonValue& name : classes->elements()) model.names.push_back(name.text());
  if (const JsonValue* columns = section->find("columns")) {
    LOOM_ASSIGN(model.columns, read_columns(*columns, where));
  }
  if (const JsonValue* media = section->find("media")) {
    LOOM_ASSIGN(model.media, read_media(*media, where));
  }
  if (const JsonValue* split = section->find("split")) {
    LOOM_ASSIGN(model.split, read_split(*split, where));
  }
  if (const JsonValue* recipe = section->find(kRecipe)) model.recipe = dump_json(*recipe);
  return model;
}

}  // namespace loom::core
