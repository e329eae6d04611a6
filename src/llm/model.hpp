// LanguageModel: a decoder (or an encoder) with its weights, tokenizer and chat template.
// Immutable; any number of LlmSessions may run it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "grammar/vocabulary.hpp"
#include "grid/session.hpp"
#include "io/files/file_ref.hpp"
#include "jinja/chat_template.hpp"
#include "llm/adapters.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_config.hpp"
#include "llm/model_source.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

struct LoadModelOptions {
  // Type of the weights of the blocks; unset means as in the checkpoint. Types below 8 bits leave
  // the vocabulary matrices at q8_0.
  std::optional<DType> dtype;
  // Called after each tensor with tensors done and total; false stops with `cancelled`.
  std::function<bool(int64_t done, int64_t total)> progress;
  bool allow_nonfinite = false;  // accept weights that are NaN or infinite
  std::string chat_template{};   // replaces the template of the source; empty keeps it
  std::string rope_scaling{};    // choose_rope_scaling() of llm/positions.hpp; empty keeps it
  // Folders of LoRA adapters of PEFT, "PATH" or "PATH=WEIGHT". load_language_model() reads them.
  std::vector<std::string> lora{};
};

class LanguageModel {
 public:
  // Loads from an open source, which is not needed afterwards. A source that is packed in the
  // requested dtype is mapped, not read. For files: load_language_model() in convert.
  static Result<LanguageModel> load(const ModelSource& source, const LoadModelOptions& options,
                                    ThreadPool& pool);
  // Random weights of a shape, the same for the same seed on every machine. No tokenizer.
  static Result<LanguageModel> random(const DecoderConfig& config, DType dtype, uint64_t seed,
                                      ThreadPool& pool);

  // Adds adapters to the weights, before any session exists. Errors: unsupported for an encoder.
  Status add_adapters(const std::vector<ModelAdapter>& adapters, ThreadPool& pool);

  const DecoderConfig& config() const { return config_; }
  const EncoderConfig* encoder() const { return encoder_ ? &*encoder_ : nullptr; }  // may be null
  // How texts become vectors, if the model defines it.
  const EmbeddingSettings* embedding() const { return embedding_ ? &*embedding_ : nullptr; }
  const Network& network() const { return *network_; }
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  const ChatTemplate* chat_template() const { return chat_ ? &*chat_ : nullptr; }
  const std::string& chat_source() const { return chat_source_; }  // the text of chat_template()
  // The bytes of every token, for grammars; computed on first use. Needs a tokenizer. `marks`:
  // special tokens spell their own text, except those that end a text.
  std::shared_ptr<const grammar::Vocabulary> vocabulary(bool marks = false) const;
  // Why chat_template() is null.
  const Error& chat_problem() const { return chat_problem_; }
  // Parts of the files that were not used: ModelSource::notes.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& bos_token() const { return bos_; }
  const std::string& eos_token() const { return eos_; }
  // The text of its generation_config.json; may be empty.
  const std::string& generation_json() const { return generation_json_; }
  DType dtype() const { return dtype_; }  // of the blocks
  // Cells before the head, which is the last plane of the grid: sessions run it for few positions.
  size_t body_cells() const;
  const std::string& source() const { return source_; }

 private:
  Status take_text(const ModelSource& source);
  Status load_weights(const ModelSource& source, const LoadModelOptions& options, ThreadPool& pool);

  DecoderConfig config_;
  std::optional<EncoderConfig> encoder_;
  std::optional<EmbeddingSettings> embedding_;
  std::unique_ptr<Network> network_;  // sessions point at it, so it must not move
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
  std::string chat_source_;
  Error chat_problem_;
  struct LazyVocabulary {
    std::once_flag once;
    std::shared_ptr<const grammar::Vocabulary> made;
  };
  std::unique_ptr<LazyVocabulary> vocabulary_ = std::make_unique<LazyVocabulary>();
  std::unique_ptr<LazyVocabulary> marks_ = std::make_unique<LazyVocabulary>();
  std::string bos_, eos_, source_, generation_json_;
  std::vector<std::string> notes_;
  DType dtype_ = DType::f32;
};

// Positions of a session that asks for `wanted`; 0 means the model's, at most 2048. Errors:
// out_of_range.
Result<int64_t> checked_context(const LanguageModel& model, int64_t requested);
// Errors: out_of_range for an id outside the vocabulary, or for more tokens than the context holds.
Status check_tokens(const LanguageModel& model, std::span<const TokenId> ids);
Status check_room(int64_t position, int64_t count, int64_t context);

}  // namespace loom::core
