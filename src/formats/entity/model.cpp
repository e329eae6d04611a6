#include "formats/entity/model.hpp"

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "dtype/dtype_tally.hpp"
#include "formats/config/encoder.hpp"
#include "formats/config/text.hpp"
#include "llm/decoder.hpp"
#include "llm/encoder.hpp"

namespace loom::core {
namespace {

constexpr const char* kSection = "language_model";
constexpr const char* kConfig = "text/config.json";
constexpr const char* kGeneration = "text/generation_config.json";
constexpr const char* kTokenizer = "text/tokenizer.json";
constexpr const char* kChatBlob = "text/chat_template.jinja";
constexpr const char* kEmbedding = "text/embedding.json";

Result<const JsonValue*> section(const Entity& file) {
  const JsonValue* found = file.header().find(kSection);
  if (found == nullptr)
    return bad_file("is not a language model but a network; loom predict and loom eval read it",
                    file.where());
  return found;
}

Result<std::string> member(const Entity& file, const char* key) {
  LOOM_ASSIGN(const JsonValue* json, section(file));
  const JsonValue* value = json->find(key);
  if (value == nullptr || !value->is_string())
    return bad_file(cat("language_model: ", key, " must be a text"), file.where());
  return value->text();
}

class EntitySource : public ModelSource {
 public:
  explicit EntitySource(std::shared_ptr<const Entity> file) : file_(std::move(file)) {}
  Status open();
  Result<SourceWeight> weight(const Param& param) const override;
  Result<Network> map() const override;

 private:
  std::shared_ptr<const Entity> file_;
};

Status EntitySource::open() {
  path = file_->where();
  LOOM_ASSIGN(packed, entity_model_dtype(*file_));
  LOOM_ASSIGN(bos, member(*file_, "bos"));
  LOOM_ASSIGN(eos, member(*file_, "eos"));
  LOOM_ASSIGN(config_json, file_->text(kConfig));
  LOOM_ASSIGN(generation_json, file_->text(kGeneration));
  LOOM_ASSIGN(tokenizer_json, file_->text(kTokenizer));
  LOOM_ASSIGN(chat_template, file_->text(kChatBlob));
  tokenizer_where = cat(path, " (", kTokenizer, ")");
  LOOM_TRY(read_model_config(cat(path, " (", kConfig, ")"), *this));
  LOOM_ASSIGN(const std::string settings, file_->text(kEmbedding));
  if (settings.empty()) return {};
  LOOM_ASSIGN(embedding, parse_embedding_json(settings, cat(path, " (", kEmbedding, ")")));
  return {};
}

Result<SourceWeight> EntitySource::weight(const Param& param) const {
  return entity_weight(*file_, param);
}

Result<Network> EntitySource::map() const {
  LOOM_ASSIGN(MappedNetwork mapped, map_network(file_, 1, allow_nonfinite));
  LOOM_TRY(encoder ? check_encoder(mapped.network, *encoder, path)
                   : check_decoder(mapped.network, config, path));
  return std::move(mapped.network);
}

JsonValue model_section(const ModelSource& source, DType dtype) {
  JsonValue out = JsonValue::object();
  out.add("dtype", JsonValue::string(std::string(dtype_name(dtype))));
  out.add("bos", JsonValue::string(source.bos));
  out.add("eos", JsonValue::string(source.eos));
  return out;
}

// The dtype of a model as load_weights() of LanguageModel defines it: that of the blocks' matrices.
DType block_dtype(const Network& network, const std::vector<EntityOutput>& params,
                  const ModelSource& source) {
  DTypeTally types;
  DType first = DType::f32;
  bool any = false;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& param = network.params()[i];
    if (!param.spec.matrix()) continue;
    if (!any) first = params[i].dtype;
    any = true;
    if (!is_model_table(param, source)) types.add(params[i].dtype, param.spec.shape.count());
  }
  return types.empty() ? first : types.most();
}

}  // namespace

Result<DType> entity_model_dtype(const Entity& file) {
  LOOM_ASSIGN(const std::string name, member(file, "dtype"));
  const Result<DType> dtype = parse_dtype(name);
  if (!dtype.ok())
    return bad_file(cat("language_model: dtype: ", dtype.error().message), file.where());
  return *dtype;
}

Result<std::unique_ptr<ModelSource>> open_entity_source(std::shared_ptr<const Entity> file) {
  auto source = std::make_unique<EntitySource>(std::move(file));
  LOOM_TRY(source->open());
  return std::unique_ptr<ModelSource>(std::move(source));
}

Status save_model(const std::string& path, const ModelSource& source,
                  const SaveModelOptions& options, ThreadPool& pool) {
  LOOM_ASSIGN(GridSpec grid, model_grid(source));
  const NetworkSpec spec{std::move(grid), Shape{1}};
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(1)));
  PackPolicy policy = options.policy;
  if (!policy.dtype) policy.dtype = [](const Param&, DType stored) { return stored; };
  LOOM_ASSIGN(std::vector<EntityOutput> params, packed_outputs(network, source, policy, pool));
  const DType dtype = options.dtype.value_or(block_dtype(network, params, source));
  JsonValue header = JsonValue::object();
  header.add("network", network_json(spec));
  header.add(kSection, model_section(source, dtype));
  std::vector<EntityOutput> blobs;
  const std::string config = config_text(source), tokenizer = tokenizer_text(source);
  const std::string embedding =
      source.embedding ? embedding_json(*source.embedding) : std::string();
  const std::pair<const char*, const std::string*> texts[] = {
      {kConfig, &config},
      {kGeneration, &source.generation_json},
      {kTokenizer, &tokenizer},
      {kChatBlob, &source.chat_template},
      {kEmbedding, &embedding}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) blobs.push_back(text_output(name, *text));
  }
  for (EntityOutput& param : params) blobs.push_back(std::move(param));
  return write_entity(path, header, blobs, options.progress);
}

}  // namespace loom::core
