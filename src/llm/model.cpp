#include "llm/model.hpp"

#include "base/rng.hpp"
#include "base/text.hpp"
#include "io/file.hpp"
#include "io/json.hpp"
#include "io/safetensors.hpp"

namespace loom {
namespace {

Result<std::string> read_optional(const std::string& path) {
  if (!file_exists(path)) return std::string();
  return read_file(path);
}

// tokenizer_config.json writes special tokens as strings or as objects with a "content".
std::string special_token(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.find(key);
  if (value == nullptr) return {};
  if (const JsonValue* content = value->find("content")) return content->text();
  return value->text();
}

Status check_shape(const SafeTensor& tensor, const Shape& want, const std::string& where) {
  bool same = static_cast<int>(tensor.shape.size()) == want.rank();
  for (int i = 0; same && i < want.rank(); ++i)
    same = tensor.shape[static_cast<size_t>(i)] == want[i];
  if (same) return {};
  std::string got = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) got += cat(i > 0 ? ", " : "", tensor.shape[i]);
  return bad_file(cat(tensor.name, " has shape ", got, "], config.json asks for ", want.str()),
                  where, static_cast<int64_t>(tensor.file_offset));
}

// The dtype weights have in the checkpoint, as one of ours.
DType stored_dtype(const SafeTensor& tensor) {
  for (const DTypeInfo& info : dtype_table()) {
    const bool direct = info.scale == ScaleRule::none;
    if (direct && info.safetensors == safe_dtype_name(tensor.dtype)) return info.dtype;
  }
  return DType::f32;
}

Result<Network> make_network(const HfConfig& config) {
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config));
  return Network::finalize(grid, Shape{1, 1});
}

}  // namespace

DType LanguageModel::dtype_for(const Param& param, DType wanted) const {
  const bool narrow = dtype_info(wanted).bits < 8;
  return narrow && is_vocabulary_matrix(param, config_) ? DType::q8_0 : wanted;
}

Status LanguageModel::load_text(const std::string& folder) {
  const std::string tokenizer_path = folder + "/tokenizer.json";
  if (file_exists(tokenizer_path)) {
    LOOM_ASSIGN(const std::string text, read_file(tokenizer_path));
    LOOM_ASSIGN(tokenizer_, Tokenizer::parse(text, tokenizer_path));
  }
  const std::string config_path = folder + "/tokenizer_config.json";
  LOOM_ASSIGN(const std::string config_text, read_optional(config_path));
  std::string chat;
  if (!config_text.empty()) {
    LOOM_ASSIGN(const JsonValue config, parse_json(config_text, config_path));
    bos_ = special_token(config, "bos_token");
    eos_ = special_token(config, "eos_token");
    if (const JsonValue* value = config.find("chat_template")) chat = value->text();
  }
  const std::string chat_path = folder + "/chat_template.jinja";
  if (file_exists(chat_path)) {
    LOOM_ASSIGN(chat, read_file(chat_path));
  }
  // A template beyond our subset must not keep the model from running; --chat reports it.
  if (!chat.empty()) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(chat, chat_path);
    if (parsed.ok()) chat_ = std::move(*parsed);
  }
  return {};
}

Status LanguageModel::load_weights(const std::string& folder, const LoadModelOptions& options,
                                   ThreadPool& pool) {
  LOOM_ASSIGN(const SafeTensors file, SafeTensors::open(folder));
  const auto total = static_cast<int64_t>(network_->params().size());
  bool first_matrix = true;
  for (int64_t i = 0; i < total; ++i) {
    const Param& param = network_->params()[static_cast<size_t>(i)];
    const std::string name = decoder_tensor_name(param);
    const SafeTensor* tensor = file.find(name);
    if (tensor == nullptr) {
      return make_error(Code::bad_file, cat("tensor ", name, " is missing"), folder);
    }
    const std::string& where = file.files()[tensor->file].path();
    LOOM_TRY(check_shape(*tensor, param.spec.shape, where));
    const DType wanted = options.dtype ? *options.dtype : stored_dtype(*tensor);
    if (param.spec.matrix() && (first_matrix || !is_vocabulary_matrix(param, config_)))
      dtype_ = wanted;
    first_matrix = first_matrix && !param.spec.matrix();
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) {
      return SafeTensors::to_f32(*tensor, first * cols, count * cols, out);
    };
    LOOM_TRY(network_->load_param(static_cast<int>(i), dtype_for(param, wanted), rows, pool));
    file.release(*tensor);
    if (options.progress && !options.progress(i + 1, total))
      return make_error(Code::cancelled, "loading was stopped");
  }
  return {};
}

Result<LanguageModel> LanguageModel::load(const std::string& folder,
                                          const LoadModelOptions& options, ThreadPool& pool) {
  LanguageModel model;
  model.source_ = folder;
  if (!is_directory(folder)) {
    return make_error(Code::not_found,
                      "no such folder; give a folder with config.json and model.safetensors",
                      folder);
  }
  const std::string config_path = folder + "/config.json";
  LOOM_ASSIGN(const std::string config_text, read_file(config_path));
  LOOM_ASSIGN(const std::string generation, read_optional(folder + "/generation_config.json"));
  LOOM_ASSIGN(model.config_, parse_hf_config(config_text, generation, config_path));
  model.config_.rope_bf16_frequencies = options.rope_bf16_frequencies;
  LOOM_TRY(model.load_text(folder));
  LOOM_ASSIGN(Network network, make_network(model.config_));
  model.network_ = std::make_unique<Network>(std::move(network));
  LOOM_TRY(model.load_weights(folder, options, pool));
  if (model.tokenizer_ && model.tokenizer_->vocab_size() > model.config_.vocab_size) {
    return bad_file(cat("tokenizer.json has ", model.tokenizer_->vocab_size(),
                        " ids, but config.json says vocab_size ", model.config_.vocab_size),
                    folder);
  }
  return model;
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
