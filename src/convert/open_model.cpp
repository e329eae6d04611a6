// Which reader a file belongs to: see convert.hpp.
#include <unordered_map>

#include "base/text.hpp"
#include "bridge/network_checkpoint.hpp"
#include "bridge/network_json.hpp"
#include "convert/checkpoint.hpp"
#include "convert/convert.hpp"
#include "formats/onnx/import.hpp"
#include "formats/original/original.hpp"
#include "formats/universal/infer.hpp"
#include "grid/init.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "llm/entity_model.hpp"
#include "train_io/arrays_source.hpp"
#include "train_io/file_memory.hpp"
#include "train_io/weights_source.hpp"

namespace loom::core {
namespace {

// A description without weights: those that training would start from.
class FreshSource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Result<SourceWeight> weight(const Param& param) const override {
    LOOM_TRY(make());
    const auto found = index_.find(param.path);
    const int index = found == index_.end() ? -1 : found->second;
    if (index < 0) return bad_file(cat("has no parameter ", param.path), path);
    SourceWeight weight;
    weight.stored = param.dtype.value_or(DType::f32);
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    weight.rows = [this, index, cols](int64_t first, int64_t count, float* out) -> Status {
      constexpr uint64_t kSeed = 1;  // that of loom train
      init_values(*network_, index, kSeed, first * cols, count * cols, out);
      return {};
    };
    return weight;
  }

 private:
  // Only where weights are asked for: as large as the description, and of no use to others.
  Status make() const {
    if (network_ != nullptr) return {};
    LOOM_ASSIGN(Network made, Network::finalize(spec.grid, spec.input.after(1)));
    network_ = std::make_unique<Network>(std::move(made));
    for (const Param& param : network_->params())
      index_.emplace(param.path, static_cast<int>(index_.size()));
    return {};
  }

  mutable std::unique_ptr<Network> network_;
  mutable std::unordered_map<std::string, int> index_;  // of parameters, by path
};

// A file of the original project: its values, and what its reader noted.
Result<OpenedModel> take_loom1(Result<Loom1Network> file, const char* format,
                               const std::string& path) {
  if (!file.ok()) return file.error();
  OpenedModel model;
  model.format = format;
  model.notes = std::move(file->notes);
  if (file->params.empty()) {
    auto source = std::make_unique<FreshSource>(std::move(file->spec));
    source->path = path;
    source->fresh = true;
    model.network = std::move(source);
    model.fresh = true;
    model.notes.emplace_back("it holds no weights: these are the starting values of seed 1");
    return model;
  }
  auto source = std::make_unique<MemorySource>(std::move(file->spec));
  source->path = path;
  for (Loom1Param& p : file->params) source->values[p.path] = std::move(p.values);
  model.network = std::move(source);
  return model;
}

Result<OpenedModel> open_entity_model(const FileRef& path) {
  OpenedModel model;
  model.format = "entity";
  LOOM_ASSIGN(std::shared_ptr<const Entity> file, open_entity(path));
  if (file->header().find("language_model") != nullptr) {
    LOOM_ASSIGN(model.decoder, open_entity_source(std::move(file)));
  } else {
    LOOM_ASSIGN(model.network, open_network_entity(std::move(file)));
  }
  return model;
}

Result<OpenedModel> open_description(const FileRef& path) {
  OpenedModel model;
  LOOM_ASSIGN(std::string text, read_file(path));
  LOOM_ASSIGN(JsonValue json, parse_json(text, path.name()));
  if (is_network_checkpoint(json)) {
    model.format = "description with weights";
    LOOM_ASSIGN(model.network, parse_network_checkpoint(text, path));
    return model;
  }
  std::string().swap(text);  // before the network is made of what it says
  model.format = "description";
  LOOM_ASSIGN(NetworkSpec spec, read_network(std::move(json), path));
  auto source = std::make_unique<FreshSource>(std::move(spec));
  source->path = path;
  source->fresh = true;
  model.network = std::move(source);
  model.fresh = true;
  model.notes.emplace_back("a description has no weights: these are the starting values of seed 1");
  return model;
}

// The loss and the names of classes, where write_model() left them in the metadata.
Status read_trained_for(const std::vector<std::pair<std::string, std::string>>& metadata,
                        NetworkSource& source) {
  for (const auto& [key, value] : metadata) {
    if (key != kOnnxTrainedFor) continue;
    LOOM_ASSIGN(const JsonValue kept, parse_json(value, source.path + ": metadata"));
    JsonValue section = JsonValue::object();
    section.add("dtype", JsonValue::string("float32"));
    for (const auto& [name, item] : kept.members()) section.add(name, item);
    source.sections.add("model", std::move(section));
  }
  return {};
}

Result<OpenedModel> open_onnx(const FileRef& path, const OpenOptions& options) {
  LOOM_ASSIGN(ImportedNetwork imported,
              load_onnx(path, {.open_extent = options.open_extent, .take_normalization = true}));
  OpenedModel model;
  model.format = "ONNX";
  model.notes = std::move(imported.notes);
  auto source = std::make_unique<MemorySource>(std::move(imported.network));
  source->path = path;
  for (ImportedParam& p : imported.params) source->values[p.path] = std::move(p.values);
  keep_normalization(std::move(imported.normalization), *source);
  LOOM_TRY(read_trained_for(imported.metadata, *source));
  model.network = std::move(source);
  return model;
}

// A file of tensors without a configuration: what they became is noted, one by one.
class InferredSource : public NetworkSource {
 public:
  InferredSource(InferredNetwork inferred, std::unique_ptr<TensorFile> file)
      : NetworkSource(std::move(inferred.spec)), file_(std::move(file)) {
    for (InferredParam& p : inferred.params) pieces_[p.path] = std::move(p.pieces);
  }
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  std::unique_ptr<TensorFile> file_;
  std::unordered_map<std::string, std::vector<InferredPiece>> pieces_;
};

Result<SourceWeight> InferredSource::weight(const Param& param) const {
  const auto found = pieces_.find(param.path);
  if (found == pieces_.end()) return bad_file(cat("has no tensor for ", param.path), path);
  SourceWeight weight;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [this, cols, &pieces = found->second](int64_t first, int64_t count,
                                                      float* out) -> Status {
    const int64_t n = count * cols;
    std::vector<float> more(pieces.size() > 1 ? static_cast<size_t>(n) : 0);
    for (size_t i = 0; i < pieces.size(); ++i) {
      float* to = i == 0 ? out : more.data();
      LOOM_TRY(file_->to_f32(pieces[i].tensor, pieces[i].first + first * cols, n, to));
      for (int64_t j = 0; i > 0 && j < n; ++j) out[j] += more[static_cast<size_t>(j)];
    }
    return {};
  };
  return weight;
}

Result<OpenedModel> open_tensors(const FileRef& path) {
  LOOM_ASSIGN(std::unique_ptr<TensorFile> file, SafeTensorsFile::open(path));
  LOOM_ASSIGN(InferredNetwork inferred, infer_network(*file, path));
  OpenedModel model;
  model.format = "tensors without a configuration";
  for (const InferredTensor& t : inferred.report) {
    model.notes.push_back(cat(printable(t.tensor), " -> ", t.became, ", ",
                              confidence_name(t.confidence), ": ", t.why));
  }
  for (const std::string& assumption : inferred.assumptions)
    model.notes.push_back(cat("assumed: ", assumption));
  auto source = std::make_unique<InferredSource>(std::move(inferred), std::move(file));
  source->path = path;
  model.network = std::move(source);
  return model;
}

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with(with);
}

bool is_json(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes.first(std::min<size_t>(bytes.size(), 4096))) {
    const char c = static_cast<char>(b);
    if (c == '{') return true;
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return false;
  }
  return false;
}

}  // namespace

Result<OpenedModel> open_model(const FileRef& path, const OpenOptions& options) {
  OpenedModel model;
  if (!file_exists(path)) {
    return make_error(
        Code::not_found,
        "no such file or folder; give an .entity, .gguf, .onnx, .safetensors, .npz or .json "
        "file, or a folder with config.json and model.safetensors",
        path);
  }
  LOOM_TRY(check_opening(path, options.memory));
  if (is_directory(path)) {
    LOOM_TRY(check_model_folder(path));
    model.format = "Hugging Face folder";
    LOOM_ASSIGN(model.decoder, open_hf_folder(path));
    return model;
  }
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (is_loom1_entity(file.bytes())) {
    return take_loom1(parse_loom1_entity(file.bytes(), path), "entity of the original, version 1",
                      path);
  }
  if (entity_version(file.bytes()) != 0) return open_entity_model(path);
  if (is_json(file.bytes())) {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    if (!is_loom1_json(text)) return open_description(path);
    return take_loom1(parse_loom1_json(text, path), "JSON of the original", path);
  }
  if (begins(file.bytes(), "GGUF")) {
    model.format = "GGUF";
    LOOM_ASSIGN(model.decoder, open_model_source(path));
    return model;
  }
  if (is_npz(file.bytes())) {
    model.format = "arrays of a network";
    LOOM_ASSIGN(model.network, open_npz_network(path, options.memory));
    return model;
  }
  if (to_lower_ascii(path.name()).ends_with(".onnx")) return open_onnx(path, options);
  const Result<WeightsFile> weights = open_weights(path);
  if (!weights.ok()) {
    if (weights.error().code != Code::bad_file) return weights.error();
    if (path.name().ends_with(".safetensors")) return weights.error();
    return bad_file(
        "is no model that can be opened: neither .entity, GGUF, ONNX (by its name), a "
        "description nor safetensors",
        path);
  }
  if (!weights->text("loom").ok()) return open_tensors(path);
  model.format = "trained weights";
  LOOM_ASSIGN(model.network, open_trained_weights(path));
  return model;
}

Result<OpenedModel> open_network(const FileRef& path, const OpenOptions& options) {
  LOOM_ASSIGN(OpenedModel model, open_model(path, options));
  if (model.network != nullptr) return model;
  return unsupported(
      "this is a language model; give a network: a description or what loom train wrote", path);
}

Result<std::unique_ptr<NetworkSource>> open_network_weights(const FileRef& path,
                                                            const NetworkSpec& spec,
                                                            const OpenOptions& options) {
  if (!file_exists(path)) return make_error(Code::not_found, "no such file", path);
  LOOM_TRY(check_opening(path, options.memory));
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const Result<WeightsFile> weights = open_weights(path);
  const bool named = weights.ok() && !weights->text("loom").ok();
  if (named || is_npz(file.bytes())) return open_arrays(path, spec, options.memory);
  LOOM_ASSIGN(OpenedModel model, open_network(path, options));
  if (model.fresh) return bad_file("this is a description and holds no weights", path);
  return std::move(model.network);
}

}  // namespace loom::core
