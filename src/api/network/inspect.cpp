#include "loom/inspect.hpp"

#include "api/network/network_impl.hpp"
#include "convert/checkpoint.hpp"
#include "convert/description_diff.hpp"
#include "convert/model_report.hpp"
#include "io/bytes/hash.hpp"
#include "io/weights/entity.hpp"
#include "train_io/file_memory.hpp"

namespace loom {

struct ModelFile::Impl {
  core::ModelReport report;
  std::unique_ptr<core::TensorFile> file;  // null: a file without tensors
  std::vector<StoredTensor> tensors;
  std::optional<DecoderInfo> decoder;
  std::string training;

  static Result<std::shared_ptr<Impl>> open(const core::FileRef& path,
                                            const core::MemoryBudget& memory);
};

}  // namespace loom

namespace loom::core {
namespace {

Result<DecoderInfo> describe(const ModelSource& source) {
  const DecoderConfig& c = source.config;
  DecoderInfo info;
  info.architecture = c.architecture;
  info.layers = c.num_layers;
  info.width = c.hidden_size;
  info.inner_width = c.intermediate_size;
  info.heads = c.num_heads;
  info.kv_heads = c.num_kv_heads;
  info.head_dim = c.head_dim;
  info.vocab = c.vocab_size;
  info.context = c.max_positions;
  info.tied_head = c.tie_word_embeddings;
  info.eos_ids.assign(c.eos_token_ids.begin(), c.eos_token_ids.end());
  LOOM_ASSIGN(const std::optional<core::TokenizerSpec> spec, tokenizer_spec(source));
  if (spec) {
    LOOM_ASSIGN(const core::Tokenizer tokenizer, core::Tokenizer::make(*spec));
    info.tokenizer_tokens = tokenizer.vocab_size();
  }
  info.has_chat_template = !source.chat_template.empty();
  info.chat_template_readable =
      info.has_chat_template && ChatTemplate::parse(source.chat_template, "the chat template").ok();
  return info;
}

StoredTensor stored(const TensorEntry& entry) {
  return {entry.name, entry.dtype, entry.shape, static_cast<int64_t>(entry.bytes), entry.count()};
}

bool share_a_name(const TensorFile& a, const TensorFile& b) {
  for (const TensorEntry& entry : a.entries()) {
    if (b.find(entry.name) >= 0) return true;
  }
  return false;
}

// A listing computes nothing: unknown settings of a state dict are listed as notes.
const InferOptions kListedGuesses = {.assume = true};

LayerInfo layer_info(const LayerReport& r) {
  return {r.depth, r.at, r.type, r.settings, r.in, r.out, r.notes, r.parameters};
}

Result<std::vector<TensorDifference>> compare_models(const std::string& a, const std::string& b,
                                                     const loom::DiffOptions& options,
                                                     const MemoryBudget& memory) {
  const OpenOptions how = {.infer = kListedGuesses, .memory = memory};
  Result<OpenedModel> first = open_model(a, how), second = open_model(b, how);
  if (!options.by_parameters) {
    const auto mine = open_tensor_file(a), others = open_tensor_file(b);
    if (mine.ok() && others.ok() && share_a_name(**mine, **others)) {
      LOOM_ASSIGN(std::vector<TensorDifference> all,
                  compare_tensors(**mine, **others, options.progress));
      // Files with only tensors have no description; they are compared as stored.
      if (first.ok() && second.ok() && !first->guessed && !second->guessed) {
        LOOM_ASSIGN(const auto described, compare_descriptions(*first, *second));
        all.insert(all.end(), described.begin(), described.end());
      }
      return all;
    }
  }
  if (!first.ok()) return first.error();
  if (!second.ok()) return second.error();
  const auto one = std::make_shared<const OpenedModel>(std::move(*first)),
             other = std::make_shared<const OpenedModel>(std::move(*second));
  LOOM_ASSIGN(const auto mine, open_parameters(one));
  LOOM_ASSIGN(const auto others, open_parameters(other));
  LOOM_ASSIGN(std::vector<TensorDifference> all, compare_tensors(*mine, *others, options.progress));
  LOOM_ASSIGN(const auto described, compare_descriptions(*one, *other));
  all.insert(all.end(), described.begin(), described.end());
  return all;
}

}  // namespace
}  // namespace loom::core

namespace loom {

ModelFile::ModelFile(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<ModelFile> ModelFile::open(const std::string& path, const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, Impl::open(path, on.impl().budget()));
  return ModelFile(std::move(impl));
}

Result<ModelFile> ModelFile::open(const FileBytes& file, const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, true, on.impl().budget()));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, Impl::open(ref, on.impl().budget()));
  return ModelFile(std::move(impl));
}

Result<std::shared_ptr<ModelFile::Impl>> ModelFile::Impl::open(const core::FileRef& path,
                                                               const core::MemoryBudget& memory) {
  LOOM_ASSIGN(const core::OpenedModel model,
              core::open_model(path, {.infer = core::kListedGuesses, .memory = memory}));
  auto impl = std::make_shared<Impl>();
  LOOM_ASSIGN(impl->report, core::report_model(model));
  Result<std::unique_ptr<core::TensorFile>> file = core::open_tensor_file(path);
  if (file.ok()) {
    impl->file = std::move(*file);
    for (const core::TensorEntry& entry : impl->file->entries())
      impl->tensors.push_back(core::stored(entry));
  }
  if (model.decoder != nullptr) {
    LOOM_ASSIGN(impl->decoder, core::describe(*model.decoder));
  }
  const core::JsonValue* record =
      model.network == nullptr ? nullptr : model.network->sections.find("model");
  if (record != nullptr) impl->training = core::dump_json(*record);
  return impl;
}

const std::string& ModelFile::training() const {
  return impl_->training;
}

const std::string& ModelFile::format() const {
  return impl_->report.format;
}
const std::string& ModelFile::grid() const {
  return impl_->report.grid;
}
int64_t ModelFile::parameters() const {
  return impl_->report.parameters;
}
ParameterCounts ModelFile::parameter_counts() const {
  const core::ParamCounts counts = impl_->report.network->param_counts();
  return {counts.trained, counts.frozen, counts.constant};
}
const std::vector<std::string>& ModelFile::notes() const {
  return impl_->report.notes;
}
const std::optional<DecoderInfo>& ModelFile::decoder() const {
  return impl_->decoder;
}
const std::vector<StoredTensor>& ModelFile::tensors() const {
  return impl_->tensors;
}

void ModelFile::layers(const std::function<void(const LayerInfo&)>& each) const {
  core::report_layers(impl_->report,
                      [&](const core::LayerReport& r) { each(core::layer_info(r)); });
}

Result<Tensor> ModelFile::values(size_t tensor) const {
  if (tensor >= impl_->tensors.size())
    return core::make_error(Code::out_of_range, "the file has no tensor of that number");
  const StoredTensor& stored = impl_->tensors[tensor];
  LOOM_ASSIGN(Tensor out, Tensor::zeros(stored.shape));
  LOOM_ASSIGN(const std::span<float> to, out.mutable_values<float>());
  LOOM_TRY(impl_->file->to_f32(tensor, 0, stored.count, to.data()));
  impl_->file->release(tensor);
  return out;
}

Result<std::string> ModelFile::hash(size_t tensor) const {
  if (tensor >= impl_->tensors.size())
    return core::make_error(Code::out_of_range, "the file has no tensor of that number");
  const std::string hash = core::hash_hex(impl_->file->bytes(tensor));
  impl_->file->release(tensor);
  return hash;
}

Result<int64_t> verify_hashes(const std::string& path, const std::optional<Engine>& engine,
                              const WorkProgress& progress) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  LOOM_TRY(core::check_opening(path, on.impl().budget()));
  LOOM_ASSIGN(const std::unique_ptr<core::Entity> file, core::Entity::open(path));
  for (size_t i = 0; i < file->blobs().size(); ++i) {
    LOOM_TRY(file->verify(i));
    file->release(i);
    const core::EntityBlob& blob = file->blobs()[i];
    if (progress && !progress(blob.offset + blob.length, file->file_bytes()))
      return core::make_error(Code::cancelled, "verifying was stopped");
  }
  return static_cast<int64_t>(file->blobs().size());
}

Result<std::vector<TensorDifference>> diff(const std::string& a, const std::string& b,
                                           const DiffOptions& options) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  const core::MemoryBudget memory = on.impl().budget();
  LOOM_TRY(core::check_opening(a, memory));
  LOOM_TRY(core::check_opening(b, memory));
  return core::compare_models(a, b, options, memory);
}

}  // namespace loom
