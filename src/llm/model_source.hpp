// ModelSource: where the pieces of a language model come from, one class per kind of file: its
// configuration, its text (tokenizer, chat template) and, one at a time, the parameters of
// decoder_grid(config).
// It reads what a file says and nothing more; LanguageModel builds and packs.
#pragma once

#include <memory>
#include <string>

#include "bridge/weight_source.hpp"
#include "io/file_ref.hpp"
#include "io/hf_config.hpp"
#include "io/model_file.hpp"

namespace loom::core {

class ModelSource : public WeightSource {
 public:
  std::string path;
  HfConfig config;
  // config reads back from these: config.json and generation_config.json ("": none).
  std::string config_json, generation_json;
  std::string tokenizer_json;   // "" where there is none
  std::string tokenizer_where;  // for messages
  std::string chat_template;
  std::string chat_problem;  // why there is none that can be used, where the model has some
  std::string bos, eos;      // as text, for the chat template
};

// A Hugging Face folder: config.json, model.safetensors (or an index), tokenizer.json and friends.
Result<std::unique_ptr<ModelSource>> open_hf_folder(const std::string& folder);

// Opens a model of any kind. Errors: not_found, unsupported (a file of another kind), and those of
// the reader.
Result<std::unique_ptr<ModelSource>> open_model_source(const FileRef& path);

// Random weights of a shape, the same for the same seed on every machine: uniform of variance
// 1 / cols, gains 1. `pool` must outlive it.
Result<std::unique_ptr<ModelSource>> random_source(const HfConfig& config, uint64_t seed,
                                                   ThreadPool& pool);

// What weights below 8 bits leave at q8_0: the token embedding and the head.
DType decoder_dtype(const Param& param, const HfConfig& config, DType wanted);

}  // namespace loom::core
