// Model: a language model with its weights, tokenizer and chat template. It is immutable and shared
// by any number of sessions. ModelSession: one conversation with it. Both keep their dependencies
// alive.
//
//   auto engine = loom::Engine::create({.threads = 4});
//   auto model = loom::Model::load(*engine, "models/stories.entity");
//   auto session = model->session();
//   auto story = session->generate("Once upon a time", {.max_tokens = 100});
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/embedding.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/files.hpp"
#include "loom/generation.hpp"
#include "loom/reply.hpp"
#include "loom/result.hpp"

namespace loom {

struct ModelOptions {
  // Number type of the weights; unset means as stored. Types below 8 bits keep the token embedding
  // and the head at q8_0. Vectors (norms, biases) are always float32.
  std::optional<DType> dtype{};
  // Called after each tensor with tensors done and total; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
  // Accepts weights that are NaN or infinite. They are an error otherwise, because the model would
  // produce garbage.
  bool allow_nonfinite = false;
  // A chat template that replaces that of the file; empty keeps it. A fault in the template is an
  // Error.
  std::string chat_template{};
  // Another scaling of rotary positions, for contexts beyond those of the training: "linear:4",
  // "dynamic:4" or "yarn:4" (4 times the positions), or "none". Empty keeps that of the file. A
  // model in the form of memory (.entity) is then read instead of mapped.
  std::string rope_scaling{};
  // LoRA adapters: folders of PEFT, "PATH", or "PATH=WEIGHT" to multiply their effect. They add to
  // the weights, which stay as they are, in their number type.
  std::vector<std::string> lora{};
};

struct ModelInfo {
  std::string source;            // the file or folder, or "random weights"
  std::string architecture;      // "LlamaForCausalLM"
  DType dtype = DType::float32;  // of the weights of the blocks, in memory
  int64_t layers = 0;
  int64_t width = 0;        // of the hidden states
  int64_t inner_width = 0;  // of the gated unit
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t vocab = 0;       // logits per position
  int64_t context = 0;     // positions that the model was made for
  int64_t parameters = 0;  // numbers; tied ones count once
  int64_t bytes = 0;       // packed weights in memory
  bool tied_head = false;
  bool has_tokenizer = false;
  bool has_chat_template = false;
  std::vector<TokenId> eos_ids;
  bool encoder = false;              // produces vectors of texts, no text
  bool reranker = false;             // an encoder with a head of one score
  std::vector<std::string> prompts;  // names for EmbedOptions::prompt_name
  std::vector<std::string> notes;    // parts of the files that were not used, for people
};

// One turn of a conversation, as chat templates see it.
struct ChatTurn {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  bool null_content = false;           // content is null: the assistant only calls tools
  std::string reasoning{};             // an assistant's earlier thinking: "reasoning_content"
  std::vector<ToolCall> tool_calls{};  // only of an assistant
  std::string tool_call_id{};          // only of a tool: the call that it answers
  std::string name{};                  // of a tool or a speaker
  std::vector<std::string> parts{};    // content as a list of texts; replaces `content`
  std::string more{};                  // a JSON object of further members that a template reads
};

struct ChatOptions {
  bool reply = true;  // ends where the assistant's reply begins
  // The date "2024-07-26", at midnight, for templates with strftime_now(); empty means the clock's
  // date in UTC. Set it if a conversation must give the same tokens on another day.
  std::string date{};
  // Functions that the model may call: an OpenAI JSON array of {"type": "function", "function":
  // {"name", "description", "parameters"}} or of the inner objects. Empty means none.
  std::string tools{};
  std::string documents{};  // a JSON array that some templates quote; empty means none
  std::string variables{};  // a JSON object of template variables: {"enable_thinking": false}
  // Ends after the text of the last turn, which the model continues. Replaces `reply`. Errors:
  // invalid_argument (the last turn has no text, or the template changes it).
  bool continue_final_message = false;
};

struct ModelSessionOptions {
  int64_t context = 0;  // positions of the KV cache; 0 means the model's, at most 2048
  // Tokens per forward pass of a prompt; affects speed, never the text. 0 means 256, or 2048 on a
  // GPU.
  int64_t chunk = 0;
  Activations activations = Activations::automatic;  // automatic uses the engine's setting
  // Type of keys and values: float32, float16, bfloat16, q8_0 or q4_0 (blocks of 32 numbers of a
  // head). Narrow types take half to a seventh of the memory, and give other texts than float32.
  // Each type gives the same text on every machine. A GPU does not support q4_0.
  DType cache_type = DType::float32;
  // Called if a GPU fails: feed() and generate() then continue on the CPU with the tokens so far.
  // If it is unset, they return the error instead.
  std::function<void(const Error&)> device_failed{};
};

class Chat;
class Tokenizer;
struct ConversationOptions;
class ModelSession;

// A running generation, one step at a time, so that one thread can alternate between conversations.
// Its tokens are those of ModelSession::generate(), whatever is computed between two steps.
class LOOM_API Generator {
 public:
  // Reads a piece of the prompt (ModelSessionOptions::chunk), or samples the next token (on a GPU
  // the next few). false: the text has ended, and result() is complete. It also ends after an
  // Error.
  Result<bool> step();
  const Generation& result() const;

  struct LOOM_LOCAL Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

 private:
  std::unique_ptr<Impl> impl_;
};

// Not thread-safe: one thread at a time.
class LOOM_API ModelSession {
 public:
  // Feeds tokens; logits() are then those after the last one. Errors: out_of_range (an id outside
  // the vocabulary, a full context); then nothing was fed.
  Status feed(std::span<const TokenId> ids);
  // Feeds in pieces of 256 and calls `progress` after each, with tokens fed and total. false stops
  // with Code::cancelled and keeps what was fed so far.
  Status feed(std::span<const TokenId> ids,
              const std::function<bool(int64_t done, int64_t total)>& progress);
  // Logits [vocab] after the last feed(); empty before the first. Valid until the next call.
  std::span<const float> logits() const;
  // Feeds tokens and passes the logits [vocab] of every position to `sink(position in ids,
  // logits)`. An Error of the sink ends it.
  using LogitsSink = std::function<Status(int64_t position, std::span<const float> logits)>;
  Status feed_all(std::span<const TokenId> ids, const LogitsSink& sink);

  // Feeds the prompt, then samples tokens until a StopReason. Text goes to `sink` as it appears,
  // and is in the result as well. The last sampled token is not fed: feed it to continue. An empty
  // prompt continues from logits(). Errors: invalid_argument (options, an empty prompt at the
  // start), out_of_range (a prompt longer than the context).
  Result<Generation> generate(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                              const TextSink& sink = {});
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                              const TextSink& sink = {});

  // The same, step by step. Until the text has ended, the session must outlive it, must not move,
  // and must not be used otherwise.
  Result<Generator> start(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                          const TextSink& sink = {});

  int64_t position() const;  // tokens fed
  int64_t context() const;   // positions in total
  // Drops everything from `position` on; a position beyond the current one changes nothing.
  // logits() stay those of the last feed().
  void rewind(int64_t position);

  // Saves what the session has read, with keys, values and logits, to a file. load_state() restores
  // it into a session of the same model, types and numerics. It continues with the same bits
  // without reading the tokens again. The file is validated before anything changes. Errors:
  // unsupported (on a GPU), bad_file (damaged, or of another model), out_of_range (more tokens than
  // this context holds), io_error.
  Status save_state(const std::string& path) const;
  Status load_state(const std::string& path);

  int64_t activation_bytes() const;  // memory for one forward pass
  int64_t cache_bytes() const;       // memory for keys, values and rotary tables
  int64_t bytes() const;             // sum of both; constant

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  explicit ModelSession(std::unique_ptr<Impl> impl);
  ModelSession(ModelSession&&) noexcept;
  ModelSession& operator=(ModelSession&&) noexcept;
  ~ModelSession();

 private:
  std::unique_ptr<Impl> impl_;
};

// A handle: copies share the model. Const methods are thread-safe; load() and random() compute.
class LOOM_API Model {
 public:
  // Loads an .entity file, a GGUF file or a Hugging Face folder. An .entity file in the requested
  // dtype is mapped; its weights are checked against their hashes when a session first uses them. A
  // folder has config.json, model.safetensors (or shards with an index) and, for text,
  // tokenizer.json. Errors: not_found, bad_file (with file and offset), unsupported (a field that
  // this engine does not support, by name), cancelled.
  static Result<Model> load(const Engine& engine, const std::string& path,
                            const ModelOptions& options = {});
  // An .entity or GGUF file in memory.
  static Result<Model> load(const Engine& engine, const FileBytes& file,
                            const ModelOptions& options = {});
  // Random weights of a named shape ("smollm2-135m", "tiny", ...), equal for equal seeds on every
  // machine. Without a tokenizer: tokens only. An Error lists the shapes.
  static Result<Model> random(const Engine& engine, std::string_view shape, DType dtype,
                              uint64_t seed);

  const ModelInfo& info() const;
  Engine engine() const;  // that loaded the model, and on which it computes
  // The text of the chat template; empty if there is none. Valid while a copy of the model exists.
  std::string_view chat_template() const;
  // 16 hexadecimal digits for all that affects the bits of a text besides the request: the weights,
  // their number type, that of the KV cache, and the version of the numerics. Reads all weights.
  std::string fingerprint(DType cache_type = DType::float32) const;
  // The tokenizer, which keeps the model alive. Errors: not_found (the model has none).
  Result<Tokenizer> tokenizer() const;

  // Ids of `text`, with the tokens that the tokenizer adds around a text (such as BOS) unless
  // `add_special_tokens` is false. Text that spells a special token becomes that token.
  Result<std::vector<TokenId>> tokenize(std::string_view text,
                                        bool add_special_tokens = true) const;
  // For GenerateOptions::rules: texts start at once and share the compiled rules. null means that
  // the options have no constraint. Errors: invalid_argument (a fault in the grammar or schema,
  // with its location; no tokenizer), unsupported. Any thread.
  Result<std::shared_ptr<const CompiledRules>> compile_rules(const GenerateOptions& options) const;
  // Text of `ids`. Broken UTF-8 becomes U+FFFD; ids without a token in the tokenizer add no text.
  // Errors: out_of_range (an id outside the model's vocabulary).
  Result<std::string> detokenize(std::span<const TokenId> ids,
                                 bool skip_special_tokens = true) const;
  // The conversation, formatted by the model's chat template. Errors: unsupported (no template, one
  // that needs another, calls in an otherwise empty turn that the template does not read),
  // invalid_argument (no such date, invalid JSON).
  Result<std::string> render_chat(std::span<const ChatTurn> turns,
                                  const ChatOptions& options = {}) const;
  // The same for messages as JSON, in the shape of OpenAI's clients: [{"role", "content" (text,
  // null or a list of parts), "tool_calls", "tool_call_id", "name", "reasoning_content"}].
  // Templates see all other members as well. Arguments of calls are objects or their JSON text.
  // Errors also: invalid_argument, naming the message and the member.
  Result<std::string> render_chat(std::string_view messages, const ChatOptions& options = {}) const;
  // How the model's chat template writes tool calls; empty if it does not support them.
  // docs/chat.md lists the formats.
  std::string tool_format() const;
  // A parser of the model's reply to `prompt`, which render_chat() made for the same tools. Errors:
  // invalid_argument (tools that are not a JSON array of functions).
  Result<ReplyParser> reply_parser(std::string_view prompt, std::string_view tools = {}) const;
  // The whole reply `text` to `prompt` as a message for render_chat(), as JSON: {"role", "content",
  // "reasoning_content", "tool_calls"}. Content is null next to calls without text. Calls get ids,
  // and "problem" if the schema of their tool forbids them. Errors: those of reply_parser().
  Result<std::string> read_reply(std::string_view text, std::string_view prompt,
                                 std::string_view tools = {}) const;
  // A grammar for GenerateOptions::grammar that constrains calls in a reply to `prompt` to the
  // schemas of their tools. Use it with special_text. With rules.required the reply consists of
  // calls only. Otherwise tools with "strict": true are constrained; without any the result is
  // empty. Errors: those of reply_parser(); unsupported (a keyword of a schema, with its location;
  // a template without tool calls).
  Result<std::string> call_grammar(std::string_view prompt, std::string_view tools,
                                   const CallRules& rules = {}) const;
  // Ids of render_chat(), without additional special tokens.
  Result<std::vector<TokenId>> tokenize_chat(std::span<const ChatTurn> turns,
                                             const ChatOptions& options = {}) const;
  Result<std::vector<TokenId>> tokenize_chat(std::string_view messages,
                                             const ChatOptions& options = {}) const;

  // Errors: invalid_argument (fewer tokens than a window needs), cancelled.
  Result<Perplexity> perplexity(std::span<const TokenId> ids,
                                const PerplexityOptions& options = {}) const;

  // Each text as a vector, in the given order. The other texts do not change its bits. Works with
  // encoders (such as BERT) and with decoders, whose states after the last norm are pooled (by
  // default the last token's). Memory for the longest text is held during the call. Errors:
  // unsupported (an invalid pooling), not_found (no tokenizer, no such prompt), out_of_range (a
  // text too long with truncate false, or without a token; dimensions), cancelled.
  Result<std::vector<TextEmbedding>> embed(std::span<const std::string> texts,
                                           const EmbedOptions& options = {}) const;
  // The same for token ids, unchanged: no prompt and no special tokens are added.
  Result<std::vector<TextEmbedding>> embed_tokens(std::span<const std::vector<TokenId>> texts,
                                                  const EmbedOptions& options = {}) const;
  // The documents by how well they answer the query, best first; the earlier of equal ones first.
  // Errors: unsupported (a model without a head of one label), those of embed().
  Result<std::vector<Ranked>> rerank(std::string_view query, std::span<const std::string> documents,
                                     const RerankOptions& options = {}) const;

  // Takes all memory that a run needs. Errors: unsupported (an encoder), out_of_range (a context
  // beyond the model's), out_of_memory.
  Result<ModelSession> session(const ModelSessionOptions& options = {}) const;

  // A lasting conversation (loom/chat.hpp).
  Result<Chat> chat(const ConversationOptions& options) const;
  // The sampling options in the model's generation_config.json; unset if there are none. Defaults
  // are those of `transformers`: greedy without do_sample; with it temperature 1, top-k 50, and
  // penalties over the whole text. Errors: bad_file, naming the field.
  Result<std::optional<SamplerOptions>> suggested_sampling() const;

  struct LOOM_LOCAL Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom
