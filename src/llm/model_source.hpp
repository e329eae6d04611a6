// ModelSource: the interface from which a language model is loaded, one class per file format. It
// provides the configuration, the text parts (tokenizer, chat template) and, one at a time, the
// parameters of model_grid(source). It only reads a file; LanguageModel builds and packs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/weight_source.hpp"
#include "grid/grid.hpp"
#include "io/files/file_ref.hpp"
#include "llm/decoder_config.hpp"
#include "llm/encoder_config.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {

class ModelSource : public WeightSource {
 public:
  std::string where() const override { return path; }

  std::string path;
  // Parts of the files that were not used or are duplicated: lines for people.
  std::vector<std::string> notes;
  DecoderConfig config;
  // Only for an encoder; then `config` has only the sizes that both kinds have.
  std::optional<EncoderConfig> encoder;
  // How texts become vectors, if the model defines it.
  std::optional<EmbeddingSettings> embedding;
  // The original config.json and generation_config.json, which writers of such files copy. If
  // empty, config is complete.
  std::string config_json, generation_json;
  // The text of a tokenizer.json, which writers of such files copy, or another format's
  // description; or neither. See tokenizer_spec().
  std::string tokenizer_json;
  std::string tokenizer_where;  // names it in messages
  std::optional<TokenizerSpec> tokenizer;
  std::string chat_template;
  std::string chat_problem;  // why the model's template is not usable, if it has one
  std::string bos, eos;      // as text, for the chat template
  // Type of the blocks, in a file whose weights are in network layout: see map().
  std::optional<DType> packed;
  // The network over the map of such a file: nothing is packed or copied. It does not need the
  // source afterwards.
  virtual Result<Network> map() const;
};

// The tokenizer of a model, if it has one. Errors: those of parse_tokenizer_json().
Result<std::optional<TokenizerSpec>> tokenizer_spec(const ModelSource& source);
// The same as the text of a tokenizer.json; empty if there is none.
std::string tokenizer_text(const ModelSource& source);

// Random weights of a shape, the same for the same seed on every machine: uniform of variance
// 1 / cols, gains 1. `pool` must outlive it.
Result<std::unique_ptr<ModelSource>> random_source(const DecoderConfig& config, uint64_t seed,
                                                   ThreadPool& pool);

// The network of a model.
Result<GridSpec> model_grid(const ModelSource& source);
// Whether it is a table that a model looks ids up in, or the head of a decoder.
bool is_model_table(const Param& param, const ModelSource& source);
// The type of a parameter: those tables stay at q8_0 if `wanted` is below 8 bits.
DType model_dtype(const Param& param, const ModelSource& source, DType requested);
// The same for a decoder.
DType decoder_dtype(const Param& param, const DecoderConfig& config, DType requested);

}  // namespace loom::core
