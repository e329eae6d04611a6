// Which reader a file belongs to: see convert.hpp.
#include "base/text.hpp"
#include "bridge/loom1.hpp"
#include "bridge/network_json.hpp"
#include "engine/checkpoint.hpp"
#include "engine/convert.hpp"
#include "engine/weights_source.hpp"
#include "grid/init.hpp"
#include "io/file.hpp"
#include "llm/entity_model.hpp"

namespace loom {
namespace {

// A description without weights: those that training would start from.
class FreshSource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Status make() {
    LOOM_ASSIGN(Network made, Network::finalize(spec.grid, spec.input.after(1)));
    network_ = std::make_unique<Network>(std::move(made));
    return {};
  }
  Result<SourceWeight> weight(const Param& param) const override {
    const int index = network_->find_param(param.path);
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
  std::unique_ptr<Network> network_;
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
    LOOM_TRY(source->make());
    model.network = std::move(source);
    model.notes.emplace_back("it holds no weights: these are the starting values of seed 1");
    return model;
  }
  auto source = std::make_unique<MemorySource>(std::move(file->spec));
  source->path = path;
  for (Loom1Param& p : file->params) source->values[p.path] = std::move(p.values);
  model.network = std::move(source);
  return model;
}

Result<OpenedModel> open_entity_model(const std::string& path) {
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

Result<OpenedModel> open_description(const std::string& path) {
  OpenedModel model;
  model.format = "description";
  LOOM_ASSIGN(NetworkSpec spec, load_network(path));
  auto source = std::make_unique<FreshSource>(std::move(spec));
  source->path = path;
  LOOM_TRY(source->make());
  model.network = std::move(source);
  model.notes.emplace_back("a description has no weights: these are the starting values of seed 1");
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

Result<OpenedModel> open_model(const std::string& path) {
  OpenedModel model;
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
  const Result<WeightsFile> weights = open_weights(path);
  if (!weights.ok()) {
    if (weights.error().code != Code::bad_file) return weights.error();
    return bad_file(cat("is no model that can be opened: neither .entity, GGUF, a description nor "
                        "safetensors (",
                        weights.error().message, ")"),
                    path);
  }
  model.format = "trained weights";
  LOOM_ASSIGN(model.network, open_trained_weights(path));
  return model;
}

}  // namespace loom
