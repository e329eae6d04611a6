// Files of trained weights: see training_files.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "bridge/entity_network.hpp"
#include "bridge/finite_weight.hpp"
#include "bridge/network_json.hpp"
#include "train_io/weights/training_parts.hpp"
#include "train_io/weights/weights_source.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kShift = "input/shift", kScale = "input/scale";

Result<std::vector<float>> read_vector(const SafeTensors& tensors, std::string_view name) {
  const SafeTensor* t = tensors.find(name);
  if (t == nullptr) return std::vector<float>();
  std::vector<float> values(static_cast<size_t>(t->count()));
  LOOM_TRY(SafeTensors::to_f32(*t, 0, t->count(), values.data()));
  return values;
}

SafeOutput vector_output(std::string_view name, const std::vector<float>& values) {
  return {std::string(name),
          SafeDType::f32,
          {static_cast<int64_t>(values.size())},
          std::as_bytes(std::span(values))};
}

constexpr std::string_view kRanges = "/scale";

}  // namespace

int param_of(const Network& network, std::string_view name) {
  const int param = network.find_param(name);
  if (param >= 0 || !name.ends_with(kRanges)) return param;
  return network.find_param(name.substr(0, name.size() - kRanges.size()));
}

SafeOutput state_output(const StateTensor& state) {
  SafeOutput out;
  out.name = state.name;
  for (int i = 0; i < state.tensor.shape.rank(); ++i) out.shape.push_back(state.tensor.shape[i]);
  const auto bytes = static_cast<size_t>(plain_bytes(state.tensor.dtype, state.tensor.shape));
  if (state.tensor.dtype != DType::f32) out.dtype = SafeDType::u8;  // packed weights, unchanged
  out.data = {state.tensor.data, bytes};
  return out;
}

SafeMetadata model_metadata(const TrainedModel& model, std::string_view form) {
  SafeMetadata metadata = {{"loom", std::string(form)},
                           {"network", write_network(model.network)},
                           {"dtype", std::string(dtype_name(model.dtype))},
                           {"loss", dump_json(loss_json(model.loss))},
                           {"classes", dump_json(names_json(model.names))}};
  if (!model.columns.empty())
    metadata.emplace_back("columns", dump_json(columns_json(model.columns)));
  if (model.media) metadata.emplace_back("media", dump_json(media_json(*model.media)));
  if (model.split) metadata.emplace_back("split", dump_json(split_json(*model.split)));
  if (!model.recipe.empty()) metadata.emplace_back("recipe", model.recipe);
  return metadata;
}

void add_normalization(const TrainedModel& model, std::vector<SafeOutput>& tensors) {
  if (model.normalization.empty()) return;
  tensors.push_back(vector_output(kShift, model.normalization.shift));
  tensors.push_back(vector_output(kScale, model.normalization.scale));
}

namespace {

Error other_shape(const StateTensor& state, const std::string& where) {
  return bad_file(
      cat("'", state.name, "' has another shape than the network's ", state.tensor.shape.str()),
      where);
}

Status fill_from_entity(const Entity& file, const StateTensor& state) {
  const int64_t found = file.find(cat("state/", state.name));
  if (found < 0) return bad_file(cat("has no blob 'state/", state.name, "'"), file.where());
  const auto index = static_cast<size_t>(found);
  const EntityBlob& blob = file.blobs()[index];
  if (blob.layout != BlobLayout::plain || blob.dtype != state.tensor.dtype ||
      !(blob.shape == state.tensor.shape))
    return other_shape(state, file.where());
  LOOM_TRY(file.verify(index));
  const std::span<const std::byte> bytes = file.bytes(index);
  std::copy(bytes.begin(), bytes.end(), state.tensor.data);
  return {};
}

}  // namespace

Status fill_state(const WeightsFile& file, const StateTensor& state) {
  if (file.entity != nullptr) return fill_from_entity(*file.entity, state);
  const SafeTensor* t = file.tensors.find(state.name);
  if (t == nullptr) return bad_file(cat("has no tensor '", state.name, "'"), file.path);
  Shape shape;
  for (size_t i = t->shape.size(); i-- > 0 && t->shape.size() <= Shape::kMaxRank;)
    shape = shape.after(t->shape[i]);
  if (!(shape == state.tensor.shape)) return other_shape(state, file.path);
  if (state.tensor.dtype == DType::f32) {
    return SafeTensors::to_f32(*t, 0, t->count(), state.tensor.f32());
  }
  if (t->dtype != SafeDType::u8) return bad_file(cat("'", state.name, "' is not u8"), file.path);
  std::copy(t->data.begin(), t->data.end(), state.tensor.data);
  return {};
}

// Parameter `index` as f32: its master, or without one what is packed.
Result<SafeOutput> parameter_output(Trainer& trainer, size_t index, Buffer& memory) {
  const Param& p = trainer.network().params()[index];
  StateTensor out{p.path, {}};
  for (const StateTensor& state : trainer.step().state()) {
    if (state.name == p.path) return state_output(state);
  }
  LOOM_ASSIGN(memory, Buffer::allocate(plain_bytes(DType::f32, p.spec.shape)));
  out.tensor.shape = p.spec.shape;
  out.tensor.row_stride = p.spec.shape.last();
  out.tensor.data = memory.data();
  const R16 packed = r16_geometry(p.tensor.dtype, p.spec.shape[0], p.spec.shape[1]);
  for (int64_t row = 0; row < packed.rows; ++row)
    r16_decode(packed, p.tensor.data, row, 0, packed.cols, out.tensor.f32_row(row));
  return state_output(out);
}

Status save_weights(const std::string& path, const TrainedModel& model, Trainer& trainer) {
  LOOM_TRY(trainer.step().show_average(true));
  LOOM_TRY(trainer.step().fetch());
  if (path.ends_with(".entity")) return save_trained_entity(path, model, trainer);
  std::vector<SafeOutput> tensors;
  std::vector<Buffer> memory(trainer.network().params().size());
  for (size_t i = 0; i < memory.size(); ++i) {
    LOOM_ASSIGN(SafeOutput parameter, parameter_output(trainer, i, memory[i]));
    tensors.push_back(std::move(parameter));
  }
  for (const StateTensor& state : trainer.step().state()) {
    const bool range = trainer.network().find_param(state.name) < 0;
    if (range && param_of(trainer.network(), state.name) >= 0) {
      tensors.push_back(state_output(state));
    }
  }
  add_normalization(model, tensors);
  return write_safetensors(path, std::move(tensors), model_metadata(model, "weights 1"));
}

namespace {

// The section of an .entity file for a name of safetensors metadata.
Result<std::string> entity_text(const std::shared_ptr<const Entity>& entity,
                                std::string_view name) {
  const Entity& file = *entity;
  const JsonValue* training = file.header().find("training");
  if (name == "loom") return std::string(training == nullptr ? "weights 1" : "checkpoint 1");
  LOOM_ASSIGN(const std::unique_ptr<NetworkSource> source, open_network_entity(entity));
  LOOM_ASSIGN(const TrainedModel model, model_of(*source));
  if (name == "network") return write_network(model.network);
  if (name == "dtype") return std::string(dtype_name(model.dtype));
  const JsonValue* value = training == nullptr ? nullptr : training->find(name);
  if (value != nullptr && value->is_string()) return value->text();
  return bad_file(cat("its section 'training' has no '", name, "'"), file.where());
}

}  // namespace

Result<std::string> WeightsFile::text(std::string_view name) const {
  if (entity != nullptr) return entity_text(entity, name);
  for (const auto& [key, value] : tensors.metadata()) {
    if (key == name) return value;
  }
  return bad_file(cat("has no metadata '", name, "'; was it written by loom train?"), path);
}

namespace {

bool is_entity_file(const FileRef& path) {
  if (is_directory(path) || !file_exists(path)) return false;
  const Result<MappedFile> file = MappedFile::open(path);
  return file.ok() && entity_version(file->bytes()) != 0;
}

}  // namespace

Result<WeightsFile> open_weights(const FileRef& path) {
  WeightsFile file;
  file.path = path;
  if (is_entity_file(path)) {
    LOOM_ASSIGN(file.entity, open_entity(path));
    return file;
  }
  LOOM_ASSIGN(file.tensors, SafeTensors::open(path));
  return file;
}

Result<TrainedModel> read_model(const WeightsFile& file) {
  if (file.entity != nullptr) {
    LOOM_ASSIGN(const std::unique_ptr<NetworkSource> source, open_network_entity(file.entity));
    return model_of(*source);
  }
  LOOM_ASSIGN(const std::string form, file.text("loom"));
  if (form != "weights 1" && form != "checkpoint 1")
    return bad_file(cat("'", printable(form), "' is not a form that this version reads"),
                    file.path);
  LOOM_ASSIGN(const std::string network, file.text("network"));
  LOOM_ASSIGN(const std::string dtype, file.text("dtype"));
  LOOM_ASSIGN(const std::string loss, file.text("loss"));
  LOOM_ASSIGN(const std::string classes, file.text("classes"));
  LOOM_ASSIGN(NetworkSpec spec, parse_network(network, file.path + ": network"));
  TrainedModel model{std::move(spec), DType::f32, {}, {}, {}};
  LOOM_ASSIGN(model.dtype, parse_dtype(dtype));
  LOOM_ASSIGN(const JsonValue loss_value, parse_json(loss, file.path + ": loss"));
  LOOM_ASSIGN(model.loss, read_loss(loss_value, file.path + ": loss"));
  LOOM_ASSIGN(const JsonValue names, parse_json(classes, file.path + ": classes"));
  for (const JsonValue& name : names.elements()) model.names.push_back(name.text());
  LOOM_ASSIGN(model.normalization.shift, read_vector(file.tensors, kShift));
  LOOM_ASSIGN(model.normalization.scale, read_vector(file.tensors, kScale));
  if (model.normalization.shift.size() != model.normalization.scale.size())
    return bad_file("input/shift and input/scale differ in size", file.path);
  if (const Result<std::string> columns = file.text("columns"); columns.ok()) {
    LOOM_ASSIGN(const JsonValue value, parse_json(*columns, file.path + ": columns"));
    LOOM_ASSIGN(model.columns, read_columns(value, file.path));
  }
  if (const Result<std::string> media = file.text("media"); media.ok()) {
    LOOM_ASSIGN(const JsonValue value, parse_json(*media, file.path + ": media"));
    LOOM_ASSIGN(model.media, read_media(value, file.path));
  }
  if (Result<std::string> recipe = file.text("recipe"); recipe.ok()) model.recipe = *recipe;
  const Result<std::string> split = file.text("split");
  if (!split.ok()) return model;
  LOOM_ASSIGN(const JsonValue split_value, parse_json(*split, file.path + ": split"));
  LOOM_ASSIGN(model.split, read_split(split_value, file.path + ": split"));
  return model;
}

namespace {

// Values of a parameter into its master, or the ranges that its scales are held by.
Status fill_master(const WeightSource& source, const Param& param, bool master,
                   const StateTensor& state) {
  if (state.tensor.dtype != DType::f32) {
    return unsupported("weights without f32 masters cannot start from a file");
  }
  LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
  float* const to = state.tensor.f32();
  if (master) {
    const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
    return weight.rows(0, rows, to);
  }
  const int64_t count = state.tensor.shape.count();
  const bool held =
      weight.held_dtype == param.tensor.dtype && static_cast<int64_t>(weight.held.size()) == count;
  for (int64_t i = 0; i < count; ++i) to[i] = held ? weight.held[static_cast<size_t>(i)] : 0.0f;
  return {};
}

}  // namespace

// Masters take the values that the file's types hold; then matrices of the same type take its very
// codes, because packing decoded values again may choose other scales.
Status load_weights(const WeightSource& source, Trainer& trainer) {
  Network& network = trainer.network();
  for (const StateTensor& state : trainer.step().state()) {
    const int index = param_of(network, state.name);
    if (index < 0) continue;
    const bool master = network.find_param(state.name) >= 0;
    const Param& param = network.params()[static_cast<size_t>(index)];
    LOOM_TRY(fill_master(source, param, master, state));
  }
  LOOM_TRY(trainer.step().restored(0));
  for (size_t i = 0; i < network.params().size(); ++i) {
    Param& param = network.param(static_cast<int>(i));
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
    if (!param.spec.matrix() || !weight.copy_row || weight.stored != param.tensor.dtype) continue;
    const R16 matrix = r16_geometry(param.tensor.dtype, param.spec.shape[0], param.spec.shape[1]);
    for (int64_t row = 0; row < param.spec.shape[0]; ++row)
      LOOM_TRY(weight.copy_row(row, matrix, param.memory.data()));
  }
  return trainer.step().send();
}

Result<std::string> hash_weights(Trainer& trainer) {
  LOOM_TRY(trainer.step().show_average(true));
  LOOM_TRY(trainer.step().fetch());
  BitsHash hash;
  for (size_t i = 0; i < trainer.network().params().size(); ++i) {
    Buffer memory;
    LOOM_ASSIGN(const SafeOutput values, parameter_output(trainer, i, memory));
    hash.add({reinterpret_cast<const float*>(values.data.data()), values.data.size() / 4});
  }
  return hash.hex();
}

}  // namespace loom::core
