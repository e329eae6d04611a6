#include "llm/model.hpp"

#include "base/rng.hpp"
#include "base/text.hpp"

namespace loom {
namespace {

Result<Network> make_network(const HfConfig& config) {
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config));
  return Network::finalize(grid, Shape{1, 1});
}

}  // namespace

DType LanguageModel::dtype_for(const Param& param, DType wanted) const {
  const bool narrow = dtype_info(wanted).bits < 8;
  return narrow && is_vocabulary_matrix(param, config_) ? DType::q8_0 : wanted;
}

size_t LanguageModel::body_cells() const {
  const std::vector<GridNode>& cells = network_->cells();
  size_t count = cells.size();
  while (count > 0 && cells[count - 1].at.z == cells.back().at.z) --count;
  return count;
}

Status LanguageModel::take_text(const ModelSource& source) {
  bos_ = source.bos;
  eos_ = source.eos;
  if (!source.tokenizer_json.empty()) {
    LOOM_ASSIGN(tokenizer_, Tokenizer::parse(source.tokenizer_json, source.tokenizer_where));
    if (tokenizer_->vocab_size() > config_.vocab_size) {
      return bad_file(cat("the tokenizer has ", tokenizer_->vocab_size(),
                          " ids, but the model's vocab_size is ", config_.vocab_size),
                      source.path);
    }
  }
  // A template beyond our subset must not keep the model from running; --chat reports it.
  if (source.chat_template.empty()) return {};
  Result<ChatTemplate> parsed =
      ChatTemplate::parse(source.chat_template, source.path + " (chat template)");
  if (parsed.ok()) chat_ = std::move(*parsed);
  return {};
}

Status LanguageModel::load_weight(int index, const SourceWeight& weight, DType dtype,
                                  ThreadPool& pool) {
  const Param& param = network_->params()[static_cast<size_t>(index)];
  const bool mean = dtype_info(dtype).scale == ScaleRule::absmean;
  const ScaleScope scope = mean ? weight.mean_scope : ScaleScope::per_row;
  if (!weight.place || dtype != weight.stored || !param.spec.matrix())
    return network_->load_param(index, dtype, weight.rows, pool, scope);
  LOOM_TRY(network_->allocate_param(index, dtype));
  const R16 matrix = r16_geometry(dtype, param.spec.shape[0], param.spec.shape[1]);
  for (int64_t row = 0; row < matrix.rows; ++row)
    LOOM_TRY(weight.place(row, matrix, param.memory.data()));
  return {};
}

Status LanguageModel::load_weights(const ModelSource& source, const LoadModelOptions& options,
                                   ThreadPool& pool) {
  const auto total = static_cast<int64_t>(network_->params().size());
  bool first_matrix = true;
  for (int64_t i = 0; i < total; ++i) {
    const Param& param = network_->params()[static_cast<size_t>(i)];
    LOOM_ASSIGN(const SourceWeight weight, source.weight(param));
    const DType wanted = options.dtype ? *options.dtype : weight.stored;
    if (param.spec.matrix() && (first_matrix || !is_vocabulary_matrix(param, config_)))
      dtype_ = wanted;
    first_matrix = first_matrix && !param.spec.matrix();
    LOOM_TRY(load_weight(static_cast<int>(i), weight, dtype_for(param, wanted), pool));
    if (weight.release) weight.release();
    if (options.progress && !options.progress(i + 1, total))
      return make_error(Code::cancelled, "loading was stopped");
  }
  return {};
}

Result<LanguageModel> LanguageModel::load(const ModelSource& source,
                                          const LoadModelOptions& options, ThreadPool& pool) {
  LanguageModel model;
  model.source_ = source.path;
  model.config_ = source.config;
  model.config_.rope_bf16_frequencies = options.rope_bf16_frequencies;
  LOOM_TRY(model.take_text(source));
  LOOM_ASSIGN(Network network, make_network(model.config_));
  model.network_ = std::make_unique<Network>(std::move(network));
  LOOM_TRY(model.load_weights(source, options, pool));
  return model;
}

Result<LanguageModel> LanguageModel::load(const std::string& path, const LoadModelOptions& options,
                                          ThreadPool& pool) {
  LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, open_hf_folder(path));
  return load(*source, options, pool);
}

Result<LanguageModel> LanguageModel::random(const HfConfig& config, DType dtype, uint64_t seed,
                                            ThreadPool& pool) {
  LanguageModel model;
  model.config_ = config;
  model.dtype_ = dtype;
  model.source_ = "random weights";
  LOOM_ASSIGN(Network network, make_network(config));
  model.network_ = std::make_unique<Network>(std::move(network));
  for (size_t i = 0; i < model.network_->params().size(); ++i) {
    const Param& param = model.network_->params()[i];
    const Rng rng(seed, i);
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    // Uniform of variance 1 / cols keeps activations near 1; gains are 1.
    const float spread =
        param.spec.matrix() ? 1.7320508f / __builtin_sqrtf(static_cast<float>(cols)) : 0.0f;
    const float centre = param.spec.init == Init::ones ? 1.0f : 0.0f;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      pool.run([&](int lane) {
        const LaneRange mine = lane_range(count * cols, 4, lane, pool.lanes());
        for (int64_t j = mine.begin; j < mine.end; j += 4) {
          const PhiloxBlock block = philox(seed, i, static_cast<uint64_t>(first * cols + j) / 4);
          for (int64_t k = 0; k < 4 && j + k < mine.end; ++k) {
            const float u =
                static_cast<float>(block[static_cast<size_t>(k)] >> 8) * 0x1p-23f - 1.0f;
            out[j + k] = centre + spread * u;
          }
        }
      });
      return {};
    };
    LOOM_TRY(
        model.network_->load_param(static_cast<int>(i), model.dtype_for(param, dtype), rows, pool));
  }
  return model;
}

}  // namespace loom
