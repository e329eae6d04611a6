#include "serve/service.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "base/memory_budget.hpp"
#include "base/text.hpp"
#include "io/bytes/hash.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

// Bytes of the longest text of a token.
uint64_t longest_token(const Model& model) {
  const Result<loom::Tokenizer> tokenizer = model.tokenizer();
  if (!tokenizer.ok()) return 1;
  size_t longest = 1;
  for (int64_t i = 0; i < tokenizer->vocab_size(); ++i) {
    const Result<std::string> text = tokenizer->token_bytes(static_cast<TokenId>(i));
    if (text.ok()) longest = std::max(longest, text->size());
  }
  return longest;
}

// Normalizers shorten characters: a ligature of 4 bytes becomes a letter of 1.
constexpr uint64_t kMaxShrinking = 4;
// Memory for tokenizing, per byte of a text without spaces: symbols and a queue of pairs, each in a
// list that doubles.
constexpr uint64_t kTokenizingBytes = 96;

// A grammar or schema is compiled by the worker that reads the request: 128 KiB take a tenth of a
// second, and a byte of nested properties takes this much.
constexpr uint64_t kMaxRules = 128 << 10, kRuleBytes = 700;

// The texts of a request in progress. All functions except the constructor run on the compute
// thread.
class TextRun : public std::enable_shared_from_this<TextRun> {
 public:
  TextRun(const TextRequest& request, size_t texts, MemoryReservation rules,
          std::shared_ptr<Dialect> dialect, std::shared_ptr<HttpReply> reply,
          Metrics& request_metrics)
      : stream_(request.stream),
        progress_(request.return_progress && stream_),
        timings_(request.timings_per_token && stream_),
        rules_(std::move(rules)),
        request_metrics_(request_metrics),
        open_(texts),
        ends_(texts),
        sent_(texts),
        clocks_(texts),
        dialect_(std::move(dialect)),
        reply_(std::move(reply)) {}

  bool is_cancelled() const { return failed_ || reply_->gone(); }
  void on_start(size_t i, int64_t sequence) { dialect_->on_start(i, sequence); }
  // Ends the reply: a stream must not continue after a lost piece.
  void out_of_memory() {
    if (failed_) return;
    try_again([this] { fail(no_memory()); });
  }

  void progress(size_t i, int64_t read, int64_t cached, int64_t total) {
    if (!progress_ && !timings_) return;
    TextClock& clock = clocks_[i];
    if (read == cached) clock.begin = Clock::now();
    clock.end.cached = cached;
    clock.end.text.prompt_tokens = read - cached;
    if (read > cached) clock.end.text.prefill_seconds = seconds_since(clock.begin);
    if (!progress_ || is_cancelled()) return;
    open_stream();  // its first message has no timings
    if (timings_) dialect_->set_timings(timings_of(clock.end));
    const double passed = clock.end.text.prefill_seconds * 1e3;
    reply_->write(dialect_->progress(
        i, object("total", total, "cache", cached, "processed", read, "time_ms", passed)));
  }

  bool token(size_t i, const Token& token) {
    measure();
    if (timings_) count(i, token);
    const bool tells = dialect_->tells_tokens();
    if (!stream_) {
      if (tells) dialect_->note(i, token);
      return true;
    }
    sent_[i] += token.text.size();
    if (tells || !token.text.empty()) {
      open_stream();
      if (timings_) dialect_->set_timings(timings_of(clocks_[i].end));
      reply_->write(dialect_->piece(i, token.text, tells ? &token : nullptr));
    }
    return !is_cancelled();
  }

  void done(size_t i, Result<Generation> result, int64_t cached) {
    --open_;
    if (is_cancelled()) return;
    if (result.ok() && result->stop == StopReason::cancelled)
      result = make_error(Code::cancelled, "the server stops");
    if (!result.ok()) return fail(result.error());
    ends_[i] = {std::move(*result), cached};
    if (stream_) {
      open_stream();
      const std::string_view rest = std::string_view(ends_[i].text.text).substr(sent_[i]);
      if (!rest.empty()) reply_->write(dialect_->piece(i, rest, nullptr));
      reply_->write(dialect_->last(i, ends_[i]));
    }
    if (open_ > 0) return;
    report_log();
    request_metrics_.request.add(seconds_since(begin_));
    if (!stream_) return send_json(*reply_, 200, dialect_->complete(ends_));
    reply_->write(dialect_->finish(ends_));
    reply_->end();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }
  // The values of timings_of() for a text in progress.
  struct TextClock {
    Clock::time_point begin{}, first{};
    TextEnd end;
  };
  void count(size_t i, const Token& token) {
    TextClock& clock = clocks_[i];
    if (clock.end.text.token_ids.empty()) {
      clock.first = Clock::now();
      clock.end.text.prefill_seconds = seconds_since(clock.begin);
    } else {
      ++clock.end.text.decode_steps;
      clock.end.text.decode_seconds = seconds_since(clock.first);
    }
    clock.end.text.token_ids.push_back(token.id);
  }
  // Measures the time to the first token, and then between tokens, over all texts.
  void measure() {
    (first_ ? request_metrics_.first_token : request_metrics_.token).add(seconds_since(before_));
    first_ = false;
    before_ = Clock::now();
  }
  void report_log() {
    int64_t prompt = 0, cached = 0, written = 0;
    for (const TextEnd& end : ends_) {
      prompt += end.cached + end.text.prompt_tokens;
      cached += end.cached;
      written += static_cast<int64_t>(end.text.token_ids.size());
    }
    reply_->report_field("prompt_tokens", prompt);
    reply_->report_field("cached_tokens", cached);
    reply_->report_field("written_tokens", written);
  }
  // Call it before the first message is created: a dialect may number messages.
  void open_stream() {
    if (begun_) return;
    reply_->begin(200, {{"Content-Type", std::string(dialect_->stream_type())},
                        {"Cache-Control", "no-store"},
                        {"X-Accel-Buffering", "no"}});
    begun_ = true;
    reply_->write(dialect_->first());
  }
  void fail(const Error& error) {
    failed_ = true;
    if (!begun_) return send_error(*reply_, *dialect_, error);
    reply_->write(dialect_->on_error(error));
    reply_->end();
  }

  const bool stream_, progress_, timings_;
  const MemoryReservation rules_;
  Metrics& request_metrics_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point before_ = begin_;
  bool first_ = true;
  size_t open_;
  std::vector<TextEnd> ends_;
  std::vector<size_t> sent_;  // bytes sent, per text
  std::vector<TextClock> clocks_;
  std::shared_ptr<Dialect> dialect_;
  std::shared_ptr<HttpReply> reply_;
  bool begun_ = false, failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Service>> Service::create(Model model, const ServiceOptions& options,
                                                 Metrics& request_metrics) {
  std::unique_ptr<Service> made(new Service(std::move(model), options, request_metrics));
  if (!options.defaults.empty()) {
    LOOM_ASSIGN(made->defaults_, parse_json(options.defaults, "the defaults"));
    if (!made->defaults_.is_object())
      return invalid(cat("the defaults must be a JSON object; got ", made->defaults_.describe()));
  }
  TextRequest checked;
  LOOM_TRY(made->set_defaults(checked));
  const int64_t context =
      options.scheduler.session.context > 0
          ? std::min(options.scheduler.session.context, made->model_.info().context)
          : made->model_.info().context;
  made->max_text_bytes_ = kMaxShrinking * static_cast<uint64_t>(std::max<int64_t>(context, 1)) *
                          longest_token(made->model_);
  made->fingerprint_ = "b" + made->model_.fingerprint(options.scheduler.session.cache_type);
  if (made->model_.info().has_chat_template) {
    made->separator_ = part_separator(made->model_);
    made->trims_parts_ = trims_parts(made->model_);
  }
  made->started_ = unix_seconds();
  // An encoder generates no texts, so it needs no sessions.
  if (made->model_.info().encoder) made->options_.scheduler.sessions = 0;
  LOOM_ASSIGN(made->scheduler_, Scheduler::create(made->model_, made->options_.scheduler));
  return made;
}

Status Service::set_defaults(TextRequest& request) const {
  struct Defaults {
    TextRequest text;
  };
  static const std::vector<BodyField<Defaults>> fields = [] {
    std::vector<BodyField<Defaults>> all = text_defaults<Defaults>();
    add_llama_fields<Defaults>(all);
    return all;
  }();
  request.options.shift_context = options_.context_shift;
  if (!defaults_.is_object()) return {};
  Defaults taken{std::move(request)};
  const Status status = take_fields<Defaults>(defaults_, fields, true, taken);
  request = std::move(taken.text);
  return status;
}

std::vector<ChatTurn> Service::with_own_turns(const std::vector<ChatTurn>& turns) const {
  std::vector<ChatTurn> out = turns;
  const bool has_system = !out.empty() && out.front().role == "system";
  if (!has_system && !options_.settings.system.empty())
    out.insert(out.begin(), {.role = "system", .content = options_.settings.system});
  const bool first = !out.empty() && out.front().role == "system";
  out.insert(out.begin() + (first ? 1 : 0), options_.settings.messages.begin(),
             options_.settings.messages.end());
  return out;
}

Status Service::writes() const {
  if (!model_.info().encoder) return {};
  return unsupported(cat(options_.name, " is an encoder (", model_.info().architecture,
                         "): it makes vectors and writes no text; ask /v1/embeddings"));
}

Status Service::check_prompts(const TextRequest& request) const {
  LOOM_TRY(writes());
  const int64_t context = scheduler_->context();
  for (const std::vector<TokenId>& prompt : request.prompts) {
    const auto size = static_cast<int64_t>(prompt.size());
    if (size == 0)
      return invalid("the prompt holds no token; a text needs at least one to begin with");
    if (size > context) return too_long(size, context);
  }
  const auto all = static_cast<int64_t>(request.prompts.size()) * request.choices;
  const int64_t most = options_.scheduler.sessions + options_.scheduler.waiting;
  if (all <= most) return {};
  return invalid(cat("the request asks for ", all, " texts at once; this server takes ", most));
}

Status Service::write(TextRequest request, std::shared_ptr<Dialect> dialect,
                      const std::shared_ptr<HttpReply>& reply) {
  LOOM_TRY(check_prompts(request));
  LOOM_TRY(take_bias_texts(request, *reply));
  if (request.no_repetition_penalty) {
    SamplerOptions& s = request.options.sampler;
    s.repetition_penalty = 1.0f;
    s.frequency_penalty = s.presence_penalty = 0.0f;
  }
  if (request.sequence >= sessions())
    return invalid(
        cat("id_slot must be from 0 to ", sessions() - 1, ", or -1; got ", request.sequence));
  LOOM_ASSIGN(MemoryReservation rules, compile_rules(request.options));
  const auto choices = static_cast<size_t>(request.choices);
  const size_t texts = request.prompts.size() * choices;
  LOOM_ASSIGN(std::shared_ptr<HttpReply> to, stored_reply(request, *dialect, reply));
  const auto run = std::make_shared<TextRun>(request, texts, std::move(rules), std::move(dialect),
                                             std::move(to), request_metrics_);
  std::vector<std::unique_ptr<Job>> jobs;
  for (size_t i = 0; i < texts; ++i) {
    auto job = std::make_unique<Job>();
    job->prompt = request.prompts[i / choices];
    job->sequence = request.sequence;
    job->salt = salt_of(reply->caller(), request.cache_salt);
    job->options = request.options;
    const auto length = static_cast<int64_t>(job->prompt.size());
    job->options.keep_tokens =
        request.keep < 0 ? length : std::clamp<int64_t>(request.keep, 1, length);
    const int64_t guesses = options_.scheduler.guesses;
    job->options.guesses = request.guesses < 0 ? guesses : std::min(request.guesses, guesses);
    job->options.max_tokens = request.max_tokens < 0 ? scheduler_->context() : request.max_tokens;
    job->options.sampler.seed =
        choice_seed(request.options.sampler.seed, static_cast<int64_t>(i % choices));
    // They run on the compute thread of all texts, so none of them may throw.
    const auto guarded = [run](auto&& step) {
      try {
        step();
      } catch (const std::bad_alloc&) {
        run->out_of_memory();
      }
    };
    job->options.on_token = [run, i, guarded](const Token& token) {
      bool more = false;
      guarded([&] { more = run->token(i, token); });
      return more;
    };
    if (request.stream && (request.return_progress || request.timings_per_token)) {
      job->progress = [run, i, guarded](int64_t read, int64_t cached, int64_t total) {
        guarded([&] { run->progress(i, read, cached, total); });
      };
    }
    job->is_cancelled = [run] { return run->is_cancelled(); };
    job->on_start = [run, i](int64_t sequence) { run->on_start(i, sequence); };
    job->done = [run, i, guarded](Result<Generation> result, int64_t cached) {
      guarded([&] { run->done(i, std::move(result), cached); });
    };
    jobs.push_back(std::move(job));
  }
  if (!scheduler_->add(std::move(jobs))) {
    return busy("the server is busy: as many texts wait as may; try again in a moment");
  }
  return {};
}

Result<MemoryReservation> Service::compile_rules(GenerateOptions& options) const {
  const uint64_t bytes = options.grammar.size() + options.json_schema.size();
  if (bytes == 0) return MemoryReservation();
  if (bytes > kMaxRules)
    return invalid(cat("a grammar or schema, with those of tools, may have ", kMaxRules,
                       " bytes; got ", bytes));
  LOOM_ASSIGN(MemoryReservation share, reserve(kRuleBytes * bytes, "a grammar or schema"));
  LOOM_ASSIGN(options.rules, model_.compile_rules(options));
  options.grammar = options.json_schema = "";  // texts copy the options
  return share;
}

Result<std::shared_ptr<HttpReply>> Service::stored_reply(
    const TextRequest& request, const Dialect& dialect,
    const std::shared_ptr<HttpReply>& reply) const {
  if (!request.resumable || !request.stream || options_.streams == nullptr) return reply;
  if (options_.streams->limits().seconds == 0)
    return unsupported("resumable: this server keeps no streams (--resume)");
  const std::string_view id = dialect.id();
  std::shared_ptr<HttpReply> kept =
      options_.streams->keep(id.empty() ? new_id("stream_") : std::string(id), reply);
  if (kept != nullptr) return kept;
  return busy(
      "the server is busy: as many resumable streams are on their way as may; try again in a "
      "moment");
}

uint64_t Service::salt_of(std::string_view caller, std::string_view cache_salt) const {
  if (caller.empty() && cache_salt.empty()) return 0;
  const std::string all = cat(secret_, caller.size(), ":", caller, cache_salt, secret_);
  return std::max<uint64_t>(hash64(std::as_bytes(std::span(all))), 1);
}

Result<MemoryReservation> Service::reserve(uint64_t bytes, std::string_view what) const {
  const Engine engine = model_.engine();
  Result<MemoryReservation> share = engine.reserve(bytes, what);
  if (share.ok()) return share;
  return make_error(Code::out_of_memory, cat("the request needs ", size_text(bytes), " for ", what,
                                             ", and ", size_text(engine.memory_left()),
                                             " of --memory are left; send less, or try again "
                                             "in a moment"));
}

Status Service::check_text(std::string_view text, uint64_t at_least) const {
  const uint64_t max = std::max(max_text_bytes_, at_least);
  if (text.size() <= max) return {};
  return too_large(text.size(), max);
}

Result<std::vector<TokenId>> Service::tokenize(std::string_view text, const HttpReply& reply,
                                               bool special) const {
  LOOM_TRY(check_text(text));
  return encode(text, reply, {.add_special_tokens = special});
}

Result<std::vector<TokenId>> Service::encode(std::string_view text, const HttpReply& reply,
                                             EncodeOptions options) const {
  LOOM_ASSIGN(const loom::Tokenizer tokenizer, model_.tokenizer());
  LOOM_ASSIGN(const MemoryReservation share, reserve(kTokenizingBytes * text.size(), "tokenizing"));
  options.should_stop = [this, &reply] { return stopping_ || reply.gone(); };
  Result<std::vector<TokenId>> ids = tokenizer.encode(text, options);
  if (ids.ok() || ids.error().code != Code::cancelled) return ids;
  return make_error(Code::cancelled, "the server stops");  // a disconnected client reads nothing
}

Status Service::take_bias_texts(TextRequest& request, const HttpReply& reply) const {
  for (const auto& [text, bias] : request.bias_texts) {
    LOOM_ASSIGN(const std::vector<TokenId> ids, tokenize(text, reply, false));
    for (const TokenId id : ids) {
      SamplerOptions& s = request.options.sampler;
      const auto same = [&](const TokenBias& one) { return one.id == id; };
      if (bias <= -100.0f) {
        s.banned_tokens.push_back(id);
      } else if (std::ranges::none_of(s.logit_bias, same)) {
        s.logit_bias.push_back({id, bias});
      }
    }
  }
  return {};
}

Result<ChatTurn> Service::turn(const JsonValue& message, const std::string& where) const {
  const JsonValue* role = message.find("role");
  if (role == nullptr || !role->is_string())
    return invalid(cat(where, ".role must be a string, \"user\" or another"));
  for (const char* key : {"images", "audio", "function_call"}) {
    const JsonValue* value = message.find(key);
    if (value != nullptr) LOOM_TRY(must_be_off(*value, cat(where, ".", key)));
  }
  ChatTurn turn;
  turn.role = role->text() == "developer" ? "system" : role->text();
  LOOM_TRY(take_turn_fields(message, where, turn));
  const JsonValue* content = message.find("content");
  if (content == nullptr && turn.tool_calls.empty())
    return invalid(cat(where, ".content is missing"));
  turn.null_content = content == nullptr || content->is_null();
  if (content != nullptr) {
    LOOM_ASSIGN(turn.content, turn_text(*content, where + ".content"));
  }
  return turn;
}

Result<std::vector<ChatTurn>> Service::turns(const JsonValue& messages,
                                             std::string_view name) const {
  LOOM_TRY(writes());
  if (!messages.is_array())
    return invalid(cat(name, " must be a list of messages; got ", messages.describe()));
  if (messages.elements().empty()) return invalid(cat(name, " is empty; send one message or more"));
  std::vector<ChatTurn> out;
  for (size_t i = 0; i < messages.elements().size(); ++i) {
    LOOM_ASSIGN(ChatTurn one, turn(messages.elements()[i], cat(name, "[", i, "]")));
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::string> Service::turn_text(const JsonValue& content, std::string_view where) const {
  if (trims_parts_ && content.is_array() && content.elements().size() > 1)
    return trimmed_parts(content, where, separator_);
  return content_text(content, where, separator_);
}

std::string new_id(std::string_view prefix) {
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::random_device entropy;
  std::uniform_int_distribution<size_t> any(0, kLetters.size() - 1);
  std::string out(prefix);
  for (int i = 0; i < 24; ++i) out += kLetters[any(entropy)];
  return out;
}

uint64_t new_seed() {
  std::random_device entropy;
  return entropy() & 0x7fffffffu;
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

namespace {

// Values of Error::where for errors with their own HTTP status.
constexpr std::string_view kQueue = "queue", kBytes = "bytes";

}  // namespace

Error busy(std::string_view message) {
  return make_error(Code::out_of_memory, std::string(message), std::string(kQueue));
}

Error too_large(uint64_t bytes, uint64_t max) {
  return make_error(Code::out_of_range,
                    cat("a text has ", bytes, " bytes, and at most ", max,
                        " can fit into the context; send less text"),
                    std::string(kBytes));
}

bool is_too_large(const Error& error) {
  return error.code == Code::out_of_range && error.where == kBytes;
}

Error no_memory() {
  return make_error(Code::out_of_memory, "out of memory; try again in a moment");
}

ErrorKind kind_of(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument:
    case Code::bad_file:
    case Code::unsupported: return {400, "invalid_request_error"};
    case Code::out_of_range: return {is_too_large(error) ? 413 : 400, "invalid_request_error"};
    case Code::not_found: return {404, "not_found_error"};
    case Code::out_of_memory:
      if (error.where == kQueue) return {429, "rate_limit_error"};
      return {503, "unavailable_error"};
    case Code::cancelled: return {503, "unavailable_error"};
    default: return {500, "server_error"};
  }
}

JsonValue timings_of(const TextEnd& end) {
  const Generation& g = end.text;
  const auto rate = [](int64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  };
  const auto each = [](int64_t count, double seconds) {
    return count > 0 ? seconds * 1e3 / static_cast<double>(count) : 0.0;
  };
  JsonValue out = object(
      "cache_n", end.cached, "prompt_n", g.prompt_tokens, "prompt_ms", g.prefill_seconds * 1e3,
      "prompt_per_token_ms", each(g.prompt_tokens, g.prefill_seconds), "prompt_per_second",
      rate(g.prompt_tokens, g.prefill_seconds), "predicted_n",
      static_cast<int64_t>(g.token_ids.size()), "predicted_ms", g.decode_seconds * 1e3,
      "predicted_per_token_ms", each(g.decode_steps, g.decode_seconds), "predicted_per_second",
      rate(g.decode_steps, g.decode_seconds));
  if (g.guessed > 0) {
    out.add("draft_n", JsonValue::integer(g.guessed));
    out.add("draft_n_accepted", JsonValue::integer(g.accepted));
  }
  return out;
}

std::string sse(const JsonValue& data, std::string_view name) {
  if (name.empty()) return cat("data: ", dump_json(data), "\n\n");
  return cat("event: ", name, "\ndata: ", dump_json(data), "\n\n");
}

void send_json(HttpReply& reply, int status, const JsonValue& body, HttpHeaders headers) {
  headers.emplace_back("Content-Type", "application/json");
  headers.emplace_back("Cache-Control", "no-store");
  reply.send(status, std::move(headers), dump_json(body));
}

void send_error(HttpReply& reply, const Dialect& dialect, const Error& error) {
  const ErrorKind kind = kind_of(error);
  HttpHeaders headers;
  if (kind.status == 429 || kind.status == 503) headers.emplace_back("Retry-After", "1");
  send_json(reply, kind.status, dialect.error(kind.status, kind.type, error), std::move(headers));
}

std::string message_of(const Error& error) {
  const bool placed = error.code == Code::bad_file || error.where.starts_with('#');
  return placed ? error.str() : error.message;
}

Error too_long(int64_t tokens, int64_t context) {
  return Error{
      Code::out_of_range,
      cat("the prompt has ", tokens, " tokens, which exceeds the available context size of ",
          context, "; send less text"),
      cat(tokens, " of ", context), -1};
}

std::optional<std::pair<int64_t, int64_t>> read_too_long(const Error& error) {
  const size_t of = error.where.find(" of ");
  if (error.code != Code::out_of_range || of == std::string::npos) return {};
  return std::pair(std::atoll(error.where.c_str()), std::atoll(error.where.c_str() + of + 4));
}

JsonValue openai_error(int status, std::string_view type, const Error& error) {
  const auto counts = read_too_long(error);
  JsonValue out = object(
      "message", std::string_view(message_of(error)), "type",
      counts ? std::string_view("exceed_context_size_error") : type, "param", JsonValue(), "code",
      error.code == Code::out_of_range ? json("context_length_exceeded") : json(int64_t{status}));
  if (counts) add_members(out, "n_prompt_tokens", counts->first, "n_ctx", counts->second);
  return object("error", std::move(out));
}

}  // namespace loom::core
