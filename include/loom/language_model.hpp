// Model: a language model with its weights, tokenizer and chat template; immutable, shared by any
// number of sessions. ModelSession: one conversation with it. Both keep what they need alive.
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
  // Number type of the weights; unset: as stored in the file. Types below 8 bits leave the token
  // embedding and the head at q8_0. Vectors (norms, biases) are always float32.
  std::optional<DType> dtype{};
  // Called after each tensor with tensors done and in all; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
  // Reads weights that are NaN or infinite. They are an error otherwise: the model would compute
  // nothing of use.
  bool allow_nonfinite = false;
  // A chat template in the place of that of the file; "": that one. What is wrong with it is an
  // Error.
  std::string chat_template{};
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
  int64_t context = 0;     // positions the model was made for
  int64_t parameters = 0;  // numbers, tied ones once
  int64_t bytes = 0;       // packed weights in memory
  bool tied_head = false;
  bool has_tokenizer = false;
  bool has_chat_template = false;
  std::vector<TokenId> eos_ids;
  bool encoder = false;              // makes vectors of texts, and no text
  bool reranker = false;             // an encoder whose head gives one score
  std::vector<std::string> prompts;  // names for EmbedOptions::prompt_name
  std::vector<std::string> notes;    // what of the files was not used, for a person
};

// One turn of a conversation, as chat templates know it.
struct ChatTurn {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  bool null_content = false;           // content is null: an assistant that only calls
  std::string reasoning{};             // what an assistant thought before: "reasoning_content"
  std::vector<ToolCall> tool_calls{};  // of an assistant
  std::string tool_call_id{};          // of a tool: the call that it answers
  std::string name{};                  // of a tool or a speaker
};

struct ChatOptions {
  bool reply = true;  // end where the assistant begins to speak
  // The day that a template with strftime_now() tells, "2024-07-26", at midnight; "": that of the
  // clock in UTC. Set it where a conversation has to give the same tokens on another day.
  std::string date{};
  // Functions that the model may call: a JSON array as OpenAI has it, of {"type": "function",
  // "function": {"name", "description", "parameters"}} or of the inner objects. "": none.
  std::string tools{};
  std::string documents{};  // a JSON array that some templates quote; "": none
  std::string variables{};  // a JSON object that the template sees too: {"enable_thinking": false}
};

struct ModelSessionOptions {
  int64_t context = 0;  // positions of the KV cache; 0: the model's, at most 2048
  // Tokens per forward pass of a prompt; changes speed, never the text. 0: 256, on a GPU 2048.
  int64_t chunk = 0;
  Activations activations = Activations::automatic;  // automatic: as the engine says
  // Of keys and values: float32, float16, bfloat16, q8_0 or q4_0 (blocks of 32 numbers of a head).
  // Narrow types take from a half to a seventh of the memory, and give other texts than float32
  // does; each gives the same on every machine. On a GPU not q4_0.
  DType cache_type = DType::float32;
  // With an engine on a GPU: when that fails, feed() and generate() go on on the CPU with the
  // tokens so far, and call this with what happened. Unset: they return the error.
  std::function<void(const Error&)> device_failed{};
};

struct PerplexityOptions {
  int64_t window = 512;  // predictions per window; each is read without earlier context
  int64_t limit = 0;     // predictions at most, in whole windows; 0: all
  // Called with predictions done and in all; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// exp of the mean negative log-likelihood of the tokens of a text. Window i reads ids [iw, iw + w)
// and predicts [iw + 1, iw + w]; a remainder shorter than a window is left out.
struct Perplexity {
  double perplexity = 0, nats_per_token = 0;
  int64_t predictions = 0;
};

class Chat;
struct ConversationOptions;
class ModelSession;

// A text on its way, a step at a time, so that one thread can take turns among conversations. Its
// tokens are those of ModelSession::generate(), whatever is computed between two steps.
class LOOM_API Generator {
 public:
  // Reads a piece of the prompt (ModelSessionOptions::chunk), or draws the next token (on a GPU the
  // next few). False: the text has ended, and result() is whole. After an Error it has ended too.
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
  // the vocabulary, a full context), and then nothing was fed.
  Status feed(std::span<const TokenId> ids);
  // The same in pieces of 256: after each, tokens fed and in all; false stops with
  // Code::cancelled, with what was fed until then.
  Status feed(std::span<const TokenId> ids,
              const std::function<bool(int64_t done, int64_t total)>& progress);
  // Logits [vocab] after the last feed(); empty before the first. Valid until the next call.
  std::span<const float> logits() const;
  // Feeds tokens and hands the logits [vocab] of every position to `sink(position in ids, logits)`;
  // an Error from the sink ends it.
  using LogitsSink = std::function<Status(int64_t position, std::span<const float> logits)>;
  Status feed_all(std::span<const TokenId> ids, const LogitsSink& sink);

  // Feeds the prompt, then draws tokens until a StopReason; text goes to `sink` as it appears and
  // is in the result as well. The last token drawn is not fed: feed it to go on. An empty prompt
  // goes on from logits(). Errors: invalid_argument (options, an empty prompt at the start),
  // out_of_range (a prompt longer than the context).
  Result<Generation> generate(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                              const TextSink& sink = {});
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                              const TextSink& sink = {});

  // The same, to be called step by step. The session has to outlive it, stay where it is, and not
  // be used for anything else until the text has ended.
  Result<Generator> start(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                          const TextSink& sink = {});

  int64_t position() const;  // tokens fed
  int64_t context() const;   // positions there are
  // Forgets everything from `position` on; a position not reached yet changes nothing. logits()
  // stay those of the last feed().
  void rewind(int64_t position);

  // What the session has read, with keys, values and logits, as a file, and back into a session of
  // the same model, types and numerics: it goes on with the very bits, without reading the tokens
  // again. The file is checked whole before anything changes. Errors: unsupported (on a GPU),
  // bad_file (damaged, or of another model), out_of_range (more tokens than this context has room
  // for), io_error.
  Status save_state(const std::string& path) const;
  Status load_state(const std::string& path);

  int64_t activation_bytes() const;  // memory for one forward pass
  int64_t cache_bytes() const;       // memory for keys, values and rotary tables
  int64_t bytes() const;             // of both; they stay the same for its whole life

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  explicit ModelSession(std::unique_ptr<Impl> impl);
  ModelSession(ModelSession&&) noexcept;
  ModelSession& operator=(ModelSession&&) noexcept;
  ~ModelSession();

 private:
  std::unique_ptr<Impl> impl_;
};

// A handle: copies mean the same model. Const methods are thread-safe, load() and random() compute.
class LOOM_API Model {
 public:
  // An .entity file (in the asked dtype it is mapped, and its weights are compared with their
  // hashes when a session first uses them), a GGUF file, or a Hugging Face folder: config.json,
  // model.safetensors (or shards with an index) and, for text, tokenizer.json. Errors: not_found,
  // bad_file (with file and offset), unsupported (a field this engine does not honour, by name),
  // cancelled.
  static Result<Model> load(const Engine& engine, const std::string& path,
                            const ModelOptions& options = {});
  // An .entity or GGUF file in memory.
  static Result<Model> load(const Engine& engine, const FileBytes& file,
                            const ModelOptions& options = {});
  // Random weights of a named shape ("smollm2-135m", "tiny", ...), the same for the same seed on
  // every machine. No tokenizer: tokens only. An Error lists the shapes there are.
  static Result<Model> random(const Engine& engine, std::string_view shape, DType dtype,
                              uint64_t seed);

  const ModelInfo& info() const;

  // Ids of `text`, with the tokens that the tokenizer puts around a text (BOS and the like) unless
  // `add_special_tokens` is false. Text that spells a special token becomes that token.
  Result<std::vector<TokenId>> tokenize(std::string_view text,
                                        bool add_special_tokens = true) const;
  // For GenerateOptions::rules, so that a text starts at once and many texts share what is
  // compiled. Null: the options hold a text to nothing. Errors: invalid_argument (what the grammar
  // or schema says, by place; no tokenizer), unsupported. Any thread.
  Result<std::shared_ptr<const CompiledRules>> compile_rules(const GenerateOptions& options) const;
  // Text of `ids`; broken UTF-8 becomes U+FFFD, and ids that the tokenizer has no token for are no
  // text. Errors: out_of_range (an id outside the model's vocabulary).
  Result<std::string> detokenize(std::span<const TokenId> ids,
                                 bool skip_special_tokens = true) const;
  // The conversation as the model's chat template writes it. Errors: unsupported (no template, or
  // one that needs another), invalid_argument (no such date, JSON that cannot be read).
  Result<std::string> render_chat(std::span<const ChatTurn> turns,
                                  const ChatOptions& options = {}) const;
  // How the model's chat template writes calls of tools; "": it knows none. docs/chat.md lists
  // them.
  std::string tool_format() const;
  // Reads what the model writes after `prompt`, which render_chat() gave for the same tools.
  // Errors: invalid_argument (tools that are no JSON array of functions).
  Result<ReplyParser> reply_parser(std::string_view prompt, std::string_view tools = {}) const;
  // What holds a reply to `prompt` to calls that obey the schemas of their tools, for
  // GenerateOptions::grammar, with special_text. With rules.required it is nothing but calls; else
  // tools with "strict": true are held to, and without one it is "": nothing. Errors: those of
  // reply_parser(); unsupported (a keyword of a schema, with its place; a template that shows no
  // way to call).
  Result<std::string> call_grammar(std::string_view prompt, std::string_view tools,
                                   const CallRules& rules = {}) const;
  // Ids of render_chat(), without further special tokens.
  Result<std::vector<TokenId>> tokenize_chat(std::span<const ChatTurn> turns,
                                             const ChatOptions& options = {}) const;

  // Errors: invalid_argument (fewer tokens than a window needs), cancelled.
  Result<Perplexity> perplexity(std::span<const TokenId> ids,
                                const PerplexityOptions& options = {}) const;

  // Each text as a vector, in the order given; what stands beside a text does not change its bits.
  // Of an encoder (BERT and its kin), or of a decoder, whose states behind the last norm they are
  // (by default that of the last token). Memory for the longest text is held while it computes.
  // Errors: unsupported (a pooling of no sense), not_found (no tokenizer, no such prompt),
  // out_of_range (a text too long with truncate false, or without a token; dimensions), cancelled.
  Result<std::vector<TextEmbedding>> embed(std::span<const std::string> texts,
                                           const EmbedOptions& options = {}) const;
  // The same of token ids as they are: no prompt and no special tokens are added.
  Result<std::vector<TextEmbedding>> embed_tokens(std::span<const std::vector<TokenId>> texts,
                                                  const EmbedOptions& options = {}) const;
  // The documents by how well they answer the query, best first; of equal ones the first. Errors:
  // unsupported (a model without a head of one label), those of embed().
  Result<std::vector<Ranked>> rerank(std::string_view query, std::span<const std::string> documents,
                                     const RerankOptions& options = {}) const;

  // Takes all memory a run needs. Errors: unsupported (an encoder), out_of_range (a context beyond
  // the model's), out_of_memory.
  Result<ModelSession> session(const ModelSessionOptions& options = {}) const;

  // A conversation that lasts (loom/chat.hpp).
  Result<Chat> chat(const ConversationOptions& options) const;
  // How the model wants to be sampled, as its generation_config.json says; unset: it does not say.
  // What the file leaves out is as in `transformers`: greedy without do_sample; with it temperature
  // 1, top-k 50, and penalties over the whole text. Errors: bad_file, naming the field.
  Result<std::optional<SamplerOptions>> suggested_sampling() const;

  struct LOOM_LOCAL Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom
