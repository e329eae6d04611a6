// What all dialects share: a model, who computes its texts, and the way from a request to them.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/try_again.hpp"
#include "io/json.hpp"
#include "loom/language_model.hpp"
#include "serve/figures.hpp"
#include "serve/http.hpp"
#include "serve/scheduler.hpp"
#include "serve/streams.hpp"
#include "serve/work_queue.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

// A request for text, whatever dialect it came in.
struct TextRequest {
  std::vector<std::vector<TokenId>> prompts;  // of each, `choices` texts
  int64_t choices = 1;
  int64_t max_tokens = -1;  // -1: until the context is full
  GenerateOptions options;
  bool has_seed = false;               // without one it is drawn, and told
  bool no_repetition_penalty = false;  // whatever the options say
  bool stream = false;
  bool resumable = false;  // the stream is kept (Streams)
  // What clients ask for in streams: how far the prompt is read, and timings with every piece.
  bool return_progress = false, timings_per_token = false;
  int64_t guesses = -1;  // in a pass, at most; -1: as many as the server says
  int64_t keep = 0;      // tokens of the prompt that a context shift keeps, -1: all; one at least
  std::string cache_salt{};  // prompts share what was read with those of equal salt (and key) alone
  int64_t sequence = -1;     // that writes the texts, one after the other; -1: any
  // Texts whose tokens have a bias; -100 and less: are banned.
  std::vector<std::pair<std::string, float>> bias_texts;
};

// A text of a request that has ended.
struct TextEnd {
  Generation text;
  int64_t cached = 0;  // tokens of the prompt that needed no reading
};

// How a dialect tells the texts of a request: each function gives the JSON of one message, or null
// for none.
class Dialect {
 public:
  virtual ~Dialect() = default;
  // A stream, in the bytes that clients read: before anything else; a piece of text number i; its
  // end; the end of all; an error that ends it early. `token`: with tells_tokens(), what was drawn.
  virtual std::string first() { return {}; }
  // Text number i is written by this sequence; before anything else of it.
  virtual void began(size_t /*i*/, int64_t /*sequence*/) {}
  virtual std::string piece(size_t i, std::string_view text, const Token* token) = 0;
  virtual std::string last(size_t i, const TextEnd& end) = 0;
  virtual std::string finish(const std::vector<TextEnd>&) { return {}; }
  // Of text number i: {"total", "cache", "processed", "time_ms"}, as llama.cpp has it.
  virtual std::string progress(size_t /*i*/, const JsonValue& /*prompt_progress*/) { return {}; }
  virtual std::string broken(const Error& error) = 0;
  virtual std::string_view stream_type() const { return "text/event-stream"; }
  // Not a stream: all of it, after note() of every token with tells_tokens().
  virtual void note(size_t, const Token&) {}
  virtual JsonValue whole(const std::vector<TextEnd>& texts) = 0;
  // An error that comes before any text; `type` and `status` say which.
  virtual JsonValue error(int status, std::string_view type, const Error& error) const = 0;

  virtual bool tells_tokens() const { return false; }
  // By which clients know the reply; "": it has none.
  virtual std::string_view id() const { return {}; }

  // Timings of a text that is not whole yet, which the next message carries.
  void set_timings(JsonValue timings) { timings_ = std::move(timings); }

 protected:
  void add_timings(JsonValue& to) const {
    if (!timings_.is_null()) to.add("timings", timings_);
  }

 private:
  JsonValue timings_;
};

// Tells errors that come before there is a request to make a dialect of.
class ErrorsOnly final : public Dialect {
 public:
  using Tell = JsonValue (*)(int status, std::string_view type, const Error& error);
  explicit ErrorsOnly(Tell tell) : tell_(tell) {}
  std::string piece(size_t, std::string_view, const Token*) override { return {}; }
  std::string last(size_t, const TextEnd&) override { return {}; }
  std::string broken(const Error&) override { return {}; }
  JsonValue whole(const std::vector<TextEnd>&) override { return {}; }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return tell_(status, type, error);
  }

 private:
  Tell tell_;
};

// How long a text took, as llama.cpp tells it. The first token comes with the prompt, so the rate
// of writing is that of the passes after it.
JsonValue timings_of(const TextEnd& end);

// "data: {...}" and an empty line: an event of a stream; with a name "event: NAME" before it.
std::string sse(const JsonValue& data, std::string_view name = {});

// Where states of sequences may be saved by requests.
struct SlotFiles {
  std::string folder;  // "": nowhere
  int64_t most = 64;   // files that may lie there
};

struct ServiceOptions {
  std::string name;     // of the model, for clients
  std::string version;  // of the engine
  SchedulerOptions scheduler;
  bool strict = false;  // unknown fields are errors
  // A conversation whose last turn is an assistant's is gone on with there, unless a request says
  // otherwise.
  bool prefill = true;
  bool context_shift = false;  // of texts whose requests do not say (GenerateOptions)
  SlotFiles slots{};
  StreamLimits resume{};
  ServeClock clock = std::chrono::steady_clock::now;  // by which streams and models are forgotten
  std::shared_ptr<Streams> streams{};                 // of all models of a server, which makes it
  bool verbose = false;  // as if every chat of OpenAI's dialect said "verbose": true
  // A JSON object of fields of /completion: what a request has that does not say otherwise, in
  // the place of its dialect's own defaults. Empty: those.
  std::string defaults;
  // A JSON object of variables that chat templates see, unless a request says otherwise:
  // {"enable_thinking": false}. Empty: none.
  std::string variables;
};

std::string new_id(std::string_view prefix);

class Service {
 public:
  // `figures` outlives it.
  static Result<std::unique_ptr<Service>> create(Model model, const ServiceOptions& options,
                                                 Figures& figures);

  const Model& model() const { return model_; }
  const std::string& name() const { return options_.name; }
  const std::string& version() const { return options_.version; }
  int64_t sessions() const { return options_.scheduler.sessions; }
  bool strict() const { return options_.strict; }
  bool prefill() const { return options_.prefill; }
  bool verbose() const { return options_.verbose; }
  const SlotFiles& slot_files() const { return options_.slots; }
  const std::string& variables() const { return options_.variables; }
  // Names what decides about the bits of a text besides the request: the weights, their dtype and
  // the numerics contract.
  const std::string& fingerprint() const { return fingerprint_; }
  Scheduler& scheduler() { return *scheduler_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  int64_t started() const { return started_; }  // seconds since 1970

  // The defaults of this server, over those of the dialect.
  Status set_defaults(TextRequest& request) const;

  // Vectors that are computed by the thread that reads end with an error from here on.
  void begin_stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  // Ends all texts; those under way are told so.
  void stop() {
    begin_stop();
    vectors_.stop();
    scheduler_->stop();
  }

  // Vectors and ranks are computed here, in the order in which they were asked for. False: as many
  // wait as may.
  bool compute(std::function<void()> work) { return vectors_.add(std::move(work)); }

  // How many seconds the model stays when nobody uses it any more, instead of what the server says;
  // -1: for ever. Taken by Models when the use ends.
  static constexpr int64_t kUnsaid = INT64_MIN;
  void keep_alive(int64_t seconds) { keep_alive_ = seconds; }
  int64_t take_keep_alive() { return keep_alive_.exchange(kUnsaid); }

  // Checks the request and has its texts written; the dialect tells them through the reply. An
  // Error, and nothing was begun: invalid_argument, out_of_range (a prompt longer than the
  // context), busy.
  Status write(TextRequest request, std::shared_ptr<Dialect> dialect,
               const std::shared_ptr<HttpReply>& reply);

  // Errors: unsupported, where the model is an encoder.
  Status writes() const;
  // What write() asks of prompts, for what is computed before. Errors: those of writes();
  // invalid_argument (no token, too many texts), out_of_range (a prompt longer than the context).
  Status check_prompts(const TextRequest& request) const;
  // Of the sequences that write texts.
  const ModelSessionOptions& session_options() const { return options_.scheduler.session; }

  // The tokens of a text of a request. A text that cannot fit into the context is refused before
  // it costs anything. Tokenizing ends when the client of `reply` is gone or the server stops.
  // Errors: too_large() (more than max_text_bytes()), no_memory() (the budget), cancelled, those of
  // Model::tokenize().
  Result<std::vector<TokenId>> tokenize(std::string_view text, const HttpReply& reply,
                                        bool special = true) const;
  // The same for a text that check_text() allowed. `options.should_stop` is set.
  Result<std::vector<TokenId>> encode(std::string_view text, const HttpReply& reply,
                                      Tokenizer::EncodeOptions options) const;
  // For texts that are cut or only counted: `at_least` bytes are taken, however small the context.
  Status check_text(std::string_view text, uint64_t at_least = 0) const;
  // The longest text whose tokens may fit into the context.
  uint64_t max_text_bytes() const { return max_text_bytes_; }
  // Charges memory of a request to the budget of the engine (--memory). Errors: out_of_memory.
  Result<MemoryShare> reserve(uint64_t bytes, std::string_view what) const;

  // For Batch::set_salt(): of the key of a caller and the salt of a request. 0 without both. Others
  // cannot compute it: a secret of this process is part of it.
  uint64_t salt_of(std::string_view caller, std::string_view cache_salt) const;

  // What the biases of texts are in tokens.
  Status take_bias_texts(TextRequest& request, const HttpReply& reply) const;

  // A conversation in JSON, as most dialects write it: a list of {role, content} in the field
  // `name`.
  Result<std::vector<ChatTurn>> turns(const JsonValue& messages,
                                      std::string_view name = "messages") const;
  Result<ChatTurn> turn(const JsonValue& message, const std::string& where) const;
  // Content as the chat template of the model gets it: its parts are one text.
  Result<std::string> turn_text(const JsonValue& content, std::string_view where) const;
  // What is between two parts of a turn; see part_separator().
  std::string_view separator() const { return separator_; }

 private:
  Service(Model model, ServiceOptions options, Figures& figures)
      : model_(std::move(model)),
        options_(std::move(options)),
        figures_(figures),
        vectors_(static_cast<size_t>(std::max<int64_t>(options_.scheduler.waiting, 1))) {}

  // Compiles what texts are held to, so that the thread that writes them does not; the result is
  // the memory that it takes. Errors: invalid_argument (too large, or not a grammar or schema),
  // out_of_memory.
  Result<MemoryShare> compile_rules(GenerateOptions& options) const;
  // Where the text goes: to `reply`, and where the request says so to those who resume it.
  Result<std::shared_ptr<HttpReply>> kept_reply(const TextRequest& request, const Dialect& dialect,
                                                const std::shared_ptr<HttpReply>& reply) const;

  Model model_;
  ServiceOptions options_;
  JsonValue defaults_;
  std::string fingerprint_;
  std::string_view separator_;
  uint64_t max_text_bytes_ = 0;
  const std::string secret_ = new_id("");
  int64_t started_ = 0;
  Figures& figures_;
  std::unique_ptr<Scheduler> scheduler_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> keep_alive_{kUnsaid};
  WorkQueue vectors_;
  bool trims_parts_ = false;
};

// Ids as clients know them: "chatcmpl-" and 24 letters and digits, never twice.
std::string new_id(std::string_view prefix);
uint64_t new_seed();
int64_t unix_seconds();

// The bytes that documents may have which are cut to the context, or whose tokens are counted.
inline constexpr uint64_t kMaxDocumentBytes = 1 << 20;

// A full queue: 429.
Error busy(std::string_view message);
// A text of more bytes than are taken: 413.
Error too_large(uint64_t bytes, uint64_t max);
// An allocation of a request failed: 503.
Error no_memory();
bool is_too_large(const Error& error);

// Runs the step of a request that may answer it. If memory runs out, the answer is 503; a reply
// that has begun ends early.
template <class F>
void answer_guarded(const std::shared_ptr<HttpReply>& reply, const Dialect& errors, F&& step);

// The HTTP status of an error, and its name: 400 "invalid_request_error".
struct ErrorKind {
  int status;
  std::string_view type;
};
ErrorKind kind_of(const Error& error);

void send_json(HttpReply& reply, int status, const JsonValue& body, HttpHeaders headers = {});
// An error in the form of a dialect; 429 with the time after which to try again.
void send_error(HttpReply& reply, const Dialect& dialect, const Error& error);

template <class F>
void answer_guarded(const std::shared_ptr<HttpReply>& reply, const Dialect& errors, F&& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    try_again([&] { send_error(*reply, errors, no_memory()); });
  }
}

// A prompt longer than the context. The counts travel in `where`, for dialects that tell them.
Error too_long(int64_t tokens, int64_t context);
// {tokens, context} of such an error.
std::optional<std::pair<int64_t, int64_t>> read_too_long(const Error& error);

// What is wrong, and where in the body if it is not JSON.
std::string message_of(const Error& error);
// {"error": {...}} as OpenAI's clients read it.
JsonValue openai_error(int status, std::string_view type, const Error& error);

}  // namespace loom::core
