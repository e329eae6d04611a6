// ModelSource: where the pieces of a language model come from, one class per kind of file: its
// configuration, its text (tokenizer, chat template) and, one at a time, the parameters of
// model_grid(source).
// It reads what a file says and nothing more; LanguageModel builds and packs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/weight_source.hpp"
#include "grid/grid.hpp"
#include "io/file_ref.hpp"
#include "llm/decoder_config.hpp"
#include "llm/encoder_config.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {

class ModelSource : public WeightSource {
 public:
  std::string where() const override { return path; }

  std::string path;
  // What of the files was not used, or is said twice: lines for a person.
  std::vector<std::string> notes;
  DecoderConfig config;
  // Of an encoder; then `config` has the sizes that both kinds have, and no more.
  std::optional<EncoderConfig> encoder;
  // How vectors are made of texts, where the model says it.
  std::optional<EmbeddingSettings> embedding;
  // Where the model came with them: config.json and generation_config.json, which writers of such
  // files copy. "": none; config says it all.
  std::string config_json, generation_json;
  // The text of a tokenizer.json, which writers of such files copy, or what another format says; or
  // neither. See tokenizer_spec().
  std::string tokenizer_json;
  std::string tokenizer_where;  // names it in messages
  std::optional<TokenizerSpec> tokenizer;
  std::string chat_template;
  std::string chat_problem;  // why there is none that can be used, where the model has some
  std::string bos, eos;      // as text, for the chat template
  // Of the blocks, in a file whose weights lie as networks have them: see map().
  std::optional<DType> packed;
  // The network over the map of such a file: nothing is packed or copied. It needs the source no
  // longer.
  virtual Result<Network> map() const;
};

// The tokenizer of a model, if it has one. Errors: those of parse_tokenizer_json().
Result<std::optional<TokenizerSpec>> tokenizer_spec(const ModelSource& source);
// It as the text of a tokenizer.json; "": none.
std::string tokenizer_text(const ModelSource& source);

// Random weights of a shape, the same for the same seed on every machine: uniform of variance
// 1 / cols, gains 1. `pool` must outlive it.
Result<std::unique_ptr<ModelSource>> random_source(const DecoderConfig& config, uint64_t seed,
                                                   ThreadPool& pool);

// The network of a model.
Result<GridSpec> model_grid(const ModelSource& source);
// Is it one of the tables that a model looks ids up in, or the head of a decoder?
bool is_model_table(const Param& param, const ModelSource& source);
// What weights below 8 bits leave at q8_0: those tables.
DType model_dtype(const Param& param, const ModelSource& source, DType wanted);
// The same for a decoder.
DType decoder_dtype(const Param& param, const DecoderConfig& config, DType wanted);

}  // namespace loom::core
