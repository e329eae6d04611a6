// OpenAI's responses: one answer to a text or a conversation, whole or as numbered events.
#include "base/text.hpp"
#include "serve/dialects.hpp"
#include "serve/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* input = nullptr;
  std::string instructions;
};

// Texts have no other format yet.
Status take_text_format(const JsonValue& value, std::string_view name, Request& r) {
  const JsonValue* format = value.find("format");
  if (format == nullptr || format->is_null()) return {};
  return take_format(*format, cat(name, ".format"), r.text);
}

Status take_choice(const JsonValue& value, std::string_view name, Request&) {
  return value.text() == "auto" ? Status() : must_be_off(value, name);
}

const std::vector<BodyField<Request>>& fields() {
  static const std::vector<BodyField<Request>> table = {
      kept_field("input", &Request::input),
      string_field("instructions", &Request::instructions),
      text_field<Request>("max_output_tokens", take_max_tokens),
      text_field<Request>("temperature", take_temperature),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stream", take_stream),
      {"text", take_text_format},
      {"tool_choice", take_choice},
      off_field<Request>("tools"),
      off_field<Request>("previous_response_id"),
      off_field<Request>("conversation"),
      off_field<Request>("background"),
      off_field<Request>("top_logprobs"),
      ignored_field<Request>("model"),
      ignored_field<Request>("store"),
      ignored_field<Request>("metadata"),
      ignored_field<Request>("user"),
      ignored_field<Request>("include"),
      ignored_field<Request>("parallel_tool_calls"),
      ignored_field<Request>("reasoning"),
      ignored_field<Request>("truncation"),
      ignored_field<Request>("service_tier"),
      ignored_field<Request>("safety_identifier"),
      ignored_field<Request>("prompt_cache_key"),
  };
  return table;
}

class Responses final : public Dialect {
 public:
  Responses(const Service& service, const Request& request)
      : service_(service),
        instructions_(request.instructions),
        sampler_(request.text.options.sampler),
        max_tokens_(request.text.max_tokens),
        prompt_(static_cast<int64_t>(request.text.prompts.front().size())) {}

  std::string first() override {
    std::string out = event("response.created", "response", response("in_progress", {}, nullptr));
    out += event("response.in_progress", "response", response("in_progress", {}, nullptr));
    out += event("response.output_item.added", "output_index", 0, "item",
                 item("in_progress", JsonValue::array()));
    out += event("response.content_part.added", "item_id", item_id(), "output_index", 0,
                 "content_index", 0, "part", part(""));
    return out;
  }
  std::string piece(size_t, std::string_view text, const Token*) override {
    return event("response.output_text.delta", "item_id", item_id(), "output_index", 0,
                 "content_index", 0, "delta", text, "logprobs", JsonValue::array());
  }
  std::string last(size_t, const TextEnd& end) override {
    const std::string_view text = end.text.text;
    const char* status = status_of(end);
    std::string out = event("response.output_text.done", "item_id", item_id(), "output_index", 0,
                            "content_index", 0, "text", text, "logprobs", JsonValue::array());
    out += event("response.content_part.done", "item_id", item_id(), "output_index", 0,
                 "content_index", 0, "part", part(text));
    out += event("response.output_item.done", "output_index", 0, "item",
                 item(status, list(part(text))));
    out += event(cat("response.", status), "response",
                 response(status, list(item(status, list(part(text)))), &end));
    return out;
  }
  std::string broken(const Error& error) override {
    return event("error", "code", kind_of(error).type, "message",
                 std::string_view(message_of(error)), "param", JsonValue());
  }
  JsonValue whole(const std::vector<TextEnd>& texts) override {
    const TextEnd& end = texts.front();
    const char* status = status_of(end);
    return response(status, list(item(status, list(part(end.text.text)))), &end);
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return openai_error(status, type, error);
  }

 private:
  static const char* status_of(const TextEnd& end) {
    const bool cut = end.text.stop == StopReason::length || end.text.stop == StopReason::context;
    return cut ? "incomplete" : "completed";
  }
  std::string_view item_id() const { return item_; }
  // Events are numbered as they are made: one statement each.
  template <class... Members>
  std::string event(std::string_view name, Members... members) {
    JsonValue out = object("type", name, "sequence_number", sequence_++);
    add_members(out, std::move(members)...);
    return sse(out, name);
  }
  static JsonValue part(std::string_view text) {
    return object("type", "output_text", "text", text, "annotations", JsonValue::array(),
                  "logprobs", JsonValue::array());
  }
  JsonValue item(const char* status, JsonValue content) const {
    return object("id", item_id(), "type", "message", "status", status, "role", "assistant",
                  "content", std::move(content));
  }
  JsonValue response(std::string_view status, JsonValue output, const TextEnd* end) const {
    JsonValue why;
    if (status == "incomplete") why = object("reason", "max_output_tokens");
    if (output.is_null()) output = JsonValue::array();
    JsonValue out =
        object("id", std::string_view(id_), "object", "response", "created_at", created_, "status",
               status, "error", JsonValue(), "incomplete_details", std::move(why), "model",
               std::string_view(service_.name()), "output", std::move(output));
    add_members(out, "instructions",
                instructions_.empty() ? JsonValue() : json(std::string_view(instructions_)),
                "max_output_tokens", max_tokens_ < 0 ? JsonValue() : json(max_tokens_),
                "temperature", static_cast<double>(sampler_.temperature), "top_p",
                static_cast<double>(sampler_.top_p), "seed", static_cast<int64_t>(sampler_.seed),
                "system_fingerprint", std::string_view(service_.fingerprint()),
                "parallel_tool_calls", true, "tool_choice", "auto", "tools", JsonValue::array(),
                "previous_response_id", JsonValue(), "metadata", JsonValue::object());
    out.add("usage", end == nullptr ? JsonValue() : usage(*end));
    return out;
  }
  JsonValue usage(const TextEnd& end) const {
    const auto written = static_cast<int64_t>(end.text.token_ids.size());
    return object("input_tokens", prompt_, "input_tokens_details",
                  object("cached_tokens", end.cached), "output_tokens", written,
                  "output_tokens_details", object("reasoning_tokens", 0), "total_tokens",
                  prompt_ + written);
  }

  const Service& service_;
  const std::string instructions_;
  const SamplerOptions sampler_;
  const int64_t max_tokens_, prompt_;
  const std::string id_ = new_id("resp_"), item_ = new_id("msg_");
  const int64_t created_ = unix_seconds();
  int64_t sequence_ = 0;
};

Result<std::vector<ChatTurn>> turns_of(const Service& service, const Request& request) {
  LOOM_TRY(service.writes());
  if (request.input == nullptr) return invalid("input is missing: a text, or a list of messages");
  std::vector<ChatTurn> turns;
  if (request.input->is_string()) {
    turns.push_back({"user", request.input->text()});
  } else {
    LOOM_ASSIGN(turns, service.turns(*request.input, "input"));
  }
  if (!request.instructions.empty()) turns.insert(turns.begin(), {"system", request.instructions});
  return turns;
}

Status respond(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  Request request;
  request.text.options.sampler.temperature = 1.0f;
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, turns_of(service, request));
  LOOM_ASSIGN(std::vector<TokenId> prompt, service.model().tokenize_chat(turns));
  request.text.prompts.push_back(std::move(prompt));
  auto dialect = std::make_shared<Responses>(service, request);
  return service.write(std::move(request.text), std::move(dialect), reply);
}

}  // namespace

void add_responses(std::vector<Route>& routes) {
  routes.push_back(text_route("/v1/responses", respond, openai_errors()));
}

}  // namespace loom::core
