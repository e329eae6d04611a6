// OpenAI's chat completions and completions, streamed or whole, and the list of models.
#include "serve/dialects/dialects.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/prompt_chances.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

struct OpenAiRequest {
  TextRequest text;
  const JsonValue* messages = nullptr;
  const JsonValue* prompt = nullptr;
  ToolFields tools;
  bool include_usage = false, echo = false, verbose = false;
};
using OpenAiField = BodyField<OpenAiRequest>;

using Fields = std::vector<OpenAiField>;

Status take_usage(const JsonValue& value, std::string_view, OpenAiRequest& r) {
  const JsonValue* usage = value.find("include_usage");
  if (usage == nullptr || usage->is_null()) return {};
  return take_bool(*usage, "stream_options.include_usage", r.include_usage);
}

Status take_tools(const JsonValue& value, std::string_view, OpenAiRequest& r) {
  r.tools.tools = &value;
  return {};
}
Status take_tool_choice(const JsonValue& value, std::string_view, OpenAiRequest& r) {
  r.tools.choice = &value;
  return {};
}
Status take_variables(const JsonValue& value, std::string_view, OpenAiRequest& r) {
  r.tools.variables = &value;
  return {};
}

// For the old `functions` field: choosing one is not supported.
Status take_choice(const JsonValue& value, std::string_view name, OpenAiRequest&) {
  return value.text() == "auto" ? Status() : must_be_off(value, name);
}

Fields joined(Fields own, std::initializer_list<std::string_view> ignored) {
  using R = OpenAiRequest;
  const Fields shared = {
      text_field<R>("max_tokens", take_max_tokens),
      text_field<R>("max_completion_tokens", take_max_tokens),
      sampler_field<R>("temperature", "temperature"),
      text_field<R>("top_p", take_top_p),
      sampler_field<R>("min_p", "min_p"),
      text_field<R>("top_k", take_top_k),
      sampler_field<R>("repetition_penalty", "repetition_penalty"),
      text_field<R>("ignore_eos", take_ignore_eos),
      text_field<R>("seed", take_seed),
      text_field<R>("stop", take_stop),
      text_field<R>("stream", take_stream),
      {"n", [](const JsonValue& v, std::string_view name,
               R& r) { return take_int(v, name, 1, 16, r.text.choices); }},
      {"stream_options", take_usage},
      text_field<R>("return_progress", take_progress),
      text_field<R>("timings_per_token", take_timings),
      text_field<R>("response_format", take_format),
      text_field<R>("grammar", take_grammar),
      text_field<R>("json_schema", take_schema),
  };
  add_llama_fields<R>(own);
  add_vllm_fields(own);
  own.insert(own.end(), shared.begin(), shared.end());
  for (const char* name : {"model", "user", "store", "metadata", "service_tier",
                           "safety_identifier", "prompt_cache_key"})
    own.push_back(ignored_field<R>(name));
  for (const std::string_view name : ignored) own.push_back(ignored_field<R>(name));
  return own;
}

const Fields& chat_fields() {
  using R = OpenAiRequest;
  static const Fields fields = joined(
      {
          json_field("messages", &R::messages),
          {"logprobs", [](const JsonValue& v, std::string_view name,
                          R& r) { return take_bool(v, name, r.text.options.logprobs); }},
          {"top_logprobs",
           [](const JsonValue& v, std::string_view name, R& r) {
             return take_int(v, name, 0, 20, r.text.options.top_logprobs);
           }},
          {"tools", take_tools},
          off_field<R>("functions"),
          off_field<R>("audio"),
          off_field<R>("web_search_options"),
          text_field<R>("modalities", take_modalities),
          off_field<R>("echo"),
          off_field<R>("documents"),
          off_field<R>("chat_template"),
          off_field<R>("mm_processor_kwargs"),
          off_field<R>("thinking_token_budget"),
          only_default<R>("add_special_tokens", false),
          {"tool_choice", take_tool_choice},
          {"parallel_tool_calls", [](const JsonValue& v, std::string_view name,
                                     R& r) { return take_bool(v, name, r.tools.parallel); }},
          {"chat_template_kwargs", take_variables},
          bool_field("verbose", &R::verbose),
          {"add_generation_prompt",
           [](const JsonValue& v, std::string_view name, R& r) {
             return take_bool(v, name, r.tools.begins_reply.emplace());
           }},
          {"continue_final_message",
           [](const JsonValue& v, std::string_view name, R& r) {
             return take_bool(v, name, r.tools.continues.emplace());
           }},
          {"function_call", take_choice},
          {"reasoning_effort", [](const JsonValue& v, std::string_view name,
                                  R& r) { return take_effort(v, name, r.tools.effort); }},
          off_field<R>("prediction"),
          text_field<R>("verbosity", take_verbosity),
      },
      {});
  return fields;
}

const Fields& completion_fields() {
  using R = OpenAiRequest;
  static const Fields fields = joined(
      {
          json_field("prompt", &R::prompt),
          bool_field("echo", &R::echo),
          {"logprobs",
           [](const JsonValue& v, std::string_view name, R& r) {
             r.text.options.logprobs = true;
             return take_int(v, name, 0, 20, r.text.options.top_logprobs);
           }},
          off_field<R>("best_of", 1),
          off_field<R>("suffix"),
          only_default<R>("add_special_tokens", true),
      },
      {});
  return fields;
}

std::string_view finish_reason(StopReason why) {
  return why == StopReason::eos || why == StopReason::stop_string ? "stop" : "length";
}

JsonValue usage_of(const std::vector<TextEnd>& texts, size_t choices) {
  int64_t prompt = 0, written = 0, cached = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    written += static_cast<int64_t>(texts[i].text.token_ids.size());
    if (i % choices > 0) continue;  // a prompt counts once for all its texts
    prompt += texts[i].cached + texts[i].text.prompt_tokens;
    cached += texts[i].cached;
  }
  return object("prompt_tokens", prompt, "completion_tokens", written, "total_tokens",
                prompt + written, "prompt_tokens_details", object("cached_tokens", cached),
                "completion_tokens_details", object("reasoning_tokens", 0));
}

// Common parts of chat and plain completions.
class OpenAiDialect : public Dialect {
 public:
  OpenAiDialect(const Service& service, const OpenAiRequest& request, const char* prefix,
                const char* kind)
      : service_(service),
        seed_(static_cast<int64_t>(request.text.options.sampler.seed)),
        choices_(static_cast<size_t>(request.text.choices)),
        include_usage_(request.include_usage),
        tells_(request.text.options.logprobs),
        id_(new_id(prefix)),
        kind_(kind),
        chances_(request.text.prompts.size() * choices_, JsonValue::array()) {}

  std::string finish(const std::vector<TextEnd>& texts) override {
    std::string out;
    if (include_usage_) {
      JsonValue usage = head(true);
      usage.add("choices", JsonValue::array());
      usage.add("usage", usage_of(texts, choices_));
      usage.add("timings", timings_of(texts.front()));
      out = sse(usage);
    }
    return out + "data: [DONE]\n\n";
  }
  std::string on_error(const Error& error) override {
    const ErrorKind kind = kind_of(error);
    return sse(openai_error(kind.status, kind.type, error));
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return openai_error(status, type, error);
  }
  bool tells_tokens() const override { return tells_; }
  std::string_view id() const override { return id_; }
  std::string progress(size_t i, const JsonValue& prompt_progress) override {
    JsonValue out = head(true);
    JsonValue choice = object("index", i, "finish_reason", JsonValue());
    if (out.find("object")->text() == "text_completion") {
      choice.add("text", json(""));
    } else {
      choice.add("delta", JsonValue::object());
    }
    out.add("choices", list(std::move(choice)));
    add_timings(out);
    out.add("prompt_progress", prompt_progress);
    return sse(out);
  }

 protected:
  JsonValue head(bool piece) const {
    const std::string_view kind = kind_;
    return object(
        "id", std::string_view(id_), "object",
        piece && kind == "chat.completion" ? std::string_view("chat.completion.chunk") : kind,
        "created", created_, "model", std::string_view(service_.name()), "system_fingerprint",
        std::string_view(service_.fingerprint()), "seed", seed_);
  }
  std::string event(JsonValue choice) const {
    JsonValue out = head(true);
    out.add("choices", list(std::move(choice)));
    if (include_usage_) out.add("usage", JsonValue());
    add_timings(out);
    return sse(out);
  }
  // The text of a single id, which may be incomplete UTF-8.
  std::string text_of(TokenId id) const {
    const TokenId one[] = {id};
    const Result<std::string> text = service_.model().detokenize(one, false);
    return text.ok() ? *text : std::string();
  }

  const Service& service_;
  const int64_t seed_;
  const size_t choices_;
  const bool include_usage_, tells_;
  const std::string id_;
  const int64_t created_ = unix_seconds();
  const char* kind_;
  std::vector<JsonValue> chances_;  // probabilities for the tokens of each text
};

class ChatDialect final : public OpenAiDialect {
 public:
  // `replies`: one per text, or none if replies are text only.
  ChatDialect(const Service& service, const OpenAiRequest& request, std::string prompt,
              std::vector<ChatReply> replies)
      : OpenAiDialect(service, request, "chatcmpl-", "chat.completion"),
        verbose_(request.verbose),
        prompt_(std::move(prompt)),
        texts_(static_cast<size_t>(request.text.choices)),
        replies_(std::move(replies)) {}

  std::string first() override {
    std::string out;
    for (size_t i = 0; i < texts_; ++i) {
      out += event(object("index", i, "delta", object("role", "assistant", "content", JsonValue()),
                          "logprobs", JsonValue(), "finish_reason", JsonValue()));
    }
    return out;
  }
  std::string piece(size_t i, std::string_view text, const Token* token) override {
    JsonValue chances;
    if (token != nullptr) chances = object("content", list(chance(*token)), "refusal", JsonValue());
    if (!replies_.empty()) return pieces(i, replies_[i].feed(text), std::move(chances));
    return delta(i, object("content", text), std::move(chances));
  }
  std::string last(size_t i, const TextEnd& end) override {
    std::string out;
    if (!replies_.empty()) out = pieces(i, replies_[i].finish(), JsonValue());
    return out + event(object("index", i, "delta", JsonValue::object(), "logprobs", JsonValue(),
                              "finish_reason", reason(i, end.text.stop)));
  }
  void note(size_t i, const Token& token) override { chances_[i].push(chance(token)); }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    JsonValue choices = JsonValue::array();
    for (size_t i = 0; i < texts.size(); ++i) {
      JsonValue chances;
      if (tells_) chances = object("content", std::move(chances_[i]), "refusal", JsonValue());
      JsonValue choice_message = message(i, texts[i].text.text);
      choices.push(object("index", i, "message", std::move(choice_message), "logprobs",
                          std::move(chances), "finish_reason", reason(i, texts[i].text.stop)));
    }
    JsonValue out = head(false);
    out.add("choices", std::move(choices));
    out.add("usage", usage_of(texts, choices_));
    out.add("timings", timings_of(texts.front()));
    if (verbose_) out.add("__verbose", object("prompt", std::string_view(prompt_)));
    return out;
  }

 private:
  std::string delta(size_t i, JsonValue what, JsonValue chances) const {
    return event(object("index", i, "delta", std::move(what), "logprobs", std::move(chances),
                        "finish_reason", JsonValue()));
  }
  // The first event has the probabilities of the token; if the token has no event, a separate one
  // does.
  std::string pieces(size_t i, const std::vector<ReplyPiece>& all, JsonValue chances) {
    std::string out;
    for (const ReplyPiece& piece : all) {
      const std::string_view text = piece.text;
      JsonValue what;
      if (piece.kind == ReplyPiece::Kind::text) what = object("content", text);
      if (piece.kind == ReplyPiece::Kind::reasoning) what = object("reasoning_content", text);
      if (piece.kind == ReplyPiece::Kind::call) {
        what = object(
            "tool_calls",
            list(object("index", piece.call, "id", std::string_view(replies_[i].id(piece.call)),
                        "type", "function", "function", object("name", text, "arguments", ""))));
      }
      if (piece.kind == ReplyPiece::Kind::arguments) {
        what = object("tool_calls",
                      list(object("index", piece.call, "function", object("arguments", text))));
      }
      out += delta(i, std::move(what), std::exchange(chances, {}));
    }
    if (!chances.is_null()) out += delta(i, object("content", ""), std::move(chances));
    return out;
  }
  std::string_view reason(size_t i, StopReason why) const {
    const std::string_view plain = finish_reason(why);
    const bool calls = !replies_.empty() && !replies_[i].reply().calls.empty();
    return calls && plain == "stop" ? "tool_calls" : plain;
  }
  JsonValue message(size_t i, const std::string& text) {
    if (replies_.empty()) {
      return object("role", "assistant", "content", std::string_view(text), "refusal", JsonValue());
    }
    replies_[i].feed(text);
    replies_[i].finish();
    const ParsedReply reply = replies_[i].reply();
    const bool only_calls = reply.text.empty() && !reply.calls.empty();
    JsonValue out = object("role", "assistant", "content",
                           only_calls ? JsonValue() : json(std::string_view(reply.text)), "refusal",
                           JsonValue());
    if (!reply.reasoning.empty()) out.add("reasoning_content", json(reply.reasoning));
    if (reply.calls.empty()) return out;
    JsonValue calls = JsonValue::array();
    for (size_t k = 0; k < reply.calls.size(); ++k) {
      const ToolCall& call = reply.calls[k];
      JsonValue one = object("id", std::string_view(replies_[i].id(static_cast<int32_t>(k))),
                             "type", "function", "function",
                             object("name", std::string_view(call.name), "arguments",
                                    std::string_view(call.arguments)));
      // Not in OpenAI's API: violations of the tool's schema.
      if (!call.problem.empty()) one.add("problem", json(call.problem));
      calls.push(std::move(one));
    }
    out.add("tool_calls", std::move(calls));
    return out;
  }
  JsonValue one(TokenId id, float logprob) const {
    const std::string text = text_of(id);
    JsonValue bytes = JsonValue::array();
    for (const char c : text) bytes.push(JsonValue::integer(static_cast<unsigned char>(c)));
    return object("token", std::string_view(text), "logprob", static_cast<double>(logprob), "bytes",
                  std::move(bytes));
  }
  JsonValue chance(const Token& token) const {
    JsonValue out = one(token.id, token.logprob);
    JsonValue top = JsonValue::array();
    for (const TokenChoice& choice : token.top) top.push(one(choice.id, choice.logprob));
    out.add("top_logprobs", std::move(top));
    return out;
  }
  const bool verbose_;
  const std::string prompt_;
  const size_t texts_;
  std::vector<ChatReply> replies_;
};

// A prompt that its text starts with.
struct Echo {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<PromptToken> chances;  // of `ids`, or empty
};

class CompletionDialect final : public OpenAiDialect {
 public:
  // `echoes`: the start of each prompt's texts; may be empty.
  CompletionDialect(const Service& service, const OpenAiRequest& request, std::vector<Echo> echoes)
      : OpenAiDialect(service, request, "cmpl-", "text_completion"),
        top_(request.text.options.top_logprobs),
        echoes_(std::move(echoes)),
        lists_(chances_.size()),
        offsets_(chances_.size()) {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (!request.text.stream) add_echo(i, lists_[i]);
      offsets_[i] = static_cast<int64_t>(echo(i).text.size());
    }
  }

  std::string first() override {
    std::string out;
    for (size_t i = 0; i < lists_.size(); ++i) {
      const Echo& begin = echo(i);
      if (begin.text.empty() && begin.ids.empty()) continue;
      Lists prompt;
      add_echo(i, prompt);
      out += event(object("index", i, "text", std::string_view(begin.text), "logprobs",
                          begin.chances.empty() ? JsonValue() : prompt.json(), "finish_reason",
                          JsonValue()));
    }
    return out;
  }
  std::string piece(size_t i, std::string_view text, const Token* token) override {
    JsonValue chances;
    if (token != nullptr) {
      Lists one;
      add(i, one, *token);
      chances = one.json();
    }
    return event(object("index", i, "text", text, "logprobs", std::move(chances), "finish_reason",
                        JsonValue()));
  }
  std::string last(size_t i, const TextEnd& end) override {
    return event(object("index", i, "text", "", "logprobs", JsonValue(), "finish_reason",
                        finish_reason(end.text.stop)));
  }
  void note(size_t i, const Token& token) override { add(i, lists_[i], token); }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    JsonValue choices = JsonValue::array();
    for (size_t i = 0; i < texts.size(); ++i) {
      choices.push(object("index", i, "text", std::string_view(echo(i).text + texts[i].text.text),
                          "logprobs", tells_ ? lists_[i].json() : JsonValue(), "finish_reason",
                          finish_reason(texts[i].text.stop)));
    }
    JsonValue out = head(false);
    out.add("choices", std::move(choices));
    out.add("usage", usage_of(texts, choices_));
    out.add("timings", timings_of(texts.front()));
    return out;
  }

 private:
  struct Lists {
    JsonValue tokens = JsonValue::array(), chances = JsonValue::array(), top = JsonValue::array(),
              offsets = JsonValue::array();
    JsonValue json() {
      return object("tokens", std::move(tokens), "token_logprobs", std::move(chances),
                    "top_logprobs", std::move(top), "text_offset", std::move(offsets));
    }
  };
  const Echo& echo(size_t i) const {
    static const Echo none;
    return echoes_.empty() ? none : echoes_[i / choices_];
  }
  void add(size_t i, Lists& to, const Token& token) {
    to.tokens.push(json(std::string_view(text_of(token.id))));
    to.chances.push(JsonValue::real(static_cast<double>(token.logprob)));
    to.top.push(top_ > 0 ? best_of(token.top) : JsonValue());
    to.offsets.push(json(offsets_[i]));
    offsets_[i] += static_cast<int64_t>(token.text.size());
  }
  JsonValue best_of(std::span<const TokenChoice> top) const {
    JsonValue best = JsonValue::object();
    for (const TokenChoice& choice : top) {
      const std::string name = text_of(choice.id);
      if (best.find(name) == nullptr) best.add(name, json(static_cast<double>(choice.logprob)));
    }
    return best;
  }
  // As in OpenAI and vLLM: the first token of a prompt has no probability, and the actual token is
  // always in the list of likeliest ones.
  void add_echo(size_t i, Lists& to) const {
    const Echo& begin = echo(i);
    int64_t offset = 0;
    for (size_t t = 0; t < begin.chances.size(); ++t) {
      const PromptToken& token = begin.chances[t];
      const std::string text = text_of(begin.ids[t]);
      to.tokens.push(json(std::string_view(text)));
      to.chances.push(token.logprob ? json(static_cast<double>(*token.logprob)) : JsonValue());
      JsonValue best;
      if (token.logprob && top_ > 0) {
        best = best_of(token.top);
        if (best.find(text) == nullptr) best.add(text, json(static_cast<double>(*token.logprob)));
      }
      to.top.push(std::move(best));
      to.offsets.push(json(std::min(offset, static_cast<int64_t>(begin.text.size()))));
      offset += static_cast<int64_t>(text.size());
    }
  }

  const int64_t top_;
  const std::vector<Echo> echoes_;  // one per prompt
  std::vector<Lists> lists_;
  std::vector<int64_t> offsets_;
};

Result<OpenAiRequest> read(const Service& service, const JsonValue& body, const Fields& fields) {
  OpenAiRequest request;
  request.text.options.sampler.temperature = 1.0f;
  request.verbose = service.verbose();
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<OpenAiRequest>(body, fields, service.strict(), request));
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  if (!request.text.options.logprobs && request.text.options.top_logprobs > 0)
    return invalid("top_logprobs needs \"logprobs\": true beside it");
  return request;
}

Status chat(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(OpenAiRequest request, read(service, body, chat_fields()));
  if (request.messages == nullptr) return invalid("messages is missing: a list of messages");
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, service.turns(*request.messages));
  request.tools.schema = request.text.options.json_schema;
  LOOM_ASSIGN(ChatPrompt prompt, chat_prompt(service, turns, request.tools, *reply));
  const auto texts = static_cast<size_t>(request.text.choices);
  LOOM_ASSIGN(std::vector<ChatReply> replies, ChatReply::make(service, prompt, texts, "call_"));
  LOOM_TRY(prompt.apply(request.text.options));
  request.text.prompts.push_back(std::move(prompt.ids));
  auto dialect =
      std::make_shared<ChatDialect>(service, request, std::move(prompt.text), std::move(replies));
  return service.write(std::move(request.text), std::move(dialect), reply);
}

// The number of tokens of a chat, in the format of llama.cpp and OpenAI's responses.
Status count_input(Service& service, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(OpenAiRequest request, read(service, body, chat_fields()));
  if (request.messages == nullptr) return invalid("messages is missing: a list of messages");
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, service.turns(*request.messages));
  LOOM_ASSIGN(const ChatPrompt prompt, chat_prompt(service, turns, request.tools, *reply));
  send_json(*reply, 200,
            object("object", "response.input_tokens", "input_tokens",
                   static_cast<int64_t>(prompt.ids.size())));
  return {};
}

// Prompts are scored on the embedding thread, so that texts do not wait for them.
Status score_and_write(Service& service, OpenAiRequest request, std::vector<Echo> echoes,
                       const std::shared_ptr<HttpReply>& reply) {
  request.prompt = nullptr;  // frees the body
  auto work = [&service, request = std::move(request), echoes = std::move(echoes),
               reply]() mutable {
    const auto go_on = [&] { return !reply->gone() && !service.stopping(); };
    if (!go_on()) return;
    Result<std::vector<std::vector<PromptToken>>> chances =
        prompt_chances(service.model(), request.text.prompts, request.text.options.top_logprobs,
                       service.session_options(), go_on);
    if (!chances.ok()) return send_error(*reply, openai_errors(), chances.error());
    for (size_t i = 0; i < echoes.size(); ++i) echoes[i].chances = std::move((*chances)[i]);
    auto dialect = std::make_shared<CompletionDialect>(service, request, std::move(echoes));
    const Status written = service.write(std::move(request.text), std::move(dialect), reply);
    if (!written.ok()) send_error(*reply, openai_errors(), written.error());
  };
  const bool taken = service.compute(
      [reply, work]() mutable { answer_guarded(reply, openai_errors(), [&] { work(); }); });
  return taken ? Status()
               : Status(busy("as many prompts wait to be scored as may; try again in a moment"));
}

Status completions(Service& service, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(OpenAiRequest request, read(service, body, completion_fields()));
  if (request.prompt == nullptr)
    return invalid("prompt is missing: a text, tokens, or a list of them");
  LOOM_ASSIGN(request.text.prompts, read_prompts(service, *request.prompt, *reply));
  LOOM_TRY(service.check_prompts(request.text));
  std::vector<Echo> echoes;
  for (size_t i = 0; request.echo && i < request.text.prompts.size(); ++i) {
    Echo echo;
    echo.ids = request.text.prompts[i];
    LOOM_ASSIGN(echo.text, service.model().detokenize(echo.ids));
    echoes.push_back(std::move(echo));
  }
  if (request.echo && request.text.options.logprobs)
    return score_and_write(service, std::move(request), std::move(echoes), reply);
  auto dialect = std::make_shared<CompletionDialect>(service, request, std::move(echoes));
  return service.write(std::move(request.text), std::move(dialect), reply);
}

}  // namespace

const Dialect& openai_errors() {
  static const ErrorsOnly dialect(openai_error);
  return dialect;
}

Status openai_chat(Service& service, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply) {
  return chat(service, body, reply);
}

void add_openai(std::vector<Route>& routes) {
  const auto chat_schema = [] { return schema_of<OpenAiRequest>(chat_fields()); };
  for (const char* path : {"/v1/chat/completions", "/chat/completions"})
    routes.push_back(text_route(path, chat, openai_errors(), chat_schema));
  for (const char* path : {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"})
    routes.push_back(text_route(path, count_input, openai_errors(), chat_schema));
  routes.push_back(text_route("/v1/completions", completions, openai_errors(),
                              [] { return schema_of<OpenAiRequest>(completion_fields()); }));
  add_openai_models(routes);
}

}  // namespace loom::core
